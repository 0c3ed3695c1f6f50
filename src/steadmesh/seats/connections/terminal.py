"""The terminal channel: people post lines, and follow what their representatives answer."""

from __future__ import annotations

from typing import Annotated, Literal

from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.seats.connections import _store
from steadmesh.seats.connections.ingress import OutsideEvent, accept, ingress_locks
from steadmesh.seats.connections.people import PersonCaller
from steadmesh.tools import (
    Args,
    Call,
    Doc,
    Entry,
    Follow,
    Followed,
    NotBlank,
    Result,
    Size,
    endpoint,
    stream,
)

TEXT_BYTES = 65_536
ID_BYTES = 200
KEPT_LINES = 200
"""For a person who is not looking."""


class PostMessage(Args):
    organization: Annotated[str, Doc("Key of the organisation.")]
    connection: Annotated[str, Doc("Key of the terminal connection.")]
    id: Annotated[
        str,
        Doc("Made by the client; the same id again is the same message."),
        NotBlank(),
        Size(ID_BYTES),
    ]
    text: Annotated[str, Doc("What to say."), NotBlank(), Size(TEXT_BYTES)]


class Posted(Result):
    """`note` says why nothing will happen for now, if that is so."""

    id: str
    note: str | None = None


def _event(caller: PersonCaller, args: PostMessage) -> OutsideEvent:
    return OutsideEvent(
        organisation_id=caller.organisation_id,
        connection=caller.connection,
        external_user_id=caller.external_user_id,
        event_id=args.id,
        thread=caller.external_user_id,  # a terminal has one thread with each person
        text=args.text,
    )


def post_locks(tx: Transaction, caller: PersonCaller, args: PostMessage) -> Locks:
    return ingress_locks(tx, _event(caller, args))


@endpoint(
    "POST /v1/channels/{organization}/{connection}/messages",
    family="people",
    locks=post_locks,
    status=202,
)
def post_message(call: Call[PersonCaller], args: PostMessage) -> Posted:
    """Write to your representative. Sending the same id again is safe: it is delivered once."""
    taken = accept(call, _event(call.caller, args))
    return Posted(id=args.id, note=taken.note)


def reader_lock(organisation_id: str, connection: str, user: str) -> Locks:
    """Alone with the lines of one person, so that their order is the order of commits."""
    return [exclusive("terminal", organisation_id, connection, user)]


def reader_topic(organisation_id: str, connection: str, user: str) -> str:
    """What wakes a person's streams."""
    return f"terminal:{organisation_id}:{connection}:{user}"


def show(
    tx: Transaction,
    *,
    organisation_id: str,
    connection: str,
    external_user_id: str,
    line_id: str,
    text: str,
    at: Instant,
    origin: Literal["platform"] | None = None,
) -> None:
    """Store a line for a person: of her representative, or of the platform. Hold `reader_lock`.

    Beyond 200 the oldest is dropped.
    """
    reader = {
        "organisation_id": organisation_id,
        "connection": connection,
        "external_user_id": external_user_id,
    }
    _store.add_line(tx, line_id=line_id, text=text, at=at, origin=origin, **reader)
    _store.drop_old_lines(tx, kept=KEPT_LINES, **reader)
    tx.wake(reader_topic(organisation_id, connection, external_user_id))


# The stream


class FollowTerminal(Follow):
    organization: Annotated[str, Doc("Key of the organisation.")]
    connection: Annotated[str, Doc("Key of the terminal connection.")]


def topics(caller: PersonCaller, args: FollowTerminal) -> tuple[str, ...]:
    return (reader_topic(caller.organisation_id, caller.connection, caller.external_user_id),)


def is_news(tx: Transaction, caller: PersonCaller, args: FollowTerminal, now: Instant) -> bool:
    """Whether there are lines to send, or it is to be noted that some were sent."""
    reader = _reader(caller)
    shown = _store.shown(tx, **reader)
    after = shown if args.after is None else args.after
    return shown < after or bool(_store.lines(tx, after=after, limit=1, **reader))


@stream(
    "GET /v1/channels/{organization}/{connection}/events",
    family="people",
    topics=topics,
    reads=False,
    ready=is_news,
)
def follow(call: Call[PersonCaller], args: FollowTerminal) -> Followed:
    """What your representative writes, as it comes. A stream that names no position goes on behind what any stream of yours has shown."""
    reader = _reader(call.caller)
    if args.after is None:
        after = _store.shown(call.tx, **reader)
    else:  # a client of a database that was since restored may name a position to come
        after = min(args.after, _store.last_line(call.tx, **reader))
        _store.note_shown(call.tx, position=after, **reader)
    limit = min(max(args.limit, 1), KEPT_LINES)
    rows = _store.lines(call.tx, after=after, limit=limit, **reader)
    entries = [
        Entry(
            position=row["number"],
            data=_data(row),
        )
        for row in rows
    ]
    return Followed(entries=entries, after=entries[-1].position if entries else after)


def _data(row: Row) -> dict[str, str]:
    data = {"id": row["id"], "text": row["text"], "at": rfc3339(row["at"])}
    return data | {"origin": row["origin"]} if row["origin"] else data


def _reader(caller: PersonCaller) -> dict[str, str]:
    return {
        "organisation_id": caller.organisation_id,
        "connection": caller.connection,
        "external_user_id": caller.external_user_id,
    }
