"""What makes a seat's two revisions.

Configuration: instructions (the role among them), harness with model, execution, sandbox, workspace,
zone and display name: what a running harness was started with. Policy: capabilities, routes in both
directions, bindings, personal store and teams: what the next call is judged by. What applies live,
egress hosts and repository lists, is in neither but for the capabilities that follow from it.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

from steadmesh.seats.organisation._model import Organisation, Seat
from steadmesh.seats.organisation._text import canonical

Kind = Literal["new", "changed", "unchanged", "retiring"]


def config_revision(seat: Seat) -> str:
    """A digest of what a runner is started with."""
    return _digest(
        {
            "display_name": seat.display_name,
            "instructions": [asdict(entry) for entry in seat.instructions],
            "harness": asdict(seat.harness),
            "execution": asdict(seat.execution),
            "sandbox": asdict(seat.sandbox),
            "workspace": [seat.workspace_persistent, list(seat.shared_workspaces)],
            "timezone": seat.timezone,
            "binaries": list(seat.access.binaries),
        }
    )


def policy_digest(seat: Seat) -> str:
    """A digest of what the seat may do."""
    return _digest(
        {
            "manifest": [asdict(entry) for entry in seat.manifest],
            "recipients": [asdict(entry) for entry in seat.recipients],
            "senders": [asdict(entry) for entry in seat.senders],
            "bindings": list(seat.bindings),
            "personal_memory": seat.personal_memory,
            "teams": list(seat.teams),
        }
    )


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SeatRevisions:
    """The revisions of a seat that is in force."""

    config_revision: str
    policy_digest: str


@dataclass(frozen=True, slots=True)
class Change:
    """What an apply would do to one seat, and which of its revisions would move."""

    seat: str
    kind: Kind
    revisions: tuple[str, ...] = ()


def differences(current: dict[str, SeatRevisions], wanted: Organisation) -> tuple[Change, ...]:
    """What applying `wanted` would change, seat by seat, sorted by key."""
    changes = [_change(key, current.get(key), seat) for key, seat in wanted.seats.items()]
    changes += [Change(key, "retiring") for key in current if key not in wanted.seats]
    return tuple(sorted(changes, key=lambda change: change.seat))


def _change(key: str, before: SeatRevisions | None, seat: Seat) -> Change:
    if before is None:
        return Change(key, "new")
    moved = []
    if before.config_revision != seat.config_revision:
        moved.append("configuration")
    if before.policy_digest != seat.policy_digest:
        moved.append("policy")
    return Change(key, "changed" if moved else "unchanged", tuple(moved))
