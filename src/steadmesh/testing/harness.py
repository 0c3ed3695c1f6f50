"""What every harness adapter has to do, as tests that its own suite can run with pytest:

    from steadmesh.testing.harness import HarnessConformance, Scripts

    class TestMyAdapter(HarnessConformance):
        make, scripts = MyHarness, Scripts(completes="…", fails="…", lasts="…", calls_tool="…")

Each test drives a fresh harness as a runner does, with folders and a stand-in for `steadmesh-tools` of
its own. Nothing else is stood in: an adapter for a model brings its own scripted model.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

from steadmesh.runner.harness.contract import (
    Busy,
    EventKind,
    Harness,
    HarnessCapabilities,
    Quiescing,
    Recovery,
    StartMode,
    Stopped,
    TurnRefused,
    TurnResult,
)
from steadmesh.testing._seat import PLANTED, RunningTurn, Stage, check

MACHINE = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"})


@dataclass(frozen=True, slots=True)
class Scripts:
    """Message bodies with which a person makes the agent behave in a known way."""

    completes: str
    """Its turn completes, within seconds."""
    fails: str
    """Its turn fails."""
    lasts: str
    """Its turn goes on for a minute or more, unless it is ended."""
    calls_tool: str
    """In its turn a platform tool is called, whichever."""


class HarnessConformance:
    """Derive from it, in a class whose name begins with `Test`, and say `make` and `scripts`."""

    make: ClassVar[Callable[[], Harness]]
    """A harness that was not prepared yet; the class of the adapter will do."""
    scripts: ClassVar[Scripts]
    own_variables: ClassVar[frozenset[str]] = frozenset()
    """Names of the environment variables that are the adapter's own settings."""
    limit_seconds: ClassVar[float] = 20.0
    """How long anything may take that has to happen at once or within seconds."""
    settle_seconds: ClassVar[float] = 0.3
    """How long to wait for what must not happen, or has no sign of having begun."""

    # Coming up

    def test_it_describes_itself_before_it_is_prepared(self) -> None:
        said = self._new().describe_capabilities()
        check(bool(said.adapter and said.version), "adapter and version have to be named")
        check(bool(said.tool_transports), "say how the agent calls tools")
        modes = set(said.recovery_modes)
        check("fresh" in modes, "every adapter can start fresh")
        check(modes <= set(get_args(StartMode)), f"unknown recovery modes: {modes}")
        check(
            said.checkpoint_guarantees == ("application_checkpoint",),
            "application_checkpoint is the one guarantee there is",
        )
        check(not said.suspension, "no adapter suspends")

    def test_a_first_start_is_fresh_and_has_no_checkpoint(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            check(stage.start.mode == "fresh", f"started as {stage.start.mode} without a past")
            check(stage.harness.checkpoint() is None, "a checkpoint before the first turn")

    # Turns

    def test_a_turn_completes(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            result = stage.turn(self.scripts.completes)
            check(result.outcome == "completed", f"ended as {result}")
            check(result.error is None, f"completed with an error: {result.error}")
            check(bool(result.session_id), "the session has to be named")

    def test_a_turn_that_fails_says_why(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            result = stage.turn(self.scripts.fails)
            check(result.outcome == "failed", f"ended as {result}")
            check(bool(result.error), "a failure without a reason")

    def test_a_turn_over_its_limit_times_out(self, tmp_path: Path) -> None:
        with self._stage(tmp_path, turn_limit=1.0) as stage, self._lasting(stage) as turn:
            result = turn.result(self.limit_seconds)
            check(result.outcome == "timed_out", f"ended as {result}")
            check(bool(result.error), "a time-out without a reason")

    def test_another_turn_can_follow_one_that_failed(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.turn(self.scripts.fails)
            check(stage.turn(self.scripts.completes).outcome == "completed", "the next one did not")

    def test_a_turn_beside_a_running_one_is_refused_as_busy(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage, self._lasting(stage):
            self._refuses(stage, Busy)

    # Events

    def test_all_events_of_a_turn_are_there_when_it_returns(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.turn(self.scripts.completes)
            events = stage.harness.events()
            check(bool(events), "a turn without an event")
            check(events[-1].kind == "completion", f"the last event is {events[-1].kind}")
            kinds = {event.kind for event in events} - set(get_args(EventKind))
            check(not kinds, f"unknown kinds of events: {kinds}")
            threading.Event().wait(self.settle_seconds)
            check(stage.harness.events() == (), "events came after the turn had returned")

    def test_events_are_correlated_with_their_message(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.turn(self.scripts.completes, correlation_id="c-7")
            marks = {event.correlation_id for event in stage.harness.events()}
            check(marks == {"c-7"}, f"events of the message with the mark c-7 have {marks}")

    def test_asking_for_events_never_waits(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage, self._lasting(stage):
            began = time.monotonic()
            stage.harness.events()
            check(time.monotonic() - began < 1.0, "it took a second or more to take events")

    # Ending

    def test_quiesce_waits_and_interrupts_at_its_deadline(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage, self._lasting(stage) as turn:
            self._can_interrupt(stage)
            began = time.monotonic()
            was_interrupted = stage.harness.quiesce(grace_seconds=0.5)
            check(time.monotonic() - began >= 0.45, "the grace was not waited for")
            check(was_interrupted, "it says that nothing had to be interrupted")
            result = turn.result(self.limit_seconds)
            check(result.outcome == "interrupted", f"ended as {result}")

    def test_a_second_quiesce_shortens_the_grace(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage, self._lasting(stage) as turn:
            self._can_interrupt(stage)
            patient = threading.Thread(
                target=stage.harness.quiesce, kwargs={"grace_seconds": 60.0}, daemon=True
            )
            patient.start()
            threading.Event().wait(self.settle_seconds)
            check(not turn.has_ended, "it was interrupted before its time")
            stage.harness.quiesce(grace_seconds=0.0)
            check(turn.result(self.limit_seconds).outcome == "interrupted", "it went on")

    def test_a_quiescing_harness_refuses_turns_as_quiescing(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            was_interrupted = stage.harness.quiesce(grace_seconds=0.0)
            check(not was_interrupted, "it says that it interrupted a turn, and none ran")
            self._refuses(stage, Quiescing)

    def test_a_stopped_harness_refuses_turns_as_stopped(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.harness.stop(grace_seconds=0.0)
            stage.harness.stop(grace_seconds=0.0)
            self._refuses(stage, Stopped)

    def test_stopping_without_grace_ends_the_turn_and_every_process(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage, self._lasting(stage) as turn:
            stage.harness.stop(grace_seconds=0.0)
            check(turn.has_ended_within(self.limit_seconds), "the turn went on after the stop")
            left = stage.children.left()
            check(not left, f"processes are left: {left}")

    # Going on

    def test_a_checkpoint_names_the_adapter_and_where_to_go_on(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.turn(self.scripts.completes)
            point = stage.harness.checkpoint()
            if point is None:
                raise AssertionError("no checkpoint after a completed turn")
            adapter = stage.harness.describe_capabilities().adapter
            check(point.harness_adapter == adapter, f"it names the adapter {point.harness_adapter}")
            check(point.guarantee == "application_checkpoint", f"it guarantees {point.guarantee}")
            check(bool(point.format_version and point.checkpoint_ref), f"it is {point}")

    def test_the_next_start_takes_up_the_session(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            if "native_resume" not in self._capabilities(stage).recovery_modes:
                return
            first = stage.turn(self.scripts.completes)
            past = Recovery(session=stage.harness.checkpoint())
        with self._stage(tmp_path, past) as stage:
            check(stage.start.mode == "native_resume", f"started as {stage.start.mode}")
            second = stage.turn(self.scripts.completes)
            check(second.session_id == first.session_id, "it goes on in another session")
            check(not second.recovery, "nothing was lost, but it speaks of a recovery")

    def test_a_lost_session_is_never_said_to_go_on(self, tmp_path: Path) -> None:
        with self._stage(tmp_path / "before") as stage:
            first = stage.turn(self.scripts.completes)
            past = Recovery(session=stage.harness.checkpoint())
        with self._stage(tmp_path / "after", past) as stage:
            check(stage.start.mode != "native_resume", "it claims that the lost session goes on")
            check(bool(stage.start.note), "no note says that a session was lost")
            second = stage.turn(self.scripts.completes)
            check(second.session_id != first.session_id, "a new session with the lost one's name")
            check(bool(second.recovery), "the first turn does not say what was lost")

    # What its programs get

    def test_its_programs_get_an_allow_listed_environment(self, tmp_path: Path) -> None:
        allowed = MACHINE | self.own_variables
        with _planted(), self._stage(tmp_path) as stage:
            stage.turn(self.scripts.calls_tool)
            runs = [*stage.children.environments, *stage.tool_environments()]
            check(bool(stage.tool_environments()), "no tool was called")
            for environment in runs:
                strange = set(environment) - set(stage.variables) - allowed
                check(not strange, f"not on the list, but given to a program: {sorted(strange)}")
                wrong = {
                    name
                    for name, value in stage.variables.items()
                    if name.startswith("STEADMESH_") and environment.get(name) != value
                }
                check(not wrong, f"missing or changed: {sorted(wrong)}")

    def test_its_programs_run_in_process_groups_of_their_own(self, tmp_path: Path) -> None:
        with self._stage(tmp_path) as stage:
            stage.turn(self.scripts.calls_tool)
            groups = stage.tool_groups()
            check(bool(groups), "no tool was called")
            check(os.getpgrp() not in groups, "a program ran in the runner's own process group")

    # Driving

    def _new(self) -> Harness:
        return type(self).make()

    @contextmanager
    def _stage(
        self, folder: Path, past: Recovery | None = None, *, turn_limit: float = 300.0
    ) -> Iterator[Stage]:
        stage = Stage(folder, self._new(), past or Recovery(), turn_limit=turn_limit)
        try:
            yield stage
        finally:
            stage.harness.stop(grace_seconds=0.0)
            stage.children.kill_all()

    @contextmanager
    def _lasting(self, stage: Stage) -> Iterator[RunningTurn]:
        turn = RunningTurn(stage, self.scripts.lasts)
        threading.Event().wait(self.settle_seconds)
        check(not turn.has_ended, f"the turn that should last has ended: {turn.outcome}")
        yield turn

    def _refuses(self, stage: Stage, kind: type[TurnRefused]) -> None:
        outcome: TurnResult | Exception
        try:
            outcome = stage.turn(self.scripts.completes)
        except TurnRefused as refusal:
            outcome = refusal
        check(type(outcome) is kind, f"expected to be refused as {kind.__name__}: {outcome!r}")

    def _can_interrupt(self, stage: Stage) -> None:
        if self._capabilities(stage).interruption == "none":
            import pytest

            pytest.skip("the adapter says that it cannot interrupt")

    def _capabilities(self, stage: Stage) -> HarnessCapabilities:
        return stage.harness.describe_capabilities()


@contextmanager
def _planted() -> Iterator[None]:
    """A secret in our own environment, as a provider's key would be."""
    os.environ[PLANTED] = "secret"
    try:
        yield
    finally:
        del os.environ[PLANTED]
