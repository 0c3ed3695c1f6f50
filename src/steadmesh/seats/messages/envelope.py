"""The envelope: a message as its recipient gets it. Every field but the body comes from the platform."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.localtime import turn_text
from steadmesh.tools import Result


class Envelope(Result):
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
    row: Row, *, starts_at: Instant | None = None, timezone: str | None = None
) -> Envelope:
    """The envelope of a message row; with `starts_at` and the zone it is that of a turn."""
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
        reply_route=_reply_route(row),
        current_time=(
            turn_text(starts_at, timezone) if starts_at is not None and timezone else None
        ),
        timezone=timezone,
    )


def _reply_route(row: Row) -> str | None:
    if row["origin"] == "human":
        return f"binding:{row['binding']}"
    if row["origin"] == "seat":
        return f"seat:{row['sender_seat']}"
    return None
