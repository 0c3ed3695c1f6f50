"""How much a database holds, asked so that it costs little in a big one too.

PostgreSQL keeps count of itself: bytes are exact, rows as of its last look. SQLite does not; of each of
its trees a bounded number of pages is read, and from a tree that has more the rest is inferred.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from steadmesh.kernel.database import Row, Transaction

PAGES = 1_000
"""Of one tree: at most 4 MiB are read."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """One table, its indexes included."""

    name: str
    rows: int
    bytes: int
    estimated: bool
    """The number of rows, and on SQLite that of bytes, is inferred."""


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """A database, and its tables by size."""

    bytes: int
    free_bytes: int | None
    """Of SQLite's file: what was freed, and is used before the file grows."""
    log_bytes: int | None
    """Of SQLite: the file of the write-ahead log."""
    tables: list[TableSize]


def database_size(tx: Transaction) -> DatabaseSize:
    """How much there is. At most some hundredths of a second for each table."""
    found = _sqlite(tx) if tx.engine == "sqlite" else _postgresql(tx)
    return replace(found, tables=sorted(found.tables, key=lambda table: (-table.bytes, table.name)))


def _postgresql(tx: Transaction) -> DatabaseSize:
    total = tx.one("SELECT pg_database_size(current_database()) AS bytes")
    rows = tx.all(
        "SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes,"
        " CASE WHEN c.reltuples >= 0 THEN CAST(c.reltuples AS BIGINT)"
        "  ELSE coalesce(pg_stat_get_live_tuples(c.oid), 0) END AS rows"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind = 'r' AND n.nspname = current_schema()"
    )
    tables = [TableSize(row["name"], row["rows"], row["bytes"], estimated=True) for row in rows]
    return DatabaseSize(_number(total, "bytes"), None, None, tables)


def _sqlite(tx: Transaction) -> DatabaseSize:
    page = _number(tx.one("PRAGMA page_size"), "page_size")
    trees = tx.all(
        "SELECT name, tbl_name, type, sql FROM sqlite_schema"
        " WHERE rootpage > 0 AND tbl_name NOT LIKE 'sqlite%'"
    )
    tables: dict[str, TableSize] = {}
    for tree in trees:
        pages = tx.all(
            "SELECT path, pagetype, ncell FROM dbstat WHERE name = :name LIMIT :limit",
            name=tree["name"],
            limit=PAGES,
        )
        share = 1.0 if len(pages) < PAGES else _share(pages)
        known = tables.get(tree["tbl_name"], TableSize(tree["tbl_name"], 0, 0, estimated=False))
        own = tree["type"] == "table"
        tables[known.name] = replace(
            known,
            rows=known.rows + (round(_rows(tree, pages) / share) if own else 0),
            bytes=known.bytes + round(len(pages) * page / share),
            estimated=known.estimated or share < 1,
        )
    return DatabaseSize(
        bytes=page * _number(tx.one("PRAGMA page_count"), "page_count"),
        free_bytes=page * _number(tx.one("PRAGMA freelist_count"), "freelist_count"),
        log_bytes=_log_bytes(tx),
        tables=list(tables.values()),
    )


def _rows(tree: Row, pages: Iterable[Row]) -> int:
    """Entries on the pages of a table. Only one without row ids has rows on its inner pages too."""
    anywhere = "WITHOUT ROWID" in tree["sql"]
    return sum(p["ncell"] for p in pages if anywhere or p["pagetype"] == "leaf")


def _share(pages: list[Row]) -> float:
    """How much of a tree was seen, by the way from its root to the last page: `/01f/002/`, and to one
    that a row of it flows over to: `/01f/002/003+000000`."""
    children = {p["path"]: p["ncell"] + (p["pagetype"] == "internal") for p in pages}
    last = pages[-1]["path"].partition("+")[0]
    share, part, path = 0.0, 1.0, "/"
    for step in filter(None, last.split("/")):
        part /= children[path]
        share += int(step, 16) * part
        path = f"{path}{step}/"
    return min(max(share, 1e-9), 1.0)


def _log_bytes(tx: Transaction) -> int | None:
    row = tx.one("SELECT file FROM pragma_database_list WHERE name = 'main'")
    try:
        return os.stat(f"{row['file']}-wal").st_size if row else None
    except OSError:  # it is made by the first write
        return 0


def _number(row: Row | None, name: str) -> int:
    return int(row[name]) if row else 0
