"""The runner's lease: acquire, renew, release, report a state; and the supervisor's fence."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Locks, Transaction, exclusive, shared
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.text import truncated
from steadmesh.seats.identity import (
    REPORTABLE,
    SeatCall,
    SeatCaller,
    leases,
    named_seat,
    require_current,
    seat,
)
from steadmesh.seats.messages import talks_waiting, tell_waiting
from steadmesh.seats.turns import _store
from steadmesh.seats.turns._rules import DELIVERY_LEASE
from steadmesh.seats.turns.requeue import requeue_stale
from steadmesh.tools import Args, Call, Doc, Result, endpoint

DETAIL_BYTES = 2_048
SUPERVISOR_STATES = ("Stopped", "Recovering", "Blocked", "Provisioning")


class UnknownState(Invalid):
    """state: a runner may report {known}, not {state}."""


class Lease(Result):
    seat_id: str
    generation: int
    expires_at: str
    ttl_seconds: int = leases.TTL // 1_000_000


def own_lease(tx: Transaction, caller: SeatCaller, args: Args) -> Locks:
    return [
        exclusive("lease", caller.seat_id),
        exclusive("inbox", caller.organisation_id, caller.seat_id),
    ]


def taken_lease(tx: Transaction, caller: SeatCaller, args: Args) -> Locks:
    """Besides, the talks of those whose message may be given up by it."""
    talks = talks_waiting(tx, caller.organisation_id, caller.seat_id)
    return [*own_lease(tx, caller, args), *talks]


def named_lease(tx: Transaction, caller: Any, args: Any) -> Locks:
    row = seat(tx, args.seat)
    if row is None:
        return []
    scope = row["organisation_id"]
    return [
        shared("organisation", scope),
        exclusive("lease", row["id"]),
        exclusive("inbox", scope, row["id"]),
        *talks_waiting(tx, scope, row["id"]),
    ]


class Acquire(Args):
    holder: Annotated[str | None, Doc("A word on who this is; for people only.")] = None


@endpoint("POST /v1/lease/acquire", family="seats", locks=taken_lease)
def acquire(call: SeatCall, args: Acquire) -> Lease:
    """Take the seat's lease for the instance that the token names; the generation rises by one."""
    caller = call.caller
    taken = leases.acquire(call.tx, caller.seat_id, caller.instance, call.now)
    dead = requeue_stale(
        call.tx,
        caller.seat_id,
        organisation_id=caller.organisation_id,
        reason="lease reacquired",
        now=call.now,
        counts=not taken.planned,
    )
    for _ in range(dead):
        call.count("deliveries_dead_lettered_total")
    call.tx.wake(f"runtime:{caller.organisation_id}")
    return Lease(
        seat_id=caller.seat_id,
        generation=taken.generation,
        expires_at=rfc3339(taken.expires_at),
    )


class Renew(Args):
    generation: int
    execution_id: str | None = None


@endpoint("POST /v1/lease/renew", family="seats", locks=own_lease)
def renew(call: SeatCall, args: Renew) -> Lease:
    """Keep the lease, and with it the delivery that the named execution works on."""
    caller = call.caller
    until = leases.renew(
        call.tx,
        caller.seat_id,
        instance=caller.instance,
        generation=args.generation,
        now=call.now,
    )
    if args.execution_id:
        _store.extend_delivery(
            call.tx, caller.seat_id, args.execution_id, call.now + DELIVERY_LEASE
        )
    return Lease(seat_id=caller.seat_id, generation=args.generation, expires_at=rfc3339(until))


class Release(Args):
    generation: int | None = None


@endpoint("POST /v1/lease/release", family="seats", fenced=True, locks=own_lease)
def release(call: SeatCall, args: Release) -> None:
    """Give the lease back. What was not acknowledged waits for the next acquisition."""
    _not_another_generation(call, args.generation)
    leases.release(call.tx, call.caller.seat_id, call.now)
    call.tx.wake(f"runtime:{call.caller.organisation_id}")


class ReportState(Args):
    state: str
    generation: int | None = None
    detail: str | None = None
    adopted_revision: str | None = None


@endpoint("POST /v1/state", family="seats", fenced=True)
def report_state(call: SeatCall, args: ReportState) -> None:
    """Say what the runner is doing."""
    _not_another_generation(call, args.generation)
    if args.state not in REPORTABLE:
        raise UnknownState(state=args.state, known=", ".join(REPORTABLE))
    leases.report_state(
        call.tx,
        call.caller.seat_id,
        state=args.state,
        detail=args.detail and truncated(args.detail, DETAIL_BYTES),
        adopted=args.adopted_revision,
        now=call.now,
    )
    call.tx.wake(f"runtime:{call.caller.organisation_id}")


def _not_another_generation(call: SeatCall, generation: int | None) -> None:
    """A body that names a generation beside the header's has to mean the same."""
    if generation is not None:
        require_current(call.caller, generation)


class Fence(Args):
    seat: str
    expected_generation: int


@endpoint(
    "POST /internal/v1/seats/{seat}/fence", family="operator", audited=True, locks=named_lease
)
def fence(call: Call[Any], args: Fence) -> Lease:
    """End a generation whose start is confirmed gone, and put back what it was working on."""
    row = named_seat(call.tx, args.seat)
    generation = leases.fence(call.tx, args.seat, args.expected_generation)
    dead = requeue_stale(
        call.tx,
        args.seat,
        organisation_id=row["organisation_id"],
        reason="the runner is gone",
        now=call.now,
        counts=not row["quiesced"],
    )
    for _ in range(dead):
        call.count("deliveries_dead_lettered_total")
    call.tx.wake(f"runtime:{row['organisation_id']}")
    return Lease(seat_id=args.seat, generation=generation, expires_at=rfc3339(0))


class SupervisorState(Args):
    seat: str
    state: Annotated[str | None, Doc("Absent: only the detail changes.")] = None
    detail: str | None = None


@endpoint("POST /internal/v1/seats/{seat}/state", family="operator", locks=named_lease)
def set_state(call: Call[Any], args: SupervisorState) -> None:
    """The supervisor's word on a seat: why it is blocked, failed to start, or is left alone."""
    row = named_seat(call.tx, args.seat)
    if args.state is not None and args.state not in SUPERVISOR_STATES:
        raise UnknownState(state=args.state, known=", ".join(SUPERVISOR_STATES))
    detail = args.detail and truncated(args.detail, DETAIL_BYTES)
    leases.set_state(call.tx, args.seat, args.state or row["state"], detail)
    tell_waiting(call.tx, args.seat, now=call.now)
    call.tx.wake(f"runtime:{row['organisation_id']}")
