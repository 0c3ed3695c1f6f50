"""How much a database holds: exact where that is cheap, near where it is big."""

from __future__ import annotations

import pytest

from steadmesh.kernel.database import Database, Transaction, open_database
from steadmesh.kernel.database.sizes import PAGES, DatabaseSize, TableSize, database_size


def measure(database: Database) -> tuple[DatabaseSize, dict[str, TableSize]]:
    found = database.read_blocking(database_size)
    return found, {table.name: table for table in found.tables}


def make(database: Database, *, clustered: bool, rows: int, width: int = 100) -> None:
    def work(tx: Transaction) -> None:
        ending = "WITHOUT ROWID" if clustered and tx.engine == "sqlite" else ""
        tx.run(f"CREATE TABLE things (n INTEGER PRIMARY KEY, kind TEXT, text TEXT) {ending}")
        tx.run("CREATE INDEX things_kind ON things (kind)")
        tx.many(
            "INSERT INTO things (n, kind, text) VALUES (:n, :kind, :text)",
            [{"n": n, "kind": f"kind {n % 7}", "text": "x" * width} for n in range(rows)],
        )

    database.write_blocking(work)


@pytest.mark.parametrize("clustered", [True, False])
def test_a_small_table_is_counted(database: Database, *, clustered: bool) -> None:
    make(database, clustered=clustered, rows=3_000)
    if database.engine == "postgresql":
        database.write_blocking(lambda tx: tx.run("ANALYZE things"))
    whole, tables = measure(database)
    assert tables["things"].rows == 3_000
    assert 300_000 < tables["things"].bytes <= whole.bytes
    assert tables["things"].estimated == (database.engine == "postgresql")


@pytest.mark.parametrize(("clustered", "width"), [(True, 100), (False, 100), (False, 6_000)])
def test_of_a_big_table_a_bounded_part_is_read_and_the_rest_is_near(
    tmp_path_factory: pytest.TempPathFactory, *, clustered: bool, width: int
) -> None:
    database = open_database(tmp_path_factory.mktemp("big") / "big.db")
    rows = 200_000 if width < 1_000 else 8_000
    make(database, clustered=clustered, rows=rows, width=width)
    whole, tables = measure(database)
    things = tables["things"]
    assert whole.bytes > 4 * PAGES * 4_096
    assert things.estimated
    assert 0.8 * rows < things.rows < 1.25 * rows
    assert 0.8 * whole.bytes < things.bytes < 1.25 * whole.bytes
    database.close()


def test_space_that_was_freed_is_told_and_used_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    database = open_database(tmp_path_factory.mktemp("small") / "small.db")
    make(database, clustered=False, rows=20_000)
    before, _ = measure(database)
    database.write_blocking(lambda tx: tx.run("DELETE FROM things WHERE n < 15000"))
    freed, _ = measure(database)
    assert freed.bytes == before.bytes
    assert freed.free_bytes is not None
    assert freed.free_bytes > before.bytes / 2
    assert freed.log_bytes is not None
    assert freed.log_bytes > 0
    database.write_blocking(
        lambda tx: tx.many(
            "INSERT INTO things (n, kind, text) VALUES (:n, 'new', :text)",
            [{"n": 100_000 + n, "text": "x" * 100} for n in range(10_000)],
        )
    )
    after, _ = measure(database)
    assert after.bytes == before.bytes
    database.close()


def test_the_largest_table_comes_first(database: Database) -> None:
    make(database, clustered=False, rows=3_000)
    database.write_blocking(lambda tx: tx.run("CREATE TABLE empty (n INTEGER PRIMARY KEY)"))
    whole, tables = measure(database)
    assert list(tables) == ["things", "empty"]
    assert (whole.log_bytes is None) == (database.engine == "postgresql")
