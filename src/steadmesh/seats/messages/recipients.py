"""messages.recipients: whom this seat may write to."""

from __future__ import annotations

from typing import Annotated

from steadmesh.seats.identity import SeatCall, display_names
from steadmesh.seats.messages.send import has_outgoing_route
from steadmesh.tools import Args, Doc, Result, fit_page, tool


class ListRecipients(Args):
    cursor: Annotated[str | None, Doc("next_cursor of the page before.")] = None


class Recipient(Result):
    seat: str
    display_name: str
    can_reply: bool


class Recipients(Result):
    recipients: list[Recipient]
    next_cursor: str


@tool("messages.recipients", reads=True, visible=has_outgoing_route)
def recipients(call: SeatCall, args: ListRecipients) -> Recipients:
    """Seats you may write to, and whether they can answer you."""
    position = call.position(args.cursor)
    after = str(position[0]) if position else ""
    names = display_names(call.tx, call.caller.organisation_id)
    entries = [
        Recipient(seat=key, display_name=names[key], can_reply=can_reply)
        for key, can_reply in sorted(call.caller.policy.recipients.items())
        if key > after and key in names
    ]
    return fit_page(
        entries,
        lambda some, cursor: Recipients(recipients=list(some), next_cursor=cursor),
        cursor_after=lambda entry: call.cursor(entry.seat),
        more=False,
        cap=call.cap,
    )
