"""What happens to a delivery whose turn did not complete."""

from __future__ import annotations

import logging

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive, shared
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.kernel.retries import retry_delay
from steadmesh.seats.messages import talks_of_messages, tell_authors
from steadmesh.seats.turns import _store

log = logging.getLogger(__name__)

BATCH = 100


def fail_delivery(
    tx: Transaction,
    delivery: Row,
    *,
    organisation_id: str,
    error: str,
    now: Instant,
    counts: bool = True,
) -> bool:
    """Try the delivery again later, or give it up after the last attempt; whether it is dead now.

    `counts=False` gives the attempt back: it ended by a planned stop. A person whose message is given
    up hears of it: hold the lock of the talk (`talks_of_messages`).
    """
    number = delivery["number"]
    attempt = delivery["attempt"] if counts else delivery["attempt"] - 1
    delay = retry_delay(attempt) if counts else 0
    if delay is None:
        _store.bury_delivery(tx, number, error)
        _store.release_carried(tx, number)
        outbox.record(
            tx,
            "delivery.dead",
            scope=organisation_id,
            at=now,
            seat=delivery["seat_id"],
            delivery=number,
        )
        tell_authors(tx, delivery["seat_id"], [number], reason="given_up", now=now)
    else:
        _store.requeue_delivery(tx, number, attempt=attempt, due=now + delay, error=error)
    tx.wake(f"inbox:{delivery['seat_id']}")
    tx.wake(f"runtime:{organisation_id}")
    return delay is None


def requeue_stale(
    tx: Transaction,
    seat_id: str,
    *,
    organisation_id: str,
    reason: str,
    now: Instant,
    counts: bool = True,
) -> int:
    """Put back what an ended generation was working on; how many of them are dead now.

    Hold `talks_waiting` of the seat besides its inbox.
    """
    dead = 0
    for delivery in _store.stale_deliveries(tx, seat_id):
        _store.end_execution(
            tx, delivery["execution_id"], state="interrupted", error=reason, now=now
        )
        dead += fail_delivery(
            tx,
            delivery,
            organisation_id=organisation_id,
            error=reason,
            now=now,
            counts=counts,
        )
    return dead


def requeue_expired(context: JobContext) -> int:
    """Put back deliveries whose lease ran out: their runner is gone without a word.

    One that cannot be put back is logged and holds up no other.
    """
    now = context.clock.now()
    expired = context.database.read_blocking(lambda tx: _store.expired_deliveries(tx, now, BATCH))
    done = 0
    for delivery in expired:
        if context.stopping():
            break
        try:
            _requeue_expired(context, delivery, now)
        except Exception:
            fields = {"delivery": delivery["number"], "seat": delivery["seat_id"]}
            log.exception("expired delivery not put back", extra={"fields": fields})
        else:
            done += 1
    return done


def _requeue_expired(context: JobContext, delivery: Row, now: Instant) -> None:
    scope = delivery["organisation_id"]

    def locks(tx: Transaction) -> Locks:
        return [
            shared("organisation", scope),
            exclusive("inbox", scope, delivery["seat_id"]),
            *talks_of_messages(tx, scope, [delivery["number"]]),
        ]

    def requeue(tx: Transaction) -> None:
        if not _store.leased_and_expired(tx, delivery["number"], now):
            return
        reason = "the turn was not acknowledged in time"
        _store.end_execution(
            tx, delivery["execution_id"], state="interrupted", error=reason, now=now
        )
        if fail_delivery(tx, delivery, organisation_id=scope, error=reason, now=now):
            tx.after_commit(lambda: context.count("deliveries_dead_lettered_total"))

    context.database.write_blocking(requeue, locks=locks)


EXPIRY = Job("requeue expired deliveries", requeue_expired, every=2.0, batch=BATCH)
