"""Dead letters: what was given up after five attempts, to be looked at and tried again by people."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive, shared
from steadmesh.kernel.errors import NotFound
from steadmesh.seats.identity import named_organisation
from steadmesh.seats.turns import _store
from steadmesh.tools import Args, Call, Clamped, Doc, Result, endpoint

_SHOWN = (
    "message_id",
    "recipient_seat",
    "origin",
    "sender_seat",
    "binding",
    "external_user_id",
    "error",
)


class NoDeadLetter(NotFound):
    """There is no dead letter {number} of a seat that stays; it may have been tried again meanwhile. `steadmesh dead-letters list` shows those there are."""


class ListDeadLetters(Args):
    organization: str
    seat: Annotated[str, Doc("Key of a seat: only its own.")] = ""
    after: int = 0
    limit: Annotated[int, Clamped(maximum=200, default=50)] = 50


class DeadLetter(Result):
    id: int
    message_id: str
    recipient_seat: str
    origin: str
    sender_seat: str | None = None
    binding: str | None = None
    external_user_id: str | None = None
    attempts: int
    error: str | None = None
    created_at: str


class DeadLetters(Result):
    dead_letters: list[DeadLetter]


@endpoint("GET /internal/v1/dead-letters", family="operator", reads=True)
def list_dead_letters(call: Call[Any], args: ListDeadLetters) -> DeadLetters:
    """An organisation's dead letters in queue order; `after` is the id of the last one seen."""
    named_organisation(call.tx, args.organization)
    rows = _store.dead_letters(
        call.tx, args.organization, seat=args.seat, after=args.after, limit=args.limit
    )
    return DeadLetters(dead_letters=[DeadLetter(**_shown(row)) for row in rows])


class ShowDeadLetter(Args):
    letter: int


class WholeDeadLetter(DeadLetter):
    organization_id: str
    seat_id: str
    conversation_id: str
    can_be_requeued: Annotated[bool, Doc("False once its seat retires: nobody would take it.")]
    body: str


@endpoint("GET /internal/v1/dead-letters/{letter}", family="operator", reads=True)
def show_dead_letter(call: Call[Any], args: ShowDeadLetter) -> WholeDeadLetter:
    """One dead letter with its text."""
    row = _store.dead_letter_text(call.tx, args.letter)
    if row is None:
        raise NoDeadLetter(number=args.letter)
    return WholeDeadLetter(
        **_shown(row),
        organization_id=row["organisation_id"],
        seat_id=row["seat_id"],
        conversation_id=row["conversation_id"],
        can_be_requeued=row["retired_at"] is None and row["retire_by"] is None,
        body=row["body"],
    )


def _shown(row: Row) -> dict[str, Any]:
    return {
        "id": row["number"],
        "attempts": row["attempt"],
        "created_at": rfc3339(row["created_at"]),
        **{name: row[name] for name in _SHOWN},
    }


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
