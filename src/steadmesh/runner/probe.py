"""Probes: the runner itself shows that its seat works; the agent is not asked and nobody is contacted.

Two checks: `tool`, a platform tool called as the seat's program calls it, and `workspace`, a file
written there, read back and removed. The probe's turn is completed also when a check failed: that is
its answer. A check is `ok`, or a text that begins with `fail` and says what to look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

from steadmesh.runner.harness.contract import (
    Checkpoint,
    Delivery,
    Event,
    Harness,
    HarnessCapabilities,
    Quiescing,
    Recovery,
    SeatEnvironment,
    Start,
    Stopped,
    TurnResult,
)
from steadmesh.runner.toolclient import OK, Interrupted, Interruption, ToolClient

PROBE = "probe"
"""The origin of a probe's message."""

TOOL = "self"
TOOL_SECONDS = 20.0
"""How long the tool client may take; by itself it gives up after about 10."""
_LONGEST_TEXT = 400
"""Characters of what a failed check says."""
_OK = "ok"


class CheckFailed(Exception):
    """A check failed; the text says what is wrong."""


class Probing:
    """A harness that takes probes off the one behind it; everything else is passed on."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._environment: SeatEnvironment | None = None
        self._state = threading.Condition()
        self._running: Interruption | None = None
        self._refusal: type[Quiescing] | type[Stopped] | None = None
        self._events: list[Event] = []

    def describe_capabilities(self) -> HarnessCapabilities:
        return self._harness.describe_capabilities()

    def prepare(self, environment: SeatEnvironment) -> None:
        self._environment = environment
        self._harness.prepare(environment)

    def start_or_resume(self, recovery: Recovery) -> Start:
        return self._harness.start_or_resume(recovery)

    def deliver(self, delivery: Delivery) -> TurnResult:
        environment = self._environment
        if delivery.message.origin != PROBE or environment is None:
            return self._harness.deliver(delivery)
        interruption = Interruption(environment.children)
        with self._state:
            if self._refusal is not None:
                raise self._refusal("the seat is ending and answers no probe")
            self._running = interruption
        try:
            checks = make_checks(environment, interruption)
        except Interrupted:
            return TurnResult("interrupted", error="the probe was interrupted")
        finally:
            with self._state:
                self._running = None
                self._state.notify_all()
        data = {"checks": checks, "config_revision": environment.config_revision}
        event = Event("completion", delivery.message.message_id, data, environment.clock.now())
        with self._state:
            self._events.append(event)
        return TurnResult("completed")

    def events(self) -> tuple[Event, ...]:
        with self._state:
            own = tuple(self._events)
            self._events.clear()
        return (*self._harness.events(), *own)

    def quiesce(self, *, grace_seconds: float) -> bool:
        interrupted = self._end_probe(Quiescing, grace_seconds)
        return self._harness.quiesce(grace_seconds=grace_seconds) or interrupted

    def checkpoint(self) -> Checkpoint | None:
        return self._harness.checkpoint()

    def stop(self, *, grace_seconds: float) -> None:
        self._end_probe(Stopped, grace_seconds)
        self._harness.stop(grace_seconds=grace_seconds)

    def _end_probe(self, refusal: type[Quiescing] | type[Stopped], grace: float) -> bool:
        """Take no more probes, wait for the running one, interrupt it after the grace."""
        with self._state:
            self._refusal = refusal
            if grace > 0:
                self._state.wait_for(lambda: self._running is None, grace)
            running = self._running
        if running is None:
            return False
        running.interrupt()
        return True


def make_checks(environment: SeatEnvironment, interruption: Interruption) -> dict[str, str]:
    """Every check of a seat, by name. Raises Interrupted when told to end, not when out of time."""
    tools = ToolClient(
        environment.tools_bin,
        environment.children,
        environment=environment.variables,
        directory=environment.runner_dir,  # not the workspace: that is another check
    )
    return {
        "tool": _told(lambda: _check_tool(tools, environment.seat_key, interruption)),
        "workspace": _told(lambda: _check_workspace(environment.workspace)),
    }


def _told(check: Callable[[], None]) -> str:
    try:
        check()
    except CheckFailed as problem:
        text = " ".join(str(problem).split())
        return f"fail: {text[:_LONGEST_TEXT]}"
    return _OK


def _check_tool(tools: ToolClient, seat_key: str, interruption: Interruption) -> None:
    limit = threading.Timer(TOOL_SECONDS, interruption.interrupt, kwargs={"timed_out": True})
    limit.daemon = True
    limit.start()
    try:
        answer = tools.call(TOOL, "{}", interruption)
    except Interrupted:
        if not interruption.timed_out:
            raise
        raise CheckFailed(
            f"steadmesh-tools call {TOOL} did not answer in {TOOL_SECONDS:g} s"
        ) from None
    finally:
        limit.cancel()
    if answer.exit_code != OK:
        said = answer.message or answer.content or "without a word"
        raise CheckFailed(f"steadmesh-tools call {TOOL} ended with {answer.exit_code}: {said}")
    try:
        named = json.loads(answer.content)["seat_key"]
    except (ValueError, KeyError, TypeError):
        raise CheckFailed(f"steadmesh-tools call {TOOL} answered with no seat") from None
    if named != seat_key:
        raise CheckFailed(f"steadmesh-tools call {TOOL} acts as the seat {named}")


def _check_workspace(workspace: Path) -> None:
    """Write and read back, in a file of a name that nobody has; it is gone afterwards."""
    path = workspace / f".steadmesh-probe-{secrets.token_hex(8)}"
    written = secrets.token_hex(32)
    try:
        try:
            with open(path, "x", encoding="ascii") as file:
                file.write(written)
                file.flush()
                os.fsync(file.fileno())
            read = path.read_text(encoding="ascii")
        finally:
            with contextlib.suppress(OSError):  # what went wrong first is what counts
                path.unlink(missing_ok=True)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "another text was read back"
        raise CheckFailed(f"{workspace} cannot be written and read: {reason}") from None
    if read != written:
        raise CheckFailed(f"{workspace}: another text was read back than was written")
