"""Probes: the runner shows that its seat works, without its agent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadmesh.runner import probe
from steadmesh.runner.harness import Delivery, Quiescing, Stopped, TurnResult
from steadmesh.runner.harness.fake import FakeHarness
from tests.runner.fake_seat import FakeSeat, message
from tests.runner.platform_double import PlatformDouble
from tests.runner.running_seat import RunningSeat
from tests.runner.waiting import until


@pytest.fixture
def platform() -> Iterator[PlatformDouble]:
    double = PlatformDouble()
    yield double
    double.close()
    assert double.problems == []


@pytest.fixture
def seat(tmp_path: Path, platform: PlatformDouble) -> Iterator[RunningSeat]:
    running = RunningSeat(tmp_path, platform)
    running.tools.answer("self", {"seat_key": "builder"})
    yield running
    if not running.exit_codes:
        running.runner.ask_to_stop()
        running.runner.ask_to_stop()
        running.exit_code()


class Deaf(FakeHarness):
    """Says if it is given anything to do."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        raise AssertionError("the agent was asked")


def probed(seat: RunningSeat, platform: PlatformDouble) -> dict[str, str]:
    """Send a probe; its checks, once it is acknowledged."""
    before = len(platform.acks)
    platform.send("/fail never run", origin="probe")
    platform.until(lambda: len(platform.acks) > before, "the probe is acknowledged")
    assert platform.acks[-1]["outcome"] == "completed"
    event = platform.events[-1]
    assert event["kind"] == "completion"
    assert event["execution_id"] == platform.acks[-1]["execution_id"]
    assert event["data"]["config_revision"] == "rev-1"
    checks: dict[str, str] = event["data"]["checks"]
    return checks


def test_a_probe_calls_a_tool_tries_the_workspace_and_leaves_the_agent_alone(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start(Deaf())
    assert probed(seat, platform) == {"tool": "ok", "workspace": "ok"}
    assert [name for name, _ in seat.tools.calls()] == ["self"]
    assert list(seat.workspace.iterdir()) == []
    until(lambda: platform.state_names()[-1] == "Warm", "the seat is warm again")


def test_what_comes_after_a_probe_is_the_agents(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start()
    probed(seat, platform)
    platform.send("hello")
    platform.until(lambda: len(platform.acks) == 2, "the message is acknowledged")
    assert [name for name, _ in seat.tools.calls()] == ["self", "messages.reply"]


def test_a_tool_that_fails_is_said_with_its_words(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.tools.answer("self", "", exit_code=3, err="no answer from the platform")
    seat.start()
    found = probed(seat, platform)
    said = "fail: steadmesh-tools call self ended with 3: no answer from the platform"
    assert found == {"tool": said, "workspace": "ok"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("nothing", "fail: steadmesh-tools call self answered with no seat"),
        ({"seat_key": "lead"}, "fail: steadmesh-tools call self acts as the seat lead"),
    ],
)
def test_a_tool_that_answers_for_nobody_or_another_seat_is_not_ok(
    seat: RunningSeat, platform: PlatformDouble, answer: object, said: str
) -> None:
    seat.tools.answer("self", answer)
    seat.start()
    assert probed(seat, platform)["tool"] == said


def test_a_tool_client_that_is_gone_is_not_ok(seat: RunningSeat, platform: PlatformDouble) -> None:
    seat.start()
    platform.until(lambda: platform.states, "the seat is up")
    seat.tools.path.unlink()
    assert "ended with 127" in probed(seat, platform)["tool"]


def test_a_tool_client_that_hangs_is_not_waited_for(
    seat: RunningSeat, platform: PlatformDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TOOL_SECONDS", 0.3)
    seat.tools.answer("self", hang=True)
    seat.start()
    found = probed(seat, platform)
    assert found["tool"] == "fail: steadmesh-tools call self did not answer in 0.3 s"
    assert found["workspace"] == "ok"


def test_a_workspace_that_is_a_file_is_not_ok_and_the_tool_still_is(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start()
    platform.until(lambda: platform.states, "the seat is up")
    shutil.rmtree(seat.workspace)
    seat.workspace.write_text("in its place")
    said = f"fail: {seat.workspace} cannot be written and read: Not a directory"
    assert probed(seat, platform) == {"tool": "ok", "workspace": said}


def test_a_stop_lets_a_probe_end(seat: RunningSeat, platform: PlatformDouble) -> None:
    seat.tools.answer("self", hang=True)
    seat.start()
    platform.send("", origin="probe")
    until(seat.tools.hanging.exists, "the tool client runs")
    seat.runner.ask_to_stop()
    platform.until(lambda: "Quiescing" in platform.state_names(), "it quiesces")
    assert platform.acks == []
    seat.runner.ask_to_stop()  # and a second one interrupts it
    assert seat.exit_code() == 0
    assert platform.acks == []


@pytest.mark.parametrize(("end", "refusal"), [("quiesce", Quiescing), ("stop", Stopped)])
def test_a_seat_that_is_ending_takes_no_probe_up(
    tmp_path: Path, end: str, refusal: type[Exception]
) -> None:
    probing = probe.Probing(FakeHarness())
    probing.prepare(FakeSeat(tmp_path).environment())
    getattr(probing, end)(grace_seconds=0)
    asked = Delivery(1, "e-1", attempt=1, message=message("", origin="probe"))
    with pytest.raises(refusal):
        probing.deliver(asked)
