"""What people write: taken once, and queued for whoever represents them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.seats import organisation
from steadmesh.seats.connections import _store
from steadmesh.seats.connections.silence import nobody_represents, why_it_waits
from steadmesh.seats.identity import live_lease, seat_id
from steadmesh.seats.messages import (
    Inbox,
    Person,
    Sender,
    human_conversation,
    queue_message,
    retiring_representative,
    talk_of,
    talk_of_person,
    tell_if_silent,
    tell_turned_away,
)
from steadmesh.tools import Call

Outcome = Literal["accepted", "duplicate", "unbound"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a message; `note` tells its author why nothing will happen, if so."""

    outcome: Outcome
    note: str | None = None


@dataclass(frozen=True, slots=True)
class OutsideEvent:
    """A message of a verified user, as an adapter got it. The adapter gives each event an id."""

    organisation_id: str
    connection: str
    external_user_id: str
    event_id: str
    thread: str
    text: str


def ingress_locks(tx: Transaction, event: OutsideEvent) -> Locks:
    """The talk over the binding, and the inbox of its representative."""
    scope = event.organisation_id
    binding = _binding(tx, event)
    if binding is None:
        return talk_of_person(
            tx, scope, connection=event.connection, external_user_id=event.external_user_id
        )
    held = [talk_of(scope, binding["key"])]
    representative = seat_id(tx, scope, binding["seat"])
    return [*held, exclusive("inbox", scope, representative)] if representative else held


def accept(call: Call[Any], event: OutsideEvent) -> Taken:
    """Queue the message for the user's representative, over the cap if need be.

    A user without a binding is dropped; an event that was taken before does nothing. If the
    representative answers nobody now, she gets a notice.
    """
    taken = _accept(call, event)
    call.count("ingress_events_total", taken.outcome)
    return taken


def _accept(call: Call[Any], event: OutsideEvent) -> Taken:
    tx, now = call.tx, call.now
    binding = _binding(tx, event)
    recipient = binding and live_lease(tx, event.organisation_id, binding["seat"])
    if not binding or not recipient:
        return Taken("unbound", _turned_away(tx, event, now))
    note = why_it_waits(tx, event.organisation_id, recipient, now)
    if not _is_new(tx, event, now):
        return Taken("duplicate", note)
    inbox = Inbox(event.organisation_id, recipient["id"], binding["seat"])
    person = Person(binding["key"], event.connection, event.external_user_id)
    message_id = queue_message(
        tx,
        inbox,
        Sender("human", binding=person.binding, external_user_id=person.external_user_id),
        conversation_id=human_conversation(tx, inbox, person, thread=event.thread, now=now),
        body=event.text,
        now=now,
        count=call.services.count,
    )
    tell_if_silent(tx, recipient, message_id, now=now)
    return Taken("accepted", note)


def _turned_away(tx: Transaction, event: OutsideEvent, now: Instant) -> str | None:
    """Nobody represents the author: a notice if the seat that did is retiring, a note otherwise."""
    who = {"connection": event.connection, "external_user_id": event.external_user_id}
    talk = retiring_representative(tx, event.organisation_id, **who)
    if talk is None:
        return nobody_represents(tx, event.organisation_id)
    if _is_new(tx, event, now):
        tell_turned_away(tx, talk, now=now)
    return None


def _is_new(tx: Transaction, event: OutsideEvent, now: Instant) -> bool:
    return _store.take_event(
        tx,
        organisation_id=event.organisation_id,
        connection=event.connection,
        external_user_id=event.external_user_id,
        event_id=event.event_id,
        now=now,
    )


def _binding(tx: Transaction, event: OutsideEvent) -> Row | None:
    return organisation.binding_of_user(
        tx, event.organisation_id, event.connection, event.external_user_id
    )
