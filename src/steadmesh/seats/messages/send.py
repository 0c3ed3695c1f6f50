"""messages.send: one seat writes to another."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.ids import new_id
from steadmesh.seats.identity import SeatCall, SeatCaller, seat_id, seat_state
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import BODY_BYTES, CORRELATION_BYTES, may_send, shown
from steadmesh.seats.messages.errors import NoRoute, NotContinuable
from steadmesh.seats.messages.queueing import open_conversation, queue_message
from steadmesh.seats.messages.recipient import (
    inbox_of,
    no_route,
    note_on,
    pending_with_room,
    reachable,
    refused,
    this_seat,
)
from steadmesh.tools import Args, Doc, NotBlank, Result, Size, tool


class SendMessage(Args):
    to: Annotated[str, Doc("Key of the seat that should get this.")]
    body: Annotated[str, Doc("What to say."), NotBlank(), Size(BODY_BYTES)]
    conversation_id: Annotated[
        str | None, Doc("Go on in this conversation; the recipient can then read all of it.")
    ] = None
    correlation_id: Annotated[
        str | None,
        Doc("A mark of yours that answers carry too."),
        Field(min_length=1),
        Size(CORRELATION_BYTES),
    ] = None
    wake: Annotated[bool, Doc("False waits for the recipient's next turn.")] = True


class MessageSent(Result):
    message_id: str
    conversation_id: str
    correlation_id: str
    recipient_state: str
    recipient_pending: int
    recipient_note: str | None = None


def recipient_inbox(tx: Transaction, caller: SeatCaller, args: SendMessage) -> Locks:
    recipient = seat_id(tx, caller.organisation_id, args.to)
    return [exclusive("inbox", caller.organisation_id, recipient)] if recipient else []


@tool("messages.send", visible=may_send, locks=recipient_inbox)
def send(call: SeatCall, args: SendMessage) -> MessageSent:
    """Write to a seat you have a route to. It gets a turn, woken if asleep, unless wake is false."""
    if args.to not in call.caller.policy.recipients:
        raise no_route(call, args.to, NoRoute(seat=shown(args.to)))
    recipient = reachable(call, args.to)
    conversation_id = _conversation(call, args, recipient)
    pending = pending_with_room(call, recipient)
    message_id = new_id(call.now)
    correlation_id = args.correlation_id or message_id
    queue_message(
        call.tx,
        inbox_of(call, recipient),
        this_seat(call),
        conversation_id=conversation_id,
        body=args.body,
        now=call.now,
        wake=args.wake,
        message_id=message_id,
        correlation_id=correlation_id,
        count=call.services.count,
    )
    return MessageSent(
        message_id=message_id,
        conversation_id=conversation_id,
        correlation_id=correlation_id,
        recipient_state=seat_state(recipient),
        recipient_pending=pending + int(args.wake),
        recipient_note=note_on(call, recipient),
    )


def _conversation(call: SeatCall, args: SendMessage, recipient: Row) -> str:
    """The conversation to go on in, which the recipient now takes part in, or a new one."""
    tx, sender = call.tx, call.caller
    if args.conversation_id is None:
        return open_conversation(
            tx,
            sender.organisation_id,
            kind="internal",
            seats=(sender.seat_id, recipient["id"]),
            now=call.now,
        )
    known = _store.continue_internal(tx, args.conversation_id, seat_id=sender.seat_id, now=call.now)
    if not known:
        raise refused(call, NotContinuable())
    _store.add_participant(tx, args.conversation_id, recipient["id"])
    return args.conversation_id
