"""Being a seat by hand."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from steadmesh.runner.byhand import HandSeat, mcp_configuration, run_by_hand
from tests.runner.platform_double import TOKEN, PlatformDouble
from tests.runner.waiting import until

SHELL = "/bin/sh"


@pytest.fixture
def platform() -> Iterator[PlatformDouble]:
    double = PlatformDouble()
    yield double
    double.close()
    assert double.problems == []


@pytest.fixture
def seat(tmp_path: Path, platform: PlatformDouble) -> HandSeat:
    return HandSeat(
        addresses=[platform.url],
        organization_id="o-1",
        seat_id="s-1",
        seat_key="builder",
        folder=tmp_path / "seat",
    )


def run(seat: HandSeat, *command: str, told: list[str] | None = None) -> int:
    heard: list[str] = [] if told is None else told
    return run_by_hand(seat, command, token=TOKEN, tell=heard.append)


def script(seat: HandSeat, text: str) -> int:
    return run(seat, SHELL, "-c", text)


def test_a_command_runs_under_the_lease_and_gives_it_back(
    seat: HandSeat, platform: PlatformDouble
) -> None:
    out = seat.folder.parent / "out"
    names = '"$STEADMESH_TOKEN_FILE" "$STEADMESH_GENERATION_FILE" "$STEADMESH_EXECUTION_FILE"'
    code = script(seat, f"cat {names} >{out}; stat -c %a $(dirname $STEADMESH_TOKEN_FILE) >>{out}")
    assert code == 0
    assert out.read_text() == f"{TOKEN}1700\n"
    assert platform.state_names() == ["Warm", "Stopped"]
    assert platform.released == 1
    assert not seat.run_folder.path.exists()


def test_the_command_has_the_seats_environment_and_no_other(
    seat: HandSeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    out = seat.folder.parent / "out"
    assert script(seat, f"env >{out}") == 0
    names = {line.partition("=")[0] for line in out.read_text().splitlines()}
    assert "ANTHROPIC_API_KEY" not in names
    assert {"PATH", "HOME", "STEADMESH_SEAT_KEY", "STEADMESH_TOOLS_BIN"} <= names
    assert TOKEN not in out.read_text()


@pytest.mark.parametrize(("text", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_is_the_commands(seat: HandSeat, text: str, code: int) -> None:
    assert script(seat, text) == code


def test_a_command_that_is_not_there_is_said(seat: HandSeat, platform: PlatformDouble) -> None:
    told: list[str] = []
    assert run(seat, "no-such-program", told=told) == 127
    assert told == ["no-such-program: no such program"]
    assert platform.released == 1


def test_a_lease_held_elsewhere_is_said_and_nothing_runs(
    seat: HandSeat, platform: PlatformDouble
) -> None:
    platform.held_elsewhere = True
    told: list[str] = []
    assert run(seat, SHELL, "-c", f"touch {seat.folder}/ran", told=told) == 2
    assert "held by another instance" in told[0]
    assert not (seat.folder / "ran").exists()


def test_a_bad_token_is_said(seat: HandSeat, platform: PlatformDouble) -> None:
    platform.tokens = set()
    told: list[str] = []
    assert run(seat, SHELL, "-c", "true", told=told) == 1
    assert "401" in told[0]


def test_a_seat_that_is_taken_over_kills_the_command(
    seat: HandSeat, platform: PlatformDouble
) -> None:
    platform.ttl = 0.15
    started = seat.folder.parent / "started"

    def take_over() -> None:
        until(started.exists, "the command runs")
        platform.fence()

    fencer = threading.Thread(target=take_over)
    fencer.start()
    told: list[str] = []
    assert run(seat, SHELL, "-c", f"touch {started}; sleep 60", told=told) == 3
    fencer.join()
    assert told[0].startswith("the seat was taken over")
    assert platform.released == 0


def test_a_seat_is_run_by_hand_once_at_a_time(seat: HandSeat, platform: PlatformDouble) -> None:
    inner: list[str] = []
    started = seat.folder.parent / "started"
    codes: list[int] = []

    def again() -> None:
        until(started.exists, "the command runs")
        try:
            codes.append(run(seat, SHELL, "-c", "true", told=inner))
        finally:
            started.unlink()

    thread = threading.Thread(target=again)
    thread.start()
    assert script(seat, f"touch {started}; while [ -e {started} ]; do sleep 0.02; done") == 0
    thread.join()
    assert codes == [2]
    assert inner == ["builder is already run by hand as manual; end that first"]
    assert platform.generation == 1


def test_the_mcp_configuration_names_files_and_holds_no_secret(seat: HandSeat) -> None:
    server = mcp_configuration(seat)["mcpServers"]
    assert isinstance(server, dict)
    (name,) = server
    assert name == "steadmesh"
    entry = server[name]
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["command"]).name == "steadmesh-tools"
    assert entry["args"] == ["mcp"]
    assert set(entry["env"]) == {
        "STEADMESH_PLATFORM_URL",
        "STEADMESH_TOKEN_FILE",
        "STEADMESH_GENERATION_FILE",
        "STEADMESH_EXECUTION_FILE",
    }
    assert json.dumps(entry).count(str(seat.run_folder.path)) == 3


# On a terminal

_HAND = """
import sys
from pathlib import Path
from steadmesh.runner.byhand import HandSeat, run_by_hand
url, folder, token, *command = sys.argv[1:]
seat = HandSeat([url], "o-1", "s-1", "builder", Path(folder))
sys.exit(run_by_hand(seat, command, token=token, tell=lambda line: print(line, flush=True)))
"""


class OnTerminal:
    """A program on a terminal of its own, as a shell would start it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
        )
        os.close(slave)
        self._seen = ""

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def shows(self, text: str) -> None:
        """Read until this has been shown; fails the test when the program ends without."""
        while text not in self._seen:
            readable, _, _ = select.select([self._master], [], [], 10)
            assert readable, f"{text!r} was not shown in 10 s, but: {self._seen!r}"
            try:
                self._seen += os.read(self._master, 4_096).decode()
            except OSError:
                raise AssertionError(f"{text!r} was not shown, but: {self._seen!r}") from None

    def is_the_commands(self) -> bool:
        """Whether the terminal has been given to the command."""
        return os.tcgetpgrp(self._master) != self._process.pid

    def ends(self) -> int:
        code = self._process.wait(20)
        os.close(self._master)
        return code


@pytest.fixture
def terminal(seat: HandSeat, platform: PlatformDouble) -> OnTerminal:
    command = "echo ready; while read line; do echo got $line; done; exit 5"
    hand = [sys.executable, "-c", _HAND, platform.url, str(seat.folder), TOKEN]
    return OnTerminal([*hand, SHELL, "-c", command])


def test_the_command_reads_the_terminal(terminal: OnTerminal) -> None:
    terminal.shows("ready")
    terminal.types("hello\n")
    terminal.shows("got hello")
    terminal.types("\x04")
    assert terminal.ends() == 5


def test_control_c_is_the_commands_and_the_lease_is_given_back(
    terminal: OnTerminal, platform: PlatformDouble
) -> None:
    terminal.shows("ready")
    terminal.types("\x03")
    assert terminal.ends() == 130
    assert platform.released == 1


def test_a_command_that_is_suspended_goes_on(terminal: OnTerminal) -> None:
    terminal.shows("ready")
    until(terminal.is_the_commands, "the command has the terminal")
    terminal.types("\x1a")
    terminal.shows("cannot be suspended")
    terminal.types("hello\n")
    terminal.shows("got hello")
    terminal.types("\x04")
    assert terminal.ends() == 5
