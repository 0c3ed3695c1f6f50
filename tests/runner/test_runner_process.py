"""The runner as a process against the real service: how it ends, and what its health says."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadmesh.runner.folder import RunFolder
from tests.runner.town import Town, live
from tests.runner.waiting import until

PROGRAM = Path(sys.executable).with_name("steadmesh-runner")


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with live(tmp_path) as running:
        yield running


class Runner:
    """A start of the seat `rep_a`, as a supervisor makes it."""

    def __init__(self, town: Town, **more: str) -> None:
        self.town = town
        folder = town.folder / "seat"
        self.run = RunFolder(folder / "runner/run/start-1")
        for place in (self.run.path, folder / "home", folder / "workspace"):
            place.mkdir(parents=True)
        seat_id = town.seats["rep_a"]
        path = f"/internal/v1/seats/{seat_id}/tokens"
        issued = town.service.request("POST", path, {"instance": "start-1"}, local=True).json()
        self.run.write_token(issued["token"])
        self.process = subprocess.Popen(
            [str(PROGRAM)],
            env={
                "PATH": os.environ["PATH"],
                "STEADMESH_PLATFORM_URL": f"unix:{town.service.socket}",
                "STEADMESH_TOKEN_FILE": str(self.run.token_file),
                "STEADMESH_SEAT_ID": seat_id,
                "STEADMESH_SEAT_KEY": "rep_a",
                "STEADMESH_MANIFEST_DIR": str(folder / "manifest"),
                "STEADMESH_WORKSPACE_DIR": str(folder / "workspace"),
                "STEADMESH_HOME_DIR": str(folder / "home"),
                "STEADMESH_RUNNER_DIR": str(folder / "runner"),
                **more,
            },
        )

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)

    def until_up(self) -> None:
        self.town.state_until("rep_a", {"state": "Warm"})

    def exit_code(self, *, limit: float = 20.0) -> int:
        return self.process.wait(limit)


def test_a_runner_that_is_told_to_stop_gives_the_lease_back_and_exits_0(town: Town) -> None:
    with Runner(town) as runner:
        runner.until_up()
        runner.process.send_signal(signal.SIGTERM)
        assert runner.exit_code() == 0
    row = town.seat("rep_a")
    assert (row["state"], row["lease_live"], row["lease_generation"]) == ("Stopped", False, 1)


def test_a_runner_that_cannot_bring_up_its_harness_says_why_and_exits_1(town: Town) -> None:
    with Runner(town, STEADMESH_TOOLS_BIN="/nowhere/tools") as runner:
        assert runner.exit_code() == 1
    row = town.seat("rep_a")
    assert (row["state"], row["lease_live"]) == ("Stopped", False)
    assert "start failed: the tool client /nowhere/tools" in row["state_detail"]


def test_a_runner_that_does_not_get_the_lease_exits_2(town: Town) -> None:
    town.by_hand("rep_a")
    limits = {"STEADMESH_RUNNER_ACQUIRE_TIMEOUT": "300ms", "STEADMESH_RUNNER_ACQUIRE_RETRY": "50ms"}
    with Runner(town, **limits) as runner:
        assert runner.exit_code() == 2
    assert town.seat("rep_a")["lease_generation"] == 1


def test_a_runner_that_is_fenced_exits_3(town: Town) -> None:
    with Runner(town, STEADMESH_RUNNER_RENEW_INTERVAL="50ms") as runner:
        runner.until_up()
        town.fence("rep_a")
        assert runner.exit_code() == 3
    assert town.seat("rep_a")["state"] == "Recovering"  # it says nothing any more


def test_a_second_sigterm_interrupts_the_turn_that_the_first_waits_for(town: Town) -> None:
    with Runner(town) as runner:
        town.person("alice").say("/sleep 60s")
        town.state_until("rep_a", {"state": "Executing"})
        runner.process.send_signal(signal.SIGTERM)
        town.state_until("rep_a", {"state": "Quiescing"})
        runner.process.send_signal(signal.SIGTERM)
        assert runner.exit_code() == 0
    assert town.seat("rep_a")["pending_deliveries"] == 1


def _status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def test_a_runner_is_healthy_while_it_waits_for_the_lease_and_ready_once_it_has_it(
    town: Town,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hand = town.by_hand("rep_a")
    more = {
        "STEADMESH_HEALTH_ADDR": f"127.0.0.1:{port}",
        "STEADMESH_RUNNER_ACQUIRE_RETRY": "50ms",
    }
    with Runner(town, **more):
        until(lambda: _status(port, "/healthz") == 200, "it is healthy", limit=20)
        assert _status(port, "/readyz") == 503
        body = {"generation": hand.generation}
        town.service.request("POST", "/v1/lease/release", body, headers=hand.headers)
        until(lambda: _status(port, "/readyz") == 200, "it is ready")
