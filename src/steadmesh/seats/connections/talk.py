"""What was said last: where a terminal begins, before it follows what comes."""

from __future__ import annotations

from typing import Annotated

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.text import size
from steadmesh.seats import organisation
from steadmesh.seats.connections import _store
from steadmesh.seats.connections.people import PersonCaller
from steadmesh.seats.connections.silence import why_nobody_answers
from steadmesh.seats.identity import live_lease
from steadmesh.seats.messages import talk_with
from steadmesh.tools import Args, Call, Clamped, Doc, Result, endpoint

MOST, USUAL = 100, 10
MOST_BYTES = 1_048_576
"""Of the texts of one answer; the oldest are left out."""

_ORIGINS = {"human": "you", "system": "platform"}


class ReadTalk(Args):
    organization: Annotated[str, Doc("Key of the organisation.")]
    connection: Annotated[str, Doc("Key of the terminal connection.")]
    limit: Annotated[int, Doc("Lines."), Clamped(maximum=MOST, default=USUAL)] = USUAL


class Line(Result):
    """`origin` is `you` or `platform`; a line of the representative has none."""

    id: str
    text: str
    at: str
    origin: str | None = None


class Talk(Result):
    """`position` is where a stream goes on (`Last-Event-ID`): what came after it is not in `lines`."""

    user: str
    organization: str
    representative: str | None = None
    position: int
    lines: list[Line]
    note: str | None = None


@endpoint("GET /v1/channels/{organization}/{connection}/talk", family="people", reads=True)
def talk(call: Call[PersonCaller], args: ReadTalk) -> Talk:
    """The last lines of your talk, oldest first, who represents you, and why nobody answers, if so."""
    tx, caller = call.tx, call.caller
    scope = caller.organisation_id
    row = organisation.organisation(tx, scope)
    bound = organisation.binding_of_user(tx, scope, caller.connection, caller.external_user_id)
    representative = bound and live_lease(tx, scope, bound["seat"])
    reader = {
        "organisation_id": scope,
        "connection": caller.connection,
        "external_user_id": caller.external_user_id,
    }
    position = _store.shown(tx, **reader)
    conversation_id = talk_with(
        tx,
        scope,
        seat_id=representative["id"] if representative else None,
        connection=caller.connection,
        external_user_id=caller.external_user_id,
        thread=caller.external_user_id,
    )
    newest_first: list[Row] = []
    if conversation_id is not None:
        newest_first = _store.past_lines(
            tx, conversation_id, position=position, limit=args.limit, **reader
        )
    return Talk(
        user=caller.external_user_id,
        organization=row["display_name"] if row else "",
        representative=representative["display_name"] if representative else None,
        position=position,
        lines=[_line(line) for line in reversed(_within(newest_first, MOST_BYTES))],
        note=why_nobody_answers(tx, scope, representative or None, call.now),
    )


def _within(rows: list[Row], most: int) -> list[Row]:
    """As many from the beginning as fit into so many bytes of text."""
    taken = 0
    for place, row in enumerate(rows):
        taken += size(row["text"])
        if taken > most:
            return rows[:place]
    return rows


def _line(row: Row) -> Line:
    return Line(
        id=row["id"],
        text=row["text"],
        at=rfc3339(row["at"]),
        origin=_ORIGINS.get(row["origin"]),
    )
