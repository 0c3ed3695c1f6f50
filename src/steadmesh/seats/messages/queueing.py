"""Putting a message into an inbox: what every origin has in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.kernel.ids import new_id
from steadmesh.seats.messages import _store

Origin = Literal["human", "seat", "schedule", "system", "probe"]


@dataclass(frozen=True, slots=True)
class Inbox:
    """Whose inbox it is."""

    organisation_id: str
    seat_id: str
    seat: str


@dataclass(frozen=True, slots=True)
class Sender:
    """Where a message comes from, as the platform knows it. Never taken from what was said."""

    origin: Origin
    seat_id: str | None = None
    seat: str | None = None
    binding: str | None = None
    external_user_id: str | None = None


def queue_message(
    tx: Transaction,
    inbox: Inbox,
    sender: Sender,
    *,
    conversation_id: str,
    body: str,
    now: Instant,
    wake: bool = True,
    message_id: str | None = None,
    parent_id: str | None = None,
    correlation_id: str | None = None,
    count: Callable[..., None] | None = None,
) -> str:
    """Queue a message in an open conversation; its id. `wake=False` starts no turn and wakes nobody.

    Hold `exclusive("inbox", organisation, seat id)`. Routes and the cap are the caller's to check:
    people and the platform are never refused. `count` is `Services.count`, told once it is durable.
    """
    message_id = message_id or new_id(now)
    number = _store.add_message(
        tx,
        id=message_id,
        organisation_id=inbox.organisation_id,
        conversation_id=conversation_id,
        origin=sender.origin,
        sender_seat_id=sender.seat_id,
        sender_seat=sender.seat,
        recipient_seat_id=inbox.seat_id,
        recipient_seat=inbox.seat,
        binding=sender.binding,
        external_user_id=sender.external_user_id,
        parent_id=parent_id,
        correlation_id=correlation_id,
        body=body,
        now=now,
    )
    _store.add_delivery(
        tx,
        number=number,
        message_id=message_id,
        seat_id=inbox.seat_id,
        conversation_id=conversation_id,
        state="pending" if wake else "passive",
        now=now,
    )
    outbox.record(
        tx,
        "message.accepted",
        scope=inbox.organisation_id,
        at=now,
        message=message_id,
        conversation=conversation_id,
        origin=sender.origin,
        sender=sender.seat or sender.binding,
        recipient=inbox.seat,
    )
    if wake:
        tx.wake(f"inbox:{inbox.seat_id}")
        tx.wake(f"runtime:{inbox.organisation_id}")
    if count is not None:
        tx.after_commit(lambda: count("messages_accepted_total", sender.origin))
    return message_id


def open_conversation(
    tx: Transaction,
    organisation_id: str,
    *,
    kind: Literal["internal", "system"],
    seats: tuple[()] | tuple[str] | tuple[str, str],
    now: Instant,
) -> str:
    """A new conversation of the seats with these ids; its id. A notice or run has one of its own.

    One of no seat is in nobody's history.
    """
    conversation_id = new_id(now)
    _store.add_conversation(
        tx, conversation_id, organisation_id=organisation_id, kind=kind, now=now
    )
    if len(seats) == 2:
        _store.add_pair(tx, conversation_id, *seats)
    elif len(seats) == 1:
        _store.add_participant(tx, conversation_id, *seats)
    return conversation_id
