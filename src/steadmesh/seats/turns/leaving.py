"""The end of an inbox: what a leaving seat did not get to."""

from __future__ import annotations

from dataclasses import dataclass

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.turns import _store


@dataclass(frozen=True, slots=True)
class Unhandled:
    """What became of an inbox."""

    messages: list[Row]
    """With the columns of `MESSAGE`, in queue order."""
    was_in_turn: bool
    """One of them was being handled."""


def give_up_inbox(
    tx: Transaction,
    seat_id: str,
    *,
    organisation_id: str,
    reason: str,
    now: Instant,
    with_turns: bool,
) -> Unhandled:
    """Bury everything that waits for a seat; `with_turns` also what it works on, which is interrupted.

    Hold the seat's inbox, or be alone with its organisation.
    """
    rows = _store.open_messages(tx, seat_id, with_turns=with_turns)
    for row in rows:
        if row["state"] == "leased":
            _store.end_execution(
                tx, row["execution_id"], state="interrupted", error=reason, now=now
            )
        _store.bury_delivery(tx, row["number"], reason)
        outbox.record(
            tx,
            "delivery.dead",
            scope=organisation_id,
            at=now,
            seat=seat_id,
            delivery=row["number"],
        )
    if rows:
        tx.wake(f"inbox:{seat_id}")
    return Unhandled(rows, any(row["state"] == "leased" for row in rows))


def withdraw(tx: Transaction, message_id: str) -> bool:
    """Take back a message that no turn has seen; whether that was so."""
    row = _store.delivery_state(tx, message_id)
    if row is None or row["state"] != "pending":
        return False
    _store.finish_delivery(tx, row["number"])
    return True


def forget_seat(tx: Transaction, seat_id: str, limit: int) -> int:
    """Take away what turns of a seat have left behind, at most about `limit` rows; 0 when all is gone."""
    done = _store.forget_executions(tx, seat_id, limit)
    if not done:
        _store.forget_checkpoints(tx, seat_id)
    return done
