"""The fake harness passes what every adapter must, and an adapter with a defect is found out."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steadmesh.runner.harness import (
    Checkpoint,
    Delivery,
    Event,
    HarnessCapabilities,
    Quiescing,
    Recovery,
    SeatEnvironment,
    Start,
    Stopped,
    TurnRefused,
    TurnResult,
)
from steadmesh.runner.harness.fake import FakeHarness
from steadmesh.testing.harness import HarnessConformance, Scripts

SCRIPTS = Scripts(completes="hello", fails="/fail x", lasts="/sleep 60s", calls_tool="/tool self")


class TestTheFakeHarness(HarnessConformance):
    make, scripts = FakeHarness, SCRIPTS


# Defects: each a fake harness with one thing wrong.


class Undescribed(FakeHarness):
    def describe_capabilities(self) -> HarnessCapabilities:
        return replace(super().describe_capabilities(), version="")


class BornOld(FakeHarness):
    def start_or_resume(self, recovery: Recovery) -> Start:
        super().start_or_resume(recovery)
        return Start("native_resume")


class Nameless(FakeHarness):
    def deliver(self, delivery: Delivery) -> TurnResult:
        return replace(super().deliver(delivery), session_id=None)


class Silent(FakeHarness):
    def deliver(self, delivery: Delivery) -> TurnResult:
        return replace(super().deliver(delivery), error=None)


class Unlimited(FakeHarness):
    def prepare(self, environment: SeatEnvironment) -> None:
        super().prepare(replace(environment, turn_limit_seconds=300.0))


class OnceOnly(FakeHarness):
    turns = 0

    def deliver(self, delivery: Delivery) -> TurnResult:
        self.turns += 1
        return super().deliver(delivery) if self.turns == 1 else TurnResult("failed", error="no")


class Vague(FakeHarness):
    """All its refusals are the same."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        try:
            return super().deliver(delivery)
        except TurnRefused as refusal:
            raise TurnRefused(str(refusal)) from None


class Late(FakeHarness):
    """What it has to say of a turn comes after the turn."""

    def events(self) -> tuple[Event, ...]:
        taken = super().events()
        if len(taken) > 1:
            self._events.append(taken[-1])
        return taken


class Unmarked(FakeHarness):
    def events(self) -> tuple[Event, ...]:
        return tuple(replace(event, correlation_id=None) for event in super().events())


class Blocking(FakeHarness):
    def events(self) -> tuple[Event, ...]:
        time.sleep(1.1)
        return super().events()


class Hasty(FakeHarness):
    def quiesce(self, *, grace_seconds: float) -> bool:
        return super().quiesce(grace_seconds=0.0)


class Stubborn(FakeHarness):
    """The first grace counts, whatever comes later."""

    graced = False

    def quiesce(self, *, grace_seconds: float) -> bool:
        if self.graced:
            return True
        self.graced = True
        return super().quiesce(grace_seconds=grace_seconds)


class Eager(FakeHarness):
    """Takes turns whatever was said."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        try:
            return super().deliver(delivery)
        except (Quiescing, Stopped):
            return TurnResult("completed", session_id="s")


class Undead(FakeHarness):
    """A child of its own survives the stop."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        environment = self._prepared()
        environment.children.start(
            ["/bin/sleep", "30"], environment=environment.variables, directory=environment.home
        )
        return super().deliver(delivery)

    def stop(self, *, grace_seconds: float) -> None:
        with self._state:
            self._stopped = True
            running = self._interruption
        if running is not None:
            running.interrupt()


class Foreign(FakeHarness):
    def checkpoint(self) -> Checkpoint | None:
        point = super().checkpoint()
        return None if point is None else replace(point, harness_adapter="codex")


class Forgetful(FakeHarness):
    def start_or_resume(self, recovery: Recovery) -> Start:
        (self._prepared().home / ".fake-session").unlink(missing_ok=True)
        return super().start_or_resume(recovery)


class Pretender(FakeHarness):
    """Says that a session goes on that is lost."""

    def start_or_resume(self, recovery: Recovery) -> Start:
        start = super().start_or_resume(recovery)
        return Start("native_resume") if recovery.session else start


class _Tools(FakeHarness):
    """Runs the tool client past the children it was given."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        environment = self._prepared()
        subprocess.run([environment.tools_bin, "call", "self", "-"], input=b"{}", **self.how())
        return super().deliver(delivery)

    def how(self) -> Mapping[str, Any]:
        raise NotImplementedError


class Leaky(_Tools):
    def how(self) -> Mapping[str, Any]:
        return {"env": {**os.environ, **self._prepared().variables}, "process_group": 0}


class Grouped(_Tools):
    def how(self) -> Mapping[str, Any]:
        return {"env": self._prepared().variables}


DEFECTS: Mapping[str, type[FakeHarness]] = {
    "test_it_describes_itself_before_it_is_prepared": Undescribed,
    "test_a_first_start_is_fresh_and_has_no_checkpoint": BornOld,
    "test_a_turn_completes": Nameless,
    "test_a_turn_that_fails_says_why": Silent,
    "test_a_turn_over_its_limit_times_out": Unlimited,
    "test_another_turn_can_follow_one_that_failed": OnceOnly,
    "test_a_turn_beside_a_running_one_is_refused_as_busy": Vague,
    "test_all_events_of_a_turn_are_there_when_it_returns": Late,
    "test_events_are_correlated_with_their_message": Unmarked,
    "test_asking_for_events_never_waits": Blocking,
    "test_quiesce_waits_and_interrupts_at_its_deadline": Hasty,
    "test_a_second_quiesce_shortens_the_grace": Stubborn,
    "test_a_quiescing_harness_refuses_turns_as_quiescing": Eager,
    "test_a_stopped_harness_refuses_turns_as_stopped": Eager,
    "test_stopping_without_grace_ends_the_turn_and_every_process": Undead,
    "test_a_checkpoint_names_the_adapter_and_where_to_go_on": Foreign,
    "test_the_next_start_takes_up_the_session": Forgetful,
    "test_a_lost_session_is_never_said_to_go_on": Pretender,
    "test_its_programs_get_an_allow_listed_environment": Leaky,
    "test_its_programs_run_in_process_groups_of_their_own": Grouped,
}


def test_there_is_a_defect_for_every_check() -> None:
    checks = {name for name in vars(HarnessConformance) if name.startswith("test_")}
    assert set(DEFECTS) == checks


@pytest.mark.parametrize(("name", "defect"), DEFECTS.items(), ids=lambda value: str(value)[:60])
def test_an_adapter_with_a_defect_fails_the_check(
    name: str, defect: type[FakeHarness], tmp_path: Path
) -> None:
    class Broken(HarnessConformance):
        make, scripts, limit_seconds = defect, SCRIPTS, 1.5

    method = getattr(Broken(), name)
    given = {"tmp_path": tmp_path} if inspect.signature(method).parameters else {}
    with pytest.raises(AssertionError) as failure:
        method(**given)
    assert str(failure.value)


def test_a_third_project_needs_three_lines(tmp_path: Path) -> None:
    """And an adapter of which every turn goes wrong is told so in words."""
    (tmp_path / "test_mine.py").write_text(
        textwrap.dedent("""
            from steadmesh.runner.harness.fake import FakeHarness
            from steadmesh.testing.harness import HarnessConformance, Scripts

            class TestMine(HarnessConformance):
                make = FakeHarness
                scripts = Scripts(completes="/fail", fails="/fail", lasts="/sleep 1m", calls_tool="/fail")
        """)
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(
        [*words, "-k", "completes or describes or fails_says"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert "1 failed, 2 passed" in said.stdout, said.stdout
    assert "AssertionError: ended as TurnResult(outcome='failed'" in said.stdout
