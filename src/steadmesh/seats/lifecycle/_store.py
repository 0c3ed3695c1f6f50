"""SQL about seats on their way out."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction


def note_retirement(tx: Transaction, seat_id: str, *, notice: str, now: Instant) -> None:
    tx.run(
        "INSERT INTO retirements (seat_id, notice_message_id, started_at)"
        " VALUES (:seat, :notice, :now)",
        seat=seat_id,
        notice=notice,
        now=now,
    )


def retirement_notice(tx: Transaction, seat_id: str) -> str | None:
    """The message that told the seat."""
    row = tx.one("SELECT notice_message_id FROM retirements WHERE seat_id = :seat", seat=seat_id)
    return str(row["notice_message_id"]) if row else None


def forget_retirement(tx: Transaction, seat_id: str) -> None:
    tx.run("DELETE FROM retirements WHERE seat_id = :seat", seat=seat_id)
