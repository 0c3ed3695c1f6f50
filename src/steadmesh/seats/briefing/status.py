"""status: what this seat and those it talks to are doing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steadmesh.kernel.clock import SECOND, Instant, optional_rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.text import truncated
from steadmesh.seats.identity import SeatCall, is_live, live_seats, seat_state, state_detail
from steadmesh.seats.messages import InboxCounts, inbox_counts
from steadmesh.tools import Args, Doc, Result, tool

OTHERS = 20
DETAIL_BYTES = 200


class Status(Args):
    seats: Annotated[
        list[str] | None,
        Field(max_length=OTHERS),
        Doc("Keys of seats, up to 20. Default: every seat that you can reach."),
    ] = None


class SeatStatus(Result):
    seat: str
    state: str
    detail: str | None = None
    running: bool
    pending_messages: int
    oldest_pending_age_seconds: int | None = None
    dead_letters: int | None = None
    last_activity: str | None = None
    on_current_config: bool
    retiring_until: str | None = None


class Statuses(Result):
    self: SeatStatus
    seats: list[SeatStatus]
    not_reachable: list[str] | None = None
    omitted: int | None = None


@tool("status", reads=True)
def status(call: SeatCall, args: Status) -> Statuses:
    """Whether you and the seats you talk to run, wait or are stuck. Explain real delays with it."""
    caller = call.caller
    reachable = set(caller.policy.recipients) | set(caller.policy.senders)
    rows = {row["key"]: row for row in live_seats(call.tx, caller.organisation_id)}
    wanted = sorted(reachable) if args.seats is None else list(dict.fromkeys(args.seats))
    known = [key for key in wanted if key in reachable and key in rows and key != caller.seat_key]
    unknown = [] if args.seats is None else [k for k in wanted if k not in known]
    counts = inbox_counts(call.tx, caller.organisation_id)
    shown = known[:OTHERS]
    not_reachable = [key for key in unknown if key != caller.seat_key]
    return Statuses(
        self=seat_status(rows[caller.seat_key], counts, call.now),
        seats=[seat_status(rows[key], counts, call.now) for key in shown],
        not_reachable=not_reachable or None,
        omitted=(len(known) - len(shown)) or None,
    )


def seat_status(row: Row, counts: dict[str, InboxCounts], now: Instant) -> SeatStatus:
    """The status of one seat, from its row and the counts of its inbox."""
    inbox = counts.get(row["id"], InboxCounts())
    return SeatStatus(
        seat=row["key"],
        state=seat_state(row),
        detail=_short(state_detail(row)),
        running=is_live(row, now),
        pending_messages=inbox.pending,
        oldest_pending_age_seconds=(
            None if inbox.oldest is None else max(0, (now - inbox.oldest) // SECOND)
        ),
        dead_letters=inbox.dead or None,
        last_activity=optional_rfc3339(row["last_activity"]),
        on_current_config=row["adopted_revision"] in (None, row["config_revision"]),
        retiring_until=optional_rfc3339(row["retire_by"]),
    )


def _short(detail: str | None) -> str | None:
    return truncated(detail, DETAIL_BYTES) if detail else None
