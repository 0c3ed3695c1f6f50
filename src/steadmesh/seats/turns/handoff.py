"""handoff.update: the note that outlives restarts and harness changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.ids import is_id
from steadmesh.seats.identity import SeatCall
from steadmesh.seats.turns import _store
from steadmesh.tools import Args, Doc, Result, tool

LIMIT = 16_384


class NoId(Invalid):
    """{field}: {value} is no id. These lists hold ids of records, messages and operations; a work id belongs in notes."""


class HandoffTooLong(Invalid):
    """the handoff is {size} bytes; at most 16384 are kept. Put long texts into memory and name the records here."""


class Handoff(Args):
    objective: Annotated[str | None, Doc("What you are after.")] = None
    unresolved: Annotated[list[str], Doc("What is still open.")] = Field(default_factory=list)
    record_ids: Annotated[list[str], Doc("Ids of memory records.")] = Field(default_factory=list)
    pending_message_ids: Annotated[list[str], Doc("Ids of messages that you still owe.")] = Field(
        default_factory=list
    )
    operation_ids: Annotated[list[str], Doc("Ids of operations.")] = Field(default_factory=list)
    notes: Annotated[str | None, Doc("Anything else.")] = None


class Saved(Result):
    saved: bool = True


@tool("handoff.update", idempotent=True)
def update(call: SeatCall, args: Handoff) -> Saved:
    """Replace your handoff, the note you get back after a restart. Left-out fields become empty."""
    for field in ("record_ids", "pending_message_ids", "operation_ids"):
        for value in getattr(args, field):
            if not is_id(value):
                raise NoId(field=field, value=value[:100])
    size = len(args.model_dump_json(exclude_none=True).encode())
    if size > LIMIT:
        raise HandoffTooLong(size=size)
    _store.save_handoff(call.tx, call.caller.seat_id, args.model_dump(exclude_none=True), call.now)
    return Saved()
