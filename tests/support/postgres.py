"""A real PostgreSQL for the tests: one server per test run, a database per test.

The run (`TestRun`) belongs to the process that pytest was started as; its workers get the folder
by name. The first to ask for the server starts it, the end of the run ends it (`postgres_guard`).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

_PREFIX = "steadmesh-tests-"


class PostgresNotStarted(Exception):
    """The test server could not be started; the text says why."""


class TestRun:
    """The folder of one test run, and the sign by which the server's guard knows it goes on."""

    __test__ = False  # not a test case, in spite of its name

    def __init__(self) -> None:
        _remove_folders_of_killed_runs()
        hidden = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
        self._alive: int | None = os.open(hidden / "alive", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._alive, fcntl.LOCK_EX)
        self.folder = hidden.rename(hidden.with_name(hidden.name[1:]))  # never seen unlocked

    def end(self) -> None:
        """Let the guard stop the server, wait for it, and remove the folder. Twice does no harm."""
        if self._alive is None:
            return
        started = (self.folder / "guard").exists()
        guard = os.open(self.folder / "guard", os.O_RDWR | os.O_CREAT, 0o600)
        os.close(self._alive)
        self._alive = None
        if started:
            fcntl.flock(guard, fcntl.LOCK_EX)
        os.close(guard)
        shutil.rmtree(self.folder, ignore_errors=True)


def postgres_server(run_dir: Path) -> str:
    """URL of the `postgres` database of this run's server, which is started by the first caller."""
    known = run_dir / "url"
    with _locked(run_dir / "start"):
        if not known.exists():
            known.write_text(_start(run_dir))
        url = known.read_text()
    if not url:
        raise PostgresNotStarted("the test server could not be started; an earlier test says why")
    return url


def make_template(dsn: str, name: str, migrate: Callable[[str], None]) -> None:
    """Make a database to clone from, unless it is there. `migrate` gets its URL and closes what it
    opens. Any number of workers may ask at once."""
    building = f"{name}_building"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
        if _exists(connection, name):
            return
        _run(connection, "DROP DATABASE IF EXISTS {} WITH (FORCE)", building)
        _run(connection, "CREATE DATABASE {} TEMPLATE template0", building)
        migrate(_with_database(dsn, building))
        _run(connection, "ALTER DATABASE {} RENAME TO {}", building, name)


def clone_database(dsn: str, template: str, name: str) -> str:
    """Make a database like the template; its URL."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        _run(connection, "CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, template)
    return _with_database(dsn, name)


def drop_database(dsn: str, name: str) -> None:
    """Remove a database, whoever is connected to it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        _run(connection, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def _start(run_dir: Path) -> str:
    guard = Path(__file__).with_name("postgres_guard.py")
    process = subprocess.Popen(
        [sys.executable, str(guard), str(run_dir)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the run; the guard sees its end
    )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    answer = json.loads(line or '{"error": "the guard of the test server died"}')
    if "error" in answer:
        (run_dir / "url").write_text("")  # the other tests fail at once
        process.wait()
        raise PostgresNotStarted(answer["error"])
    process.returncode = 0  # it outlives this worker on purpose
    return f"postgresql://postgres@127.0.0.1:{answer['port']}/postgres"


def _remove_folders_of_killed_runs() -> None:
    """A killed run whose server was never started has no guard that would do it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(folder / "alive", os.O_RDWR)
        except OSError:  # being removed, or somebody else's
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not (folder / "guard").exists():
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _exists(connection: psycopg.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
    return found.fetchone() is not None


def _run(connection: psycopg.Connection, statement: LiteralString, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
