"""Pure decisions about retries."""

from __future__ import annotations

from steadmesh.kernel.clock import MINUTE, SECOND

ATTEMPTS = 5
BACK_OFF = (1 * SECOND, 8 * SECOND, 64 * SECOND, 300 * SECOND)
DELIVERY_LEASE = 15 * MINUTE
PASSIVE_PER_TURN = 20
EVENT_BYTES = 8_192
ERROR_BYTES = 2_048


def retry_delay(attempt: int) -> int | None:
    """How long to wait after the given failed attempt (from 1), in microseconds; nothing to give up."""
    if attempt >= ATTEMPTS:
        return None
    return BACK_OFF[min(max(attempt, 1), len(BACK_OFF)) - 1]
