"""Migrations: numbered, forward only, recorded."""

from __future__ import annotations

import uuid
from importlib.resources import files
from pathlib import Path

import pytest

from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.database import Database, DatabaseProblem, Transaction, open_database
from steadmesh.kernel.database.migrations import is_newer, migrate, migrations_of
from steadmesh.kernel.secret import service_secret

KERNEL = ["steadmesh.kernel"]


@pytest.fixture
def feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of its own with one migration."""
    name = f"feature_{uuid.uuid4().hex}"  # imported modules outlive a test
    package = tmp_path / name
    (package / "migrations").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "migrations" / "0001_things.sql").write_text(
        "CREATE TABLE things (id SERIALKEY, name KEYTEXT NOT NULL, raw RAWBYTES);\n"
        "-- a comment\nCREATE INDEX things_name ON things (name);"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_second_start_runs_nothing(database: Database, feature: str) -> None:
    packages = [*KERNEL, feature]
    assert migrate(database, packages, TurnedClock()) == len(migrations_of(KERNEL[0])) + 1
    assert migrate(database, packages, TurnedClock()) == 0


def test_ids_rise_and_are_not_used_again(database: Database, feature: str) -> None:
    migrate(database, [feature], TurnedClock())

    def insert(tx: Transaction) -> int:
        row = tx.one(
            "INSERT INTO things (name, raw) VALUES ('x', :raw) RETURNING id", raw=b"\0\xff"
        )
        assert row is not None
        return int(row["id"])

    first = database.write_blocking(insert)
    database.write_blocking(lambda tx: tx.run("DELETE FROM things"))
    assert database.write_blocking(insert) > first


def test_keys_are_ordered_byte_by_byte(database: Database, feature: str) -> None:
    migrate(database, [feature], TurnedClock())
    names = ["a", "B", "é", "_", "Z", "ab"]
    database.write_blocking(
        lambda tx: tx.many(
            "INSERT INTO things (name) VALUES (:name)", [{"name": name} for name in names]
        )
    )
    rows = database.read_blocking(lambda tx: tx.all("SELECT name FROM things ORDER BY name"))
    assert [row["name"] for row in rows] == sorted(names, key=str.encode)


def test_a_newer_database_is_refused(database: Database, feature: str) -> None:
    migrate(database, [*KERNEL, feature], TurnedClock())
    assert database.read_blocking(lambda tx: is_newer(tx, KERNEL))
    with pytest.raises(DatabaseProblem, match="newer steadmesh"):
        migrate(database, KERNEL, TurnedClock())


def test_another_version_of_a_migration_is_refused(
    database: Database, feature: str, tmp_path: Path
) -> None:
    migrate(database, [feature], TurnedClock())
    script = tmp_path / feature / "migrations" / "0001_things.sql"
    script.write_text(script.read_text() + "\n-- changed")
    with pytest.raises(DatabaseProblem, match="another version"):
        migrate(database, [feature], TurnedClock())


def test_every_replica_has_the_same_secret(database: Database) -> None:
    migrate(database, KERNEL, TurnedClock())
    assert service_secret(database) == service_secret(database)
    assert len(service_secret(database)) == 32


def test_a_migration_has_all_the_time_it_needs(postgres_url: str, feature: str) -> None:
    """And so has one that waits for another replica's; other work is hurried again."""
    database = open_database(postgres_url)
    asked = "current_setting('statement_timeout') AS run, current_setting('lock_timeout') AS wait"
    script = Path(migrations_path(feature)) / "0002_big.sql"
    script.write_text(f"CREATE TABLE limits AS SELECT {asked}")
    migrate(database, [feature], TurnedClock())
    limits = database.read_blocking(lambda tx: tx.one("SELECT run, wait FROM limits"))
    assert limits == {"run": "0", "wait": "0"}
    again = database.write_blocking(lambda tx: tx.one(f"SELECT {asked}"))
    assert again == {"run": "10s", "wait": "2s"}
    database.close()


def migrations_path(package: str) -> str:
    """The folder with a made-up package's migrations."""
    return str(files(package) / "migrations")
