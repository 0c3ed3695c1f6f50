"""Standard input and output as a message protocol needs them: whole lines, and nothing else."""

from __future__ import annotations

import os
import select
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_LIMIT = 4 * 1_048_576
_READ_SIZE = 65_536


def take_stdout() -> int:
    """A descriptor of our own for standard output; whatever else is printed goes to stderr.

    The descriptor 1 is redirected too, so that not even a child or a C library can write
    between the lines of the protocol.
    """
    sys.stdout.flush()
    taken = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = sys.stderr
    return taken


class Wake:
    """Wakes the thread that waits for input, and may tell it to end.

    Poking is safe in a signal handler.
    """

    def __init__(self) -> None:
        """Opens a pipe."""
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self.code: int | None = None

    def end(self, code: int) -> None:
        """Ask the program to end with this exit code; the first one counts."""
        if self.code is None:
            self.code = code
        self.poke()

    def poke(self) -> None:
        """Wake the waiting thread, so that it looks around."""
        try:
            os.write(self._write, b"!")
        except BlockingIOError:
            return  # the pipe is full of pokes already

    def wait(self, descriptor: int | None = None) -> bool:
        """Until poked, or until the descriptor (if any) has input, which the result says."""
        wanted = [self._read] if descriptor is None else [self._read, descriptor]
        ready, _, _ = select.select(wanted, [], [])
        if self._read in ready:
            os.read(self._read, _READ_SIZE)
        return descriptor in ready


class TooLong(Exception):
    """A line of input is longer than the limit."""


def read_lines(descriptor: int, wake: Wake) -> Iterator[bytes | TooLong]:
    """The lines of an input until it ends or `wake` asks to end.

    A line over the limit is passed over and stands as TooLong. A last line without an end
    counts.
    """
    buffer = bytearray()
    overlong = False
    while wake.code is None:
        if not wake.wait(descriptor):
            continue
        try:
            data = os.read(descriptor, _READ_SIZE)
        except BlockingIOError:
            continue
        if not data:
            break
        *lines, rest = data.split(b"\n")
        for line in lines:
            overlong = overlong or len(buffer) + len(line) > LINE_LIMIT
            yield TooLong() if overlong else bytes(buffer + line)
            buffer.clear()
            overlong = False
        buffer += rest
        if len(buffer) > LINE_LIMIT:
            overlong = True
            buffer.clear()
    if wake.code is None and (overlong or buffer):
        yield TooLong() if overlong else bytes(buffer)


class Output:
    """Writes whole lines from any thread. Held back until `release`, if so made."""

    def __init__(self, descriptor: int, *, held: bool = False) -> None:
        """Takes over the descriptor."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._held: list[bytes] | None = [] if held else None
        self._gone = False

    def write(self, line: bytes) -> None:
        """Write a line, its end added. A reader that has gone away is no error."""
        with self._lock:
            if self._held is not None:
                self._held.append(line)
            else:
                self._put(line)

    def release(self) -> None:
        """Write what was held back, and hold nothing back any more."""
        with self._lock:
            held, self._held = self._held or [], None
            for line in held:
                self._put(line)

    def _put(self, line: bytes) -> None:
        left = memoryview(line + b"\n")
        while left and not self._gone:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # The client made its end of a shared pipe non-blocking.
                select.select([], [self._descriptor], [])
            except OSError:
                # Nobody reads any more. Input ends next, and with it the program.
                self._gone = True
