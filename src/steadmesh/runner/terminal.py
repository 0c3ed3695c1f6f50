"""Lending our terminal to a command that runs in a process group of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from types import TracebackType

_STANDARD_INPUT = 0


class Terminal:
    """Our terminal, if we have one and are in its foreground; taken back when left."""

    def __init__(self) -> None:
        self._own_group = os.getpgrp()
        self._is_ours = False
        with contextlib.suppress(OSError):
            self._is_ours = os.tcgetpgrp(_STANDARD_INPUT) == self._own_group

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._give(self._own_group)

    def give_to(self, group: int) -> None:
        """Let that group read the keyboard, and go on if it was stopped for trying too early."""
        if self._give(group):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGCONT)

    def _give(self, group: int) -> bool:
        if not self._is_ours:
            return False
        # From the background this call would stop us.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            os.tcsetpgrp(_STANDARD_INPUT, group)
        except OSError:
            return False
        finally:
            signal.signal(signal.SIGTTOU, before)
        return True


def wait_for(
    child: subprocess.Popen[bytes], terminal: Terminal, *, tell: Callable[[str], None]
) -> int:
    """Wait until the child ends; its exit code, negative for a signal.

    A child that is suspended from the keyboard is set going again: it holds a lease, and nobody
    would come back to a terminal whose shell does not know of it.
    """
    while True:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode
        if os.WSTOPSIG(status) == signal.SIGTSTP:
            tell("a command that holds a seat cannot be suspended; it goes on")
            terminal.give_to(child.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGCONT)
