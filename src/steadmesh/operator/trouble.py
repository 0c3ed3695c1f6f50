"""What is said when a command cannot be carried out: one sentence, and what to do next."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

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
        run()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED if ended.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except WrongUse as problem:
        say(str(problem))
        return USAGE
    except Exception as problem:
        say(_words(problem))
        return FAILED
    return 0


def say(text: str) -> None:
    """A line on stderr."""
    print(f"steadmesh: {text}", file=sys.stderr)


def _words(problem: Exception) -> str:
    kind = type(problem)
    if isinstance(problem, CommandFailed) or kind.__module__.startswith("steadmesh."):
        return str(problem)
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    if os.environ.get("STEADMESH_DEBUG"):
        raise problem
    return (
        f"this is a mistake in steadmesh: {kind.__name__}: {problem}. "
        "Set STEADMESH_DEBUG=1 and try again to see where."
    )
