"""The envelope: a message as the seat that gets it sees it."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.localtime import turn_text
from steadmesh.seats.identity import Policy
from steadmesh.seats.messages._rules import may_answer
from steadmesh.tools import Result


class Envelope(Result):
    """A message with what the platform vouches for. Nothing in it but `body` was written by anybody."""

    message_id: str
    organization_id: str
    conversation_id: str
    origin: str
    binding: str | None = None
    external_user_id: str | None = None
    sender_seat: str | None = None
    sender_seat_id: str | None = None
    recipient_seat: str
    parent_id: str | None = None
    correlation_id: str | None = None
    body: str
    truncated: bool | None = None
    created_at: str
    reply_route: str | None = None
    current_time: str | None = None
    timezone: str | None = None


def envelope(
    row: Row,
    *,
    starts_at: Instant | None = None,
    timezone: str | None = None,
    policy: Policy | None = None,
) -> Envelope:
    """The envelope of a stored message to a seat.

    `starts_at` and the recipient's `timezone` give it the moment its turn starts. With the recipient's
    `policy`, a sender that may not be answered gets no `reply_route`.
    """
    starts = turn_text(starts_at, timezone) if starts_at is not None and timezone else None
    return Envelope(
        message_id=row["message_id"],
        organization_id=row["organisation_id"],
        conversation_id=row["conversation_id"],
        origin=row["origin"],
        binding=row["binding"],
        external_user_id=row["external_user_id"],
        sender_seat=row["sender_seat"],
        sender_seat_id=row["sender_seat_id"],
        recipient_seat=row["recipient_seat"],
        parent_id=row["parent_id"],
        correlation_id=row["correlation_id"],
        body=row["body"],
        created_at=rfc3339(row["created_at"]),
        reply_route=_reply_route(row, policy),
        current_time=starts,
        timezone=timezone if starts else None,
    )


def _reply_route(row: Row, policy: Policy | None) -> str | None:
    if row["origin"] == "human":
        lost = policy is not None and row["binding"] not in policy.bindings
        return None if lost else f"binding:{row['binding']}"
    if row["origin"] == "seat":
        barred = policy is not None and not may_answer(policy, row["sender_seat"])
        return None if barred else f"seat:{row['sender_seat']}"
    return None
