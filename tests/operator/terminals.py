"""A command on a terminal of its own, which a person looks at."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.operator.commands import PROGRAM, environment
from tests.runner.waiting import until

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""What takes the whole screen, and gives it back."""


class Terminal:
    """What a command writes to its terminal, and how it ends."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._written = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def written(self) -> str:
        """Everything up to now, escape sequences included."""
        return self._written.decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    def until_shows(self, text: str, *, after: int = 0) -> int:
        """Wait until the text is written behind a place; where it ends."""
        until(
            lambda: self.written.find(text, after) >= 0, f"{text!r} in {self.written!r}", limit=20
        )
        return self.written.find(text, after) + len(text)

    def presses(self, key: bytes) -> None:
        """Type something."""
        os.write(self._master, key)

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit status, once it has ended and all it wrote is read."""
        code = self._process.wait(20)
        self._reader.join(5)
        return code

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            while piece := os.read(self._master, 65_536):
                self._written += piece


@contextlib.contextmanager
def on_terminal(*words: str, home: Path, columns: int = 100, rows: int = 24) -> Iterator[Terminal]:
    """A command whose stdin, stdout and stderr are a terminal of this size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = environment(home, TERM="xterm-256color")
    del variables["COLUMNS"]  # the terminal's own size counts
    process = subprocess.Popen(
        [*PROGRAM, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=variables,
        cwd=home,
        start_new_session=True,
        preexec_fn=_control_terminal,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _control_terminal() -> None:
    """Make it the session's own, so that Ctrl-C and Ctrl-Z become signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
