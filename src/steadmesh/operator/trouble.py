"""What is said when a command cannot be carried out: one sentence, and what to do next."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from steadmesh.operator.terminal import write_to_nobody

FAILED = 1
USAGE = 2
INTERRUPTED = 130


class CommandFailed(Exception):
    """A command could not be carried out; the text is for the person who typed it."""


class WrongUse(Exception):
    """The command line does not make sense; the text says why."""


def explained(run: Callable[[], Any]) -> int:
    """Run a program; its exit status. Whatever goes wrong becomes words on stderr."""
    try:
        status = _status_of(run)
        sys.stdout.flush()  # here, where a failure can still be dealt with
    except BrokenPipeError:
        write_to_nobody()
        return FAILED
    return status


def _status_of(run: Callable[[], Any]) -> int:
    try:
        run()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED if ended.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except WrongUse as problem:
        say(str(problem))
        return USAGE
    except Exception as problem:
        say(_words(problem))
        return FAILED
    return 0


def say(text: str) -> None:
    """A line on stderr."""
    with contextlib.suppress(OSError):  # the terminal may have been closed meanwhile
        print(f"steadmesh: {text}", file=sys.stderr)


def _words(problem: Exception) -> str:
    kind = type(problem)
    if isinstance(problem, CommandFailed) or kind.__module__.startswith("steadmesh."):
        return str(problem)
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    if os.environ.get("STEADMESH_DEBUG"):
        traceback.print_exception(problem)
    return (
        f"this is a mistake in steadmesh: {kind.__name__}: {problem}. "
        "Set STEADMESH_DEBUG=1 and try again to see where."
    )
