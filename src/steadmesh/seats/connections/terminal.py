"""The terminal channel: people post lines, and follow what their representatives answer."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.database import Locks, Transaction, exclusive
from steadmesh.seats.connections import _store
from steadmesh.seats.connections.ingress import OutsideEvent, accept, ingress_locks
from steadmesh.seats.connections.people import PersonCaller
from steadmesh.tools import Args, Call, Doc, NotBlank, Result, Size, endpoint
from steadmesh.tools.stream import Stream

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
    id: str


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
    accept(call, _event(call.caller, args))
    return Posted(id=args.id)


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
) -> None:
    """Store a line for a person. Hold `reader_lock`. Beyond 200 the oldest is dropped."""
    reader = {
        "organisation_id": organisation_id,
        "connection": connection,
        "external_user_id": external_user_id,
    }
    _store.add_line(tx, line_id=line_id, text=text, at=at, **reader)
    _store.drop_old_lines(tx, kept=KEPT_LINES, **reader)
    tx.wake(reader_topic(organisation_id, connection, external_user_id))


# The stream


class FollowTerminal(Follow):
    organization: Annotated[str, Doc("Key of the organisation.")]
    connection: Annotated[str, Doc("Key of the terminal connection.")]


def _reader(caller: PersonCaller) -> dict[str, str]:
    return {
        "organisation_id": caller.organisation_id,
        "connection": caller.connection,
        "external_user_id": caller.external_user_id,
    }
