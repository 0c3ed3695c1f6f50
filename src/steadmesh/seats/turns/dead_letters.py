"""Dead letters: what was given up after five attempts, to be looked at and tried again by people."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Locks, Transaction, exclusive, shared
from steadmesh.kernel.errors import NotFound
from steadmesh.seats.turns import _store
from steadmesh.tools import Args, Call, Clamped, Result, endpoint

_SHOWN = ("message_id", "recipient_seat", "origin", "sender_seat", "binding", "error")


class NoDeadLetter(NotFound):
    """There is no dead letter {number} of a seat that stays: it may have been requeued, or its seat leaves."""


class ListDeadLetters(Args):
    organization: str
    after: int = 0
    limit: Annotated[int, Clamped(maximum=200, default=50)] = 50


class DeadLetter(Result):
    id: int
    message_id: str
    recipient_seat: str
    origin: str
    sender_seat: str | None = None
    binding: str | None = None
    attempts: int
    error: str | None = None
    created_at: str


class DeadLetters(Result):
    dead_letters: list[DeadLetter]


@endpoint("GET /internal/v1/dead-letters", family="operator", reads=True)
def list_dead_letters(call: Call[Any], args: ListDeadLetters) -> DeadLetters:
    """An organisation's dead letters in queue order; `after` is the id of the last one seen."""
    rows = _store.dead_letters(call.tx, args.organization, after=args.after, limit=args.limit)
    return DeadLetters(
        dead_letters=[
            DeadLetter(
                id=row["number"],
                attempts=row["attempt"],
                created_at=rfc3339(row["created_at"]),
                **{name: row[name] for name in _SHOWN},
            )
            for row in rows
        ]
    )


class Requeue(Args):
    letter: int


def its_inbox(tx: Transaction, caller: Any, args: Requeue) -> Locks:
    row = _store.dead_letter(tx, args.letter)
    if row is None:
        return []
    scope = row["organisation_id"]
    return [shared("organisation", scope), exclusive("inbox", scope, row["seat_id"])]


@endpoint(
    "POST /internal/v1/dead-letters/{letter}:requeue",
    family="operator",
    audited=True,
    locks=its_inbox,
)
def requeue(call: Call[Any], args: Requeue) -> None:
    """Put a dead letter back into its inbox with five fresh attempts."""
    row = _store.dead_letter(call.tx, args.letter)
    if row is None:
        raise NoDeadLetter(number=args.letter)
    _store.requeue_delivery(call.tx, args.letter, attempt=0, due=call.now, error=None)
    call.tx.wake(f"inbox:{row['seat_id']}")
    call.tx.wake(f"runtime:{row['organisation_id']}")
