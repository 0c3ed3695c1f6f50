"""The state of a seat, as senders, people and the supervisor see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.identity import _store
from steadmesh.tools import Gauge

REPORTABLE = ("Warm", "Executing", "Quiescing", "Stopped")
"""What a runner may say of itself."""


def seat_state(seat: Row) -> str:
    """One of the nine states, from the rows of the seat and its lease."""
    if seat["retired_at"] is not None:
        return "Retired"
    if seat["retire_by"] is not None:
        return "Retiring"
    if seat["suspended"]:
        return "Blocked"
    return str(seat["state"])


def _by_state(tx: Transaction, now: Instant) -> Iterable[tuple[Sequence[str], float]]:
    for row in _store.counts_by_state(tx):
        yield (row["organisation"], row["state"]), row["seats"]


SEATS_BY_STATE = Gauge("seats", "Live seats.", _by_state, labels=("organization", "state"))
