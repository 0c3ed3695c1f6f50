"""messages.reply: answer a message, or write to one's own person."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel import outbox
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.ids import new_id
from steadmesh.seats.identity import SeatCall, SeatCaller
from steadmesh.seats.messages import _store
from steadmesh.seats.messages.errors import (
    NoMessage,
    NoReplyRoute,
    NotLive,
    NotReplyable,
    NotYourPerson,
    WhichMessage,
)
from steadmesh.seats.messages.queueing import Inbox, human_conversation
from steadmesh.seats.messages.send import BODY_BYTES, deliver, reachable, room, sent
from steadmesh.seats.organisation import binding as binding_row
from steadmesh.tools import Args, Doc, NotBlank, Result, Size, tool


class Reply(Args):
    message_id: Annotated[str | None, Doc("The message that you answer.")] = None
    binding: Annotated[str | None, Doc("Or the channel of your own person.")] = None
    body: Annotated[str, Doc("What to say."), NotBlank(), Size(BODY_BYTES)]
    wake: Annotated[bool, Doc("False waits for the recipient's next turn.")] = True


class ReplySent(Result):
    """To a seat: as messages.send. To a person: `delivery` is `queued`, it goes out in the background."""

    message_id: str
    conversation_id: str
    correlation_id: str | None = None
    delivery: str | None = None
    recipient_state: str | None = None
    recipient_pending: int | None = None


def may_reply(caller: SeatCaller) -> bool:
    policy = caller.policy
    return bool(policy.recipients or policy.senders or policy.bindings)


def answered_inbox(tx: Transaction, caller: SeatCaller, args: Reply) -> Locks:
    if args.message_id is None:
        return []
    message = _store.delivered_message(tx, args.message_id, caller.seat_id)
    if message is None or message["sender_seat_id"] is None:
        return []
    return [exclusive("inbox", caller.organisation_id, message["sender_seat_id"])]


@tool("messages.reply", visible=may_reply, locks=answered_inbox)
def reply(call: SeatCall, args: Reply) -> ReplySent:
    """Answer a message by its id, or write to your own person by binding."""
    if (args.message_id is None) == (args.binding is None):
        raise WhichMessage()
    if args.message_id is None:
        return _to_person(call, str(args.binding), args.body)
    message = _store.delivered_message(call.tx, args.message_id, call.caller.seat_id)
    if message is None:
        raise NoMessage()
    if message["origin"] == "human":
        return _to_person(call, message["binding"], args.body, answered=message)
    if message["origin"] == "seat":
        return _to_seat(call, message, args)
    raise NotReplyable(origin=message["origin"])


def _to_seat(call: SeatCall, message: Row, args: Reply) -> ReplySent:
    """The reply rule: an own route to the sender, or one from the sender that asks for replies."""
    policy, sender = call.caller.policy, message["sender_seat"]
    if sender not in policy.recipients and not policy.senders.get(sender, False):
        raise NoReplyRoute(seat=sender)
    recipient = reachable(call, sender)
    if recipient["id"] != message["sender_seat_id"]:  # the key belongs to another seat now
        raise NotLive(seat=sender)
    pending = room(call, recipient)
    message_id = new_id(call.now)
    _store.add_participant(call.tx, message["conversation_id"], recipient["id"])
    _store.touch_conversation(call.tx, message["conversation_id"], call.now)
    deliver(
        call,
        recipient,
        conversation_id=message["conversation_id"],
        message_id=message_id,
        parent_id=message["message_id"],
        correlation_id=message["correlation_id"],
        body=args.body,
        wake=args.wake,
    )
    answer = sent(
        recipient,
        message_id,
        message["conversation_id"],
        message["correlation_id"],
        pending + int(args.wake),
    )
    return ReplySent(**answer.model_dump())


def _to_person(call: SeatCall, binding: str, body: str, answered: Row | None = None) -> ReplySent:
    caller = call.caller
    bound = binding_row(call.tx, caller.organisation_id, binding)
    if binding not in caller.policy.bindings or bound is None:
        raise NotYourPerson(binding=binding)
    if answered is None:
        inbox = Inbox(caller.organisation_id, caller.seat_id, caller.seat_key)
        conversation_id = human_conversation(
            call.tx, inbox, binding=binding, thread=None, now=call.now
        )
    else:
        conversation_id = answered["conversation_id"]
        _store.touch_conversation(call.tx, conversation_id, call.now)
    message_id = new_id(call.now)
    correlation_id = (answered and answered["correlation_id"]) or message_id
    number = _store.add_message(
        call.tx,
        id=message_id,
        organisation_id=caller.organisation_id,
        conversation_id=conversation_id,
        origin="seat",
        sender_seat_id=caller.seat_id,
        sender_seat=caller.seat_key,
        recipient_seat_id=None,
        recipient_seat=None,
        binding=binding,
        external_user_id=bound["external_user_id"],
        parent_id=answered and answered["message_id"],
        correlation_id=correlation_id,
        body=body,
        now=call.now,
    )
    _store.add_to_outbox(
        call.tx,
        number=number,
        organisation_id=caller.organisation_id,
        seat_id=caller.seat_id,
        connection=bound["connection"],
        binding=binding,
        external_user_id=bound["external_user_id"],
        conversation_id=conversation_id,
        message_id=message_id,
        now=call.now,
    )
    _record(call, message_id, binding)
    return ReplySent(
        message_id=message_id,
        conversation_id=conversation_id,
        correlation_id=correlation_id,
        delivery="queued",
    )


def _record(call: SeatCall, message_id: str, binding: str) -> None:
    fields: dict[str, Any] = {"message": message_id, "sender": call.caller.seat_key}
    outbox.record(
        call.tx,
        "message.accepted",
        scope=call.caller.organisation_id,
        at=call.now,
        origin="seat",
        binding=binding,
        **fields,
    )
    call.tx.wake("channel_outbox")
    call.count("messages_accepted_total", "seat")
