"""What is ready and what is not, and why: the facts are gathered here and judged in `_conditions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats import organisation as organisations
from steadmesh.seats.briefing._conditions import Facts, ProbeFact, SeatFact, conditions, not_ready
from steadmesh.seats.connections import Verified, checks_of
from steadmesh.seats.identity import state_detail
from steadmesh.seats.lifecycle import Probe, SeatProbes, probes_of
from steadmesh.tools import Doc, Result


class ConditionView(Result):
    name: str
    ok: Annotated[bool, Doc("All is well; IntegrationsDegraded is not ok while something is.")]
    reason: str | None = None
    informational: Annotated[
        bool | None, Doc("It does not count to OperationalReady; absent for those that do.")
    ] = None
    untried: Annotated[
        bool | None, Doc("Not ok only for want of a first probe; absent otherwise.")
    ] = None


@dataclass(frozen=True, slots=True)
class Readiness:
    """The conditions, and by seat key why a seat is not ready (None: it is) and its newest probe."""

    conditions: list[ConditionView]
    reasons: dict[str, str | None]
    probes: dict[str, Probe | None]


def readiness(tx: Transaction, row: Row, seats: Sequence[Row], *, disk_is_full: bool) -> Readiness:
    """The readiness of an organisation with these live seats. Secrets are read anew; no network."""
    probes = probes_of(tx, row["id"])
    of_seats = [_seat(seat, probes.get(seat["id"], SeatProbes())) for seat in seats]
    facts = _facts(tx, row, of_seats, disk_is_full=disk_is_full)
    return Readiness(
        conditions=[
            ConditionView(
                name=condition.name,
                ok=condition.ok,
                reason=condition.reason,
                informational=condition.informational or None,
                untried=condition.untried or None,
            )
            for condition in conditions(facts)
        ],
        reasons={seat.key: not_ready(seat, facts.available_harnesses) for seat in facts.seats},
        probes={seat["key"]: probes.get(seat["id"], SeatProbes()).newest for seat in seats},
    )


def _facts(tx: Transaction, row: Row, seats: Sequence[SeatFact], *, disk_is_full: bool) -> Facts:
    facts = Facts(
        invalid=None,
        declared=frozenset(),
        seats=seats,
        missing_instructions=(),
        verified=Verified(connections={}, ingress={}, bindings={}, credentials={}),
        optional_bindings=frozenset(),
        available_harnesses=organisations.AVAILABLE,
        disk_is_full=disk_is_full,
    )
    try:
        organisation = organisations.in_force(row["document"])
    except organisations.InvalidOrganisation as invalid:
        first = invalid.problems[0]
        return replace(facts, invalid=f"{first.path}: {first.message}")
    return replace(
        facts,
        declared=frozenset(organisation.seats),
        missing_instructions=_missing_instructions(tx, row["id"], organisation),
        verified=checks_of(tx, row),
        optional_bindings=frozenset(
            key
            for key, binding in organisation.bindings.items()
            if not organisation.connections[binding.connection].required
        ),
    )


def _seat(row: Row, probes: SeatProbes) -> SeatFact:
    ended = probes.ended
    return SeatFact(
        key=row["key"],
        adapter=row["adapter"],
        config_revision=row["config_revision"],
        state=row["state"],
        detail=state_detail(row),
        suspended=bool(row["suspended"]),
        retiring=row["retire_by"] is not None,
        ended=None
        if ended is None
        else ProbeFact(ended.status == "passed", ended.revision, ended.reason),
        probe_pending=probes.newest is not None and probes.newest.status == "pending",
    )


def _missing_instructions(
    tx: Transaction, organisation_id: str, organisation: organisations.Organisation
) -> list[str]:
    wanted = {entry.ref for seat in organisation.seats.values() for entry in seat.instructions}
    return [
        ref for ref in sorted(wanted) if organisations.bundle_text(tx, organisation_id, ref) is None
    ]
