"""The fake harness: an agent without a model, for tests, demonstrations and first steps.

It does what the text of a message says, in a small script language (docs/harnesses.md), and
answers everything else with an echo. It is as good a citizen as any other harness: tools are
called by running the real tool client, sessions survive restarts, work handed to other seats is
reported back.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from steadmesh.kernel.clock import rfc3339
from steadmesh.runner.harness.contract import (
    Busy,
    Checkpoint,
    Delivery,
    Event,
    EventKind,
    HarnessCapabilities,
    HarnessError,
    Outcome,
    Quiescing,
    Recovery,
    SeatEnvironment,
    Start,
    Stopped,
    TurnResult,
)
from steadmesh.runner.harness.fake._state import (
    Delegations,
    Session,
    load_session,
    save_session,
)
from steadmesh.runner.harness.fake._turn import Seat, Turn, TurnFailed
from steadmesh.runner.toolclient import Interrupted, Interruption, ToolClient

ADAPTER = "fake"
VERSION = "1"
FORMAT = "fake-session/1"

_LOST_SESSION = (
    "The earlier session could not be found and was not continued; "
    "this is a new one, going on from the handoff."
)


class FakeHarness:
    """Runs scripts out of messages; see `steadmesh.runner.harness.contract.Harness`."""

    def __init__(self, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._new_id = new_id
        self._state = threading.Condition()
        self._environment: SeatEnvironment | None = None
        self._session: Session | None = None
        self._recovery_note: str | None = None
        self._interruption: Interruption | None = None
        self._quiescing = False
        self._stopped = False
        self._events: list[Event] = []

    def describe_capabilities(self) -> HarnessCapabilities:
        return HarnessCapabilities(
            adapter=ADAPTER,
            version=VERSION,
            tool_transports=("cli",),
            interruption="cooperative",
            recovery_modes=("fresh", "native_resume", "portable_handoff"),
        )

    def prepare(self, environment: SeatEnvironment) -> None:
        for folder in (environment.workspace, environment.home, environment.runner_dir):
            if not folder.is_dir():
                raise HarnessError(f"{folder} is not a folder; the supervisor should have made it")
        self._environment = environment

    def start_or_resume(self, recovery: Recovery) -> Start:
        environment = self._prepared()
        found = load_session(environment.home / ".fake-session")
        if found is not None:
            self._session = found
            return Start("native_resume")
        self._session = Session(self._new_id(), config_revision=environment.config_revision)
        if recovery.session is None:
            return Start("fresh")
        self._recovery_note = _LOST_SESSION
        return Start("portable_handoff", _LOST_SESSION)

    def deliver(self, delivery: Delivery) -> TurnResult:
        environment = self._prepared()
        interruption = Interruption(environment.children)
        self._begin(interruption)
        limit = threading.Timer(
            environment.turn_limit_seconds, interruption.interrupt, kwargs={"timed_out": True}
        )
        limit.daemon = True
        limit.start()
        try:
            return self._run(environment, delivery, interruption)
        finally:
            limit.cancel()
            with self._state:
                self._interruption = None
                self._state.notify_all()

    def events(self) -> tuple[Event, ...]:
        with self._state:
            taken = tuple(self._events)
            self._events.clear()
            return taken

    def quiesce(self, *, grace_seconds: float) -> bool:
        with self._state:
            self._quiescing = True
            self._state.wait_for(lambda: self._interruption is None, grace_seconds)
            running = self._interruption
            if running is None:
                return False
            running.interrupt()
            self._state.wait_for(lambda: self._interruption is not running)
            return True

    def checkpoint(self) -> Checkpoint | None:
        session = self._session
        if session is None or session.turns == 0:
            return None
        return Checkpoint(ADAPTER, FORMAT, f"{session.session_id}:turns={session.turns}")

    def stop(self, *, grace_seconds: float) -> None:
        with self._state:
            self._stopped = True
            if grace_seconds > 0:
                self._state.wait_for(lambda: self._interruption is None, grace_seconds)
            running = self._interruption
        if running is not None:
            running.interrupt()
        if self._environment is not None:
            self._environment.children.kill_all()

    def _prepared(self) -> SeatEnvironment:
        if self._environment is None:
            raise HarnessError("the fake harness was not prepared")
        return self._environment

    def _begin(self, interruption: Interruption) -> None:
        with self._state:
            if self._stopped:
                raise Stopped("the harness has stopped")
            if self._quiescing:
                raise Quiescing("the harness is finishing and takes no new turn")
            if self._interruption is not None:
                raise Busy("the harness is in a turn")
            self._interruption = interruption

    def _run(
        self, environment: SeatEnvironment, delivery: Delivery, interruption: Interruption
    ) -> TurnResult:
        message = delivery.message
        correlation = message.correlation_id or message.message_id

        def emit(kind: EventKind, data: Mapping[str, Any]) -> None:
            event = Event(kind, correlation, data, environment.clock.now())
            with self._state:
                self._events.append(event)

        turn = Turn(self._seat(environment), delivery, interruption=interruption, emit=emit)
        outcome: Outcome = "completed"
        error: str | None = None
        try:
            turn.run()
        except TurnFailed as failure:
            outcome, error = "failed", str(failure)
        except Interrupted:
            outcome = "timed_out" if interruption.timed_out else "interrupted"
            error = f"the turn was {'out of time' if interruption.timed_out else 'interrupted'}"
        note = self._recovery_note
        if outcome == "completed":
            self._recovery_note = None
            self._count(environment, message.message_id)
        if error is not None:
            emit("error", {"text": error})
        claim = None if turn.claim is None else {"kind": turn.claim.kind, "text": turn.claim.text}
        emit("completion", {"outcome": outcome, "claim": claim, "recovery": note})
        return TurnResult(
            outcome,
            error=error,
            session_id=None if self._session is None else self._session.session_id,
            output="\n".join(turn.outputs),
            claim=turn.claim,
            recovery=note,
        )

    def _seat(self, environment: SeatEnvironment) -> Seat:
        bindings = environment.bootstrap.identity.get("channel_bindings") or ()
        return Seat(
            key=environment.seat_key,
            bindings=tuple(str(binding) for binding in bindings),
            workspace=environment.workspace,
            tools=ToolClient(
                environment.tools_bin,
                environment.children,
                environment=environment.variables,
                directory=environment.workspace,
            ),
            delegations=Delegations(environment.runner_dir / "fake-state.json"),
        )

    def _count(self, environment: SeatEnvironment, message_id: str) -> None:
        if self._session is None:
            return
        counted = self._session.after(message_id, now=rfc3339(environment.clock.now()))
        self._session = counted
        save_session(environment.home / ".fake-session", counted)
