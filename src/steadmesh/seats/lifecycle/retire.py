"""Retirement: a seat that is no longer declared winds down, and is gone when it is done or its time is up.

Everything here runs alone with the organisation, as `apply` does: what a seat leaves behind goes to many.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction, exclusive
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.seats.identity import (
    change_policy,
    live_seats,
    retire,
    seat,
    seats_to_retire,
    without_leaving,
)
from steadmesh.seats.lifecycle import _store, notices
from steadmesh.seats.messages import Inbox, tell_authors
from steadmesh.seats.organisation import representatives
from steadmesh.seats.turns import give_up_inbox, handoff_of, is_idle, withdraw

log = logging.getLogger(__name__)

BATCH = 100
LEAVES = "the seat leaves the organisation"
LEFT = "the seat has left the organisation"


def begin(tx: Transaction, row: Row, *, retire_by: Instant, now: Instant) -> Instant:
    """Let a seat wind down that was just marked as retiring; until when. A repeated apply changes nothing:
    `row` is as it was before."""
    if row["retire_by"] is not None:
        return Instant(row["retire_by"])
    given_up = give_up_inbox(
        tx,
        row["id"],
        organisation_id=row["organisation_id"],
        reason=LEAVES,
        now=now,
        with_turns=False,
    )
    returned = [message for message in given_up.messages if message["origin"] != "probe"]
    return_mail(tx, row, returned, now=now)
    notice = notices.post(tx, _inbox(row), notices.retirement(row, retire_by, returned), now=now)
    _store.note_retirement(tx, row["id"], notice=notice, now=now)
    return retire_by


def cancel(tx: Transaction, row: Row, *, now: Instant) -> None:
    """A retiring seat is declared again. A notice that it has not seen is taken back."""
    notice = _store.retirement_notice(tx, row["id"])
    if notice is None:
        return
    _store.forget_retirement(tx, row["id"])
    if not withdraw(tx, notice):
        notices.post(tx, _inbox(row), notices.carry_on(row), now=now)


def return_mail(tx: Transaction, leaving: Row, messages: Sequence[Row], *, now: Instant) -> None:
    """Tell each seat and each person whose message was not handled."""
    staying = {
        row["id"]: row
        for row in live_seats(tx, leaving["organisation_id"])
        if row["retire_by"] is None
    }
    by_sender: dict[str, list[Row]] = defaultdict(list)
    for message in messages:
        if message["sender_seat_id"] in staying:
            by_sender[message["sender_seat_id"]].append(message)
    for sender, unhandled in by_sender.items():
        body = notices.returned_mail(leaving, unhandled)
        notices.post(tx, _inbox(staying[sender]), body, now=now)
    numbers = [message["number"] for message in messages if message["origin"] == "human"]
    tell_authors(tx, leaving["id"], numbers, reason="retiring", now=now)


def retire_due(context: JobContext) -> int:
    """Retire seats that are done or out of time. One that cannot be is logged and holds up no other."""
    waiting = context.database.read_blocking(lambda tx: _due(tx, context.clock.now()))
    done = 0
    for row in waiting:
        if context.stopping():
            break
        try:
            done += _retire(context, row)
        except Exception:
            log.exception("seat not retired", extra={"fields": {"seat": row["id"]}})
    return done


def _due(tx: Transaction, now: Instant) -> list[Row]:
    return [
        row
        for row in seats_to_retire(tx, BATCH)
        if row["retire_by"] <= now or is_idle(tx, row["id"])
    ]


def _retire(context: JobContext, named: Row) -> bool:
    def work(tx: Transaction) -> bool:
        now = context.clock.now()
        row = seat(tx, named["id"])
        if row is None or row["retire_by"] is None or row["retired_at"] is not None:
            return False  # declared again, or another replica was first
        in_time = is_idle(tx, row["id"])
        if not in_time and row["retire_by"] > now:
            return False
        end(tx, row, in_time=in_time, now=now)
        tx.after_commit(lambda: context.count("seats_retired_total"))
        return True

    scope = named["organisation_id"]
    return context.database.write_blocking(
        work, locks=lambda tx: [exclusive("organisation", scope)]
    )


def end(tx: Transaction, row: Row, *, in_time: bool, now: Instant) -> None:
    """The seat is no more: whatever it owed goes back, and its representatives hear how it left."""
    scope, seat_id = row["organisation_id"], row["id"]
    left = give_up_inbox(tx, seat_id, organisation_id=scope, reason=LEFT, now=now, with_turns=True)
    retire(tx, seat_id, now)
    _store.forget_retirement(tx, seat_id)
    unhandled = [
        message for message in left.messages if message["origin"] not in ("system", "probe")
    ]
    return_mail(tx, row, unhandled, now=now)
    body = notices.summary(
        row,
        in_time=in_time,
        interrupted=left.was_in_turn,
        handoff=handoff_of(tx, seat_id),
        unhandled=unhandled,
    )
    bound = set(representatives(tx, scope))
    for other in live_seats(tx, scope):
        if (policy := without_leaving(other["policy"], row["key"])) is not None:
            change_policy(tx, other["id"], text=policy.text, digest=policy.digest)
        if other["key"] in bound and other["retire_by"] is None:
            notices.post(tx, _inbox(other), body, now=now)
    outbox.record(tx, "seat.retired", scope=scope, at=now, seat=seat_id, key=row["key"])
    tx.wake(f"inbox:{seat_id}")
    tx.wake(f"runtime:{scope}")


def _inbox(row: Row) -> Inbox:
    return Inbox(row["organisation_id"], row["id"], row["key"])


RETIREMENT = Job("retire seats", retire_due, every=2.0, batch=BATCH)
