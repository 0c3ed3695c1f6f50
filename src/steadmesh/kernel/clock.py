"""Time as integer microseconds UTC, read from a clock that is passed in."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

Instant = int
"""Microseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> Instant: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        return time.time_ns() // 1_000


class TurnedClock:
    """A clock that tests turn: it stands still until told to advance."""

    def __init__(self, start: Instant = 1_790_000_000_000_000) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> Instant:
        return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += round(seconds * SECOND)


def rfc3339(instant: Instant) -> str:
    """`2026-10-08T01:55:00.123456Z`; the fraction is left out when it is zero."""
    moment = datetime.fromtimestamp(instant // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = instant % SECOND
    return f"{moment}.{fraction:06d}Z" if fraction else f"{moment}Z"


def optional_rfc3339(instant: Instant | None) -> str | None:
    """As `rfc3339`, and nothing for nothing."""
    return None if instant is None else rfc3339(instant)
