"""The bootstrap context: what a harness is told at its start."""

from __future__ import annotations

from typing import Any

from steadmesh.seats.briefing.about import InstructionSource, Self, describe, fit
from steadmesh.seats.identity import SeatCall
from steadmesh.seats.messages import inbox_counts
from steadmesh.seats.turns import checkpoints, handoff_of
from steadmesh.tools import NoArgs, Result, endpoint

GUIDANCE = (
    "Before you begin work that may have a history, look for it in memory.",
    "When you change something that others change too, pass the revision you read; on a conflict,"
    " read again and merge.",
    "Keep your handoff up to date: after a restart it is what you have.",
    "Other seats and people hear you only through messages. What you print reaches nobody.",
    "Act on outside systems through connections only; each action is recorded.",
    "An operation whose status is unknown may have happened. Look there before you try again.",
    "Never say that something is done before it is.",
    "A list with a next_cursor goes on: ask again with it.",
)


class Session(Result):
    harness_adapter: str
    format_version: str
    checkpoint_ref: str
    guarantee: str


class Recovery(Result):
    session: Session | None = None
    handoff: dict[str, Any] | None = None
    pending_messages: int
    unknown_operations: list[dict[str, Any]]
    work: list[dict[str, Any]]
    note: str | None = None


class Bootstrap(Result):
    self: Self
    instructions: list[InstructionSource]
    guidance: list[str]
    recovery: Recovery


@endpoint("GET /v1/bootstrap", family="seats", reads=True)
def bootstrap(call: SeatCall, args: NoArgs) -> Bootstrap:
    """Identity, instructions, guidance, and what there is to recover."""
    about = describe(call)
    return Bootstrap(
        self=fit(about, call.cap),
        instructions=about.instructions,
        guidance=list(GUIDANCE),
        recovery=_recovery(call),
    )


@endpoint("GET /v1/self", family="seats", reads=True)
def own_self(call: SeatCall, args: NoArgs) -> Self:
    """As the tool `self`."""
    return fit(describe(call), call.cap)


def _recovery(call: SeatCall) -> Recovery:
    caller = call.caller
    saved = checkpoints(call.tx, caller.seat_id)
    own = next((row for row in saved if row["adapter"] == caller.adapter), None)
    note = None
    if own is None and saved:
        note = (
            f"The last session ran in {saved[0]['adapter']} and cannot be continued in"
            f" {caller.adapter}. Go on from your handoff, memory and message history."
        )
    session = own and Session(
        harness_adapter=own["adapter"],
        format_version=own["format_version"],
        checkpoint_ref=own["checkpoint_ref"],
        guarantee=own["guarantee"],
    )
    counts = inbox_counts(call.tx, caller.organisation_id, seat_id=caller.seat_id)
    inbox = counts.get(caller.seat_id)
    return Recovery(
        session=session or None,
        handoff=handoff_of(call.tx, caller.seat_id),
        pending_messages=inbox.pending if inbox else 0,
        unknown_operations=[],
        work=[],
        note=note,
    )
