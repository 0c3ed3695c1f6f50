"""The seat that is to get a message: is it there, does it take messages, has it room?"""

from __future__ import annotations

from steadmesh.kernel.database import Row
from steadmesh.kernel.errors import Failure
from steadmesh.seats.identity import (
    NOBODY,
    SeatCall,
    is_live,
    live_lease,
    live_supervisor,
)
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import INBOX_CAP, shown
from steadmesh.seats.messages.errors import InboxFull, NotLive, Retiring
from steadmesh.seats.messages.queueing import Inbox, Sender


def reachable(call: SeatCall, key: str, *, seat_id: str | None = None) -> Row:
    """The live seat of a key, which with `seat_id` has to be this one. Raises `NotLive`, `Retiring`."""
    recipient = live_lease(call.tx, call.caller.organisation_id, key)
    if recipient is None or (seat_id is not None and recipient["id"] != seat_id):
        raise refused(call, NotLive(seat=shown(key)))
    if recipient["retire_by"] is not None:
        raise refused(call, Retiring(seat=key, recipient_state="Retiring"))
    return recipient


def no_route(call: SeatCall, key: str, otherwise: Failure) -> Failure:
    """Why a seat may not write to another: it is on its way out, or there is no route."""
    if key in call.caller.policy.leaving:
        return refused(call, Retiring(seat=key, recipient_state="Retiring"))
    return refused(call, otherwise)


def pending_with_room(call: SeatCall, recipient: Row) -> int:
    """How many messages wait for a turn or are in one, if the cap is not met. Raises `InboxFull`."""
    load = _store.load(call.tx, recipient["id"])
    if load["waiting"] >= INBOX_CAP:
        raise refused(call, InboxFull(seat=recipient["key"], limit=INBOX_CAP))
    return int(load["pending"])


def note_on(call: SeatCall, recipient: Row) -> str | None:
    """Why nothing will happen to a message for now, if nobody runs the seat or would start it."""
    if is_live(recipient, call.now):
        return None
    if live_supervisor(call.tx, call.caller.organisation_id, call.now) is not None:
        return None
    return NOBODY


def inbox_of(call: SeatCall, recipient: Row) -> Inbox:
    return Inbox(call.caller.organisation_id, recipient["id"], recipient["key"])


def this_seat(call: SeatCall) -> Sender:
    """The caller, as the one who wrote a message."""
    return Sender("seat", seat_id=call.caller.seat_id, seat=call.caller.seat_key)


def refused(call: SeatCall, failure: Failure) -> Failure:
    """Count a message that was not taken."""
    call.count_refusal(failure, "messages_rejected_total", failure.code)
    return failure
