"""How much the database holds: what takes the room, what is kept how long, and since when."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import optional_rfc3339
from steadmesh.kernel.config_values import shown_period
from steadmesh.kernel.database.sizes import TableSize, database_size
from steadmesh.kernel.trimming import Trimming
from steadmesh.tools import Call, Doc, Feature, NoArgs, Result, endpoint


class Table(Result):
    name: str
    rows: int
    bytes: Annotated[int, Doc("With its indexes.")]
    estimated: Annotated[bool, Doc("The rows, and on SQLite the bytes, are inferred.")]
    kept: Annotated[
        str | None,
        Doc("How long rows are kept: 90d, forever. Nothing: as long as what they belong to."),
    ] = None
    setting: Annotated[str | None, Doc("The setting that says so.")] = None
    oldest: Annotated[str | None, Doc("When the first row is from.")] = None


class Sizes(Result):
    engine: str
    bytes: Annotated[int, Doc("The whole database.")]
    free_bytes: Annotated[
        int | None, Doc("SQLite: what was freed in the file, and is used before it grows.")
    ] = None
    log_bytes: Annotated[int | None, Doc("SQLite: the file of the write-ahead log.")] = None
    tables: Annotated[list[Table], Doc("The largest first.")]


@endpoint("GET /internal/v1/sizes", family="operator", reads=True)
def sizes(call: Call[Any], args: NoArgs) -> Sizes:
    """How much the database holds, by table. Cheap in a big one too: what is counted there is inferred."""
    found = database_size(call.tx)
    trimmings = {trimming.table: trimming for trimming in call.services.kept.trimmings}
    return Sizes(
        engine=call.tx.engine,
        bytes=found.bytes,
        free_bytes=found.free_bytes,
        log_bytes=found.log_bytes,
        tables=[_table(call, table, trimmings.get(table.name)) for table in found.tables],
    )


def _table(call: Call[Any], table: TableSize, trimming: Trimming | None) -> Table:
    shown = Table(name=table.name, rows=table.rows, bytes=table.bytes, estimated=table.estimated)
    if trimming is None:
        return shown
    period = trimming.kept_for(call.services.kept.retention)
    return shown.model_copy(
        update={
            "kept": shown_period(None if period is None else period * 1_000),
            "setting": f"retention.{trimming.setting}" if trimming.setting else None,
            "oldest": optional_rfc3339(trimming.oldest(call.tx)),
        }
    )


FEATURE = Feature(package="steadmesh.service", endpoints=[sizes])
