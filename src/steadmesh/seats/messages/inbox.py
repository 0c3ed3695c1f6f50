"""messages.inbox: what waits without a turn, handed over in the middle of one."""

from __future__ import annotations

from typing import Annotated

from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.seats.identity import SeatCall, SeatCaller
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import fitted
from steadmesh.seats.messages.envelope import Envelope, envelope
from steadmesh.tools import Args, Clamped, Doc, Result, tool

MOST = 20


class ReadInbox(Args):
    max_results: Annotated[int, Doc("Messages at once."), Clamped(maximum=MOST, default=MOST)] = (
        MOST
    )


class WaitingMessages(Result):
    messages: list[Envelope]


def own_inbox(tx: Transaction, caller: SeatCaller, args: Args) -> Locks:
    """Alone with what waits for the caller."""
    return [exclusive("inbox", caller.organisation_id, caller.seat_id)]


@tool("messages.inbox", locks=own_inbox)
def inbox(call: SeatCall, args: ReadInbox) -> WaitingMessages:
    """Take the oldest messages that were sent to you without wake. Reading removes them: they will not come with a turn."""
    rows = _store.passive_messages(call.tx, call.caller.seat_id, args.max_results)
    view = _fitting(call, rows)
    _store.hand_over(call.tx, [row["number"] for row in rows[: len(view.messages)]])
    return view


def _fitting(call: SeatCall, rows: list[Row]) -> WaitingMessages:
    """As many as fit, but at least one, if need be with its body cut."""
    policy = call.caller.policy
    size = len(WaitingMessages(messages=[]).encoded())
    taken: list[Envelope] = []
    for row in rows:
        message = envelope(row, policy=policy)
        size += len(message.encoded()) + (1 if taken else 0)
        if size > call.cap:
            break
        taken.append(message)
    if rows and not taken:
        taken.append(_cut(envelope(rows[0], policy=policy), call.cap))
    return WaitingMessages(messages=taken)


def _cut(message: Envelope, cap: int) -> Envelope:
    def cut(body: str) -> Envelope:
        return message.model_copy(update={"body": body, "truncated": True})

    body = fitted(
        message.body, lambda text: len(WaitingMessages(messages=[cut(text)]).encoded()) <= cap
    )
    return cut(body)
