"""messages.reply: answer a message, or write to one's own person."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.ids import new_id
from steadmesh.seats.identity import SeatCall, SeatCaller, seat_state
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import BODY_BYTES, may_answer, may_reply, shown
from steadmesh.seats.messages.errors import (
    NoReplyRoute,
    NotReplyable,
    NotYourMessage,
    NotYourPerson,
    PersonLost,
)
from steadmesh.seats.messages.people import Person, person_behind, talk_of, tell
from steadmesh.seats.messages.queueing import queue_message
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


class Reply(Args):
    message_id: Annotated[str | None, Doc("The message that you answer.")] = None
    binding: Annotated[str | None, Doc("Or the channel of your own person.")] = None
    body: Annotated[str, Doc("What to say."), NotBlank(), Size(BODY_BYTES)]
    wake: Annotated[bool, Doc("False waits for the recipient's next turn.")] = True

    @model_validator(mode="after")
    def _one_addressee(self) -> Self:
        if (self.message_id is None) == (self.binding is None):
            raise PydanticCustomError(
                "addressee",
                "give exactly one of message_id (what you answer) and binding (your person)",
            )
        return self


class ReplySent(Result):
    """To a seat: as messages.send. To a person: `delivery` is `queued`, it goes out in the background."""

    message_id: str
    conversation_id: str
    correlation_id: str
    delivery: str | None = None
    recipient_state: str | None = None
    recipient_pending: int | None = None
    recipient_note: str | None = None


def addressee(tx: Transaction, caller: SeatCaller, args: Reply) -> Locks:
    """The inbox of the seat that wrote the message, or the talk with the person."""
    scope = caller.organisation_id
    if args.binding is not None:
        return [talk_of(scope, args.binding)]
    parent = _store.message_to(tx, args.message_id or "", caller.seat_id)
    if parent is None:
        return []
    if parent["origin"] == "human":
        return [talk_of(scope, parent["binding"])]
    sender = parent["sender_seat_id"]
    return [exclusive("inbox", scope, sender)] if sender else []


@tool("messages.reply", visible=may_reply, locks=addressee)
def reply(call: SeatCall, args: Reply) -> ReplySent:
    """Answer a message by its message_id, or write to your own person by binding."""
    if args.binding is not None:
        person = person_behind(call, args.binding)
        if person is None:
            raise refused(call, NotYourPerson(binding=shown(args.binding)))
        return _tell_person(call, person, args.body)
    parent = _store.message_to(call.tx, args.message_id or "", call.caller.seat_id)
    if parent is None:
        raise refused(call, NotYourMessage())
    if parent["origin"] == "human":
        return _tell_person(call, _author(call, parent), args.body, parent=parent)
    if parent["origin"] == "seat":
        return _answer_seat(call, args, parent)
    raise refused(call, NotReplyable(origin=parent["origin"]))


def _author(call: SeatCall, message: Row) -> Person:
    """Who wrote the message, if this seat still represents that very person."""
    person = person_behind(call, message["binding"])
    talk = _store.person_of_conversation(call.tx, message["conversation_id"])
    if person is None or talk is None or not person.is_in(talk):
        raise refused(call, PersonLost())
    return person


def _tell_person(
    call: SeatCall, person: Person, body: str, *, parent: Row | None = None
) -> ReplySent:
    told = tell(call, person, body, parent=parent)
    return ReplySent(
        message_id=told.message_id,
        conversation_id=told.conversation_id,
        correlation_id=told.correlation_id,
        delivery="queued",
    )


def _answer_seat(call: SeatCall, args: Reply, parent: Row) -> ReplySent:
    if not may_answer(call.caller.policy, parent["sender_seat"]):
        sender = parent["sender_seat"]
        raise no_route(call, sender, NoReplyRoute(seat=sender))
    recipient = reachable(call, parent["sender_seat"], seat_id=parent["sender_seat_id"])
    pending = pending_with_room(call, recipient)
    conversation_id = parent["conversation_id"]
    message_id = new_id(call.now)
    correlation_id = parent["correlation_id"] or message_id
    _store.continue_conversation(call.tx, conversation_id, call.now)
    queue_message(
        call.tx,
        inbox_of(call, recipient),
        this_seat(call),
        conversation_id=conversation_id,
        body=args.body,
        now=call.now,
        wake=args.wake,
        message_id=message_id,
        parent_id=parent["message_id"],
        correlation_id=correlation_id,
        count=call.services.count,
    )
    return ReplySent(
        message_id=message_id,
        conversation_id=conversation_id,
        correlation_id=correlation_id,
        recipient_state=seat_state(recipient),
        recipient_pending=pending + int(args.wake),
        recipient_note=note_on(call, recipient),
    )
