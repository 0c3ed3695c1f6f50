"""The `steadmesh` command, run in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from unittest import mock

from steadmesh.operator.main import app
from steadmesh.operator.trouble import explained
from tests.runner.waiting import until

PROGRAM = [sys.executable, "-P", "-m", "steadmesh.operator.main"]


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def failure(self) -> tuple[int, str]:
        """Exit status and words of a command that must not have printed a result."""
        assert self.out == "", self
        return self.code, self.err


class Screen(io.StringIO):
    """A terminal to print on."""

    def isatty(self) -> bool:
        return True


def steadmesh(*words: str, stdin: str = "", screen: Screen | None = None) -> Said:
    """Run a command here; with `screen` its results go to a terminal."""
    out, err = screen or io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.stdin", io.StringIO(stdin)),
    ):
        code = explained(lambda: app(list(words)))
    assert "Traceback" not in err.getvalue()
    return Said(code, out.getvalue(), err.getvalue())


def environment(home: Path, **more: str) -> dict[str, str]:
    """That of somebody who has set nothing of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "COLUMNS": "100", **more}


def run(
    *words: str,
    home: Path,
    stdin: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Said:
    """Run a command as a process, to its end."""
    done = subprocess.run(
        [*PROGRAM, *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(home, **(variables or {})),
        cwd=home,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


class Program:
    """A command that goes on, as a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._out: list[str] = []
        self._err: list[str] = []
        self._readers = [
            threading.Thread(target=self._out.extend, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def err(self) -> str:
        """What it has said on stderr up to now."""
        return "".join(self._err)

    @property
    def out(self) -> str:
        """What it has written on stdout up to now."""
        return "".join(self._out)

    def until_says(self, text: str, *, limit: float = 20.0) -> str:
        """Wait for a line of stderr that holds the text, and return it."""

        def found() -> str | None:
            return next((line for line in list(self._err) if text in line), None)

        try:
            return until(lambda: found() or self._has_ended(text), text, limit=limit)
        except AssertionError as problem:
            raise AssertionError(f"{problem}; it said {self.err}") from None

    def write(self, text: str) -> None:
        """Type something."""
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def input_of_bytes(self) -> IO[bytes]:
        """Its standard input, for what is no text."""
        stdin = self._process.stdin
        assert isinstance(stdin, io.TextIOWrapper)
        buffer: IO[bytes] = stdin.buffer
        return buffer

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> Said:
        """Send a signal and wait for the end."""
        self.send(number)
        return self.wait()

    def wait(self, *, limit: float = 40.0) -> Said:
        """Wait until it has ended by itself."""
        code = self._process.wait(limit)
        for reader in self._readers:
            reader.join(5)
        assert "Traceback" not in self.err
        return Said(code, "".join(self._out), self.err)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._err.append(line)

    def _has_ended(self, text: str) -> str:
        if self._process.poll() is not None:
            raise AssertionError(f"it ended ({self._process.returncode}) without saying {text}")
        return ""


@contextlib.contextmanager
def started(
    *words: str, home: Path, variables: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """A command that goes on; it is killed at the end if need be."""
    process = subprocess.Popen(
        [*PROGRAM, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, **(variables or {})),
        cwd=home,
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def processes_about(folder: Path) -> dict[int, str]:
    """Every live process whose command line or environment names the folder."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes()
            if os.fsencode(folder) in words + (place / "environ").read_bytes():
                found[int(place.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return found


def nothing_runs_about(folder: Path) -> None:
    """Fails the test if a process that names the folder does not end soon."""
    until(lambda: not processes_about(folder), f"no process is left: {folder}", limit=10)


def kill_all_about(folder: Path) -> None:
    """Clear away what a failed test has left."""
    for pid in processes_about(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
