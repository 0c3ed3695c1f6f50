"""status --watch: on a terminal, in a pipe, over a restart."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.following import Picture
from steadmesh.operator.status import remarks_on
from steadmesh.operator.watch import Board
from tests.operator.commands import started, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.terminals import ENTER, LEAVE, on_terminal
from tests.operator.turns import Played, ada_writes
from tests.runner.waiting import until
from tests.support.service import RunningService


def view(*seats: dict[str, Any], **fields: Any) -> dict[str, Any]:
    quiet = {"state": "Stopped", "pending_messages": 0, "running": False, "suspended": False}
    rows = [{"seat": f"s{n}", **quiet, **seat} for n, seat in enumerate(seats)]
    return {
        "display_name": "F",
        "key": "f",
        "seats": rows,
        "supervisor": {"host": "h", "pid": 1},
    } | (fields)


def drawn(board: Board, console: Console) -> list[str]:
    with console.capture() as capture:
        console.print(board)
    return [line.rstrip() for line in for_terminal(capture.get()).splitlines()]


def test_ctrl_c_gives_the_screen_back_leaves_the_last_picture_and_is_no_failure(
    lumen: Lumen, tmp_path: Path
) -> None:
    words = ["status", "--watch", "--data", str(lumen.service.data)]
    with on_terminal(*words, home=tmp_path) as terminal:
        terminal.until_shows("builder_one")
        terminal.presses(b"\x03")
        assert terminal.wait() == 0
        before, _, after = terminal.written.partition(LEAVE)
    assert before.startswith(ENTER) or ENTER in before
    assert "builder_one" in after
    assert "Traceback" not in terminal.written
    assert "^C" not in after


def test_it_shows_what_happens_and_draws_anew_for_another_size(
    lumen: Lumen, tmp_path: Path
) -> None:
    rep = Played(lumen, "rep_ada")
    words = ["status", "-w", "--data", str(lumen.service.data)]
    with on_terminal(*words, home=tmp_path) as terminal:
        terminal.until_shows("rep_ada")
        ada_writes(lumen, "hello\n")
        rep.begins()
        place = terminal.until_shows("on mail from ada")
        terminal.resize(60, 7)
        place = terminal.until_shows("… and ", after=place)
        terminal.resize(100, 24)
        terminal.until_shows("reviewer", after=place)
        terminal.send(signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM
    assert LEAVE in terminal.written


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(lumen: Lumen, tmp_path: Path) -> None:
    words = ["status", "-w", "--data", str(lumen.service.data)]
    with on_terminal(*words, home=tmp_path) as terminal:
        terminal.until_shows("rep_ada")
        terminal.send(signal.SIGTSTP)
        place = terminal.until_shows(LEAVE)
        _, state = os.waitpid(terminal.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(state)
        terminal.send(signal.SIGCONT)
        terminal.until_shows(ENTER, after=place)
        terminal.presses(b"\x03")
        assert terminal.wait() == 0


def test_a_service_that_restarts_is_waited_for_and_that_is_said(
    example: Path, tmp_path: Path
) -> None:
    data = tmp_path / "d"
    with ExitStack() as stack:
        with RunningService(data=data) as first:
            lumen = Lumen(first, example)
            lumen.run("apply", lumen.file)
            watching = on_terminal("status", "-w", "--data", str(data), home=tmp_path)
            terminal = stack.enter_context(watching)
            terminal.until_shows("rep_ada")
        place = terminal.until_shows("the service does not answer since ")
        assert "rep_ada" in terminal.written[place - 2_000 :]
        again = Lumen(stack.enter_context(RunningService(data=data)), example)
        ada_writes(again, "hello\n")
        terminal.until_shows("no supervisor is running: mail will wait", after=place)
        terminal.presses(b"\x03")
        assert terminal.wait() == 0


def test_in_a_pipe_a_copy_comes_with_every_change_and_ctrl_c_ends_it(
    lumen: Lumen, tmp_path: Path
) -> None:
    data = str(lumen.service.data)
    with started("status", "--watch", "--data", data, home=tmp_path) as program:
        until(lambda: "reviewer\tStopped" in program.out, "the first copy")
        ada_writes(lumen, "hello\n")
        until(lambda: program.out.count("reviewer\tStopped") == 2, "the second copy")
        said = program.end(signal.SIGINT)
    assert said.code == 0
    assert "\x1b" not in said.out


def test_as_json_each_change_is_a_line(lumen: Lumen, tmp_path: Path) -> None:
    data = str(lumen.service.data)
    with started("status", "--watch", "--json", "--data", data, home=tmp_path) as program:
        until(lambda: program.out.endswith("}\n"), "the first line")
        ada_writes(lumen, "hello\n")
        until(lambda: program.out.count("\n") == 2, "the second line")
        said = program.end(signal.SIGINT)
    first, second = (json.loads(line)["seats"] for line in said.out.splitlines())
    assert [sum(seat["pending_messages"] for seat in seats) for seats in (first, second)] == [0, 1]


def test_without_a_service_there_is_nothing_to_watch() -> None:
    code, words = steadmesh("status", "--watch", "--data", "nowhere").failure
    assert code == 1
    assert "no service runs on the data directory" in words


def test_an_organisation_that_is_deleted_meanwhile_ends_it(lumen: Lumen, tmp_path: Path) -> None:
    data = str(lumen.service.data)
    with started("status", "--watch", "--data", data, home=tmp_path) as program:
        until(lambda: "reviewer" in program.out, "the first copy")
        lumen.service.service.database.write_blocking(
            lambda tx: tx.run("UPDATE organisations SET deleted_at = 1")
        )
        said = program.wait()
    assert said.code == 1
    assert "There is no organisation with this id" in said.err


# The picture itself


@pytest.fixture
def console() -> Console:
    return Console(width=80, height=10, force_terminal=True, color_system=None)


def test_where_there_is_no_room_for_all_those_that_matter_come_first(console: Console) -> None:
    board = Board(console, None)
    turn = {"since": "2026-01-01T00:00:00Z", "attempt": 1, "origin": "seat", "sender_seat": "x"}
    quiet: list[dict[str, Any]] = [{} for _ in range(20)]
    board.show(Picture(view(*quiet, {"dead_letters": 2}, {"turn": turn, "state": "Executing"})))
    lines = drawn(board, console)
    assert len(lines) <= 9
    assert [line.split()[0] for line in lines[3:5]] == ["s21", "s20"]
    assert lines[-1] == f"… and {22 - len(lines[3:-1])} more"


def test_a_full_picture_holds_every_seat_in_its_order(console: Console) -> None:
    board = Board(console, None)
    board.show(Picture(view(*[{} for _ in range(22)])))
    with console.capture() as capture:
        console.print(board.whole())
    lines = for_terminal(capture.get()).splitlines()
    assert [line.split()[0] for line in lines[3:]] == [f"s{n}" for n in range(22)]


def test_while_there_is_trouble_the_last_picture_stays(console: Console) -> None:
    board = Board(console, None)
    board.show(Picture(view({})))
    board.show(Picture(None, "no answer from x"))
    lines = drawn(board, console)
    assert lines[3].startswith("s0")
    assert lines[-1] == "the service does not answer; trying on. no answer from x"


def test_columns_of_what_moves_stay_when_they_are_empty(console: Console) -> None:
    board = Board(console, None)
    board.show(Picture(view({})))
    assert drawn(board, console)[2].split() == [
        *("seat", "state", "doing", "waiting", "oldest", "dead", "active")
    ]


def test_conditions_that_do_not_hold_stand_below() -> None:
    conditions = [
        {"name": "Configured", "ok": True},
        {"name": "RoutesExecutable", "ok": False, "reason": "lead did not pass"},
        {"name": "IngressReady", "ok": False},
    ]
    assert remarks_on(view({}, conditions=conditions), None) == [
        "not ok: RoutesExecutable: lead did not pass",
        "not ok: IngressReady",
    ]


def test_an_organisation_without_seats_says_what_to_do() -> None:
    assert remarks_on(view(supervisor=None), None) == [
        "the organisation has no seats; add some to its file and apply it"
    ]
