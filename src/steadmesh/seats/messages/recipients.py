"""messages.recipients: whom a seat may write to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steadmesh.seats.identity import SeatCall, display_names
from steadmesh.seats.messages._rules import may_send
from steadmesh.tools import Args, Doc, Result, fit_page, tool


class ListRecipients(Args):
    cursor: Annotated[str | None, Doc("Where a list goes on.")] = None


class Recipient(Result):
    seat: str
    display_name: str
    can_reply: bool


class Recipients(Result):
    recipients: list[Recipient]
    next_cursor: str


@tool("messages.recipients", reads=True, visible=may_send)
def recipients(call: SeatCall, args: ListRecipients) -> Recipients:
    """The seats you can write to, and whether each may answer in a conversation that you open."""
    caller = call.caller
    position = call.position(args.cursor)
    after = str(position[0]) if position else ""
    names = display_names(call.tx, caller.organisation_id)
    found = [
        Recipient(seat=key, display_name=names[key], can_reply=can_reply)
        for key, can_reply in sorted(caller.policy.recipients.items())
        if key > after and key in names
    ]
    return fit_page(
        found, _page, cursor_after=lambda entry: call.cursor(entry.seat), more=False, cap=call.cap
    )


def _page(entries: Sequence[Recipient], next_cursor: str) -> Recipients:
    return Recipients(recipients=list(entries), next_cursor=next_cursor)
