"""What the seat runner asks of an agent program, whichever it is.

A harness is driven in one order: `describe_capabilities` (at any time), `prepare`,
`start_or_resume`, then any number of `deliver`, and at the end `quiesce`, `checkpoint`, `stop`.
`deliver` blocks in a thread of its own; `events`, `quiesce` and `stop` are called beside it from
other threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from steadmesh.kernel.clock import Clock, Instant
from steadmesh.runner.processes import ChildGroups

Origin = Literal["human", "seat", "schedule", "system", "probe"]
Outcome = Literal["completed", "failed", "interrupted", "timed_out"]
EventKind = Literal["progress", "tool_request", "tool_result", "output", "completion", "error"]
StartMode = Literal["fresh", "native_resume", "portable_handoff"]


class HarnessError(Exception):
    """The harness cannot be prepared or started; the text says why and what to do."""


class TurnRefused(Exception):
    """The harness takes no turn now; the delivery stays unacknowledged."""


class Busy(TurnRefused):
    """A turn is running; a harness runs one at a time."""


class Quiescing(TurnRefused):
    """The harness is finishing and takes no new turn."""


class Stopped(TurnRefused):
    """The harness has ended."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message as the platform hands it to a seat."""

    message_id: str
    conversation_id: str
    origin: str
    recipient_seat: str
    body: str
    created_at: str
    organization_id: str = ""
    binding: str | None = None
    external_user_id: str | None = None
    sender_seat: str | None = None
    sender_seat_id: str | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    reply_route: str | None = None
    current_time: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One turn's work: the message that woke the seat and what was queued beside it."""

    delivery_id: int
    execution_id: str
    attempt: int
    message: Envelope
    passive: tuple[Envelope, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What the agent says about its work. Information only; it changes nothing."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. `error` is for people and for the delivery's record."""

    outcome: Outcome
    error: str | None = None
    session_id: str | None = None
    output: str = ""
    claim: Claim | None = None
    recovery: str | None = None
    """Set on the first turn of a replacement session: what was lost and how to go on."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a turn, for whoever watches."""

    kind: EventKind
    correlation_id: str | None
    data: Mapping[str, Any]
    time: Instant


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a session can be taken up again by the same adapter."""

    harness_adapter: str
    format_version: str
    checkpoint_ref: str
    guarantee: Literal["application_checkpoint"] = "application_checkpoint"


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the platform kept of the seat's earlier starts."""

    session: Checkpoint | None = None
    handoff: Mapping[str, Any] | None = None
    pending_messages: int = 0
    unknown_operations: tuple[Mapping[str, Any], ...] = ()
    work: tuple[Mapping[str, Any], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What a harness gets at start."""

    identity: Mapping[str, Any] = field(default_factory=dict)
    """The answer of the `self` tool."""
    instructions: tuple[Mapping[str, Any], ...] = ()
    guidance: tuple[str, ...] = ()
    recovery: Recovery = field(default_factory=Recovery)


@dataclass(frozen=True, slots=True)
class Start:
    """How the harness came up. `note` is set when a session was lost."""

    mode: StartMode
    note: str | None = None


@dataclass(frozen=True, slots=True)
class HarnessCapabilities:
    """What an adapter can do; known before `prepare`."""

    adapter: str
    version: str
    tool_transports: tuple[str, ...]
    interruption: Literal["signal", "cooperative", "none"]
    recovery_modes: tuple[StartMode, ...]
    checkpoint_guarantees: tuple[str, ...] = ("application_checkpoint",)
    suspension: bool = False


@dataclass(frozen=True, slots=True)
class SeatEnvironment:
    """Everything a harness may know of the seat and machine it runs for."""

    seat_key: str
    seat_id: str
    config_revision: str
    workspace: Path
    home: Path
    runner_dir: Path
    manifest_dir: Path
    tools_bin: str
    """The tool client, by absolute path."""
    variables: Mapping[str, str]
    """The whole environment of every child process; nothing is added to it but adapter settings."""
    children: ChildGroups
    """Starts child processes, each in a group of its own."""
    turn_limit_seconds: float
    clock: Clock
    bootstrap: Bootstrap


class Harness(Protocol):
    """An agent program behind one seat."""

    def describe_capabilities(self) -> HarnessCapabilities:
        """What this adapter can do."""
        ...

    def prepare(self, environment: SeatEnvironment) -> None:
        """Check configuration and pinned version, write start-up files. Raises HarnessError."""
        ...

    def start_or_resume(self, recovery: Recovery) -> Start:
        """Come up; never claims that a lost session goes on. Raises HarnessError."""
        ...

    def deliver(self, delivery: Delivery) -> TurnResult:
        """Run one turn and say how it ended, within the turn limit. Raises TurnRefused.

        All events of the turn can be taken before this returns.
        """
        ...

    def events(self) -> tuple[Event, ...]:
        """Take what has happened since the last call, oldest first; never waits."""
        ...

    def quiesce(self, *, grace_seconds: float) -> bool:
        """Refuse new turns, wait for the running one, interrupt it after the grace.

        Returns whether it had to be interrupted. May be called again with a shorter grace.
        """
        ...

    def checkpoint(self) -> Checkpoint | None:
        """Where the session stands after the last completed turn; None before the first."""
        ...

    def stop(self, *, grace_seconds: float) -> None:
        """End. No grace means: kill every child process now."""
        ...
