"""Adoption: a new seat goes on from where a retired one of the same key left off."""

from __future__ import annotations

from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.identity import adopter, seat
from steadmesh.seats.messages import move_conversations
from steadmesh.seats.turns import move_handoff


def objection(tx: Transaction, organisation_id: str, key: str, adopted: str) -> str | None:
    """Why a seat with this key may not adopt that one, in words; None if it may."""
    row = seat(tx, adopted)
    if row is None or row["organisation_id"] != organisation_id:
        return f"no seat of this organisation has the id {adopted}"
    if row["key"] != key:
        return f"{adopted} was {row['key']}, and a seat can only adopt one of its own key"
    if row["retired_at"] is None:
        return f"{adopted} is not retired yet; only a retired seat can be adopted"
    if (other := adopter(tx, adopted)) is not None:
        return f"{adopted} was adopted before, by the seat {other['id']}"
    return None


def workspace_of(row: Row) -> str:
    """The seat whose workspace an adopted one worked in: its own, or one that it had adopted itself."""
    return str(row["workspace_of"] or row["id"])


def take_over(tx: Transaction, adopted: str, seat_id: str) -> None:
    """Hand conversations and handoff of a retired seat to the new one."""
    move_conversations(tx, adopted, seat_id)
    move_handoff(tx, adopted, seat_id)
