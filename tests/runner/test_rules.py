"""What the supervisor decides, as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from steadmesh.runner._rules import (
    Action,
    Local,
    Policy,
    back_off,
    blocked_reason,
    decide,
    has_failed,
)
from steadmesh.runner.view import SeatView, read_view

SEAT = SeatView(
    seat_id="s-1",
    key="builder",
    config_revision="rev-1",
    harness="fake",
    idle_policy="warm_then_stop",
    idle_timeout_seconds=900.0,
)
RUNNING = Local(phase="running", instance="i-1", config_revision="rev-1", uptime_seconds=5_000.0)
ENDED = replace(RUNNING, phase="ended")


def step(local: Local, *, blocked: str | None = None, **seat: Any) -> Action:
    return decide(replace(SEAT, **seat), local, Policy(), blocked=blocked)


def kind(local: Local, *, blocked: str | None = None, **seat: Any) -> str:
    return step(local, blocked=blocked, **seat).kind


# Wake


def test_a_stopped_seat_without_mail_stays_stopped() -> None:
    assert kind(Local()) == "wait"


def test_waiting_mail_starts_a_stopped_seat() -> None:
    assert kind(Local(), pending_deliveries=1) == "start"


def test_a_warm_seat_is_started_without_mail() -> None:
    assert kind(Local(), idle_policy="warm") == "start"


def test_a_live_lease_of_somebody_else_is_not_bypassed_and_that_is_said_once() -> None:
    held: dict[str, Any] = {"lease_live": True, "lease_holder": "manual"}
    said = Action("explain", "lease held by instance manual")
    assert kind(Local(), **held) == "wait"  # no mail: nobody asks why nothing happens
    assert step(Local(), pending_deliveries=1, **held) == said
    assert kind(Local(), pending_deliveries=1, state_detail=said.reason, **held) == "wait"
    assert kind(Local(), pending_deliveries=1, state="Executing", **held) == "wait"


def test_what_was_said_of_a_lease_is_taken_back_when_it_has_ended() -> None:
    detail = "lease held by instance manual"
    assert step(Local(), state_detail=detail) == Action("report", "", "Stopped")
    assert kind(Local(), state_detail=detail, pending_deliveries=1) == "start"


def test_a_retiring_seat_is_woken_by_mail_alone() -> None:
    retiring: dict[str, Any] = {"retiring": True, "state": "Retiring", "idle_policy": "warm"}
    assert kind(Local(), **retiring) == "wait"
    assert kind(Local(), pending_deliveries=1, **retiring) == "start"


def test_a_retiring_seat_that_is_blocked_is_said_to_be_so_once() -> None:
    retiring: dict[str, Any] = {"retiring": True, "state": "Retiring"}
    assert step(Local(), blocked="why", **retiring) == Action("report", "why", "Blocked")
    assert kind(Local(), blocked="why", state_detail="why", **retiring) == "wait"


def test_a_lease_of_somebody_else_that_has_expired_does_not_matter() -> None:
    assert kind(Local(), pending_deliveries=1, lease_holder="manual") == "start"


def test_s67_a_suspended_seat_is_stopped_and_not_woken() -> None:
    """S-67: messages queue, nothing starts."""
    assert kind(Local(), pending_deliveries=1, suspended=True) == "wait"
    assert step(RUNNING, suspended=True) == Action("stop", "suspended")


def test_a_failed_start_is_not_repeated_before_its_time() -> None:
    assert kind(Local(back_off_seconds=1.0), pending_deliveries=1) == "wait"


# Stop


@pytest.mark.parametrize(
    ("quiet", "uptime", "age", "action"),
    [
        (900.0, 5_000.0, 0.0, "stop"),
        (899.0, 5_000.0, 0.0, "wait"),
        (800.0, 5_000.0, 100.0, "stop"),  # nothing was heard since, which is no activity either
        (5_000.0, 10.0, 0.0, "wait"),  # quiet for long, but just started
        (None, 900.0, 0.0, "stop"),
    ],
)
def test_an_idle_seat_is_stopped_when_its_time_has_passed(
    quiet: float | None, uptime: float, age: float, action: str
) -> None:
    local = replace(RUNNING, uptime_seconds=uptime, view_age_seconds=age)
    assert kind(local, state="Warm", quiet_seconds=quiet) == action


@pytest.mark.parametrize(
    "seat",
    [{"state": "Executing"}, {"state": "Warm", "pending_deliveries": 1}, {"idle_policy": "warm"}],
)
def test_a_busy_or_warm_seat_is_never_idle(seat: dict[str, Any]) -> None:
    assert kind(RUNNING, **{"state": "Warm", "quiet_seconds": 5_000.0, **seat}) == "wait"


def test_the_supervisors_own_idle_timeout_beats_the_files() -> None:
    seat = replace(SEAT, state="Warm", quiet_seconds=61.0)
    assert decide(seat, RUNNING, Policy(idle_timeout_seconds=60.0), blocked=None).kind == "stop"


def test_s62_a_new_configuration_revision_replaces_the_runner() -> None:
    """S-62: the stop waits for the turn, which is the runner's part."""
    assert step(RUNNING, config_revision="rev-2", state="Executing") == Action(
        "stop", "new configuration revision rev-2"
    )


def test_a_start_that_does_not_stop_is_killed_in_the_end() -> None:
    assert kind(replace(RUNNING, phase="stopping", stopping_seconds=299.0)) == "wait"
    assert kind(replace(RUNNING, phase="stopping", stopping_seconds=301.0)) == "kill"


# Crash


def test_what_is_left_of_a_start_is_ended_first() -> None:
    assert kind(replace(ENDED, has_leftovers=True), lease_holder="i-1", lease_live=True) == "kill"


def test_a_start_that_is_gone_with_its_lease_is_fenced() -> None:
    assert kind(ENDED, lease_holder="i-1", lease_live=True) == "fence"
    assert kind(ENDED, lease_holder="i-1") == "fence"


def test_a_start_that_gave_its_lease_back_is_cleared_away() -> None:
    assert kind(ENDED, pending_deliveries=1) == "clear"
    assert kind(ENDED, lease_holder="i-2", lease_live=True) == "clear"


# Blocked


def test_a_blocked_seat_is_stopped_and_said_to_be_so_once() -> None:
    assert kind(RUNNING, blocked="why") == "stop"
    assert step(Local(), blocked="why") == Action("report", "why", "Blocked")
    assert kind(Local(), blocked="why", state="Blocked", state_detail="why") == "wait"


def test_a_seat_that_is_blocked_no_more_is_said_to_be_stopped() -> None:
    assert step(Local(), state="Blocked", state_detail="why") == Action("report", "", "Stopped")


def test_a_machine_that_cannot_start_a_seat_blocks_it_until_the_next_try() -> None:
    local = Local(back_off_seconds=20.0, problem="the disk is full")
    assert step(local, pending_deliveries=1) == Action("report", "the disk is full", "Blocked")
    later = replace(local, back_off_seconds=0.0)
    assert kind(later, pending_deliveries=1, state="Blocked") == "start"


def test_what_is_not_enforced_is_named_with_the_line_that_accepts_it() -> None:
    seat = replace(SEAT, sandbox_required=("network_policy", "non_root", "resource_limits"))
    reason = blocked_reason(seat, Policy(unenforced=("non_root",)), unavailable=None)
    assert reason is not None
    assert "cannot enforce network_policy for" in reason
    assert '[supervisor] unenforced = ["network_policy", "non_root"]' in reason
    accepted = Policy(unenforced=("non_root", "network_policy"))
    assert blocked_reason(seat, accepted, unavailable=None) is None


def test_an_adapter_that_is_not_here_blocks() -> None:
    assert blocked_reason(SEAT, Policy(), unavailable="not here") == "not here"


# Back-off


def test_the_back_off_doubles_up_to_five_minutes() -> None:
    assert [back_off(n) for n in (0, 1, 2, 3, 8, 9, 500)] == [0, 2, 4, 8, 256, 300, 300]


@pytest.mark.parametrize(
    ("exit_code", "was_ready", "life", "failed"),
    [
        (0, False, 1.0, False),
        (3, True, 1.0, False),
        (1, False, 100.0, True),
        (2, False, 180.0, True),
        (-9, True, 60.0, False),  # killed in its work: replaced at once
        (-9, True, 1.0, True),  # but not in a tight loop
        (None, True, 1.0, False),
        (None, False, 1.0, True),
    ],
)
def test_which_ends_count_as_failed_starts(
    exit_code: int | None, was_ready: bool, life: float, failed: bool
) -> None:
    assert has_failed(exit_code, was_ready=was_ready, life_seconds=life) is failed


# View


def test_a_view_is_read_with_the_services_own_clock() -> None:
    row = {
        "seat_id": "s-1",
        "config_revision": "rev-1",
        "harness_adapter": "fake",
        "execution": {"idle_policy": "warm", "idle_timeout_seconds": 60},
        "pending_deliveries": 2,
        "lease_generation": 4,
        "lease_live": True,
        "state": "Warm",
        "last_activity": "2026-10-08T01:55:00.5Z",
        "something_new": 1,
    }
    document = {
        "organization_id": "o-1",
        "key": "f",
        "cursor": "c",
        "now": "2026-10-08T01:55:10Z",
        "seats": {"builder": row},
    }
    view = read_view(document, asked_at=1.0, seen_at=2.0)
    assert view.seats["s-1"].quiet_seconds == 9.5
    assert view.seats["s-1"].key == "builder"
