"""The service as a process: how it starts, what it says, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steadmesh import __version__
from steadmesh.kernel.clock import SystemClock
from steadmesh.kernel.config import load
from steadmesh.kernel.database import DatabaseUnavailable, Transaction, open_database
from steadmesh.kernel.datadir import DataDirectory, process_start
from steadmesh.service.assembly import build
from tests.runner.waiting import until
from tests.service import notes
from tests.service.notes import ADA
from tests.support.service import RunningService

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
LIMIT = 20.0
PROGRAM = """
import json, sys
from steadmesh.kernel.config import load
from steadmesh.service.server import serve
sys.exit(serve(load(json.loads(sys.argv[1]), {"HOME": "/nonexistent"})))
"""


class Process:
    """`serve` in a process of its own; what it says on stderr is read line by line."""

    def __init__(self, data: Path, **flags: Any) -> None:
        given = json.dumps({"data": str(data), "port": 0} | flags)
        self.data = data
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def started(self) -> Process:
        until(lambda: self._announced() or self._process.poll() is not None, "the start")
        assert self._announced(), self.said
        return self

    @property
    def port(self) -> int:
        return int(self._announced().rpartition(":")[2])

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        """The exit status, once it has ended."""
        status = self._process.wait(LIMIT)
        self._reader.join(LIMIT)
        return status

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(LIMIT)
        self._reader.join(LIMIT)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def stdout(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.read()

    def _announced(self) -> str:
        return next((line for line in self.said if line.startswith("listening on ")), "")

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line.rstrip("\n"))


Serve = Callable[..., Process]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts processes that end with the test."""
    processes: list[Process] = []

    def start(data: Path, **flags: Any) -> Process:
        processes.append(Process(data, **flags))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def address(data: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((data / "address.json").read_bytes())
    return content


def test_it_says_where_it_listens_and_where_its_log_is(serve: Serve, tmp_path: Path) -> None:
    process = serve(tmp_path / "data").started()
    assert f"listening on http://127.0.0.1:{process.port}" in process.said
    assert f"the log is {tmp_path}/data/steadmesh.log" in process.said
    process.send(signal.SIGTERM)
    assert process.ended() == 0
    assert process.stdout() == ""


def test_its_address_is_in_the_data_directory_while_it_runs(serve: Serve, tmp_path: Path) -> None:
    process = serve(tmp_path).started()
    found = address(tmp_path)
    assert found == {
        "socket": found["socket"],
        "url": f"http://127.0.0.1:{process.port}",
        "pid": process.pid,
        "started": process_start(process.pid),
        "version": __version__,
        "instance_id": found["instance_id"],
    }
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    process.send(signal.SIGINT)
    assert process.ended() == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "operator.key",
        "service.lock",
        "steadmesh.db",
        "steadmesh.log",
    ]


def test_the_socket_is_for_its_user_alone() -> None:
    with RunningService() as running:
        mode = running.socket.lstat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert running.socket.parent == running.data
        health = running.request("GET", "/healthz", local=True).json()
        assert health["instance_id"] == address(running.data)["instance_id"]


def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    with RunningService(data=tmp_path / ("d" * 100)) as running:
        assert running.socket.parent != running.data
        assert stat.S_IMODE(running.socket.parent.stat().st_mode) == 0o700
        assert address(running.data)["socket"] == str(running.socket)
        assert running.request("GET", "/healthz", local=True).status == 200
    assert not running.socket.parent.exists()


def test_a_taken_port_is_named_with_what_to_do(serve: Serve, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = serve(tmp_path, port=port)
        assert process.ended() == 1
    assert process.said == [
        f"steadmesh: port {port} on 127.0.0.1 is taken by another program; "
        "take a free one with `--port 0`, or name another"
    ]


def test_a_host_of_another_machine_is_refused(serve: Serve, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    flags = {"host": "192.0.2.1", "http_secret_file": str(secret)}
    process = serve(tmp_path / "data", **flags)
    assert process.ended() == 1
    assert "192.0.2.1" in process.said[0]


def test_a_second_service_on_the_same_data_is_refused(serve: Serve, tmp_path: Path) -> None:
    first = serve(tmp_path).started()
    second = serve(tmp_path)
    assert second.ended() == 1
    assert len(second.said) == 1
    assert f"(pid {first.pid}) already uses {tmp_path}" in second.said[0]
    first.send(signal.SIGTERM)
    assert first.ended() == 0


def test_a_data_directory_that_is_a_file_is_refused(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    process = serve(tmp_path / "data")
    assert process.ended() == 1
    assert "is a file" in process.said[0]


@pytest.mark.parametrize("content", [b"this is no database " * 500, b""])
def test_a_file_that_is_no_database_is_refused_and_an_empty_one_is_made_one(
    serve: Serve, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "service.lock").touch()  # a data directory of ours
    (tmp_path / "steadmesh.db").write_bytes(content)
    process = serve(tmp_path)
    if content:
        assert process.ended() == 1
        assert f"cannot open the database {tmp_path}/steadmesh.db" in process.said[-1]
        assert (tmp_path / "steadmesh.db").read_bytes() == content
    else:
        process.started()


def test_an_address_that_cannot_be_written_ends_the_start(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "data" / "address.json" / "x").mkdir(parents=True)
    (tmp_path / "data").chmod(0o700)
    process = serve(tmp_path / "data")
    assert process.ended() == 1
    assert "address.json cannot be written" in process.said[-1]


def test_a_database_that_cannot_be_reached_is_named_without_a_traceback(
    serve: Serve, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    process = serve(tmp_path, database=f"postgresql://mia@127.0.0.1:{port}/mesh")
    assert process.ended() == 1
    assert process.said[-1].startswith("steadmesh: cannot reach PostgreSQL at ")
    assert not any("Traceback" in line for line in process.said)
    assert not (tmp_path / "address.json").exists()


def test_a_killed_service_is_followed_by_another_on_the_same_data(
    serve: Serve, tmp_path: Path
) -> None:
    first = serve(tmp_path).started()
    before = address(tmp_path)
    first.send(signal.SIGKILL)
    assert first.ended() == -signal.SIGKILL
    assert Path(before["socket"]).is_socket()
    second = serve(tmp_path).started()
    after = address(tmp_path)
    assert after["instance_id"] != before["instance_id"]
    assert after["pid"] == second.pid
    second.send(signal.SIGTERM)
    assert second.ended() == 0
    assert not Path(after["socket"]).exists()


def test_a_second_signal_ends_it_at_once(serve: Serve, tmp_path: Path) -> None:
    process = serve(tmp_path).started()
    with socket.create_connection(("127.0.0.1", process.port)) as opened:
        opened.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        log = tmp_path / "steadmesh.log"
        process.send(signal.SIGTERM)
        until(lambda: "service stops" in log.read_text(), "the beginning of the end")
        process.send(signal.SIGTERM)
        assert process.ended() == 128 + signal.SIGTERM


def test_an_operator_hears_which_process_serves_what_and_what_was_lost() -> None:
    with RunningService() as running:
        assert running.request("GET", "/internal/v1/service").status == 401
        running.service.audit.dropped = 3
        said = running.request("GET", "/internal/v1/service", local=True).json()
        assert (said["pid"], said["version"]) == (os.getpid(), __version__)
        assert said["instance_id"] == running.service.instance_id
        assert said["database"] == {
            "engine": "sqlite",
            "place": running.service.database.place,
            "ready": True,
        }
        assert said["audit_rows_dropped"] == 3
        metrics = running.request("GET", "/metrics").body.decode()
        assert "\nsteadmesh_audit_rows_dropped 3.0\n" in metrics


def test_an_operator_may_stop_it() -> None:
    with RunningService() as running:
        assert running.request("POST", "/internal/v1/service:stop", {}).status == 401
        response = running.request("POST", "/internal/v1/service:stop", {}, local=True)
        assert response.status == 202
        running.join()
        assert not (running.data / "address.json").exists()


def test_a_call_that_runs_is_finished_before_the_end() -> None:
    entered, release = threading.Event(), threading.Event()
    with RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running:

        def occupy(tx: Transaction) -> None:
            entered.set()
            release.wait(LIMIT)

        database = running.service.database
        blocker = threading.Thread(target=database.write_blocking, args=[occupy])
        blocker.start()
        assert entered.wait(LIMIT)
        connection = running.connection(timeout=LIMIT)
        body = json.dumps({"arguments": {"text": "late"}})
        headers = SEAT | {"Content-Type": "application/json"}
        connection.request("POST", "/v1/tools/notes.add", body, headers)
        until(lambda: running.requests, "the call")
        running.service.stop("the test says so")
        release.set()
        response = connection.getresponse()
        assert json.loads(response.read()) == {"content": {"total": 1}}
        connection.close()
        blocker.join(LIMIT)


def test_rows_of_the_audit_are_written_before_the_end(tmp_path: Path) -> None:
    with RunningService(
        data=tmp_path, families=notes.FAMILIES, features=[notes.FEATURE]
    ) as running:
        running.request("POST", "/v1/tools/notes.count", {}, headers=SEAT)
    database = open_database(tmp_path / "steadmesh.db")
    rows = database.read_blocking(lambda tx: tx.all("SELECT tool, outcome FROM audit"))
    database.close()
    assert rows == [{"tool": "notes.count", "outcome": "ok"}]


def test_a_step_of_the_end_that_fails_keeps_no_other_from_being_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise LookupError("a step failed")

    service = build(load({"data": str(tmp_path)}, {}), SystemClock())
    monkeypatch.setattr(service.mcp, "close", fail)
    service.audit.gather(1, scope="s", caller="c", tool="t", outcome="ok")
    with pytest.raises(LookupError, match="a step failed"):
        asyncio.run(service.close())
    with pytest.raises(DatabaseUnavailable):
        service.database.read_blocking(lambda tx: None)
    database = open_database(tmp_path / "steadmesh.db")
    rows = database.read_blocking(lambda tx: tx.all("SELECT tool FROM audit"))
    database.close()
    assert rows == [{"tool": "t"}]


def test_a_database_that_a_newer_version_migrated_ends_it(books: RunningService) -> None:
    books.service.database.write_blocking(
        lambda tx: tx.run(
            "INSERT INTO migrations (feature, number, name, checksum, applied_at)"
            " VALUES ('steadmesh.kernel', 999, '0999_later.sql', 'x', 0)"
        )
    )
    books.service.jobs.run_once()
    books.join()


def test_replicas_share_operators_and_hints(postgres_url: str) -> None:
    features, families = [notes.FEATURE], notes.FAMILIES
    with (
        RunningService(postgres_url, families=families, features=features) as one,
        RunningService(postgres_url, families=families, features=features) as other,
    ):
        answers: list[Any] = []

        def poll() -> None:
            path = "/v1/books/a/next?wait=10"
            answers.append(one.request("GET", path, headers=SEAT).json())

        polling = threading.Thread(target=poll)
        polling.start()
        until(lambda: one.service.signals.watchers("book:a"), "the poll")
        key = {"Authorization": f"Bearer {one.operator_key}"}
        response = other.request("POST", "/internal/v1/books/a:mend", {}, headers=key)
        assert response.status == 201
        polling.join(LIMIT)
        assert answers == [{"text": "mended"}]


def test_a_replaced_operator_key_opens_nothing_any_more(tmp_path: Path) -> None:
    with RunningService(data=tmp_path) as running:
        old = running.operator_key
    DataDirectory(tmp_path).operator_key_file.unlink()
    with RunningService(data=tmp_path) as running:
        assert running.operator_key != old
        for key, status in ((old, 401), (running.operator_key, 202)):
            headers = {"Authorization": f"Bearer {key}"}
            response = running.request("POST", "/internal/v1/service:stop", {}, headers=headers)
            assert response.status == status
