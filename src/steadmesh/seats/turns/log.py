"""What a seat did: its turns and what they reported, to be read once or followed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from steadmesh.kernel.clock import Instant, optional_rfc3339, rfc3339
from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.errors import Invalid, NotFound
from steadmesh.seats.identity import named_organisation, seat, seat_called
from steadmesh.seats.turns import _store
from steadmesh.seats.turns.executions import EventView
from steadmesh.tools import Args, Call, Caller, Clamped, Doc, Result, endpoint

EVENTS = 500
"""At most on one page."""
CUT = "cut"
"""The state, in a cursor, of a turn whose events did not all fit on the page."""
_CURSOR = re.compile(r"(\d{1,18})\.([0-9a-f-]{0,36})\.([a-z]*)\.(\d{1,18})\.([0-9a-f]*)")
_SHOWN = (
    "message_id",
    "generation",
    "config_revision",
    "adapter",
    "attempt",
    "state",
    "error",
    "origin",
    "sender_seat",
    "external_user_id",
)


class NoSeatCalled(NotFound):
    """There is no seat {seat} in this organisation, and never was."""


class BadCursor(Invalid):
    """after: this is no cursor of a seat's log. Leave it out to begin anew."""


class ReadLog(Args):
    organization: str
    seat: Annotated[str, Doc("Key or id; of a retired seat too.")]
    limit: Annotated[int, Clamped(maximum=200, default=20), Doc("Turns on a page.")] = 20
    after: Annotated[str, Doc("The cursor of the last page: only what came later.")] = ""
    wait: Annotated[float, Doc("Seconds to wait for something new, at most 30.")] = 0.0


class TurnView(Result):
    execution_id: str
    delivery_id: int
    message_id: str
    generation: int
    config_revision: str
    adapter: str
    attempt: int
    state: str
    error: str | None = None
    started_at: str
    ended_at: str | None = None
    origin: str | None = None
    sender_seat: str | None = None
    external_user_id: str | None = None
    given_up: Annotated[bool | None, Doc("It was the last attempt: a dead letter.")] = None
    next_attempt_at: Annotated[str | None, Doc("Its message waits until then.")] = None


class LoggedEvent(EventView):
    execution_id: str


class SeatLog(Result):
    """Turns by their beginning, and events by number. `more`: the next page is there already."""

    seat: str
    seat_id: str
    turns: list[TurnView]
    events: list[LoggedEvent]
    cursor: str
    more: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a reader is: the last turn it knows, in which state, and the last event."""

    started: Instant = 0
    execution: str = ""
    state: str = ""
    event: int = 0
    standing: str = ""

    @classmethod
    def of(cls, cursor: str) -> _Place:
        """Raises `BadCursor`."""
        if not cursor:
            return cls()
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise BadCursor()
        started, execution, state, event, standing = found.groups()
        return cls(int(started), execution, state, int(event), standing)

    def __str__(self) -> str:
        return f"{self.started}.{self.execution}.{self.state}.{self.event}.{self.standing}"


def log_topics(caller: Caller, args: ReadLog) -> tuple[str, ...]:
    return (f"log:{args.organization}", f"runtime:{args.organization}")


def has_news(tx: Transaction, caller: Caller, args: ReadLog, now: Instant) -> bool:
    """A glance at three rows, so that who follows a quiet seat costs next to nothing."""
    found = seat_called(tx, args.organization, args.seat)
    if found is None or not args.after:
        return True
    place = _Place.of(args.after)
    newest = _store.newest_execution(tx, found["id"])
    known = (newest["id"], newest["state"]) if newest else ("", "")
    return (
        known != (place.execution, place.state)
        or _standing(tx, found["id"]) != place.standing
        or (place.execution != "" and _store.has_event_after(tx, place.execution, place.event))
    )


@endpoint(
    "GET /internal/v1/organizations/{organization}/seats/{seat}/log",
    family="operator",
    reads=True,
    waits=log_topics,
    ready=has_news,
    looks_every=5.0,
)
def seat_log(call: Call[Any], args: ReadLog) -> SeatLog | None:
    """A seat's last turns with their events. With `after` and `wait`: what is new, once there is any."""
    named_organisation(call.tx, args.organization)
    found = seat_called(call.tx, args.organization, args.seat)
    if found is None:
        raise NoSeatCalled(seat=args.seat)
    place = _Place.of(args.after)
    turns, events, more = _page(call.tx, found["id"], place, args.limit)
    cursor = str(_next_place(call.tx, found["id"], place, (turns, events), is_cut=more))
    if args.wait > 0 and args.after == cursor:
        return None
    return SeatLog(
        seat=found["key"],
        seat_id=found["id"],
        turns=[_turn_view(row) for row in turns],
        events=[_event_view(row) for row in events],
        cursor=cursor,
        more=more,
    )


def _page(
    tx: Transaction, seat_id: str, place: _Place, limit: int
) -> tuple[Sequence[Row], Sequence[Row], bool]:
    """Turns, events, and whether there are more of either."""
    if place.execution:
        turns = _store.turns_from(
            tx, seat_id, started=place.started, execution_id=place.execution, limit=limit + 1
        )
        more = len(turns) > limit
        turns = turns[:limit]
    else:
        turns = _store.latest_turns(tx, seat_id, limit=limit)[::-1]
        more = False
    if not turns:
        return [], [], False
    events = _store.events_since(
        tx, seat_id, started=turns[0]["started_at"], after=place.event, limit=EVENTS + 1
    )
    order = {row["id"]: number for number, row in enumerate(turns)}
    if len(events) > EVENTS:
        events = events[:EVENTS]
        turns = turns[: order.get(events[-1]["execution_id"], len(turns) - 1) + 1]
        more = True
    return turns, [row for row in events if row["execution_id"] in order], more


def _next_place(
    tx: Transaction,
    seat_id: str,
    place: _Place,
    page: tuple[Sequence[Row], Sequence[Row]],
    *,
    is_cut: bool,
) -> _Place:
    turns, events = page
    last = turns[-1] if turns else None
    return _Place(
        started=last["started_at"] if last else place.started,
        execution=last["id"] if last else place.execution,
        state=CUT if is_cut else last["state"] if last else place.state,
        event=max((row["number"] for row in events), default=place.event),
        standing=_standing(tx, seat_id),
    )


def _standing(tx: Transaction, seat_id: str) -> str:
    """Changes with whatever tells why a seat works or does not."""
    row = seat(tx, seat_id)
    names = ("state", "state_detail", "instance", "suspended", "retire_by", "retired_at")
    text = "|".join(str(row[name]) for name in names) if row else ""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _turn_view(row: Row) -> TurnView:
    is_last = row["last_execution"] == row["id"]
    waits = is_last and row["delivery_state"] == "pending"
    return TurnView(
        execution_id=row["id"],
        delivery_id=row["delivery_number"],
        started_at=rfc3339(row["started_at"]),
        ended_at=optional_rfc3339(row["ended_at"]),
        given_up=(is_last and row["delivery_state"] == "dead") or None,
        next_attempt_at=rfc3339(row["due_at"]) if waits else None,
        **{name: row[name] for name in _SHOWN},
    )


def _event_view(row: Row) -> LoggedEvent:
    return LoggedEvent(
        number=row["number"],
        execution_id=row["execution_id"],
        kind=row["kind"],
        correlation_id=row["correlation_id"],
        data=json.loads(row["data"]) if row["data"] else None,
        at=rfc3339(row["at"]),
    )
