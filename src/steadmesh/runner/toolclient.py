"""Calling platform tools the way a seat's program does: by running the tool client."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steadmesh.runner.processes import ChildGroups, ChildrenKilled

OK, TOOL_ERROR, FENCED = 0, 1, 4


class Interrupted(Exception):
    """Whatever the tool was called for was told to end."""


class Interruption:
    """The one switch that ends it early: wakes a sleeper, kills a running child."""

    def __init__(self, children: ChildGroups) -> None:
        self._children = children
        self._lock = threading.Lock()
        self._raised = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self.timed_out = False

    def interrupt(self, *, timed_out: bool = False) -> None:
        """End it now; the first reason counts."""
        with self._lock:
            if self._raised.is_set():
                return
            self.timed_out = timed_out
            self._raised.set()
            if self._child is not None:
                self._children.kill(self._child)

    def check(self) -> None:
        """Raises Interrupted when it is to end."""
        if self._raised.is_set():
            raise Interrupted

    def sleep(self, seconds: float) -> None:
        """Wait that long. Raises Interrupted as soon as it is to end."""
        self._raised.wait(seconds)
        self.check()

    def watch(self, child: subprocess.Popen[bytes] | None) -> None:
        """From now on an interruption kills `child`, also one that has just happened."""
        with self._lock:
            self._child = child
            if child is not None and self._raised.is_set():
                self._children.kill(child)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the tool client answered."""

    exit_code: int
    content: str
    """Its standard output, trimmed: the result or the error as JSON."""
    message: str
    """Its standard error, trimmed."""


class ToolClient:
    """Runs `steadmesh-tools call <name> -`, arguments on standard input."""

    def __init__(
        self,
        program: str,
        children: ChildGroups,
        *,
        environment: Mapping[str, str],
        directory: Path,
    ) -> None:
        self._program = program
        self._children = children
        self._environment = environment
        self._directory = directory

    def call(self, name: str, arguments: str, interruption: Interruption) -> ToolAnswer:
        """Call the tool and wait for its answer. Raises Interrupted."""
        interruption.check()
        try:
            child = self._children.start(
                [self._program, "call", name, "-"],
                environment=self._environment,
                directory=self._directory,
            )
        except ChildrenKilled:
            raise Interrupted from None
        except OSError as error:
            # As a shell words it: the program cannot be run.
            return ToolAnswer(127, "", f"{self._program}: {error.strerror}")
        interruption.watch(child)
        try:
            output, errors = child.communicate(arguments.encode("utf-8", "surrogatepass"))
        finally:
            interruption.watch(None)
            self._children.finished(child)
        interruption.check()
        return ToolAnswer(
            child.returncode,
            output.decode("utf-8", "replace").strip(),
            errors.decode("utf-8", "replace").strip(),
        )
