"""Leases: who may act as a seat now. The endpoints stand with the turns, which requeue on a change."""

from __future__ import annotations

from dataclasses import dataclass

from steadmesh.kernel.clock import SECOND, Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.errors import Conflict
from steadmesh.seats.identity import _store
from steadmesh.seats.identity.caller import StaleGeneration

TTL = 30 * SECOND


class LeaseHeld(Conflict):
    """Another runner instance holds the lease of this seat until {until}. Wait for it to end, or stop it first."""


class OtherGeneration(Conflict):
    """The lease is at generation {generation}, not at the expected one. Look at its state again before you fence it."""

    details = ("generation",)


@dataclass(frozen=True, slots=True)
class Acquired:
    """A lease as it is after an acquisition; `planned` says that the start before it was ending."""

    generation: int
    expires_at: Instant
    planned: bool


def is_live(lease: Row, now: Instant) -> bool:
    """Whether somebody holds the lease and has renewed it in time."""
    return lease["instance"] is not None and lease["expires_at"] > now


def acquire(tx: Transaction, seat_id: str, instance: str, now: Instant) -> Acquired:
    """Take the lease: unheld, expired, or held by the same instance. Raises `LeaseHeld` otherwise."""
    lease = _lease(tx, seat_id)
    if is_live(lease, now) and lease["instance"] != instance:
        raise LeaseHeld(until=f"{(lease['expires_at'] - now) / SECOND:.0f} s from now")
    _store.acquire(tx, seat_id, instance, now=now, until=now + TTL)
    return Acquired(lease["generation"] + 1, now + TTL, planned=bool(lease["quiesced"]))


def renew(
    tx: Transaction, seat_id: str, *, instance: str, generation: int, now: Instant
) -> Instant:
    """Keep the lease; until when. Only the holder at the current generation may."""
    lease = _lease(tx, seat_id)
    if lease["generation"] != generation or lease["instance"] != instance or lease["released"]:
        raise StaleGeneration()
    _store.renew(tx, seat_id, now + TTL)
    return now + TTL


def fence(tx: Transaction, seat_id: str, expected_generation: int) -> int:
    """End the current generation, whoever holds it; the new one."""
    lease = _lease(tx, seat_id)
    if lease["generation"] != expected_generation:
        raise OtherGeneration(generation=lease["generation"])
    _store.fence(tx, seat_id, "Recovering")
    return expected_generation + 1


def _lease(tx: Transaction, seat_id: str) -> Row:
    lease = _store.lease(tx, seat_id)
    if lease is None:
        raise LookupError(f"seat {seat_id} has no lease row")
    return lease


def release(tx: Transaction, seat_id: str, now: Instant) -> None:
    """Give the lease back; the generation stays and no longer writes."""
    _store.release(tx, seat_id, now)


def report_state(
    tx: Transaction,
    seat_id: str,
    *,
    state: str,
    detail: str | None,
    adopted: str | None,
    now: Instant,
) -> None:
    """The runner's word on itself; counts as activity."""
    _store.report_state(tx, seat_id, state=state, detail=detail, adopted=adopted, now=now)


def set_state(tx: Transaction, seat_id: str, state: str, detail: str | None) -> None:
    """The supervisor's word on a seat."""
    _store.set_state(tx, seat_id, state, detail)
