"""The runner's inbox: hand out the next delivery, and hear how its turn ended."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Row, Transaction
from steadmesh.kernel.errors import NotFound
from steadmesh.kernel.ids import new_id
from steadmesh.kernel.text import truncated
from steadmesh.seats.identity import SeatCall, SeatCaller, note_activity
from steadmesh.seats.messages import Envelope, envelope, own_inbox, talks_of_messages
from steadmesh.seats.turns import _store
from steadmesh.seats.turns._rules import DELIVERY_LEASE, ERROR_BYTES, PASSIVE_PER_TURN
from steadmesh.seats.turns.requeue import fail_delivery
from steadmesh.tools import Args, Doc, Result, endpoint


class NoSuchDelivery(NotFound):
    """This delivery is not in a turn of this execution and generation; it may have been requeued. Drop it and poll for the next."""


class Delivery(Result):
    """A message to handle, and what waited for a turn to go with."""

    delivery_id: int
    execution_id: str
    attempt: int
    message: Envelope
    passive: list[Envelope] = Field(default_factory=list)


def inbox_topics(caller: SeatCaller, args: Args) -> tuple[str, ...]:
    return (f"inbox:{caller.seat_id}",)


def something_waits(tx: Transaction, caller: SeatCaller, args: NextDelivery, now: Instant) -> bool:
    """A glance before the poll takes the writer's time."""
    return _store.something_waits(tx, caller.seat_id, caller.generation, now)


class NextDelivery(Args):
    wait: Annotated[float, Doc("Seconds to wait for something, at most 30.")] = 0.0


@endpoint(
    "GET /v1/inbox/next",
    family="seats",
    fenced=True,
    locks=own_inbox,
    waits=inbox_topics,
    ready=something_waits,
)
def next_delivery(call: SeatCall, args: NextDelivery) -> Delivery | None:
    """Hand out the next delivery, or the one that this generation still holds."""
    caller = call.caller
    held = _store.held_delivery(call.tx, caller.seat_id, caller.generation)
    if held is not None:
        return _delivery(call, held, execution_id=held["execution_id"], attempt=held["attempt"])
    found = _store.next_delivery(call.tx, caller.seat_id, call.now)
    if found is None:
        return None
    execution_id = new_id(call.now)
    attempt = found["attempt"] + 1
    _store.lease_delivery(
        call.tx,
        found["number"],
        generation=caller.generation,
        until=call.now + DELIVERY_LEASE,
        execution=execution_id,
    )
    _store.add_execution(
        call.tx,
        id=execution_id,
        organisation_id=caller.organisation_id,
        seat_id=caller.seat_id,
        delivery_number=found["number"],
        message_id=found["message_id"],
        generation=caller.generation,
        config_revision=caller.config_revision,
        adapter=caller.adapter,
        attempt=attempt,
        now=call.now,
    )
    if found["origin"] != "probe":
        room = PASSIVE_PER_TURN - _store.carried_count(call.tx, found["number"])
        if room > 0:
            _store.carry_passive(call.tx, caller.seat_id, found["number"], room)
    note_activity(call.tx, caller.seat_id, call.now)
    call.tx.wake(f"runtime:{caller.organisation_id}")
    return _delivery(call, found, execution_id=execution_id, attempt=attempt)


def _delivery(call: SeatCall, row: Row, *, execution_id: str, attempt: int) -> Delivery:
    caller = call.caller
    return Delivery(
        delivery_id=row["number"],
        execution_id=execution_id,
        attempt=attempt,
        message=envelope(row, starts_at=call.now, timezone=caller.timezone, policy=caller.policy),
        passive=[
            envelope(item, policy=caller.policy)
            for item in _store.carried_messages(call.tx, row["number"])
        ],
    )


class Acknowledge(Args):
    delivery: int
    execution_id: str
    outcome: Annotated[str, Field(pattern="^(completed|failed)$")] = "completed"
    error: str | None = None


def settled_inbox(tx: Transaction, caller: SeatCaller, args: Acknowledge) -> Locks:
    """The inbox, and after a failure the talk with the person who may have to hear of it."""
    held = own_inbox(tx, caller, args)
    if args.outcome == "failed":
        held += talks_of_messages(tx, caller.organisation_id, [args.delivery])
    return held


@endpoint("POST /v1/inbox/{delivery}/ack", family="seats", fenced=True, locks=settled_inbox)
def acknowledge(call: SeatCall, args: Acknowledge) -> None:
    """Say how the turn ended. Repeating an accepted acknowledgement changes nothing."""
    caller = call.caller
    delivery = _store.leased_by(call.tx, caller.seat_id, args.delivery)
    if delivery is None:
        raise NoSuchDelivery()
    in_turn = (delivery["state"], delivery["generation"], delivery["execution_id"])
    if in_turn == ("leased", caller.generation, args.execution_id):
        _settle(call, delivery, args)
    elif not _was_acknowledged(call, args):
        raise NoSuchDelivery()


def _settle(call: SeatCall, delivery: Row, args: Acknowledge) -> None:
    caller = call.caller
    error = truncated(args.error or "", ERROR_BYTES) or None
    _store.end_execution(call.tx, args.execution_id, state=args.outcome, error=error, now=call.now)
    if args.outcome == "completed":
        _store.finish_delivery(call.tx, delivery["number"])
        _store.settle_carried(call.tx, delivery["number"])
    elif _store.is_probe(call.tx, delivery["number"]):
        # It was answered: no. Trying again would only put off the answer, and nobody mourns it.
        _store.finish_delivery(call.tx, delivery["number"])
    else:
        row = {**delivery, "seat_id": caller.seat_id}
        dead = fail_delivery(
            call.tx,
            row,
            organisation_id=caller.organisation_id,
            error=error or "the turn failed",
            now=call.now,
        )
        if dead:
            call.count("deliveries_dead_lettered_total")
    note_activity(call.tx, caller.seat_id, call.now)
    call.tx.wake(f"inbox:{caller.seat_id}")
    call.tx.wake(f"runtime:{caller.organisation_id}")


def _was_acknowledged(call: SeatCall, args: Acknowledge) -> bool:
    """Whether this execution of the delivery was ended by the same word and generation before, even
    if the delivery is in another turn by now."""
    execution = _store.execution(call.tx, args.execution_id)
    return (
        execution is not None
        and execution["delivery_number"] == args.delivery
        and execution["state"] == args.outcome
        and execution["generation"] == call.caller.generation
    )
