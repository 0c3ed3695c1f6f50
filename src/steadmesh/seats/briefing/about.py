"""self: who this seat is and what it has."""

from __future__ import annotations

import json
from typing import Any

from steadmesh.kernel.clock import optional_rfc3339
from steadmesh.kernel.fitting import largest_that_fits
from steadmesh.seats.identity import Capability, SeatCall, display_names, seat
from steadmesh.seats.organisation import connection_adapters
from steadmesh.tools import NoArgs, Result, tool


class InstructionSource(Result):
    ref: str
    scope: str
    order: int


class MemoryStore(Result):
    key: str
    personal: bool
    operations: list[str]


class Recipient(Result):
    seat: str
    display_name: str
    can_reply: bool


class Connection(Result):
    key: str
    adapter: str
    operations: list[str]


class Self(Result):
    """A seat as it sees itself. What does not fit is cut and counted in `<name>_omitted`."""

    organization_id: str
    organization_key: str
    organization_name: str
    seat_id: str
    seat_key: str
    display_name: str
    teams: list[str] | None = None
    is_representative: bool
    config_revision: str
    policy_revision: int
    instructions: list[InstructionSource]
    instructions_omitted: int | None = None
    memory_stores: list[MemoryStore]
    recipients: list[Recipient]
    recipients_omitted: int | None = None
    connections: list[Connection]
    connections_omitted: int | None = None
    channel_bindings: list[str] | None = None
    timezone: str
    retiring_until: str | None = None


@tool("self", reads=True)
def about(call: SeatCall, args: NoArgs) -> Self:
    """Who you are: identity, instructions, memory stores, recipients and connections."""
    return fit(describe(call), call.cap)


def describe(call: SeatCall) -> Self:
    """The seat of this call, whole: `fit` cuts it to the cap of a result."""
    caller, policy = call.caller, call.caller.policy
    row = seat(call.tx, caller.seat_id)
    profile = json.loads(row["profile"]) if row else {}
    return Self(
        organization_id=caller.organisation_id,
        organization_key=caller.organisation_key,
        organization_name=caller.organisation_name,
        seat_id=caller.seat_id,
        seat_key=caller.seat_key,
        display_name=caller.display_name,
        teams=list(policy.teams) or None,
        is_representative=policy.is_representative,
        config_revision=caller.config_revision,
        policy_revision=caller.policy_revision,
        instructions=[InstructionSource(**entry) for entry in profile.get("instructions", [])],
        memory_stores=[_store_view(c, policy.personal_memory) for c in policy.resources("memory")],
        recipients=_recipients(call),
        connections=_connections(call),
        channel_bindings=list(policy.bindings) or None,
        timezone=caller.timezone,
        retiring_until=optional_rfc3339(caller.retire_by),
    )


def fit(view: Self, cap: int) -> Self:
    """Cut recipients, then instructions, then connections, until the encoded view fits."""
    for name in ("recipients", "instructions", "connections"):
        if len(view.encoded()) <= cap:
            return view
        view = _cut(view, name, _room(view, name, cap))
    return view


def _room(view: Self, name: str, cap: int) -> int:
    return largest_that_fits(
        len(getattr(view, name)), lambda kept: len(_cut(view, name, kept).encoded()) <= cap
    )


def _cut(view: Self, name: str, kept: int) -> Self:
    entries: list[Any] = getattr(view, name)
    return view.model_copy(
        update={name: entries[:kept], f"{name}_omitted": len(entries) - kept or None}
    )


def _store_view(capability: Capability, personal: str | None) -> MemoryStore:
    key = capability.resource.partition(":")[2]
    return MemoryStore(key=key, personal=key == personal, operations=sorted(capability.operations))


def _recipients(call: SeatCall) -> list[Recipient]:
    names = display_names(call.tx, call.caller.organisation_id)
    return [
        Recipient(seat=key, display_name=names[key], can_reply=can_reply)
        for key, can_reply in sorted(call.caller.policy.recipients.items())
        if key in names
    ]


def _connections(call: SeatCall) -> list[Connection]:
    adapters = connection_adapters(call.tx, call.caller.organisation_id)
    return [
        Connection(
            key=key, adapter=adapters.get(key, "unknown"), operations=sorted(capability.operations)
        )
        for capability in call.caller.policy.resources("connection")
        for key in [capability.resource.partition(":")[2]]
    ]
