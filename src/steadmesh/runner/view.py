"""What the service knows of an organisation's seats, as the supervisor reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class SeatView:
    """One live seat."""

    seat_id: str
    key: str
    config_revision: str
    harness: str
    idle_policy: str
    idle_timeout_seconds: float
    sandbox_required: tuple[str, ...] = ()
    memory_limit_bytes: int | None = None
    timezone: str = "UTC"
    pending_deliveries: int = 0
    """In progress or waiting, due or not."""
    lease_generation: int = 0
    lease_holder: str | None = None
    lease_live: bool = False
    state: str = "Stopped"
    state_detail: str | None = None
    suspended: bool = False
    workspace_of: str | None = None
    """The seat whose workspace it goes on in, if not its own."""
    retiring: bool = False
    quiet_seconds: float | None = None
    """Since the seat's last activity, when the view was made; None if there never was any."""


@dataclass(frozen=True, slots=True)
class OrganisationView:
    """All live seats at one moment. `asked_at` and `seen_at` are monotonic seconds."""

    organization_id: str
    key: str
    cursor: str
    seats: Mapping[str, SeatView]
    """By seat id."""
    asked_at: float
    seen_at: float


def read_view(document: Mapping[str, Any], *, asked_at: float, seen_at: float) -> OrganisationView:
    """Read the service's answer. Raises KeyError, TypeError, ValueError if it is none."""
    now = _seconds(document["now"])
    seats = [_seat(key, row, now) for key, row in document["seats"].items()]
    return OrganisationView(
        organization_id=str(document["organization_id"]),
        key=str(document["key"]),
        cursor=str(document["cursor"]),
        seats={seat.seat_id: seat for seat in seats},
        asked_at=asked_at,
        seen_at=seen_at,
    )


def _seat(key: str, row: Mapping[str, Any], now: float) -> SeatView:
    execution = row["execution"]
    activity = row.get("last_activity")
    memory = execution.get("memory_limit_bytes")
    return SeatView(
        seat_id=str(row["seat_id"]),
        key=key,
        config_revision=str(row["config_revision"]),
        harness=str(row["harness_adapter"]),
        idle_policy=str(execution["idle_policy"]),
        idle_timeout_seconds=float(execution["idle_timeout_seconds"]),
        sandbox_required=tuple(str(name) for name in row.get("sandbox_required") or ()),
        memory_limit_bytes=None if memory is None else int(memory),
        timezone=str(row.get("timezone") or "UTC"),
        pending_deliveries=int(row["pending_deliveries"]),
        lease_generation=int(row["lease_generation"]),
        lease_holder=row.get("lease_holder"),
        lease_live=bool(row["lease_live"]),
        state=str(row["state"]),
        state_detail=row.get("state_detail"),
        suspended=bool(row.get("suspended")),
        workspace_of=row.get("workspace_of"),
        retiring=row.get("retire_by") is not None,
        quiet_seconds=None if activity is None else max(0.0, now - _seconds(activity)),
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
