"""messages.inbox: read what was sent without a wake."""

from __future__ import annotations

from typing import Annotated

from steadmesh.kernel.database import Locks, Transaction, exclusive
from steadmesh.kernel.text import size, truncated
from steadmesh.seats.identity import SeatCall, SeatCaller
from steadmesh.seats.messages import _store
from steadmesh.seats.messages.envelope import Envelope, envelope
from steadmesh.tools import Args, Clamped, Doc, Result, tool


class ReadInbox(Args):
    max_results: Annotated[int, Clamped(maximum=20, default=20), Doc("How many.")] = 20


class Inbox(Result):
    messages: list[Envelope]


def own_inbox(tx: Transaction, caller: SeatCaller, args: ReadInbox) -> Locks:
    return [exclusive("inbox", caller.organisation_id, caller.seat_id)]


@tool("messages.inbox", locks=own_inbox)
def read_inbox(call: SeatCall, args: ReadInbox) -> Inbox:
    """Take the messages that were queued for you without a wake. They will not come with a turn."""
    rows = _store.passive_messages(call.tx, call.caller.seat_id, args.max_results)
    taken: list[Envelope] = []
    for row in rows:
        if len(Inbox(messages=[*taken, envelope(row)]).encoded()) > call.cap:
            break
        taken.append(envelope(row))
    if rows and not taken:
        taken = [_shortened(envelope(rows[0]), call.cap)]
    _store.hand_over(call.tx, [row["number"] for row in rows[: len(taken)]])
    return Inbox(messages=taken)


def _shortened(whole: Envelope, cap: int) -> Envelope:
    """One message always fits: escaping can make a legal body larger than the cap."""
    low, high = 0, size(whole.body)
    while low < high:
        middle = (low + high + 1) // 2
        if len(Inbox(messages=[_cut(whole, middle)]).encoded()) <= cap:
            low = middle
        else:
            high = middle - 1
    return _cut(whole, low)


def _cut(whole: Envelope, max_bytes: int) -> Envelope:
    return whole.model_copy(update={"body": truncated(whole.body, max_bytes), "truncated": True})
