"""When to try again what has failed: 1, 8, 64, then 300 seconds later, five attempts in all."""

from __future__ import annotations

from steadmesh.kernel.clock import SECOND

ATTEMPTS = 5
_BACK_OFF = (1 * SECOND, 8 * SECOND, 64 * SECOND, 300 * SECOND)


def retry_delay(attempt: int) -> int | None:
    """How long to wait after the given failed attempt (from 1), in microseconds; nothing to give up."""
    if attempt >= ATTEMPTS:
        return None
    return _BACK_OFF[max(attempt, 1) - 1]
