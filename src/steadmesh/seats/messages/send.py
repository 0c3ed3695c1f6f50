"""messages.send: one seat writes to another."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.ids import new_id
from steadmesh.seats.identity import SeatCall, SeatCaller, live_lease, seat_id, seat_state
from steadmesh.seats.messages import _store
from steadmesh.seats.messages.errors import InboxFull, NoConversation, NoRoute, NotLive, Retiring
from steadmesh.seats.messages.queueing import (
    INBOX_CAP,
    Inbox,
    Sender,
    open_conversation,
    queue_message,
)
from steadmesh.tools import Args, Doc, NotBlank, Result, Size, tool

BODY_BYTES = 12_288


class SendMessage(Args):
    to: Annotated[str, Doc("Key of the seat that should get this.")]
    body: Annotated[str, Doc("What to say."), NotBlank(), Size(BODY_BYTES)]
    conversation_id: Annotated[str | None, Doc("Go on in this conversation.")] = None
    correlation_id: Annotated[
        str | None,
        Doc("A mark of your own that answers carry too."),
        Size(200),
        Field(min_length=1),
    ] = None
    wake: Annotated[bool, Doc("False waits for the recipient's next turn.")] = True


class MessageSent(Result):
    message_id: str
    conversation_id: str
    correlation_id: str | None = None
    recipient_state: str | None = None
    recipient_pending: int | None = None


def has_outgoing_route(caller: SeatCaller) -> bool:
    return bool(caller.policy.recipients)


def recipient_inbox(tx: Transaction, caller: SeatCaller, args: SendMessage) -> Locks:
    recipient = seat_id(tx, caller.organisation_id, args.to)
    return [exclusive("inbox", caller.organisation_id, recipient)] if recipient else []


@tool("messages.send", visible=has_outgoing_route, locks=recipient_inbox)
def send(call: SeatCall, args: SendMessage) -> MessageSent:
    """Write to a seat you have a route to. It gets a turn, woken if asleep, unless wake is false."""
    caller = call.caller
    if args.to not in caller.policy.recipients:
        raise NoRoute(seat=args.to)
    recipient = reachable(call, args.to)
    if args.conversation_id is None:
        pending = room(call, recipient)
        conversation_id = open_conversation(
            call.tx,
            caller.organisation_id,
            kind="internal",
            seats=(caller.seat_id, recipient["id"]),
            now=call.now,
        )
    else:
        conversation_id = continued(call, args.conversation_id)
        pending = room(call, recipient)
        _store.add_participant(call.tx, conversation_id, recipient["id"])
        _store.touch_conversation(call.tx, conversation_id, call.now)
    message_id = new_id(call.now)
    correlation_id = args.correlation_id or message_id
    deliver(
        call,
        recipient,
        conversation_id=conversation_id,
        message_id=message_id,
        correlation_id=correlation_id,
        body=args.body,
        wake=args.wake,
    )
    return sent(recipient, message_id, conversation_id, correlation_id, pending + int(args.wake))


def reachable(call: SeatCall, key: str) -> Row:
    """The live recipient with this key, or the refusal."""
    recipient = live_lease(call.tx, call.caller.organisation_id, key)
    if recipient is None:
        raise NotLive(seat=key)
    if recipient["retire_by"] is not None:
        raise Retiring(seat=key, recipient_state="Retiring")
    return recipient


def continued(call: SeatCall, conversation_id: str) -> str:
    """An internal conversation that the sender takes part in."""
    found = _store.own_conversation(call.tx, conversation_id, call.caller.seat_id)
    if found is None or found["kind"] != "internal":
        raise NoConversation()
    return conversation_id


def room(call: SeatCall, recipient: Row) -> int:
    """How many messages wait for a turn in the recipient's inbox, which is not full."""
    load = _store.load(call.tx, recipient["id"])
    if load["waiting"] >= INBOX_CAP:
        call.services.count("messages_rejected_total", "inbox_full")
        raise InboxFull(seat=recipient["key"], limit=INBOX_CAP)
    return int(load["pending"])


def deliver(call: SeatCall, recipient: Row, *, body: str, **message: Any) -> None:
    """Queue a message of this seat."""
    caller = call.caller
    queue_message(
        call.tx,
        Inbox(caller.organisation_id, recipient["id"], recipient["key"]),
        Sender("seat", seat_id=caller.seat_id, seat=caller.seat_key),
        body=body,
        now=call.now,
        **message,
    )
    call.count("messages_accepted_total", "seat")


def sent(
    recipient: Row, message_id: str, conversation_id: str, correlation_id: str | None, pending: int
) -> MessageSent:
    return MessageSent(
        message_id=message_id,
        conversation_id=conversation_id,
        correlation_id=correlation_id,
        recipient_state=seat_state(recipient),
        recipient_pending=pending,
    )
