"""What a seat may do, as apply wrote it down and as every call is judged by it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from steadmesh.seats.organisation import Seat


@dataclass(frozen=True, slots=True)
class Capability:
    """The operations on one resource, and for some of them the targets they are limited to."""

    resource: str
    operations: frozenset[str]
    targets: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Policy:
    """The parsed policy of a seat. `recipients` and `senders` map a seat's key to whether a reply is
    allowed in the conversation that is opened that way."""

    capabilities: Mapping[str, Capability]
    recipients: Mapping[str, bool]
    senders: Mapping[str, bool]
    bindings: tuple[str, ...]
    teams: tuple[str, ...]
    personal_memory: str | None
    leaving: frozenset[str] = frozenset()
    """Seats on their way out that this one could write to or answer: it is told so, not that it has no
    route."""

    @property
    def is_representative(self) -> bool:
        return bool(self.bindings)

    def allows(self, resource: str, operation: str) -> bool:
        capability = self.capabilities.get(resource)
        return capability is not None and operation in capability.operations

    def resources(self, kind: str) -> list[Capability]:
        """The capabilities on `memory`, `connection` or `workspace`, in order of their keys."""
        return [c for name, c in sorted(self.capabilities.items()) if name.startswith(f"{kind}:")]


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy as it is kept: its text, and what tells it from others."""

    text: str
    digest: str


def stored_policy(seat: Seat, leaving: Collection[str] = ()) -> StoredPolicy:
    """The policy of a resolved seat, which had routes to those that are leaving."""
    return _stored(policy_document(seat), seat.policy_digest, leaving)


def without_leaving(text: str, key: str) -> StoredPolicy | None:
    """A policy after a seat on its way out has left; None if it had no route to it."""
    document = json.loads(text)
    leaving = document.pop("leaving", [])
    if key not in leaving:
        return None
    return _stored(document, document.pop("declared"), [k for k in leaving if k != key])


def _stored(document: dict[str, Any], digest: str, leaving: Collection[str]) -> StoredPolicy:
    if leaving:
        keys = sorted(leaving)
        document = document | {"leaving": keys, "declared": digest}
        digest = hashlib.sha256(f"{digest} {' '.join(keys)}".encode()).hexdigest()
    return StoredPolicy(json.dumps(document, separators=(",", ":"), sort_keys=True), digest)


def policy_document(seat: Seat) -> dict[str, Any]:
    """What the organisation file makes a seat's policy."""
    return {
        "capabilities": [
            [c.resource, sorted(c.operations), {op: list(t) for op, t in c.targets.items()}]
            for c in seat.manifest
        ],
        "recipients": {route.seat: route.can_reply for route in seat.recipients},
        "senders": {route.seat: route.can_reply for route in seat.senders},
        "bindings": list(seat.bindings),
        "teams": list(seat.teams),
        "personal_memory": seat.personal_memory,
    }


def parse_policy(text: str) -> Policy:
    """The policy behind a stored text."""
    document = json.loads(text)
    return Policy(
        capabilities={
            resource: Capability(
                resource, frozenset(operations), {op: tuple(t) for op, t in targets.items()}
            )
            for resource, operations, targets in document["capabilities"]
        },
        recipients=document["recipients"],
        senders=document["senders"],
        bindings=tuple(document["bindings"]),
        teams=tuple(document["teams"]),
        personal_memory=document["personal_memory"],
        leaving=frozenset(document.get("leaving", ())),
    )
