"""The state of a seat, as senders, people and the supervisor see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.errors import NotFound
from steadmesh.seats.identity import _store
from steadmesh.tools import Gauge

REPORTABLE = ("Warm", "Executing", "Quiescing", "Stopped")
"""What a runner may say of itself."""


SUSPENDED = "suspended by an operator"


class NoSuchSeat(NotFound):
    """There is no live seat with this id."""


def named_seat(tx: Transaction, seat_id: str) -> Row:
    """A live seat by its id, for an operator. Raises `NoSuchSeat`."""
    row = _store.seat(tx, seat_id)
    if row is None or row["retired_at"] is not None:
        raise NoSuchSeat()
    return row


def seat_state(seat: Row) -> str:
    """One of the nine states, from the rows of the seat and its lease."""
    if seat["retired_at"] is not None:
        return "Retired"
    if seat["retire_by"] is not None:
        return "Retiring"
    if seat["suspended"]:
        return "Blocked"
    return str(seat["state"])


def state_detail(seat: Row) -> str | None:
    """What there is to say about a seat's state, most often why it does nothing."""
    if seat["suspended"] and seat["retire_by"] is None:
        reason = seat["suspended_reason"]
        return f"{SUSPENDED}: {reason}" if reason else SUSPENDED
    return seat["state_detail"] and str(seat["state_detail"])


def _by_state(tx: Transaction, now: Instant) -> Iterable[tuple[Sequence[str], float]]:
    for row in _store.counts_by_state(tx):
        yield (row["organisation"], row["state"]), row["seats"]


SEATS_BY_STATE = Gauge("seats", "Live seats.", _by_state, labels=("organization", "state"))
