"""Notices: what the platform tells a person whose representative does not answer her.

They are messages of her own talk with the representative and go out by the channel's outbox, like its
replies. About each message she hears each reason once. Words are for people: no internal error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Row, Transaction
from steadmesh.kernel.ids import new_id
from steadmesh.kernel.retries import ATTEMPTS
from steadmesh.seats import organisation
from steadmesh.seats.identity import live_lease, seat, seat_state
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import opening
from steadmesh.seats.messages.people import OUTBOX_TOPIC, talk_of

Reason = Literal["suspended", "blocked", "retiring", "given_up"]


def why_silent(representative: Row) -> Reason | None:
    """Why a seat answers nobody now, from its row; nothing if it does or will by itself."""
    if representative["suspended"]:
        return "suspended"
    return "blocked" if seat_state(representative) == "Blocked" else None


def silence(representative: Row) -> str | None:
    """The same in a sentence for the person it represents."""
    reason = why_silent(representative)
    return reason and _STATES[reason].format(name=representative["display_name"])


def tell_authors(
    tx: Transaction, seat_id: str, numbers: Iterable[int], *, reason: Reason, now: Instant
) -> int:
    """Tell the people who wrote these messages to a seat why it does not answer; how many talks.

    `numbers` are those of messages and of their deliveries; what was not written by a person is
    passed over. A talk gets one line for all its messages. Hold `talks_of_messages` or
    `talks_waiting`, or be alone with the organisation.
    """
    talks: dict[str, Row] = {}
    for number in sorted(numbers):
        row = _store.untold_message(tx, number, reason)
        if row is not None:
            before = talks.get(row["conversation_id"])
            talks[row["conversation_id"]] = {
                **row,
                "messages": before["messages"] + 1 if before else 1,
            }
    return _tell(tx, seat_id, talks.values(), reason=reason, now=now)


def tell_waiting(tx: Transaction, seat_id: str, *, now: Instant) -> int:
    """Tell everybody whose message waits for a seat why it answers nobody now, if it does not.

    Call it in the transaction that has suspended or blocked the seat; hold `talks_waiting`.
    """
    row = seat(tx, seat_id)
    reason = row and why_silent(row)
    if not reason:
        return 0
    untold = _store.untold_waiting(tx, seat_id, reason)
    return _tell(tx, seat_id, untold, reason=reason, now=now)


def tell_if_silent(tx: Transaction, representative: Row, message_id: str, *, now: Instant) -> bool:
    """Tell the author of a message that was just queued why it is not answered now, if so.

    Hold the talk's lock.
    """
    reason = why_silent(representative)
    message = reason and _store.message_to(tx, message_id, representative["id"])
    if not reason or not message:
        return False
    numbers = [message["number"]]
    return tell_authors(tx, representative["id"], numbers, reason=reason, now=now) > 0


def retiring_representative(
    tx: Transaction, organisation_id: str, *, connection: str, external_user_id: str
) -> Row | None:
    """The last talk of somebody whom nobody represents, if the seat it was with is just retiring."""
    talk = _store.newest_talk(
        tx, organisation_id, connection=connection, external_user_id=external_user_id
    )
    former = talk and talk["seat_id"] and seat(tx, talk["seat_id"])
    leaves = former and former["retire_by"] is not None and former["retired_at"] is None
    return talk if leaves else None


def tell_turned_away(tx: Transaction, talk: Row, *, now: Instant) -> None:
    """Tell the person of such a talk that what she has just written went to nobody."""
    former = seat(tx, talk["seat_id"])
    name = former["display_name"] if former else "Your representative"
    text = (
        f"{name} is retiring and takes no new messages: this one went to nobody."
        f" {_whom_to_write_to(tx, talk, former)}"
    )
    _post(tx, talk, talk["seat_id"], text, parent_id=None, now=now)


def talks_waiting(tx: Transaction, organisation_id: str, seat_id: str) -> Locks:
    """Alone with the talks in which somebody waits for a seat."""
    return [talk_of(organisation_id, binding) for binding in _store.bindings_waiting(tx, seat_id)]


def talks_of_messages(tx: Transaction, organisation_id: str, numbers: Iterable[int]) -> Locks:
    """Alone with the talks that these messages of people belong to."""
    bindings = {_store.binding_of_message(tx, number) for number in numbers}
    return [talk_of(organisation_id, binding) for binding in bindings if binding is not None]


def talk_of_person(
    tx: Transaction, organisation_id: str, *, connection: str, external_user_id: str
) -> Locks:
    """Alone with the last talk of somebody who may have no binding any more."""
    talk = _store.newest_talk(
        tx, organisation_id, connection=connection, external_user_id=external_user_id
    )
    return [talk_of(organisation_id, talk["binding"])] if talk else []


def _tell(
    tx: Transaction, seat_id: str, untold: Iterable[Row], *, reason: Reason, now: Instant
) -> int:
    told = 0
    representative: Row | None = None
    for row in untold:
        talk = _store.talk(tx, row["conversation_id"])
        representative = representative or seat(tx, seat_id)
        if talk is None or representative is None:
            continue
        text = _words(tx, talk, representative, row, reason)
        _post(tx, talk, seat_id, text, parent_id=row["message_id"], now=now)
        _store.note_told(tx, row["conversation_id"], reason, row["number"])
        told += 1
    return told


def _post(
    tx: Transaction,
    talk: Row,
    seat_id: str,
    text: str,
    *,
    parent_id: str | None,
    now: Instant,
) -> None:
    """Store a line of the platform in a talk, together with its place in the queue of the channel."""
    message_id = new_id(now)
    who = {
        "organisation_id": talk["organisation_id"],
        "conversation_id": talk["id"],
        "binding": talk["binding"],
        "external_user_id": talk["external_user_id"],
    }
    number = _store.add_message(
        tx,
        id=message_id,
        origin="system",
        sender_seat_id=None,
        sender_seat=None,
        recipient_seat_id=None,
        recipient_seat=None,
        parent_id=parent_id,
        correlation_id=message_id,
        body=text,
        now=now,
        **who,
    )
    _store.add_to_outbox(
        tx,
        number=number,
        seat_id=seat_id,
        connection=talk["connection"],
        message_id=message_id,
        now=now,
        **who,
    )
    _store.continue_conversation(tx, talk["id"], now)
    outbox.record(
        tx,
        "message.accepted",
        scope=talk["organisation_id"],
        at=now,
        message=message_id,
        conversation=talk["id"],
        origin="system",
        sender=None,
        recipient=talk["binding"],
    )
    tx.wake(OUTBOX_TOPIC)


_STATES: dict[Reason, str] = {
    "suspended": "{name} is suspended and answers nothing for now.",
    "blocked": "{name} cannot run at the moment.",
}


def _words(tx: Transaction, talk: Row, representative: Row, row: Row, reason: Reason) -> str:
    name, several = representative["display_name"], row["messages"]
    one = several == 1
    if reason == "given_up":
        return (
            f"{name} could not deal with your message {opening(row['body'])} and has given it up"
            f" after {ATTEMPTS} attempts. Write it in other words, or ask whoever runs"
            f" {_organisation(tx, talk)} to try it again."
        )
    if reason == "retiring":
        what = f"your message {opening(row['body'])}" if one else f"your last {several} messages"
        return (
            f"{name} is retiring and did not get to {what}."
            f" {_whom_to_write_to(tx, talk, representative)}"
        )
    waits = "Your message waits" if one else f"Your {several} messages wait"
    state = _STATES[reason].format(name=name)
    if reason == "suspended":
        return f"{state} {waits} until {name} is resumed."
    return f"{state} {waits}; whoever runs {_organisation(tx, talk)} can see why."


def _whom_to_write_to(tx: Transaction, talk: Row, former: Row | None) -> str:
    scope = talk["organisation_id"]
    bound = organisation.binding_of_user(tx, scope, talk["connection"], talk["external_user_id"])
    successor = bound and live_lease(tx, scope, bound["seat"])
    if not successor or (former and successor["id"] == former["id"]):
        return f"Nobody represents you now; ask whoever runs {_organisation(tx, talk)}."
    return f"{successor['display_name']} represents you now: write again if it still matters."


def _organisation(tx: Transaction, talk: Row) -> str:
    row = organisation.organisation(tx, talk["organisation_id"])
    return str(row["display_name"]) if row else "this organisation"
