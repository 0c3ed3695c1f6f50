"""Organisation F alive: the real service, a supervisor, runner processes and the real tool client."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadmesh.client.http import Service
from steadmesh.kernel.clock import SECOND, Clock, Instant
from steadmesh.runner.processes import identify
from steadmesh.runner.supervisor import SupervisorSettings, supervise
from tests.runner.waiting import until
from tests.support.organisations import fixture_f
from tests.support.seats import Client, apply
from tests.support.service import RunningService

PEOPLE = {"alice": "token-of-alice-0123456789", "bob": "token-of-bob-0123456789"}
UNENFORCED = ("network_policy", "non_root")


class ShiftedClock:
    """The time of the machine, which a test can put forward."""

    def __init__(self) -> None:
        self._ahead = 0

    def now(self) -> Instant:
        return time.time_ns() // 1_000 + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += round(seconds * SECOND)


class Town:
    """Everything of one test; `live` makes it."""

    def __init__(self, service: RunningService, folder: Path, document: dict[str, Any]) -> None:
        self.service = service
        self.folder = folder
        self.document = document
        self.seats = apply(service, document)
        self.told: list[str] = []

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def apply(self) -> None:
        """Put the (changed) document in force."""
        self.seats = apply(self.service, self.document)

    def restart_service(self) -> None:
        """Stop the service and start another on the same data."""
        data = self.service.data
        self.service.__exit__(None, None, None)
        self.service = RunningService(data=data).__enter__()

    def fence(self, key: str) -> None:
        """End a seat's generation, as for a runner that is gone."""
        path = f"/internal/v1/seats/{self.seats[key]}/fence"
        body = {"expected_generation": self.seat(key)["lease_generation"]}
        assert self.service.request("POST", path, body, local=True).status == 200

    def change(self, statement: str, key: str) -> None:
        """Let the service know something else about a seat (`:seat`), as by an operator."""
        service, seat = self.service.service, self.seats[key]
        service.database.write_blocking(lambda tx: tx.run(statement, seat=seat))
        service.signals.notify([f"runtime:{self.organisation_id()}"])

    def organisation_id(self) -> str:
        answer = self.service.request("GET", "/internal/v1/organizations", local=True)
        return str(answer.json()["organizations"][0]["organization_id"])

    def seat(self, key: str) -> dict[str, Any]:
        """What the service knows of a seat now."""
        path = f"/internal/v1/organizations/{self.organisation_id()}/runtime"
        row: dict[str, Any] = self.service.request("GET", path, local=True).json()["seats"][key]
        return row

    def settings(self, **changes: Any) -> SupervisorSettings:
        return SupervisorSettings(
            addresses=[f"unix:{self.service.socket}"],
            organization_id=self.organisation_id(),
            data_dir=self.data,
            **{"unenforced": UNENFORCED, "stop_grace_seconds": 5.0, **changes},
        )

    @contextmanager
    def supervised(self, **changes: Any) -> Iterator[threading.Event]:
        """A supervisor in a thread, stopped at the end."""
        stop = threading.Event()
        codes: list[int] = []
        settings = self.settings(**changes)
        thread = threading.Thread(
            target=lambda: codes.append(supervise(settings, stop=stop, tell=self.told.append)),
            daemon=True,
        )
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            thread.join(40)
            assert not thread.is_alive(), "the supervisor did not stop"
        assert codes == [0], self.told

    def runs(self, key: str) -> list[Path]:
        """The run folders of a seat."""
        return list((self.data / "seats/f" / self.seats[key] / "runner/run").glob("*"))

    def runner_pid(self, key: str) -> int:
        """The process of a seat's runner, once it is up."""

        def ready() -> int:
            for run in self.runs(key):
                if (run / "ready").exists():
                    return int((run / "process").read_text().split()[0])
            return 0

        return until(ready, f"{key} is up; told: {self.told}", limit=20)

    def workspace(self, key: str) -> Path:
        return self.data / "seats/f" / self.seats[key] / "workspace"

    def runner_log(self, key: str) -> str:
        file = self.data / "seats/f" / self.seats[key] / "runner/runner.log"
        return file.read_text() if file.exists() else "(none)"

    def runner_says(self, key: str, words: str) -> None:
        """Wait until the log of a seat's runner holds the words."""
        until(lambda: words in self.runner_log(key), f"{key} logs {words}", limit=20)

    def by_hand(self, key: str) -> Client:
        """The test itself as a seat, with its lease."""
        return Client.of(self.service, self.seats[key], self.folder / f"hand-{key}")

    def person(self, name: str) -> Person:
        return Person(self, name)

    def state_until(self, key: str, wanted: Mapping[str, Any], *, limit: float = 20.0) -> None:
        """Wait until the service knows this of a seat."""

        def matches() -> bool:
            row = self.seat(key)
            return all(row.get(name) == value for name, value in wanted.items())

        try:
            until(matches, f"{key} is {wanted}", limit=limit)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.seat(key)}; told: {self.told}") from None


class Person:
    """Somebody at a terminal."""

    def __init__(self, town: Town, name: str) -> None:
        self._town = town
        self._headers = {"Authorization": f"Bearer {PEOPLE[name]}"}
        self.lines: list[str] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, text: str) -> None:
        body = {"id": str(uuid.uuid4()), "text": text}
        path = "/v1/channels/f/chat/messages"
        answer = self._town.service.request("POST", path, body, headers=self._headers)
        assert answer.status == 202, answer.body

    def hears(self, beginning: str, *, limit: float = 30.0) -> str:
        """The first line that begins so; fails the test after the limit."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._found(beginning), limit):
                raise AssertionError(
                    f"not heard in {limit:g} s: {beginning!r}; heard {self.lines};"
                    f" told {self._town.told}"
                )
            return self._found(beginning) or ""

    def _found(self, beginning: str) -> str | None:
        return next((line for line in self.lines if line.startswith(beginning)), None)

    def _listen(self) -> None:
        service = Service([f"unix:{self._town.service.socket}"])
        try:
            with service.stream("/v1/channels/f/chat/events", headers=self._headers) as stream:
                for line in stream:
                    if line.startswith(b"data:"):
                        with self._changed:
                            self.lines.append(json.loads(line[5:])["text"])
                            self._changed.notify_all()
        except Exception:
            return  # the service has gone with its test


@contextmanager
def live(
    folder: Path, document: dict[str, Any] | None = None, *, clock: Clock | None = None
) -> Iterator[Town]:
    """The service with organisation F, or a changed one, in force."""
    secret = folder / "people.json"
    secret.write_text(json.dumps(PEOPLE))
    given = document or fixture_f()
    given["connections"]["chat"]["secret_ref"] = f"file:{secret}"
    data = Path(tempfile.mkdtemp(prefix="sm-"))  # short, so that the socket fits into it
    try:
        town = Town(RunningService(data=data, clock=clock).__enter__(), folder, given)
        try:
            yield town
        finally:
            town.service.__exit__(None, None, None)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def alive(pid: int) -> bool:
    """Whether a process exists and is no mere remains."""
    return identify(pid) is not None


def eventually_gone(pid: int, *, limit: float = 10.0) -> None:
    """Fails the test if the process does not end in time."""
    until(lambda: not alive(pid), f"process {pid} is gone", limit=limit)
