"""What a turn reports while it runs, and what is kept of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from steadmesh.kernel.clock import Instant, optional_rfc3339, rfc3339
from steadmesh.kernel.errors import Invalid, NotFound
from steadmesh.kernel.text import is_blank
from steadmesh.seats.identity import SeatCall, note_activity, seat
from steadmesh.seats.organisation import bundle_text
from steadmesh.seats.turns import _store
from steadmesh.seats.turns._rules import EVENT_BYTES
from steadmesh.tools import Args, Call, Clamped, Doc, NoArgs, NotBlank, Result, Size, endpoint

GUARANTEE = "application_checkpoint"


_SHOWN = (
    "message_id",
    "generation",
    "config_revision",
    "adapter",
    "attempt",
    "state",
    "error",
)


class NoSuchExecution(NotFound):
    """There is no execution of this seat with this id."""


class BadEvent(Invalid):
    """events[{index}]: {reason}"""


class OtherGuarantee(Invalid):
    """guarantee: only application_checkpoint is known, not {guarantee}."""


class PostEvents(Args):
    execution: str
    events: list[dict[str, Any]] | None = None
    kind: str | None = None
    correlation_id: str | None = None
    data: Annotated[dict[str, Any] | None, Doc("Up to 8192 bytes; more is replaced.")] = None
    time: str | None = None


@endpoint("POST /v1/executions/{execution}/events", family="seats", fenced=True)
def post_events(call: SeatCall, args: PostEvents) -> None:
    """Report one event, or an array of them, in their order."""
    execution = _store.execution(call.tx, args.execution)
    if execution is None or execution["seat_id"] != call.caller.seat_id:
        raise NoSuchExecution()
    single = {
        "kind": args.kind,
        "correlation_id": args.correlation_id,
        "data": args.data,
        "time": args.time,
    }
    events = [single] if args.events is None else args.events
    rows = [
        _event_row(args.execution, event, index, call.now) for index, event in enumerate(events)
    ]
    _store.add_events(call.tx, rows)
    note_activity(call.tx, call.caller.seat_id, call.now)
    call.tx.wake(f"log:{call.caller.organisation_id}")


def _event_row(execution: str, event: dict[str, Any], index: int, now: Instant) -> dict[str, Any]:
    kind = event.get("kind")
    if not isinstance(kind, str) or is_blank(kind):
        raise BadEvent(index=index, reason="kind is required and is a text")
    correlation = event.get("correlation_id")
    if correlation is not None and not isinstance(correlation, str):
        raise BadEvent(index=index, reason="correlation_id is a text")
    data = event.get("data")
    if data is not None and not isinstance(data, dict):
        raise BadEvent(index=index, reason="data is an object")
    return {
        "execution": execution,
        "kind": kind,
        "correlation": correlation,
        "data": None if data is None else _bounded(data),
        "at": _time(event.get("time"), index, now),
    }


def _bounded(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode())
    return text if size <= EVENT_BYTES else json.dumps({"truncated": True, "bytes": size})


def _time(text: Any, index: int, now: Instant) -> Instant:
    if text is None:
        return now
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(text)
        moment = moment.astimezone(UTC)  # the first and the last hours of the calendar may overflow
    except (TypeError, ValueError, OverflowError):
        raise BadEvent(index=index, reason="time is not RFC 3339 with an offset") from None
    return round(moment.timestamp() * 1_000_000)


class Checkpoint(Args):
    harness_adapter: Annotated[str, NotBlank(), Size(200)]
    format_version: Annotated[str, NotBlank(), Size(200)]
    checkpoint_ref: Annotated[str, NotBlank(), Size(2_048)]
    guarantee: str


@endpoint("PUT /v1/checkpoint", family="seats", fenced=True)
def save_checkpoint(call: SeatCall, args: Checkpoint) -> None:
    """Remember where the harness can go on."""
    if args.guarantee != GUARANTEE:
        raise OtherGuarantee(guarantee=args.guarantee)
    _store.save_checkpoint(
        call.tx,
        seat_id=call.caller.seat_id,
        adapter=args.harness_adapter,
        format_version=args.format_version,
        checkpoint_ref=args.checkpoint_ref,
        guarantee=args.guarantee,
        now=call.now,
    )


class InstructionText(Result):
    ref: str
    scope: str
    order: int
    text: str


class Instructions(Result):
    instructions: list[InstructionText]


@endpoint("GET /v1/instructions", family="seats", reads=True)
def instructions(call: SeatCall, args: NoArgs) -> Instructions:
    """The seat's instruction bundles with their texts, in order."""
    row = seat(call.tx, call.caller.seat_id)
    profile = json.loads(row["profile"]) if row else {}
    found = []
    for entry in profile.get("instructions", []):
        text = bundle_text(call.tx, call.caller.organisation_id, entry["ref"])
        found.append(InstructionText(**entry, text=text or ""))
    return Instructions(instructions=found)


# For people


class ListExecutions(Args):
    seat: str
    limit: Annotated[int, Clamped(maximum=200, default=50)] = 50
    cursor: str | None = None


class ExecutionView(Result):
    execution_id: str
    message_id: str
    generation: int
    config_revision: str
    adapter: str
    attempt: int
    state: str
    error: str | None = None
    started_at: str
    ended_at: str | None = None


class Executions(Result):
    executions: list[ExecutionView]
    next_cursor: str


@endpoint("GET /internal/v1/seats/{seat}/executions", family="operator", reads=True)
def list_executions(call: Call[Any], args: ListExecutions) -> Executions:
    """A seat's turns, newest first."""
    position = call.position(args.cursor)
    before = (int(position[0]), str(position[1])) if position else None
    rows = _store.executions_of(call.tx, args.seat, before=before, limit=args.limit + 1)
    shown = rows[: args.limit]
    views = [
        ExecutionView(
            execution_id=row["id"],
            started_at=rfc3339(row["started_at"]),
            ended_at=optional_rfc3339(row["ended_at"]),
            **{name: row[name] for name in _SHOWN},
        )
        for row in shown
    ]
    more = len(rows) > args.limit
    cursor = call.cursor(shown[-1]["started_at"], shown[-1]["id"]) if more else ""
    return Executions(executions=views, next_cursor=cursor)


class ListEvents(Args):
    execution: str
    after: int = 0
    limit: Annotated[int, Clamped(maximum=500, default=200)] = 200


class EventView(Result):
    number: int
    kind: str
    correlation_id: str | None = None
    data: dict[str, Any] | None = None
    at: str


class Events(Result):
    events: list[EventView] = Field(default_factory=list)


@endpoint("GET /internal/v1/executions/{execution}/events", family="operator", reads=True)
def list_events(call: Call[Any], args: ListEvents) -> Events:
    """What a turn reported, in order; `after` is the number of the last event seen."""
    rows = _store.events_of(call.tx, args.execution, after=args.after, limit=args.limit)
    return Events(
        events=[
            EventView(
                number=row["number"],
                kind=row["kind"],
                correlation_id=row["correlation_id"],
                data=json.loads(row["data"]) if row["data"] else None,
                at=rfc3339(row["at"]),
            )
            for row in rows
        ]
    )
