"""logs: a seat's turns, and the service's own log."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from steadmesh.operator.logfile import Tail, backwards, last_lines, readable
from steadmesh.operator.logs import event_words
from tests.operator.commands import Screen, started, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.turns import Played, ada_writes, dead_letter
from tests.runner.waiting import until
from tests.support.service import RunningService


def test_a_turn_is_told_from_its_beginning_to_its_end(lumen: Lumen) -> None:
    ada_writes(lumen, "hello\n")
    rep = Played(lumen, "rep_ada")
    number = rep.begins()["delivery_id"]
    rep.reports("output", text="on\nit \x1b[2J")
    rep.ends(error="no paper")
    lines = [line.partition("  ")[2] for line in lumen.run("logs", "rep_ada").out.splitlines()]
    assert lines[0] == f"turn began on mail from ada (delivery {number})"
    assert lines[1] == "  output: on ⏎ it "
    assert lines[2].startswith("turn failed: no paper. Tried again from ")
    assert len(lines) == 3


def test_it_says_why_nothing_happens_now(lumen: Lumen) -> None:
    ada_writes(lumen, "hello\n")
    said = lumen.run("logs", "rep_ada")
    assert "rep_ada has had no turn yet\n" in said.err
    assert (
        "now: Stopped, 1 waiting; no supervisor is running: mail will wait"
        f" (start one: steadmesh supervise lumen --data {lumen.service.data})\n" in said.err
    )
    assert "now: Stopped, no mail waits\n" in lumen.run("logs", "lead").err
    dead_letter(lumen)
    assert "1 given up: steadmesh dead-letters list --seat rep_ada" in (
        lumen.run("logs", "rep_ada").err
    )


def test_as_json_each_line_is_an_entry_with_everything(lumen: Lumen) -> None:
    ada_writes(lumen, "hello\n")
    rep = Played(lumen, "rep_ada")
    rep.begins()
    rep.reports("output", text="x" * 1_000)
    rep.ends()
    said = lumen.run("logs", "rep_ada", "--json")
    entries = [json.loads(line) for line in said.out.splitlines()]
    assert [entry["what"] for entry in entries] == ["turn", "event", "end"]
    assert entries[1]["data"] == {"text": "x" * 1_000}
    assert said.err == ""


def test_an_unknown_seat_gets_the_nearest(lumen: Lumen) -> None:
    code, words = lumen.run("logs", "leed").failure
    assert (code, words) == (1, "steadmesh: lumen has no seat leed. Did you mean lead?\n")


@pytest.mark.parametrize("words", [(), ("lead", "--service"), ("lead", "--limit", "0")])
def test_a_seat_or_the_service_has_to_be_named(lumen: Lumen, words: tuple[str, ...]) -> None:
    assert lumen.run("logs", *words).failure[0] == 2


def test_following_shows_what_happens_until_ctrl_c(lumen: Lumen, tmp_path: Path) -> None:
    rep = Played(lumen, "rep_ada")
    with started(
        "logs", "rep_ada", "-f", "--data", str(lumen.service.data), home=tmp_path
    ) as program:
        program.until_says("now: ")
        ada_writes(lumen, "hello\n")
        rep.begins()
        program.until_says("now: in a turn")
        rep.reports("output", text="on it")
        rep.ends()
        until(lambda: "turn completed" in program.out, "the end of the turn")
        said = program.end(signal.SIGINT)
    assert said.code == 0
    told = [line.partition("  ")[2].split()[:2] for line in said.out.splitlines()]
    assert told == [["turn", "began"], ["output:", "on"], ["turn", "completed"]]


def test_following_goes_on_over_a_restart_and_shows_nothing_twice(
    example: Path, tmp_path: Path
) -> None:
    data = tmp_path / "d"
    with ExitStack() as stack:
        with RunningService(data=data) as first:
            lumen = Lumen(first, example)
            lumen.run("apply", lumen.file)
            ada_writes(lumen, "hello\n")
            rep = Played(lumen, "rep_ada")
            rep.begins()
            following = started("logs", "rep_ada", "-f", "--data", str(data), home=tmp_path)
            program = stack.enter_context(following)
            program.until_says("now: in a turn")
        program.until_says("the service does not answer")
        rep.client.service = stack.enter_context(RunningService(data=data))
        program.until_says("the service answers again")
        rep.ends()
        until(lambda: "turn completed" in program.out, "the end of the turn")
        said = program.end(signal.SIGTERM)
    assert said.code == 128 + signal.SIGTERM
    assert len(said.out.splitlines()) == 2


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"kind": "output", "data": {"text": "a"}}, "output: a"),
        (
            {"kind": "tool_request", "data": {"tool": "self", "arguments": {"a": 1}}},
            'calls self: {"a": 1}',
        ),
        (
            {"kind": "tool_result", "data": {"tool": "self", "exit_code": 0, "content": "{}"}},
            "answer of self: {}",
        ),
        (
            {"kind": "tool_result", "data": {"tool": "self", "exit_code": 4, "content": "x"}},
            "answer of self failed (4): x",
        ),
        (
            {"kind": "completion", "data": {"outcome": "failed", "claim": None}},
            "completion: failed",
        ),
        ({"kind": "progress"}, "progress"),
        ({"kind": "other", "data": {"a": 1, "b": [2]}}, 'other: {"a": 1, "b": [2]}'),
    ],
    ids=str,
)
def test_an_event_is_one_line(event: dict[str, object], words: str) -> None:
    assert event_words(event) == f"  {words}"


# The service's log


def entry(number: int) -> str:
    return json.dumps({"time": "2026-01-01T00:00:00Z", "level": "info", "event": f"e{number}"})


def test_the_last_lines_of_the_service_s_log_are_told_for_people(
    lumen: Lumen, tmp_path: Path
) -> None:
    file = lumen.service.data / "steadmesh.log"
    file.write_text("".join(f"{entry(n)}\n" for n in range(300)))
    said = lumen.run("logs", "--service", "--limit", "2")
    assert [line.split()[-1] for line in said.out.splitlines()] == ["e298", "e299"]
    assert len(lumen.run("logs", "--service").out.splitlines()) == 100
    assert lumen.run("logs", "--service", "--limit", "1", "--json").out == f"{entry(299)}\n"


def test_a_log_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    code, words = steadmesh("logs", "--service", "--data", str(tmp_path)).failure
    assert code == 1
    assert "Name its data directory with --data" in words


def test_lines_are_read_from_the_end_over_blocks_and_into_the_predecessor(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    lines = [f"{n} é {'x' * (n % 500)}" for n in range(2_000)]
    tmp_path.joinpath("a.log.1").write_text("old\n")
    file.write_text("\n".join(lines) + "\n")
    assert list(backwards(file)) == [*reversed(lines), "old"]
    assert last_lines(file, 3) == lines[-3:]
    assert last_lines(tmp_path / "none.log", 3) == []


def test_what_is_written_is_followed_when_the_log_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("before\n")
    tail = Tail(file)
    with file.open("a") as stream:
        stream.write("one\ntw")
        stream.flush()
        assert tail.new_lines() == ["one"]
        stream.write("o\n")
    os.replace(file, tmp_path / "a.log.1")
    file.write_text("three\n")
    assert tail.new_lines() == ["two", "three"]


def test_an_entry_is_one_line_and_its_trace_stands_below() -> None:
    line = json.dumps(
        {
            "time": "2026-01-01T00:00:00Z",
            "level": "error",
            "logger": "x",
            "event": "call\nfailed\x1b[2J",
            "seat": "lead",
            "n": 1,
            "exception": "Trace\nback\n",
        }
    )
    first, *rest = readable(line).splitlines()
    assert first.endswith("error   call\\nfailed  seat=lead  n=1")
    assert rest == ["    Trace", "    back"]
    assert readable("no json \x1b[2J") == "no json "


def test_on_a_terminal_nothing_of_a_seat_steers_it(lumen: Lumen) -> None:
    ada_writes(lumen, "hello\n")
    rep = Played(lumen, "rep_ada")
    rep.begins()
    rep.ends(error="\x1b]0;title\x07boo")
    screen = Screen()
    steadmesh("logs", "rep_ada", "--data", str(lumen.service.data), screen=screen)
    assert "boo" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()
