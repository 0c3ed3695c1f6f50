"""The PostgreSQL server that the tests run against: shared, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import TestRun, make_template, postgres_server

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run() -> Iterator[TestRun]:
    run = TestRun()
    yield run
    run.end()


def _postmaster_of(run_dir: Path) -> int:
    return int((run_dir / "postgres" / "data" / "postmaster.pid").read_text().split()[0])


def _wait_until_gone(path: Path) -> None:
    deadline = time.monotonic() + 15
    while path.exists():
        assert time.monotonic() < deadline, f"{path} is still there"
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_test_has_an_empty_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == []


def test_text_sorts_by_bytes_and_is_utf8(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT 'Z' < 'a', current_setting('server_encoding')").fetchone()
    assert row == (True, "UTF8")


def test_the_server_does_not_run_as_root(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        assert Path(f"/proc/{row[0]}").stat().st_uid != 0


def test_callers_at_the_same_time_get_the_same_server(run: TestRun) -> None:
    urls: list[str] = []
    threads = [
        threading.Thread(target=lambda: urls.append(postgres_server(run.folder))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(urls) == 4
    assert len(set(urls)) == 1


def test_a_template_is_made_once(postgres: str) -> None:
    made: list[str] = []
    for _ in range(2):
        make_template(postgres, "made_once", made.append)
    assert len(made) == 1


def test_a_template_whose_making_failed_is_made_anew(postgres: str) -> None:
    def fail(url: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE half_done ()")
        raise OSError("the disk is full")

    made: list[str] = []
    with pytest.raises(OSError, match="the disk is full"):
        make_template(postgres, "second_try", fail)
    make_template(postgres, "second_try", made.append)
    assert len(made) == 1


def test_the_end_of_a_run_leaves_neither_server_nor_folder(run: TestRun) -> None:
    postgres_server(run.folder)
    postmaster = _postmaster_of(run.folder)
    run.end()
    assert not run.folder.exists()
    assert not _is_running(postmaster)


def test_a_run_that_needed_no_server_leaves_no_folder(run: TestRun) -> None:
    run.end()
    assert not run.folder.exists()


def test_the_next_run_removes_what_a_killed_run_without_server_left(run: TestRun) -> None:
    program = (
        "import os; from tests.support.postgres import *;"
        "print(TestRun().folder, flush=True); os._exit(1)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    left = Path(killed.stdout.strip())
    TestRun().end()
    assert not left.exists()
    assert run.folder.exists()


def test_a_killed_run_leaves_neither_server_nor_folder() -> None:
    program = (
        "import sys; from tests.support.postgres import *; run = TestRun();"
        "postgres_server(run.folder); print(run.folder, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        postmaster = _postmaster_of(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
    _wait_until_gone(folder)
    assert not _is_running(postmaster)
