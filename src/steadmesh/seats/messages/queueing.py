"""Putting a message into an inbox: what every origin has in common."""

from __future__ import annotations

from dataclasses import dataclass

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.kernel.ids import new_id
from steadmesh.seats.messages import _store

INBOX_CAP = 1_000


@dataclass(frozen=True, slots=True)
class Inbox:
    """Whose inbox it is."""

    organisation_id: str
    seat_id: str
    seat: str


@dataclass(frozen=True, slots=True)
class Sender:
    """Where a message comes from, as the platform knows it. Never taken from what was said."""

    origin: str
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
) -> str:
    """Queue a message in an open conversation; its id. The caller has checked routes and the cap."""
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
        origin=sender.origin,
        sender=sender.seat,
        recipient=inbox.seat,
    )
    if wake:
        tx.wake(f"inbox:{inbox.seat_id}")
        tx.wake(f"runtime:{inbox.organisation_id}")
    return message_id


def open_conversation(
    tx: Transaction, organisation_id: str, *, kind: str, seats: tuple[str, ...], now: Instant
) -> str:
    """A new conversation of one or two seats; its id."""
    conversation_id = new_id(now)
    _store.add_conversation(
        tx,
        conversation_id,
        organisation=organisation_id,
        kind=kind,
        binding=None,
        thread=None,
        now=now,
    )
    if len(seats) == 2:
        _store.add_pair(tx, conversation_id, *seats)
    else:
        for seat_id in seats:
            _store.add_participant(tx, conversation_id, seat_id)
    return conversation_id


def human_conversation(
    tx: Transaction, inbox: Inbox, *, binding: str, thread: str | None, now: Instant
) -> str:
    """The newest conversation of a binding (and thread) with this seat, or a new one."""
    found = _store.newest_human_conversation(
        tx, inbox.organisation_id, binding, inbox.seat_id, thread
    )
    if found is not None:
        _store.touch_conversation(tx, found["id"], now)
        return str(found["id"])
    conversation_id = new_id(now)
    _store.add_conversation(
        tx,
        conversation_id,
        organisation=inbox.organisation_id,
        kind="human",
        binding=binding,
        thread=thread,
        now=now,
    )
    _store.add_participant(tx, conversation_id, inbox.seat_id)
    return conversation_id
