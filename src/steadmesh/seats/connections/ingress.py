"""What people write: taken once, and queued for whoever represents them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steadmesh.kernel.clock import HOUR
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.seats import organisation
from steadmesh.seats.connections import _store
from steadmesh.seats.identity import seat_id
from steadmesh.seats.messages import (
    Inbox,
    Person,
    Sender,
    human_conversation,
    queue_message,
    talk_of,
)
from steadmesh.tools import Call

REMEMBERED = 30 * 24 * HOUR
BATCH = 500

Outcome = Literal["accepted", "duplicate", "unbound"]


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
    binding = _binding(tx, event)
    if binding is None:
        return []
    scope = event.organisation_id
    held = [talk_of(scope, binding["key"])]
    representative = seat_id(tx, scope, binding["seat"])
    return [*held, exclusive("inbox", scope, representative)] if representative else held


def accept(call: Call[Any], event: OutsideEvent) -> Outcome:
    """Queue the message for the user's representative, over the cap if need be.

    A user without a binding is dropped; an event that was taken before does nothing.
    """
    outcome = _accept(call, event)
    call.count("ingress_events_total", outcome)
    return outcome


def _accept(call: Call[Any], event: OutsideEvent) -> Outcome:
    tx, now = call.tx, call.now
    binding = _binding(tx, event)
    representative = binding and seat_id(tx, event.organisation_id, binding["seat"])
    if not binding or not representative:
        return "unbound"
    taken = _store.take_event(
        tx,
        organisation_id=event.organisation_id,
        connection=event.connection,
        external_user_id=event.external_user_id,
        event_id=event.event_id,
        now=now,
    )
    if not taken:
        return "duplicate"
    inbox = Inbox(event.organisation_id, representative, binding["seat"])
    person = Person(binding["key"], event.connection, event.external_user_id)
    queue_message(
        tx,
        inbox,
        Sender("human", binding=person.binding, external_user_id=person.external_user_id),
        conversation_id=human_conversation(tx, inbox, person, thread=event.thread, now=now),
        body=event.text,
        now=now,
        count=call.services.count,
    )
    return "accepted"


def _binding(tx: Transaction, event: OutsideEvent) -> Row | None:
    return organisation.binding_of_user(
        tx, event.organisation_id, event.connection, event.external_user_id
    )


def forget_old(context: JobContext) -> int:
    """Drop the marks of events that no channel will send again."""
    before = context.clock.now() - REMEMBERED
    return context.database.write_blocking(lambda tx: _store.forget_events(tx, before, BATCH))


FORGETTING = Job("forget outside events", forget_old, every=600.0, batch=BATCH)
