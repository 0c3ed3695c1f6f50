"""SQL about handoffs, and what is counted over an organisation's seats."""

from __future__ import annotations

import json
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction


def save_handoff(tx: Transaction, seat_id: str, document: dict[str, Any], now: Instant) -> None:
    tx.run(
        "INSERT INTO handoffs (seat_id, document, saved_at) VALUES (:seat, :document, :now)"
        " ON CONFLICT (seat_id) DO UPDATE SET document = excluded.document,"
        " saved_at = excluded.saved_at",
        seat=seat_id,
        document=json.dumps(document, separators=(",", ":"), ensure_ascii=False),
        now=now,
    )


def handoff(tx: Transaction, seat_id: str) -> dict[str, Any] | None:
    row = tx.one("SELECT document FROM handoffs WHERE seat_id = :seat", seat=seat_id)
    if row is None:
        return None
    document: dict[str, Any] = json.loads(row["document"])
    return document
