"""Logs: one line per event, bounded, without secrets, and never in the caller's way."""

from __future__ import annotations

import io
import json
import logging
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steadmesh.kernel import log as logs
from steadmesh.kernel.log import BoundedFile, JsonFormatter, Logs, fields, start
from steadmesh.kernel.redaction import Redaction, Secrets

log = logging.getLogger("steadmesh.test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Stalled(io.StringIO):
    """A stream whose reader sleeps until told to go on."""

    def __init__(self, expected_lines: int) -> None:
        super().__init__()
        self._missing = expected_lines
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.complete = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        self.go_on.wait(10)
        written = super().write(text)
        self._missing -= 1
        if not self._missing:
            self.complete.set()
        return written


Starter = Callable[..., Logs]


@pytest.fixture
def started() -> Iterator[Starter]:
    """Start logging, and stop it at the end of the test if the test has not."""
    running: list[Logs] = []

    def begin(*secrets: str, **options: Any) -> Logs:
        running.append(start(Secrets(secrets), **options))
        return running[-1]

    yield begin
    for each in running:
        each.close()


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [
        line
        for line in map(json.loads, stream.getvalue().splitlines())
        if line["logger"].startswith("steadmesh")
    ]


def test_an_event_is_one_json_line_with_its_fields(started: Starter) -> None:
    stream = io.StringIO()
    running = started(stream=stream)
    log.info("lease acquired", extra=fields(seat="lead", generation=4, place="Zürich\n"))
    running.close()
    [line] = _lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "steadmesh.test",
        "event": "lease acquired",
        "seat": "lead",
        "generation": 4,
        "place": "Zürich\n",
    }


def test_fields_cannot_take_the_place_of_the_event_s_own(started: Starter) -> None:
    stream = io.StringIO()
    running = started(stream=stream)
    log.info("real", extra=fields(event="fake", level="fake"))
    running.close()
    [line] = _lines(stream)
    assert (line["event"], line["field_event"], line["field_level"]) == ("real", "fake", "fake")


def test_less_severe_events_are_left_out(started: Starter) -> None:
    stream = io.StringIO()
    running = started(stream=stream, level="warning")
    log.info("quiet")
    log.warning("loud")
    running.close()
    assert [line["event"] for line in _lines(stream)] == ["loud"]


def test_secrets_are_masked_wherever_they_are(started: Starter) -> None:
    stream = io.StringIO()
    running = started("hunter2", stream=stream)
    try:
        raise ValueError("cannot use hunter2")
    except ValueError:
        log.exception("hunter2 %s", "sms_0123456789abcdef", extra=fields(a={"b": ["hunter2"]}))
    running.close()
    [line] = _lines(stream)
    assert line["event"] == "*** sms_***"
    assert "ValueError: cannot use ***" in line["exception"]
    assert "hunter2" not in stream.getvalue()


def test_a_long_trace_keeps_its_end(started: Starter) -> None:
    stream = io.StringIO()
    running = started(stream=stream)
    try:
        raise ValueError("x" * 50_000 + " the end")
    except ValueError:
        log.exception("failed")
    running.close()
    [line] = _lines(stream)
    assert line["exception"].endswith("the end\n")
    assert len(line["exception"]) < 20_000


def test_a_terminal_gets_text_without_control_characters(started: Starter) -> None:
    terminal = Terminal()
    running = started(stream=terminal)
    log.warning("said \x1b[31mred\x1b[0m\nforged line", extra=fields(seat="le\x9b2Jad", n=3))
    running.close()
    line = terminal.getvalue()
    assert line.count("\n") == 1
    assert line.rstrip().endswith("warning said red\\nforged line  seat=lead  n=3")


def test_an_event_that_cannot_be_shown_is_told_without_raising() -> None:
    record = log.makeRecord("steadmesh", logging.INFO, "seats.py", 7, "%d seats", ("many",), None)
    line = json.loads(JsonFormatter(Redaction(Secrets())).format(record))
    assert line["event"] == "an event could not be logged"
    assert (line["where"], line["problem"]) == ("seats.py:7", "TypeError")


def test_the_file_is_private(started: Starter, tmp_path: Path) -> None:
    file = tmp_path / "steadmesh.log"
    running = started(file=file)
    log.info("hello")
    running.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text().splitlines()[-1])["event"] == "hello"


def test_a_file_that_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(NotADirectoryError):
        start(Secrets(), file=tmp_path / "x" / "steadmesh.log")


def test_a_stalled_reader_delays_nobody_and_lost_lines_are_counted(
    started: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_WAITING", 5)
    stream = Stalled(expected_lines=6)
    running = started(stream=stream)
    log.info("first")
    assert stream.reached.wait(10)
    for _ in range(8):
        log.info("event")
    stream.go_on.set()
    assert stream.complete.wait(10)
    log.info("last")
    running.close()
    lines = _lines(stream)
    assert [line["event"] for line in lines] == [
        "first",
        *["event"] * 5,
        "log lines dropped",
        "last",
    ]
    assert lines[-2]["count"] == 3


def test_closing_leaves_the_logging_system_as_it_was() -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger("uvicorn").level)
    running = start(Secrets(), stream=io.StringIO(), level="debug")
    running.close()
    running.close()
    assert (root.level, root.handlers, logging.getLogger("uvicorn").level) == before


class TestBoundedFile:
    def test_a_full_file_is_set_aside_and_one_is_kept(self, tmp_path: Path) -> None:
        file = BoundedFile(tmp_path / "log", 20)
        for number in range(7):
            file.write(f"line {number}")
        assert (tmp_path / "log").read_text() == "line 6\n"
        assert (tmp_path / "log.1").read_text() == "line 4\nline 5\n"
        assert len(list(tmp_path.iterdir())) == 2

    def test_what_an_earlier_program_wrote_counts(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_text("x" * 19)
        BoundedFile(tmp_path / "log", 20).write("new")
        assert (tmp_path / "log").read_text() == "new\n"

    def test_a_file_that_cannot_be_set_aside_begins_anew(self, tmp_path: Path) -> None:
        (tmp_path / "log.1").mkdir()
        file = BoundedFile(tmp_path / "log", 20)
        for number in range(4):
            file.write(f"line {number}")
        assert (tmp_path / "log").read_text() == "line 2\nline 3\n"
