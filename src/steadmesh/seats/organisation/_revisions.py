"""When a seat counts as changed.

Configuration revision: a digest of exactly what a running harness was started with. A runner
with another one is replaced at a turn boundary.

| Part | What of it |
|---|---|
| `display_name`, `timezone`, `role` | the seat's own, resolved |
| `instructions` | reference and scope of each bundle, in order |
| `harness`, `execution`, `sandbox` | all fields of the profile, but not the profile's name |
| `workspace` | `persistent`, and each mounted shared workspace with all its fields |
| `access` | programs, network rules, browser sessions, connections with `sandbox` delivery |

Not in it: egress hosts, repository lists and permissions (they apply live), and everything of
the policy.

Policy digest: capabilities (sources included), routes out and in (names included), bindings
(connection, user, mode), personal store, teams. It bites with the next call; when it differs,
`apply` counts the seat's integer policy revision up by one.

Fields at their default are left out of both, so that a later version with one more optional
field moves nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from steadmesh.seats.organisation._declared import Declaration, as_data
from steadmesh.seats.organisation._manifest import manifest_as_data
from steadmesh.seats.organisation._model import (
    Access,
    Instruction,
    Manifest,
    Organisation,
    Recipient,
)
from steadmesh.seats.organisation._text import canonical

_SHORT = 16

Kind = Literal["new", "changed", "unchanged", "retiring"]
Revision = Literal["configuration", "policy"]


def digest(value: object) -> str:
    """SHA-256 in hex of the value as canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def config_revision(
    declaration: Declaration,
    key: str,
    instructions: Iterable[Instruction],
    *,
    access: Access,
    timezone: str,
) -> str:
    """The configuration revision of a seat of a resolved declaration, 16 hex digits."""
    seat = declaration.seats[key]
    sandboxed = sorted(name for name, g in access.github.items() if g.delivery == "sandbox")
    parts: dict[str, Any] = {
        "display_name": seat.display_name or key,
        "timezone": timezone,
        "role": seat.role_ref,
        "instructions": [[entry.ref, entry.scope] for entry in instructions],
        "harness": as_data(declaration.harness_profiles[seat.harness_profile]),
        "execution": as_data(declaration.execution_profiles[seat.execution_profile]),
        "sandbox": as_data(declaration.sandbox_profiles[seat.sandbox_profile]),
        "workspace": {
            "persistent": seat.workspace.persistent,
            "shared": {
                name: as_data(declaration.shared_workspaces[name]) for name in seat.workspace.shared
            },
        },
        "access": {
            "binaries": access.binaries,
            "rules": [as_data(rule) for rule in access.rules],
            "browser_sessions": access.browser_sessions,
            "sandbox_delivery": sandboxed,
        },
    }
    return digest(parts)[:_SHORT]


def policy_digest(
    declaration: Declaration,
    key: str,
    manifest: Manifest,
    *,
    recipients: Iterable[Recipient],
    senders: Iterable[Recipient],
) -> str:
    """The policy digest of a seat of a resolved declaration, 16 hex digits."""
    seat = declaration.seats[key]
    parts: dict[str, Any] = {
        "capabilities": manifest_as_data(manifest),
        "recipients": [[other.seat, other.can_reply, other.routes] for other in recipients],
        "senders": [[other.seat, other.can_reply, other.routes] for other in senders],
        "bindings": [
            [name, binding.connection, binding.external_user_id, binding.mode]
            for name, binding in declaration.channel_bindings.items()
            if binding.seat == key
        ],
        "personal_memory": seat.personal_memory,
        "teams": seat.teams,
    }
    return digest(parts)[:_SHORT]


@dataclass(frozen=True, slots=True)
class SeatRevisions:
    """What a seat was last applied with."""

    config_revision: str
    policy_digest: str


@dataclass(frozen=True, slots=True)
class Change:
    """What applying a file would do to one seat, and which of its revisions would move."""

    seat: str
    kind: Kind
    revisions: tuple[Revision, ...]


def differences(current: Mapping[str, SeatRevisions], wanted: Organisation) -> tuple[Change, ...]:
    """What applying would change, seat by seat in the order of their keys."""
    changes = []
    for key in sorted({*current, *wanted.seats}):
        before, after = current.get(key), wanted.seats.get(key)
        if after is None:
            changes.append(Change(key, "retiring", ()))
        elif before is None:
            changes.append(Change(key, "new", ("configuration", "policy")))
        else:
            moved: list[Revision] = []
            if before.config_revision != after.config_revision:
                moved.append("configuration")
            if before.policy_digest != after.policy_digest:
                moved.append("policy")
            changes.append(Change(key, "changed" if moved else "unchanged", tuple(moved)))
    return tuple(changes)
