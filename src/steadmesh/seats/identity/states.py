"""The state of a seat, as senders, people and the supervisor see it."""

from __future__ import annotations

from steadmesh.kernel.database import Row

REPORTABLE = ("Warm", "Executing", "Quiescing", "Stopped")
"""What a runner may say of itself."""


def seat_state(seat: Row) -> str:
    """One of the nine states, from the rows of the seat and its lease."""
    if seat["retired_at"] is not None:
        return "Retired"
    if seat["retire_by"] is not None:
        return "Retiring"
    if seat["suspended"]:
        return "Blocked"
    return str(seat["state"])
