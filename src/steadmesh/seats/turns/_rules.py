"""Figures of turns."""

from __future__ import annotations

from steadmesh.kernel.clock import MINUTE

DELIVERY_LEASE = 15 * MINUTE
PASSIVE_PER_TURN = 20
EVENT_BYTES = 8_192
ERROR_BYTES = 2_048
