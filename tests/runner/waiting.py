"""Waiting for a condition, with a limit, instead of sleeping and hoping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, *, limit: float = 10.0) -> T:
    """The first truthy answer of `condition`; fails the test, naming `what`, after the limit."""
    pause = threading.Event()
    give_up = time.monotonic() + limit
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > give_up:
            raise AssertionError(f"waited {limit:g} s for: {what}")
        pause.wait(0.01)
