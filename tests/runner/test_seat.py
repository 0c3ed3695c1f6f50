"""A seat runner against a strict stand-in for the service."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadmesh.runner.harness import Delivery, TurnResult
from steadmesh.runner.harness.fake import FakeHarness
from tests.runner.platform_double import TOKEN, PlatformDouble, instruction
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
    yield running
    if not running.exit_codes:
        running.runner.ask_to_stop()
        running.runner.ask_to_stop()
        running.exit_code()


class Refuser(FakeHarness):
    """Ends every turn as interrupted, though nobody asked."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        return TurnResult("interrupted")


class Crasher(FakeHarness):
    """Has a fault."""

    def deliver(self, delivery: Delivery) -> TurnResult:
        raise ZeroDivisionError("secret detail")


# Start and stop


def test_a_seat_comes_up_and_goes_down_in_order(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start()
    platform.until(lambda: platform.states, "the first report")
    assert platform.states == [{"generation": 1, "state": "Warm", "adopted_revision": "rev-1"}]
    assert seat.run_folder.generation_file.read_text() == "1"
    assert seat.run_folder.is_ready()
    assert seat.stop() == 0
    assert platform.state_names() == ["Warm", "Quiescing", "Stopped"]
    assert platform.released == 1


def test_stopping_does_not_wait_for_the_long_poll(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start(poll_wait=25.0)
    platform.until(lambda: platform.states, "the seat is up")
    seat.runner.ask_to_stop()
    assert seat.exit_code(limit=5.0) == 0


def test_a_lease_held_elsewhere_is_waited_for(seat: RunningSeat, platform: PlatformDouble) -> None:
    platform.held_elsewhere = True
    seat.start()
    platform.held_elsewhere = False
    platform.until(lambda: "Warm" in platform.state_names(), "the seat is up")


def test_a_lease_not_obtained_in_time_is_exit_2(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.held_elsewhere = True
    seat.start(acquire_timeout=0.1)
    assert seat.exit_code() == 2
    assert platform.states == []


def test_a_stop_while_waiting_for_the_lease_is_a_clean_stop(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.held_elsewhere = True
    seat.start()
    assert seat.stop() == 0


def test_a_stop_while_waiting_for_the_bootstrap_gives_the_lease_back(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.bootstrap_is_away = True
    seat.start()
    platform.until(lambda: platform.turned_away, "the bootstrap was asked for")
    seat.runner.ask_to_stop()
    assert seat.exit_code(limit=5.0) == 0
    assert platform.state_names() == ["Stopped"]
    assert platform.released == 1


def test_a_refused_token_is_exit_1(seat: RunningSeat, platform: PlatformDouble) -> None:
    platform.tokens = set()
    seat.start()
    assert seat.exit_code() == 1


def test_a_start_failure_says_why_and_gives_the_lease_back(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.instructions = [{**instruction("a"), "text": "b"}]
    seat.start()
    assert seat.exit_code() == 1
    (said,) = platform.states
    assert said["state"] == "Stopped"
    assert "digest" in said["detail"]
    assert "steadmesh bundle FILE" in said["detail"]
    assert platform.released == 1
    assert not seat.run_folder.is_ready()


def test_a_missing_tool_client_is_a_start_failure(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.tools.path.unlink()
    seat.start()
    assert seat.exit_code() == 1
    assert "STEADMESH_TOOLS_BIN" in platform.states[0]["detail"]


def test_the_manifest_lies_in_order_and_read_only(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.instructions = [instruction("Second.", "role", 2), instruction("First.", "team:a", 1)]
    seat.start()
    platform.until(lambda: platform.states, "the seat is up")
    folder = seat.folder / "manifest"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [entry["scope"] for entry in manifest["instructions"]] == ["team:a", "role"]
    assert (folder / "instructions.md").read_text() == (
        "# Instructions: team:a\n\nFirst.\n\n# Instructions: role\n\nSecond.\n\n"
    )
    for path in (folder, *folder.iterdir()):
        assert not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH | 0o077)


# Turns


def test_a_message_becomes_a_turn(seat: RunningSeat, platform: PlatformDouble) -> None:
    message = platform.send("hello")
    seat.start()
    platform.until(lambda: platform.acks and platform.checkpoints, "the turn is closed")
    assert platform.acks == [{"delivery_id": 1, "execution_id": "e-1", "outcome": "completed"}]
    assert seat.tools.calls() == [
        ("messages.reply", {"message_id": message["message_id"], "body": "ack: hello"})
    ]
    platform.until(lambda: platform.state_names()[-1] == "Warm", "the seat is warm again")
    assert platform.state_names() == ["Warm", "Executing", "Warm"]
    assert platform.checkpoints[0]["format_version"] == "fake-session/1"
    assert {event["execution_id"] for event in platform.events} == {"e-1"}
    assert [event["kind"] for event in platform.events][-1] == "completion"


def test_a_tool_sees_the_seats_files_and_no_secret(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("/tool self")
    seat.start()
    platform.until(lambda: platform.acks, "the turn is closed")
    environment = seat.tools.records()[0]["environment"]
    assert "SECRET_KEY" not in environment
    assert TOKEN not in environment.values()
    assert environment["STEADMESH_TOKEN_FILE"] == str(seat.run_folder.token_file)
    assert environment["STEADMESH_GENERATION_FILE"] == str(seat.run_folder.generation_file)
    assert environment["STEADMESH_EXECUTION_FILE"] == str(seat.run_folder.execution_file)
    assert environment["HOME"] == str(seat.folder / "home")


def test_the_execution_is_named_during_a_turn_only(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("/sleep 60s")
    seat.start(quiesce_limit=0.0)
    file = seat.run_folder.execution_file
    until(lambda: file.exists() and file.read_text() == "e-1", "the execution is named")
    assert seat.stop() == 0
    assert file.read_text() == ""


def test_one_turn_at_a_time_and_in_order(seat: RunningSeat, platform: PlatformDouble) -> None:
    for number in range(3):
        platform.send(f"/file write {number} x")
    seat.start()
    platform.until(lambda: len(platform.acks) == 3, "three turns")
    assert [ack["delivery_id"] for ack in platform.acks] == [1, 2, 3]


def test_a_failed_turn_is_acknowledged_as_failed(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("/fail no luck")
    seat.start()
    platform.until(lambda: platform.acks, "the turn is closed")
    assert platform.acks[0]["outcome"] == "failed"
    assert platform.acks[0]["error"] == "scripted failure: no luck"


def test_a_turn_over_its_limit_is_acknowledged_as_failed(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("/sleep 60s")
    seat.start(turn_limit=0.05)
    platform.until(lambda: platform.acks, "the turn is closed")
    assert platform.acks[0]["outcome"] == "failed"
    assert "out of time" in platform.acks[0]["error"]


def test_a_fault_of_the_harness_fails_the_turn_and_names_no_detail(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("hello")
    seat.start(Crasher())
    platform.until(lambda: platform.acks, "the turn is closed")
    assert platform.acks[0]["error"] == "the harness failed: ZeroDivisionError"


def test_a_delivery_that_is_gone_does_not_stop_the_seat(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.refuse_acks = True
    platform.send("/claim a")
    seat.start()
    platform.until(lambda: platform.state_names()[1:] == ["Executing", "Warm"], "the turn ended")
    platform.refuse_acks = False
    platform.send("/claim b")
    platform.until(lambda: platform.acks, "the next turn is closed")


def test_a_harness_that_interrupts_itself_is_started_anew(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("hello")
    seat.start(Refuser())
    assert seat.exit_code() == 1
    assert platform.acks == []
    assert platform.states[-1]["state"] == "Stopped"
    assert "interrupted" in platform.states[-1]["detail"]


def test_s66_an_acknowledgement_outlives_a_restart_of_the_service(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    """S-66: the service is away when the turn ends; the delivery is closed once, not run again."""
    platform.send("/sleep 100ms")
    seat.start()
    platform.until(lambda: "Executing" in platform.state_names(), "the turn has begun")
    with platform.changed:
        platform.unavailable = True
    platform.until(lambda: "/v1/inbox/1/ack" in platform.turned_away, "an ack in vain")
    with platform.changed:
        platform.unavailable = False
    platform.until(lambda: platform.acks, "the turn is closed")
    assert [ack["delivery_id"] for ack in platform.acks] == [1]


# Ending a turn from outside


def test_a_turn_may_finish_after_the_stop(seat: RunningSeat, platform: PlatformDouble) -> None:
    platform.send("/sleep 100ms")
    seat.start()
    platform.until(lambda: "Executing" in platform.state_names(), "the turn has begun")
    assert seat.stop() == 0
    assert [ack["outcome"] for ack in platform.acks] == ["completed"]
    assert platform.state_names()[-3:] == ["Quiescing", "Quiescing", "Stopped"]


def test_s61_a_turn_that_outlasts_the_quiesce_limit_is_interrupted_and_not_acknowledged(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    """S-61: stop during a long sleep with a short quiesce limit."""
    platform.send("/sleep 60s")
    seat.start(quiesce_limit=0.1)
    platform.until(lambda: "Executing" in platform.state_names(), "the turn has begun")
    assert seat.stop() == 0
    assert platform.acks == []
    assert platform.released == 1


def test_a_second_stop_interrupts_at_once(seat: RunningSeat, platform: PlatformDouble) -> None:
    platform.send("/sleep 60s")
    seat.start(quiesce_limit=240.0)
    platform.until(lambda: "Executing" in platform.state_names(), "the turn has begun")
    seat.runner.ask_to_stop()
    platform.until(lambda: "Quiescing" in platform.state_names(), "the first stop is heard")
    assert seat.stop() == 0
    assert platform.acks == []


# Lease


def test_the_lease_is_renewed_and_names_the_running_execution(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.send("/sleep 60s")
    seat.start(renew_interval=0.02, quiesce_limit=0.0)
    platform.until(
        lambda: {"generation": 1, "execution_id": "e-1", "header": "e-1"} in platform.renewals,
        "a renewal that names the execution",
    )


def test_s63_a_fenced_runner_kills_the_running_tool_and_acknowledges_nothing(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    """S-63: the renewal is fenced in the middle of a tool call."""
    seat.tools.answer("slow", "", hang=True)
    platform.send("/tool slow\n/file write after.md x")
    seat.start(renew_interval=0.02)
    until(seat.tools.hanging.exists, "the tool call is running")
    platform.fence()
    assert seat.exit_code() == 3
    assert platform.acks == []
    assert platform.released == 0
    assert not (seat.workspace / "after.md").exists()


def test_a_runner_of_a_retired_seat_kills_its_harness_at_once(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    """Its token opens nothing any more: nobody waits for the end of the turn, or of the lease."""
    seat.tools.answer("slow", "", hang=True)
    platform.send("/tool slow\n/file write after.md x")
    seat.start(renew_interval=0.02)
    until(seat.tools.hanging.exists, "the tool call is running")
    with platform.changed:
        platform.retired = True
    assert seat.exit_code(limit=5.0) == 3
    assert not (seat.workspace / "after.md").exists()


def test_a_fenced_poll_ends_the_runner(seat: RunningSeat, platform: PlatformDouble) -> None:
    seat.start()
    platform.until(lambda: platform.states, "the seat is up")
    platform.fence()
    assert seat.exit_code() == 3


def test_a_lease_that_cannot_be_renewed_for_its_whole_life_is_lost(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    platform.ttl = 0.3
    platform.send("/sleep 60s")
    seat.start()
    platform.until(lambda: "Executing" in platform.state_names(), "the turn has begun")
    with platform.changed:
        platform.unavailable = True
    assert seat.exit_code() == 3


def test_the_token_is_read_again_for_every_request(
    seat: RunningSeat, platform: PlatformDouble
) -> None:
    seat.start(renew_interval=0.02)
    platform.until(lambda: platform.states, "the seat is up")
    with platform.changed:
        platform.tokens = {"sms_rotated"}
        seat.run_folder.write_token("sms_rotated")
        platform.send("/claim x")
    platform.until(lambda: platform.acks, "a turn under the new token")
