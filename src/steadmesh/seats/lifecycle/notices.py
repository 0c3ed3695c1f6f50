"""What the platform tells seats about seats that come and go: `system` messages, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.text import size, truncated
from steadmesh.seats.messages import Inbox, Sender, open_conversation, queue_message

BODY_BYTES = 12_288
QUOTED_BYTES = 4_096
"""Of a message that goes back to its sender."""
LISTED_BYTES = 200
"""Of a message that is only mentioned."""
PLATFORM = Sender("system")


def post(tx: Transaction, inbox: Inbox, body: str, *, now: Instant) -> str:
    """Queue a notice in a conversation of its own; the id of the message. Be alone with the organisation."""
    conversation = open_conversation(
        tx, inbox.organisation_id, kind="system", seats=(inbox.seat_id,), now=now
    )
    return queue_message(
        tx,
        inbox,
        PLATFORM,
        conversation_id=conversation,
        body=truncated(body, BODY_BYTES),
        now=now,
    )


def retirement(seat: Row, retire_by: Instant, returned: Sequence[Row]) -> str:
    """To a seat that is to leave."""
    lines = [
        f"Retirement notice: you, {seat['key']}, are no longer part of the organisation's file.",
        "",
        f"You work until {rfc3339(retire_by)} at the latest. Until then your tools and access stay;"
        " new messages are not accepted any more. Please:",
        "- finish what you are at, or bring it to a state that others can go on from;",
        "- save a handoff (handoff.update) with what you were after and what is open;",
        "- release or hand over the work items that you own;",
        "- tell those who count on you.",
    ]
    if returned:
        lines += ["", "These messages had not been handled and went back to their senders:"]
        lines += _fitting([_mention(row) for row in returned], BODY_BYTES - size("\n".join(lines)))
    return "\n".join(lines)


def carry_on(seat: Row) -> str:
    """To a seat whose retirement was cancelled after it had heard of it."""
    return (
        f"Your retirement is cancelled: {seat['key']} is declared in the organisation's file again."
        " Carry on as before; new messages reach you again. What went back to its senders stays"
        " there, they may send it anew."
    )


def returned_mail(seat: Row, messages: Sequence[Row]) -> str:
    """To a sender of messages that a leaving seat did not handle."""
    one = len(messages) == 1
    head = (
        f"Not delivered: {seat['key']} leaves the organisation and has not handled"
        f" {'your message' if one else f'{len(messages)} messages of yours'}."
        " Send what still matters to somebody else."
    )
    quotes = [
        f"\n[{row['message_id']}, {rfc3339(row['created_at'])}]\n"
        f"{truncated(row['body'], QUOTED_BYTES)}"
        for row in messages
    ]
    return "\n".join([head, *_fitting(quotes, BODY_BYTES - size(head))])


def summary(
    seat: Row,
    *,
    in_time: bool,
    interrupted: bool,
    handoff: Mapping[str, Any] | None,
    unhandled: Sequence[Row],
) -> str:
    """To the representatives: how a seat has left, and what it leaves behind."""
    how = "has finished" if in_time else "ran out of time"
    lines = [f"{seat['key']} ({seat['display_name']}) {how} and is retired."]
    if interrupted:
        lines.append("It was in the middle of a turn, which was interrupted.")
    if handoff:
        lines += ["", "Its handoff:", *_handoff_lines(handoff)]
    else:
        lines += ["", "It left no handoff."]
    if unhandled:
        lines += ["", f"Never handled ({len(unhandled)}):"]
        lines += _fitting([_mention(row) for row in unhandled], BODY_BYTES - size("\n".join(lines)))
    return "\n".join(lines)


def _handoff_lines(handoff: Mapping[str, Any]) -> Iterable[str]:
    if objective := handoff.get("objective"):
        yield f"objective: {objective}"
    for item in handoff.get("unresolved") or ():
        yield f"unresolved: {item}"
    if notes := handoff.get("notes"):
        yield f"notes: {notes}"


def _mention(row: Row) -> str:
    whom = row["sender_seat"] or row["external_user_id"] or row["origin"]
    text = " ".join(row["body"].split())
    return f"- from {whom}: {truncated(text, LISTED_BYTES)}"


def _fitting(items: Sequence[str], room: int) -> list[str]:
    """As many as there is room for, and how many more there are."""
    room -= len("\n… and 1000 more")
    kept: list[str] = []
    for item in items:
        room -= size(item) + 1
        if room < 0 and kept:
            return [*kept, f"… and {len(items) - len(kept)} more"]
        kept.append(item)
    return kept
