"""Readiness: the conditions of an organisation and the readiness of each seat, from facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from steadmesh.seats.connections import Verified

SANDBOX_REFUSED = "this machine cannot enforce"
"""How a supervisor's reason begins when it may not run a seat for want of its sandbox."""


UNDER_WAY = "its first probe is under way"
NEVER_PROBED = "it was never probed"


@dataclass(frozen=True, slots=True)
class ProbeFact:
    """How a seat's newest ended probe went."""

    passed: bool
    revision: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SeatFact:
    """What counts of one live seat."""

    key: str
    adapter: str
    config_revision: str
    state: str
    detail: str | None = None
    suspended: bool = False
    retiring: bool = False
    ended: ProbeFact | None = None
    probe_pending: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is looked at."""

    invalid: str | None
    """What this version refuses in the file in force; then nothing else is known of it."""
    declared: frozenset[str]
    """Seats of the file in force."""
    seats: Sequence[SeatFact]
    """Those with an identity and a lease, retiring ones included."""
    missing_instructions: Sequence[str]
    """References to texts that are not stored."""
    verified: Verified
    optional_bindings: frozenset[str]
    """Those over connections that are not required."""
    available_harnesses: frozenset[str]
    disk_is_full: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """`ok` says that all is well; an informational one does not count to `OperationalReady`."""

    name: str
    ok: bool
    reason: str | None = None
    informational: bool = False
    untried: bool = False
    """Not ok only because seats were not probed yet: nothing is known to be wrong."""


def conditions(facts: Facts) -> list[Condition]:
    """The conditions in order, `OperationalReady` with the first false one's reason, and
    `IntegrationsDegraded`, which is not ok while something optional fails.

    Configured: the file in force is valid in this version and declares seats, and every instruction text it names is stored.
    IdentitiesReady: every declared seat has an identity and a lease.
    ConnectionsAuthenticated: each required connection's adapter is there and its secret has been read.
    IngressReady: what people write over required connections is let in.
    BindingsValid: each person over a required connection has a token, and a live seat that represents her.
    StorageReady: the database's last write found room.
    HarnessCompatible: this version has the harness of every seat.
    SandboxEnforced: no supervisor refuses a seat because its machine cannot enforce the sandbox.
    RoutesExecutable: every seat passed its newest probe at its current revision, and nothing stops it.
    """
    serving = [seat for seat in facts.seats if not seat.retiring]
    found = [
        _first("Configured", _not_configured(facts)),
        _first("IdentitiesReady", _without_identity(facts)),
        _first("ConnectionsAuthenticated", _connections(facts, required=True)),
        _first("IngressReady", _ingress(facts, required=True)),
        _first("BindingsValid", _bindings(facts, required=True)),
        _first("StorageReady", ["the disk of the database is full"] if facts.disk_is_full else []),
        _first("HarnessCompatible", _without_harness(facts, serving)),
        _first("SandboxEnforced", _without_sandbox(serving)),
        _routes_executable(facts, serving),
    ]
    false = next((condition for condition in found if not condition.ok), None)
    reason = None if false is None else f"{false.name}: {false.reason}"
    degraded = [
        *_connections(facts, required=False),
        *_ingress(facts, required=False),
        *_bindings(facts, required=False),
    ]
    return [
        *found,
        Condition(
            "OperationalReady", false is None, reason, untried=false is not None and false.untried
        ),
        Condition("IntegrationsDegraded", not degraded, _together(degraded), informational=True),
    ]


def not_ready(seat: SeatFact, available_harnesses: frozenset[str]) -> str | None:
    """Why a seat is not ready; None when it is. A stopped one that passed its probe is."""
    if seat.retiring:
        return "it is retiring"
    if seat.suspended:
        return seat.detail or "suspended"
    if seat.adapter not in available_harnesses:
        return f"adapter {seat.adapter} is not available in this version"
    if seat.state in ("Blocked", "Recovering"):
        return f"{seat.state.lower()}: {seat.detail or 'no reason was given'}"
    return _probe_missing(seat)


def _probe_missing(seat: SeatFact) -> str | None:
    probe = seat.ended
    if probe is None:
        return UNDER_WAY if seat.probe_pending else NEVER_PROBED
    if not probe.passed:
        return f"its probe failed: {probe.reason or 'no reason was given'}"
    if probe.revision != seat.config_revision:
        return "it was not probed since its configuration changed"
    return None


def _not_configured(facts: Facts) -> list[str]:
    if facts.invalid is not None:
        return [
            f"the file in force is not valid in this version ({facts.invalid});"
            " correct it and apply it again"
        ]
    if not facts.declared:
        return ["the organisation file declares no seat"]
    return [f"the instruction {ref} is not stored" for ref in facts.missing_instructions]


def _without_identity(facts: Facts) -> list[str]:
    there = {seat.key for seat in facts.seats}
    missing = sorted(facts.declared - there)
    return [f"{key} has no identity; apply the organisation file again" for key in missing]


def _connections(facts: Facts, *, required: bool) -> list[str]:
    checks = facts.verified.connections
    return [
        f"{key}: {check.detail}"
        for key, check in checks.items()
        if not check.ok and check.required is required
    ]


def _ingress(facts: Facts, *, required: bool) -> list[str]:
    connections = facts.verified.connections
    return [
        f"{key}: {check.detail}"
        for key, check in facts.verified.ingress.items()
        if not check.ok and connections[key].required is required
    ]


def _bindings(facts: Facts, *, required: bool) -> list[str]:
    return [
        f"{key}: {check.detail}"
        for key, check in facts.verified.bindings.items()
        if not check.ok and (key not in facts.optional_bindings) is required
    ]


def _without_harness(facts: Facts, serving: Iterable[SeatFact]) -> list[str]:
    seats: dict[str, list[str]] = {}
    for seat in serving:
        if seat.adapter not in facts.available_harnesses:
            seats.setdefault(seat.adapter, []).append(seat.key)
    return [
        f"{', '.join(keys)}: adapter {adapter} is not available in this version"
        for adapter, keys in sorted(seats.items())
    ]


def _without_sandbox(serving: Iterable[SeatFact]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for seat in serving:
        if seat.state == "Blocked" and (seat.detail or "").startswith(SANDBOX_REFUSED):
            reasons.setdefault(seat.detail or "", []).append(seat.key)
    return [f"{', '.join(keys)}: {reason}" for reason, keys in reasons.items()]


def _routes_executable(facts: Facts, serving: Iterable[SeatFact]) -> Condition:
    reasons = {seat.key: not_ready(seat, facts.available_harnesses) for seat in serving}
    wrong = {key: reason for key, reason in reasons.items() if reason is not None}
    found = _first("RoutesExecutable", [f"{key}: {reason}" for key, reason in wrong.items()])
    untried = bool(wrong) and all(reason in (UNDER_WAY, NEVER_PROBED) for reason in wrong.values())
    return replace(found, untried=untried)


def _first(name: str, problems: Sequence[str]) -> Condition:
    if not problems:
        return Condition(name, True)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Condition(name, False, f"{problems[0]}{more}")


def _together(problems: Iterable[str]) -> str | None:
    return "; ".join(dict.fromkeys(problems)) or None
