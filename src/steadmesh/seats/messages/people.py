"""Talks with people: which conversation a message belongs to, and replies on their way out."""

from __future__ import annotations

from dataclasses import dataclass

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Lock, Row, Transaction, exclusive
from steadmesh.kernel.ids import new_id
from steadmesh.seats import organisation
from steadmesh.seats.identity import SeatCall
from steadmesh.seats.messages import _store
from steadmesh.seats.messages.queueing import Inbox

OUTBOX_TOPIC = "channel_outbox"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom a binding ties to a seat: a verified user of a connection."""

    binding: str
    connection: str
    external_user_id: str

    def is_in(self, conversation: Row) -> bool:
        """Whether a conversation is with this very person: a binding may name another one by now."""
        return (conversation["connection"], conversation["external_user_id"]) == (
            self.connection,
            self.external_user_id,
        )


@dataclass(frozen=True, slots=True)
class Told:
    """A reply that was stored and waits to be sent."""

    message_id: str
    conversation_id: str
    correlation_id: str


def talk_of(organisation_id: str, binding: str) -> Lock:
    """Alone with what goes to and fro over a binding."""
    return exclusive("talk", organisation_id, binding)


def person_behind(call: SeatCall, binding: str) -> Person | None:
    """The person this seat represents over a binding, nothing if it is not the representative."""
    caller = call.caller
    if binding not in caller.policy.bindings:
        return None
    row = organisation.binding(call.tx, caller.organisation_id, binding)
    if row is None or row["seat"] != caller.seat_key:
        return None
    return Person(row["key"], row["connection"], row["external_user_id"])


def human_conversation(
    tx: Transaction, inbox: Inbox, person: Person, *, thread: str | None, now: Instant
) -> str:
    """The newest conversation of a seat with a person in a thread (nothing: in any), or a new one.

    Hold `talk_of` the binding. A seat that took over a binding starts its own.
    """
    who = {
        "organisation_id": inbox.organisation_id,
        "binding": person.binding,
        "connection": person.connection,
        "external_user_id": person.external_user_id,
    }
    found = _store.human_conversation(tx, seat_id=inbox.seat_id, thread=thread, **who)
    if found is not None and _store.continue_conversation(tx, found, now):
        return found
    conversation_id = new_id(now)
    _store.add_human_conversation(
        tx,
        conversation_id,
        thread=thread if thread is not None else person.external_user_id,
        now=now,
        **who,
    )
    _store.add_participant(tx, conversation_id, inbox.seat_id)
    return conversation_id


def talk_with(
    tx: Transaction,
    organisation_id: str,
    *,
    seat_id: str | None,
    connection: str,
    external_user_id: str,
    thread: str,
) -> str | None:
    """The conversation of a person with the seat that represents her, or, if nobody does, her last one.

    Nothing before the first word.
    """
    who = {"connection": connection, "external_user_id": external_user_id}
    if seat_id is None:
        talk = _store.newest_talk(tx, organisation_id, **who)
        return str(talk["id"]) if talk else None
    bound = organisation.binding_of_user(tx, organisation_id, connection, external_user_id)
    if bound is None:
        return None
    return _store.human_conversation(
        tx,
        organisation_id=organisation_id,
        binding=bound["key"],
        seat_id=seat_id,
        thread=thread,
        **who,
    )


def tell(call: SeatCall, person: Person, body: str, *, parent: Row | None) -> Told:
    """Store a message to a person together with its place in the queue of its channel."""
    tx, caller, now = call.tx, call.caller, call.now
    if parent is not None:
        conversation_id = str(parent["conversation_id"])
        _store.continue_conversation(tx, conversation_id, now)
    else:
        own = Inbox(caller.organisation_id, caller.seat_id, caller.seat_key)
        conversation_id = human_conversation(tx, own, person, thread=None, now=now)
    message_id = new_id(now)
    correlation_id = (parent and parent["correlation_id"]) or message_id
    number = _store.add_message(
        tx,
        id=message_id,
        organisation_id=caller.organisation_id,
        conversation_id=conversation_id,
        origin="seat",
        sender_seat_id=caller.seat_id,
        sender_seat=caller.seat_key,
        recipient_seat_id=None,
        recipient_seat=None,
        binding=person.binding,
        external_user_id=person.external_user_id,
        parent_id=parent and parent["message_id"],
        correlation_id=correlation_id,
        body=body,
        now=now,
    )
    _store.add_to_outbox(
        tx,
        number=number,
        organisation_id=caller.organisation_id,
        seat_id=caller.seat_id,
        connection=person.connection,
        binding=person.binding,
        external_user_id=person.external_user_id,
        conversation_id=conversation_id,
        message_id=message_id,
        now=now,
    )
    outbox.record(
        tx,
        "message.accepted",
        scope=caller.organisation_id,
        at=now,
        message=message_id,
        conversation=conversation_id,
        origin="seat",
        sender=caller.seat_key,
        recipient=person.binding,
    )
    tx.wake(OUTBOX_TOPIC)
    call.count("messages_accepted_total", "seat")
    return Told(message_id, conversation_id, correlation_id)
