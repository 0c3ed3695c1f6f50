"""What `steadmesh status` shows of an organisation."""

from __future__ import annotations

import json
from typing import Annotated, Any

from steadmesh.kernel.clock import Instant, optional_rfc3339, rfc3339
from steadmesh.kernel.database import Row
from steadmesh.seats.briefing.readiness import ConditionView, readiness
from steadmesh.seats.briefing.status import SeatStatus, seat_status
from steadmesh.seats.identity import (
    Supervisor,
    live_seats,
    live_supervisor,
    named_organisation,
)
from steadmesh.seats.lifecycle import Probe
from steadmesh.seats.messages import InboxCounts, inbox_counts
from steadmesh.seats.turns import running_turns
from steadmesh.tools import Args, Call, Doc, Result, endpoint


class Overview(Args):
    organization: str


class RunningTurn(Result):
    """What a seat works on."""

    execution_id: str
    attempt: int
    since: str
    origin: str
    sender_seat: str | None = None
    external_user_id: str | None = None


class SeatOverview(SeatStatus):
    seat_id: str
    turn: RunningTurn | None = None
    next_attempt_at: Annotated[
        str | None, Doc("Everything that waits has failed before, and is not tried until then.")
    ] = None
    lease_holder: str | None = None
    lease_expires_at: str | None = None
    suspended: bool
    display_name: str
    adapter: str
    teams: list[str]
    represents: list[str] | None = None
    config_revision: str
    policy_revision: int
    ready: bool
    reason: Annotated[str | None, Doc("Why it is not ready.")] = None
    probe: Annotated[Probe | None, Doc("The newest.")] = None


class BindingOverview(Result):
    key: str
    connection: str
    adapter: str
    external_user_id: str
    seat: str


class OrganisationOverview(Result):
    organization_id: str
    key: str
    display_name: str
    timezone: str
    applied_at: str
    supervisor: Supervisor | None = None
    conditions: list[ConditionView]
    seats: list[SeatOverview]
    bindings: list[BindingOverview]


@endpoint("GET /internal/v1/organizations/{organization}/status", family="operator", reads=True)
def overview(call: Call[Any], args: Overview) -> OrganisationOverview:
    """The seats of an organisation, as `steadmesh status` prints them."""
    row = named_organisation(call.tx, args.organization)
    seats = live_seats(call.tx, args.organization)
    ready = readiness(call.tx, row, seats, disk_is_full=call.services.disk_is_full())
    counts = inbox_counts(call.tx, args.organization)
    turns = {turn["seat_id"]: _turn(turn) for turn in running_turns(call.tx, args.organization)}
    document = json.loads(row["document"])
    bindings = document.get("channel_bindings", {})
    people: dict[str, list[str]] = {}
    for binding in bindings.values():
        people.setdefault(binding["seat"], []).append(binding["external_user_id"])
    return OrganisationOverview(
        organization_id=row["id"],
        key=row["key"],
        display_name=row["display_name"],
        timezone=row["timezone"],
        applied_at=rfc3339(row["applied_at"]),
        supervisor=live_supervisor(call.tx, args.organization, call.now),
        conditions=ready.conditions,
        seats=[
            SeatOverview(
                **seat_status(seat, counts, call.now).model_dump(),
                seat_id=seat["id"],
                turn=turns.get(seat["id"]),
                next_attempt_at=_next_attempt(counts.get(seat["id"]), call.now),
                lease_holder=seat["instance"],
                lease_expires_at=optional_rfc3339(seat["expires_at"] or None),
                suspended=bool(seat["suspended"]),
                display_name=seat["display_name"],
                adapter=seat["adapter"],
                teams=json.loads(seat["policy"])["teams"],
                represents=sorted(set(people.get(seat["key"], []))) or None,
                config_revision=seat["config_revision"],
                policy_revision=seat["policy_revision"],
                ready=ready.reasons[seat["key"]] is None,
                reason=ready.reasons[seat["key"]],
                probe=ready.probes[seat["key"]],
            )
            for seat in seats
        ],
        bindings=[
            BindingOverview(
                key=key,
                connection=binding["connection"],
                adapter=document["connections"][binding["connection"]]["adapter"],
                external_user_id=binding["external_user_id"],
                seat=binding["seat"],
            )
            for key, binding in sorted(bindings.items())
        ],
    )


def _turn(row: Row) -> RunningTurn:
    return RunningTurn(
        execution_id=row["id"],
        attempt=row["attempt"],
        since=rfc3339(row["started_at"]),
        origin=row["origin"],
        sender_seat=row["sender_seat"],
        external_user_id=row["external_user_id"],
    )


def _next_attempt(inbox: InboxCounts | None, now: Instant) -> str | None:
    if inbox is None or inbox.next_due is None or inbox.next_due <= now:
        return None
    return rfc3339(inbox.next_due)
