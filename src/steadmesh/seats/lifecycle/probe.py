"""Probes: a seat is asked to show that it works, without contacting anybody."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from steadmesh.kernel.clock import Instant, optional_rfc3339, rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive, shared
from steadmesh.kernel.errors import NotFound
from steadmesh.kernel.ids import new_id
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.seats.identity import named_seat, seat
from steadmesh.seats.lifecycle import _probe_store as store
from steadmesh.seats.lifecycle._probe_rules import Outcome, outcome
from steadmesh.seats.messages import (
    Inbox,
    Sender,
    forget_conversation,
    open_conversation,
    queue_message,
)
from steadmesh.tools import Args, Call, Doc, Result, endpoint

log = logging.getLogger(__name__)

KEPT = 10
"""Ended probes of a seat, the newest."""
BATCH = 100
BODY = (
    "Readiness check by the platform. Call the tool `self` once, then end your turn."
    " Contact nobody and change nothing."
)
"""For a model. A runner of ours makes the other checks itself and runs no text."""


class NoProbeOfRetiring(NotFound):
    """The seat {seat} is retiring; it is not probed any more."""


class NoSuchProbe(NotFound):
    """There is no probe of this seat with this id; of older ones only the newest are kept."""


class StartProbe(Args):
    seat: Annotated[str, Doc("Id of the seat.")]


class ProbeStarted(Result):
    probe_id: str
    status: str


def its_inbox(tx: Transaction, caller: Any, args: StartProbe) -> Locks:
    row = seat(tx, args.seat)
    if row is None:
        return []
    scope = row["organisation_id"]
    return [shared("organisation", scope), exclusive("inbox", scope, row["id"])]


@endpoint(
    "POST /internal/v1/seats/{seat}/probe",
    family="operator",
    audited=True,
    locks=its_inbox,
    status=202,
)
def start(call: Call[Any], args: StartProbe) -> ProbeStarted:
    """Ask a seat to show that it works; that starts it. One that nobody took up yet is the answer again."""
    tx, now = call.tx, call.now
    row = named_seat(tx, args.seat)
    if row["retire_by"] is not None:
        raise NoProbeOfRetiring(seat=row["key"])
    waiting = store.untried_probe(tx, args.seat)
    if waiting is not None:  # it will be answered after now: as good as a fresh one
        return ProbeStarted(probe_id=waiting, status="pending")
    probe_id, scope = new_id(now), row["organisation_id"]
    # Of no seat: an agent that looks into its history does not find a page of probes there.
    conversation = open_conversation(tx, scope, kind="system", seats=(), now=now)
    message_id = queue_message(
        tx,
        Inbox(scope, row["id"], row["key"]),
        Sender("probe"),
        conversation_id=conversation,
        body=BODY,
        now=now,
        count=call.services.count,
    )
    store.add_probe(
        tx,
        id=probe_id,
        organisation_id=scope,
        seat_id=row["id"],
        message_id=message_id,
        conversation_id=conversation,
        now=now,
    )
    _forget(tx, store.older_probes(tx, row["id"], KEPT))
    return ProbeStarted(probe_id=probe_id, status="pending")


def forget_probes(tx: Transaction, seat_id: str) -> None:
    """Drop all probes of a seat, with their messages."""
    _forget(tx, store.all_probes(tx, seat_id))


def _forget(tx: Transaction, probes: Iterable[Row]) -> None:
    for row in probes:
        forget_conversation(tx, row["conversation_id"])
        store.drop_probe(tx, row["id"])


class ReadProbe(Args):
    seat: Annotated[str, Doc("Id of the seat.")]
    probe: Annotated[str, Doc("Id of the probe.")]


class Probe(Result):
    probe_id: str
    status: Annotated[str, Doc("pending, passed or failed.")]
    checks: Annotated[dict[str, str], Doc("Each check: `ok`, or a text that begins with `fail`.")]
    reason: Annotated[str | None, Doc("Why it failed.")] = None
    revision: Annotated[str | None, Doc("The configuration it ran at.")] = None
    created_at: str
    started_at: str | None = None
    ended_at: str | None = None


@endpoint("GET /internal/v1/seats/{seat}/probe/{probe}", family="operator", reads=True)
def read(call: Call[Any], args: ReadProbe) -> Probe:
    """How a probe stands: pending, then passed when it was completed and no check failed, else failed."""
    row = store.probe(call.tx, args.seat, args.probe)
    if row is None:
        raise NoSuchProbe()
    return _stand(call.tx, row).view


@dataclass(frozen=True, slots=True)
class SeatProbes:
    """What probes tell of one seat: the newest, and the newest that has ended."""

    newest: Probe | None = None
    ended: Probe | None = None


def probes_of(tx: Transaction, organisation_id: str) -> Mapping[str, SeatProbes]:
    """The probes of an organisation's live seats, by seat id."""
    found = {row["seat_id"]: _stand(tx, row) for row in store.newest_ended(tx, organisation_id)}
    result = {key: SeatProbes(stand.view, stand.view) for key, stand in found.items()}
    for row in store.pending_of(tx, organisation_id):
        stand = _follow(tx, row)
        ended = stand.view if stand.ended else result.get(row["seat_id"], SeatProbes()).ended
        result[row["seat_id"]] = SeatProbes(stand.view, ended)
    return result


@dataclass(frozen=True, slots=True)
class _Stand:
    outcome: Outcome
    started_at: Instant | None
    ended_at: Instant | None
    view: Probe

    @property
    def ended(self) -> bool:
        return self.outcome.status != "pending"


def _stand(tx: Transaction, row: Row) -> _Stand:
    if row["status"] == "pending":
        followed = store.followed(tx, row["id"])
        if followed is not None:
            return _follow(tx, followed)
    kept = Outcome(row["status"], json.loads(row["checks"] or "{}"), row["reason"], row["revision"])
    return _described(row, kept, started=row["started_at"], ended=row["ended_at"])


def _follow(tx: Transaction, row: Row) -> _Stand:
    """Where a pending probe stands at this moment, whether or not that was kept already."""
    execution = row["execution_id"]
    stand = outcome(row, store.reported(tx, execution) if execution else [])
    ended = row["ended_at"] if stand.status != "pending" else None
    return _described(row, stand, started=row["started_at"], ended=ended)


def _described(
    row: Row, stand: Outcome, *, started: Instant | None, ended: Instant | None
) -> _Stand:
    view = Probe(
        probe_id=row["id"],
        status=stand.status,
        checks=dict(stand.checks),
        reason=stand.reason,
        revision=stand.revision,
        created_at=rfc3339(row["created_at"]),
        started_at=optional_rfc3339(started),
        ended_at=optional_rfc3339(ended),
    )
    return _Stand(stand, started, ended, view)


def keep_ended(context: JobContext) -> int:
    """Keep how probes ended, before what tells it is trimmed. How many have ended since the last look."""
    kept, after = 0, 0
    while not context.stopping():
        rows = context.database.read_blocking(
            partial(store.pending_probes, after=after, limit=BATCH)
        )
        for row in rows:
            kept += _keep(context, row["id"]) if _may_have_ended(row) else 0
        if len(rows) < BATCH:
            break
        after = rows[-1]["number"]
    return kept


def _may_have_ended(row: Row) -> bool:
    return outcome(row, []).status != "pending"


def _keep(context: JobContext, probe_id: str) -> bool:
    now = context.clock.now()

    def keep(tx: Transaction) -> bool:
        row = store.followed(tx, probe_id)
        if row is None or not (stand := _follow(tx, row)).ended:
            return False
        return store.end_probe(
            tx,
            probe_id,
            status=stand.outcome.status,
            checks=json.dumps(stand.outcome.checks, ensure_ascii=False),
            reason=stand.outcome.reason,
            revision=stand.outcome.revision,
            started_at=stand.started_at,
            ended_at=stand.ended_at or now,
        )

    return context.database.write_blocking(keep)


KEEPING = Job("keep how probes ended", keep_ended, every=2.0, batch=1_000_000)
