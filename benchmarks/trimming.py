"""Trimming a big database: how long each span takes, how statements find their rows, what asking for
sizes costs.

    python -m benchmarks.trimming sqlite [rows]
    python -m benchmarks.trimming postgresql [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from tests.support.postgres import TestRun, make_template, postgres_server

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Database, Row, Transaction, open_database
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.database.sizes import database_size
from steadmesh.kernel.jobs import JobContext
from steadmesh.kernel.trimming import Trimming
from steadmesh.service.assembly import FAMILIES, FEATURES
from steadmesh.tools import Catalogue
from steadmesh.tools import audit as audits
from steadmesh.tools import kept as answers

CHUNK = 50_000
DAY = 86_400_000_000
NUMBERS = (
    "WITH RECURSIVE n(i) AS"
    " (SELECT CAST(:first AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < :last)"
)
FILLS = [
    f"INSERT INTO conversations (id, organisation_id, kind, created_at, last_message_at) {NUMBERS}"
    " SELECT 'c' || CAST(100000000 + i AS TEXT), 'o', 'internal', i, i FROM n WHERE i % 10 = 1",
    f"INSERT INTO participants (seat_id, conversation_id) {NUMBERS}"
    " SELECT 's' || CAST(i % 7 AS TEXT), 'c' || CAST(100000000 + i AS TEXT) FROM n WHERE i % 10 = 1",
    "INSERT INTO messages (id, organisation_id, conversation_id, origin, body, created_at)"
    f" {NUMBERS} SELECT 'm' || CAST(i AS TEXT), 'o',"
    " 'c' || CAST(100000000 + i - (i - 1) % 10 AS TEXT), 'seat',"
    " 'a message of some sixty characters, as seats write them often', i FROM n",
    "INSERT INTO deliveries (number, message_id, seat_id, conversation_id, state, open, due_at,"
    f" execution_id, created_at) {NUMBERS} SELECT i, 'm' || CAST(i AS TEXT), 's', 'c', 'done', 0, i,"
    " 'x' || CAST(100000000 + i AS TEXT), i FROM n",
    "INSERT INTO executions (id, organisation_id, seat_id, delivery_number, message_id, generation,"
    f" config_revision, adapter, attempt, state, started_at, ended_at) {NUMBERS}"
    " SELECT 'x' || CAST(100000000 + i AS TEXT), 'o', 's', i, 'm' || CAST(i AS TEXT), 1, 'r', 'fake',"
    " 1, 'completed', i, i FROM n",
    f"INSERT INTO execution_events (execution_id, kind, data, at) {NUMBERS}"
    " SELECT 'x' || CAST(100000000 + i AS TEXT), 'progress', '{\"said\": \"something\"}', i FROM n",
    f"INSERT INTO events (scope, kind, data, at) {NUMBERS}"
    " SELECT 'o', 'message.accepted', '{\"message\": \"m\"}', i FROM n",
    f"INSERT INTO audit (at, scope, caller, tool, outcome) {NUMBERS}"
    " SELECT i, 'o', 'lead', 'messages.send', 'ok' FROM n",
    "INSERT INTO ingress_events (organisation_id, connection, external_user_id, event_id,"
    f" received_at) {NUMBERS} SELECT 'o', 'chat', 'alice', CAST(i AS TEXT), i FROM n WHERE i % 10 = 0",
]


class Watched:
    """A transaction that remembers what was asked of it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.engine = tx.engine
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def all(self, sql: str, **values: Any) -> list[Row]:
        self.asked.append((sql, values))
        return self._tx.all(cast(Any, sql), **values)

    def one(self, sql: str, **values: Any) -> Row | None:
        return next(iter(self.all(sql, **values)), None)

    def run(self, sql: str, **values: Any) -> int:
        self.asked.append((sql, values))
        return 0


def fill(database: Database, rows: int) -> None:
    """Rows of the first second of 1970, all done with."""
    for first in range(1, rows + 1, CHUNK):
        for statement in FILLS:
            database.write_blocking(
                lambda tx, sql=statement, at=first: tx.run(  # type: ignore[misc]  # bound here
                    cast(Any, sql), first=at, last=min(at + CHUNK - 1, rows)
                )
            )
    context = JobContext(database, TurnedClock(), lambda: False)
    while outbox.number_committed(context):
        pass


def explain(database: Database, trimming: Trimming, middle: Any) -> None:
    """How the statements of a span find their rows."""

    def ask(tx: Transaction) -> list[tuple[str, list[Row]]]:
        watched = Watched(tx)
        rows = trimming.rows(cast(Transaction, watched), middle, 500)
        if rows:
            trimming.remove(
                cast(Transaction, watched), after=middle, last=rows[-1]["key"], before=2**50
            )
        word = "EXPLAIN QUERY PLAN" if tx.engine == "sqlite" else "EXPLAIN"
        return [
            (sql, tx.all(cast(Any, f"{word} {sql}"), **values)) for sql, values in watched.asked
        ]

    for sql, plan in database.read_blocking(ask):
        print(f"  {sql[:110]}")
        for row in plan:
            print(f"      {row.get('detail') or row.get('QUERY PLAN')}")


def measure(database: Database, trimming: Trimming, context: JobContext) -> str:
    """Remove everything of one table, a batch at a time."""
    took: list[float] = []
    removed = 0
    while True:
        started = time.perf_counter()
        done = trimming.step(context)
        took.append(time.perf_counter() - started)
        removed += done
        if not done:
            break
    took.sort()
    share = {name: took[int(len(took) * part) - 1] for name, part in (("half", 0.5), ("99%", 0.99))}
    figures = "  ".join(f"{name} {1_000 * value:6.1f} ms" for name, value in share.items())
    return f"{trimming.table:18} {removed:9} rows, a batch of 500: {figures}  most {1_000 * took[-1]:6.1f} ms"


def look(database: Database) -> None:
    for word in ("first", "again"):
        started = time.perf_counter()
        found = database.read_blocking(database_size)
        took = time.perf_counter() - started
        print(f"sizes, {word}: {1_000 * took:.0f} ms; {found.bytes / 2**20:.0f} MiB", end="")
        print(f", free {found.free_bytes / 2**20:.0f} MiB" if found.free_bytes is not None else "")
    for table in found.tables[:9]:
        mark = "~" if table.estimated else " "
        print(f"  {table.name:18} {mark}{table.rows:9} rows {table.bytes / 2**20:8.1f} MiB")


def run(database: Database, rows: int) -> None:
    catalogue = Catalogue(FAMILIES, FEATURES)
    migrate(database, catalogue.packages, TurnedClock())
    started = time.perf_counter()
    fill(database, rows)
    print(f"filled with {rows} rows in {time.perf_counter() - started:.0f} s")
    if database.engine == "postgresql":
        database.write_blocking(lambda tx: tx.run("ANALYZE"), unhurried=True)
    look(database)
    trimmings = [*catalogue.trimmings, outbox.TRIMMING, audits.TRIMMING, answers.TRIMMING]
    for trimming in trimmings:
        print(trimming.table)
        middle = trimming.start if isinstance(trimming.start, str) else rows // 2
        explain(database, trimming, middle)
    retention = Retention(**dict.fromkeys((t.setting for t in trimmings if t.setting), 0))
    context = JobContext(database, TurnedClock(), lambda: False, retention=retention)
    order = {"deliveries": 0, "channel_outbox": 1}
    for trimming in sorted(trimmings, key=lambda trimming: order.get(trimming.table, 2)):
        print(measure(database, trimming, context))
    look(database)


@contextmanager
def opened(engine: str) -> Iterator[Database]:
    if engine == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(Path(folder) / "steadmesh.db")
            yield database
            database.close()
        return
    servers = TestRun()
    try:
        url = postgres_server(servers.folder)
        make_template(url, "trimming", lambda _: None)
        database = open_database(url.rpartition("/")[0] + "/trimming")
        yield database
        database.close()
    finally:
        servers.end()


if __name__ == "__main__":
    with opened(sys.argv[1]) as database:
        run(database, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
