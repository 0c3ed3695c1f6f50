"""The product as its users run it: a service, the example organisation, and the lead's shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SEAT = "lead"
BIN = Path(sys.executable).parent
SECONDS = 30.0


class DidNotStart(Exception):
    """A program of the product ended, or said nothing, where it should have said that it is ready."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where requests are the seat's, and what its programs find in their environment."""

    url: str
    environment: Mapping[str, str]


@contextmanager
def running_seat(folder: Path) -> Iterator[Seat]:
    """A service on a free port with its own data directory, and a seat of it that holds its lease."""
    organisation, data = folder / "example", folder / "example" / "data"
    _command("quickstart", str(organisation))
    with _running("serve", "--data", str(data), "--port", "0", listen_to="stderr") as service:
        url = service.line(re.compile(r"listening on (http://\S+)"))
        _command("apply", str(organisation / "organisation.yaml"), "--data", str(data))
        forwarder = (sys.executable, "-m", "tests.conformance.forwarder", url)
        words = ("seat", "run", SEAT, "--data", str(data), "--", *forwarder)
        with _running(*words, listen_to="stdout") as seat:
            said = json.loads(seat.line(re.compile(r"^(\{.*\})$")))
            yield Seat(said["url"] + "/mcp", said["environment"])


class _Program:
    """A command of ours that goes on running, and the lines it says."""

    def __init__(self, process: subprocess.Popen[str], listen_to: str) -> None:
        self._process = process
        self._stream = process.stdout if listen_to == "stdout" else process.stderr
        self._said: list[str] = []
        self._more = threading.Condition()
        self._ended = False
        threading.Thread(target=self._listen, daemon=True).start()

    def line(self, pattern: re.Pattern[str]) -> str:
        """The first group of the pattern, in the first line that has it."""

        def found() -> list[str]:
            return [match[1] for line in self._said if (match := pattern.search(line))]

        with self._more:
            self._more.wait_for(lambda: found() or self._ended, SECONDS)
            if not found():
                raise DidNotStart(f"{self._process.args!r} said:\n{''.join(self._said)}")
            return found()[0]

    def end(self) -> None:
        """Close its input, ask it to end, wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        assert self._stream is not None
        for line in self._stream:
            with self._more:
                self._said.append(line)
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()


@contextmanager
def _running(*words: str, listen_to: str) -> Iterator[_Program]:
    process = subprocess.Popen(
        [str(BIN / "steadmesh"), *words],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if listen_to == "stdout" else None,
        stderr=subprocess.PIPE if listen_to == "stderr" else None,
        text=True,
    )
    program = _Program(process, listen_to)
    try:
        yield program
    finally:
        program.end()


def _command(*words: str) -> None:
    ended = subprocess.run(
        [str(BIN / "steadmesh"), *words],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        raise DidNotStart(f"steadmesh {' '.join(words)}:\n{ended.stderr}")


def _environment() -> dict[str, str]:
    """Ours, without what would lead to somebody's own service."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("STEADMESH_")}
    return ours | {"STEADMESH_AUTOSTART": "0"}
