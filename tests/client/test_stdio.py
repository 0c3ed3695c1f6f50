"""Lines in and out, on descriptors of any kind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from steadmesh.client import stdio
from steadmesh.client.stdio import Output, TooLong, Wake, read_lines

LIMIT = 10.0
Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe's two ends."""
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


def test_x4_whatever_is_printed_goes_to_stderr() -> None:
    """X4: by `print`, on descriptor 1, by a child, at exit; only what is meant reaches stdout."""
    program = """
import atexit, os, subprocess, sys
from steadmesh.client.stdio import Output, take_stdout
print("before")
output = Output(take_stdout())
print("by print")
os.write(1, b"on the descriptor\\n")
subprocess.run(["echo", "by a child"])
sys.__stdout__.write("on the old object\\n")
atexit.register(print, "at exit")
output.write(b"protocol")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=LIMIT)
    assert done.stdout == b"before\nprotocol\n"
    for words in ("by print", "on the descriptor", "by a child", "on the old object", "at exit"):
        assert words in done.stderr.decode()


def test_lines_come_whole_however_they_were_written(pipe: Pipe) -> None:
    reading, writing = pipe
    lines = read_lines(reading, Wake())
    os.write(writing, b"one\ntw")
    assert next(lines) == b"one"
    os.write(writing, b"o\n\nthree")
    assert next(lines) == b"two"
    assert next(lines) == b""
    os.close(writing)
    assert list(lines) == [b"three"]


def test_a_line_over_the_limit_is_passed_over(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "LINE_LIMIT", 10)
    reading, writing = pipe
    lines = read_lines(reading, Wake())
    os.write(writing, b"x" * 11)
    os.write(writing, b"still\nnext\n")
    assert isinstance(next(lines), TooLong)
    assert next(lines) == b"next"


def test_input_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    reading, writing = pipe
    os.set_blocking(reading, False)
    lines = read_lines(reading, Wake())
    timer = threading.Timer(0.02, os.write, (writing, b"late\n"))
    timer.start()
    assert next(lines) == b"late"
    timer.join()


def test_asked_to_end_reading_ends(pipe: Pipe) -> None:
    reading, _ = pipe
    wake = Wake()
    timer = threading.Timer(0.02, wake.end, (7,))
    timer.start()
    assert list(read_lines(reading, wake)) == []
    timer.join()
    wake.end(8)
    assert wake.code == 7


def test_poking_often_never_blocks() -> None:
    wake = Wake()
    for _ in range(100_000):
        wake.poke()
    assert wake.wait() is False


def test_output_that_does_not_block_is_written_whole(pipe: Pipe) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    line = b"x" * 1_000_000
    writer = threading.Thread(target=Output(writing).write, args=(line,))
    writer.start()
    with os.fdopen(os.dup(reading), "rb") as file:
        assert file.read(len(line) + 1) == line + b"\n"
    writer.join(LIMIT)


def test_output_nobody_reads_is_no_error(pipe: Pipe) -> None:
    reading, writing = pipe
    os.close(reading)
    output = Output(writing)
    output.write(b"one")
    output.write(b"two")


def test_held_output_comes_in_order_once_released(pipe: Pipe) -> None:
    reading, writing = pipe
    output = Output(writing, held=True)
    output.write(b"one")
    os.set_blocking(reading, False)
    with pytest.raises(BlockingIOError):
        os.read(reading, 100)
    output.release()
    output.write(b"two")
    assert os.read(reading, 100) == b"one\ntwo\n"
