"""What the supervisor follows: every seat of an organisation, in one long poll."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from steadmesh.kernel.clock import SECOND, Instant, optional_rfc3339
from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.identity import (
    Supervisor,
    is_live,
    live_seats,
    live_supervisor,
    named_organisation,
    seat_state,
    state_detail,
)
from steadmesh.seats.messages import InboxCounts, inbox_counts
from steadmesh.seats.organisation import memory_bytes, organisations
from steadmesh.seats.turns import checkpoints_of
from steadmesh.tools import Args, Call, Caller, Doc, NoArgs, Result, endpoint


class OrganisationName(Result):
    organization_id: str
    key: str
    display_name: str


class OrganisationNames(Result):
    organizations: list[OrganisationName]


@endpoint("GET /internal/v1/organizations", family="operator", reads=True)
def list_organisations(call: Call[Any], args: NoArgs) -> OrganisationNames:
    """The organisations of this service."""
    return OrganisationNames(
        organizations=[
            OrganisationName(
                organization_id=row["id"], key=row["key"], display_name=row["display_name"]
            )
            for row in organisations(call.tx)
        ]
    )


class Runtime(Args):
    organization: str
    wait: Annotated[float, Doc("Seconds to wait for a change, at most 30.")] = 0.0
    after: Annotated[str, Doc("The cursor of the last answer.")] = ""


class ExecutionProfile(Result):
    idle_policy: str
    idle_timeout_seconds: float
    memory_limit_bytes: int


class SeatRuntime(Result):
    seat_id: str
    display_name: str
    timezone: str
    config_revision: str
    policy_digest: str
    harness_adapter: str
    harness_config: dict[str, Any]
    execution: ExecutionProfile
    sandbox_required: list[str]
    pending_deliveries: int
    next_due_in_seconds: float | None = None
    oldest_pending_age_seconds: int | None = None
    dead_deliveries: int
    lease_generation: int
    lease_holder: str | None = None
    lease_expires_at: str | None = None
    lease_live: bool
    state: str
    state_detail: str | None = None
    adopted_revision: str | None = None
    last_activity: str | None = None
    latest_checkpoint: str | None = None
    suspended: bool
    retire_by: str | None = None
    workspace_of: str | None = None


class OrganisationRuntime(Result):
    organization_id: str
    key: str
    now: str
    cursor: str
    supervisor: Supervisor | None = None
    seats: dict[str, SeatRuntime]


LOOKS_EVERY = 5.0
"""Seconds. All that happens to seats comes with a hint, but for leases that run out; and a look at some
hundred seats is work."""


def runtime_topics(caller: Caller, args: Runtime) -> tuple[str, ...]:
    return (f"runtime:{args.organization}",)


@endpoint(
    "GET /internal/v1/organizations/{organization}/runtime",
    family="operator",
    reads=True,
    waits=runtime_topics,
    looks_every=LOOKS_EVERY,
)
def runtime(call: Call[Any], args: Runtime) -> OrganisationRuntime | None:
    """Every live seat's lease, state and inbox. With `after` and `wait`: once anything has changed."""
    row = named_organisation(call.tx, args.organization)
    seats = seat_runtimes(call.tx, args.organization, call.now)
    supervisor = live_supervisor(call.tx, args.organization, call.now)
    cursor = _fingerprint(seats, supervisor)
    if args.wait > 0 and args.after == cursor:
        return None
    return OrganisationRuntime(
        organization_id=args.organization,
        key=row["key"],
        now=optional_rfc3339(call.now) or "",
        cursor=cursor,
        supervisor=supervisor,
        seats=seats,
    )


def seat_runtimes(tx: Transaction, organisation_id: str, now: Instant) -> dict[str, SeatRuntime]:
    """What is known of each live seat, by key."""
    counts = inbox_counts(tx, organisation_id)
    saved = checkpoints_of(tx, organisation_id)
    return {
        row["key"]: _seat_runtime(row, counts.get(row["id"], InboxCounts()), saved, now)
        for row in live_seats(tx, organisation_id)
    }


def _seat_runtime(row: Row, inbox: InboxCounts, saved: dict[str, str], now: Instant) -> SeatRuntime:
    profile = json.loads(row["profile"])
    execution, sandbox = profile["execution"], profile["sandbox"]
    return SeatRuntime(
        seat_id=row["id"],
        display_name=row["display_name"],
        timezone=row["timezone"],
        config_revision=row["config_revision"],
        policy_digest=row["policy_digest"],
        harness_adapter=row["adapter"],
        harness_config=profile["harness"].get("config") or {},
        execution=ExecutionProfile(
            idle_policy=execution["idle_policy"],
            idle_timeout_seconds=execution["idle_timeout"],
            memory_limit_bytes=int(memory_bytes(execution["memory_limit"])),
        ),
        sandbox_required=sorted(sandbox["required_enforcement"]),
        pending_deliveries=inbox.pending,
        next_due_in_seconds=(
            None if inbox.next_due is None else max(0.0, (inbox.next_due - now) / SECOND)
        ),
        oldest_pending_age_seconds=(
            None if inbox.oldest is None else max(0, (now - inbox.oldest) // SECOND)
        ),
        dead_deliveries=inbox.dead,
        lease_generation=row["generation"],
        lease_holder=row["instance"],
        lease_expires_at=optional_rfc3339(row["expires_at"] or None),
        lease_live=is_live(row, now),
        state=seat_state(row),
        state_detail=state_detail(row),
        adopted_revision=row["adopted_revision"],
        last_activity=optional_rfc3339(row["last_activity"]),
        latest_checkpoint=saved.get(row["id"]),
        suspended=bool(row["suspended"]),
        retire_by=optional_rfc3339(row["retire_by"]),
        workspace_of=row["workspace_of"],
    )


_NO_NEWS = {
    "next_due_in_seconds": True,
    "oldest_pending_age_seconds": True,
    "lease_expires_at": True,
    "last_activity": True,
    "pending_deliveries": True,
}
"""What moves by itself, or with every message: whoever follows is told when mail begins to wait and
when a seat's state changes, not of each letter."""


def _fingerprint(seats: dict[str, SeatRuntime], supervisor: Supervisor | None) -> str:
    digest = hashlib.sha256()
    if supervisor is not None:
        digest.update(f"{supervisor.pid} {supervisor.host}\n".encode())
    for key, seat in seats.items():
        waits = seat.pending_deliveries > 0
        digest.update(f"{key} {waits} {seat.model_dump_json(exclude=_NO_NEWS)}\n".encode())
    return digest.hexdigest()[:32]
