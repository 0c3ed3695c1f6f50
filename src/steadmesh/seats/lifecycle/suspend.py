"""Suspension: an operator lets a seat rest. Its messages wait, and nothing starts it."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel import outbox
from steadmesh.kernel.database import Locks, Transaction, exclusive, shared
from steadmesh.seats.identity import named_seat, resume, seat, suspend
from steadmesh.seats.messages import talks_waiting, tell_waiting
from steadmesh.tools import Args, Call, Doc, Size, endpoint

REASON_BYTES = 500


class Suspend(Args):
    seat: str
    reason: Annotated[str | None, Doc("Why, for those who look at it."), Size(REASON_BYTES)] = None


class Resume(Args):
    seat: str


def whole_seat(tx: Transaction, caller: Any, args: Suspend | Resume) -> Locks:
    """The seat's lease and inbox, and the talks of those who wait for it."""
    row = seat(tx, args.seat)
    if row is None:
        return []
    scope = row["organisation_id"]
    return [
        shared("organisation", scope),
        exclusive("lease", row["id"]),
        exclusive("inbox", scope, row["id"]),
        *talks_waiting(tx, scope, row["id"]),
    ]


@endpoint(
    "POST /internal/v1/seats/{seat}:suspend", family="operator", audited=True, locks=whole_seat
)
def suspend_seat(call: Call[Any], args: Suspend) -> None:
    """Stop a seat and keep it stopped. People who wait for an answer are told."""
    row = named_seat(call.tx, args.seat)
    suspend(call.tx, args.seat, args.reason)
    tell_waiting(call.tx, args.seat, now=call.now)
    _note(call, "seat.suspended", row["organisation_id"], args.seat)


@endpoint(
    "POST /internal/v1/seats/{seat}:resume", family="operator", audited=True, locks=whole_seat
)
def resume_seat(call: Call[Any], args: Resume) -> None:
    """Let a suspended seat run again; what waited for it is handled."""
    row = named_seat(call.tx, args.seat)
    resume(call.tx, args.seat)
    _note(call, "seat.resumed", row["organisation_id"], args.seat)


def _note(call: Call[Any], kind: str, organisation_id: str, seat_id: str) -> None:
    outbox.record(call.tx, kind, scope=organisation_id, at=call.now, seat=seat_id)
    call.tx.wake(f"runtime:{organisation_id}")
