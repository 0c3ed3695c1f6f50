"""Several supervisors of one organisation: one decides, the others stand by."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steadmesh.kernel.clock import SECOND
from steadmesh.runner import claim
from steadmesh.seats.identity import supervision
from tests.runner.supervisor_process import SupervisorProcess
from tests.runner.town import Town, alive, eventually_gone, live
from tests.runner.waiting import until


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with live(tmp_path) as running:
        yield running
        for key in running.seats:  # of supervisors that were killed
            for run in running.runs(key):
                pid = int((run / "process").read_text().split()[0])
                os.kill(pid, 9)


def who_decides(town: Town) -> Any:
    path = f"/internal/v1/organizations/{town.organisation_id()}/status"
    return town.service.request("GET", path, local=True).json().get("supervisor")


def answered(town: Town, text: str) -> None:
    """A message through a seat."""
    alice = town.person("alice")
    alice.say(f"/reply {text}")
    alice.hears(text)


def test_a_second_supervisor_stands_by_and_takes_over_at_a_clean_end(town: Town) -> None:
    with SupervisorProcess(town) as first, SupervisorProcess(town) as second:
        until(lambda: who_decides(town), "one of them decides")
        one, other = (first, second) if who_decides(town)["pid"] == first.pid else (second, first)
        said = other.says("standing by")
        assert f"another supervisor ({socket.gethostname()}, pid {one.pid})" in said
        answered(town, "one")
        assert one.end() == 0
        began = time.monotonic()
        other.says("is gone; this supervisor takes over")
        assert time.monotonic() - began < supervision.TTL / SECOND / 2  # not waited for
        assert who_decides(town)["pid"] == other.pid
        answered(town, "two")
        assert other.end() == 0
    assert who_decides(town) is None


def test_a_killed_supervisor_is_replaced_at_once_and_its_seats_go_on(town: Town) -> None:
    with SupervisorProcess(town) as first:
        answered(town, "one")
        pid = town.runner_pid("rep_a")
        with SupervisorProcess(town) as second:
            second.says("standing by")
            first.kill()
            began = time.monotonic()
            second.says("rep_a found running")
            assert time.monotonic() - began < supervision.TTL / SECOND / 2
            answered(town, "two")
            assert town.runner_pid("rep_a") == pid
            assert second.end() == 0
    assert not alive(pid)


def test_a_paused_supervisor_loses_its_claim_and_its_seats_but_no_seat_its_life(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "TTL", 2 * SECOND)
    with SupervisorProcess(town) as first:
        answered(town, "one")
        pid = town.runner_pid("rep_a")
        with SupervisorProcess(town) as second:
            second.says("standing by")
            first.pause()
            second.says("rep_a found running")
            first.resume()
            first.says(f"pid {second.pid}")
            answered(town, "two")
            assert first.end() == 0
            assert alive(pid)
            assert town.runner_pid("rep_a") == pid
            assert not [line for line in second.lines() if "rep_a started" in line]
            assert second.end() == 0
    assert not alive(pid)


def test_a_supervisor_that_comes_back_takes_up_the_seats_it_once_made(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "TTL", 2 * SECOND)
    with SupervisorProcess(town) as first:
        answered(town, "one")
        pid = town.runner_pid("rep_a")
        with SupervisorProcess(town) as second:
            second.says("standing by")
            first.pause()
            second.says("takes over")
            first.resume()
            first.says("standing by")
            second.kill()
            first.says("rep_a found running")
        # Its own child by birth, whose end it still has to notice.
        os.kill(pid, 9)
        answered(town, "two")
        assert town.runner_pid("rep_a") != pid
        assert first.end() == 0


def test_a_supervisor_elsewhere_that_takes_over_gets_the_seats_after_their_turns(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes cannot be found from there: they end in order, so that it can start its own."""
    monkeypatch.setattr(claim, "RENEWAL", 0.1)
    path = f"/internal/v1/organizations/{town.organisation_id()}/supervision"
    with town.supervised():
        alice = town.person("alice")
        alice.say("/sleep 1s\n/reply finished")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        elsewhere = {"instance": "far", "host": "far", "pid": 1, "machine": "its own"}
        holder = claim_holder(town)
        taken = town.service.request("POST", path, {**elsewhere, "replaces": holder}, local=True)
        assert taken.status == 200
        until(lambda: any("(far, pid 1)" in line for line in town.told), "it stands by")
        alice.hears("finished")
        eventually_gone(pid)
        town.state_until("rep_a", {"lease_live": False, "pending_deliveries": 0})
        alice.say("/reply still")
        town.state_until("rep_a", {"pending_deliveries": 1})
        assert town.service.request("DELETE", f"{path}/far", local=True).status == 204
        alice.hears("still")


def claim_holder(town: Town) -> str:
    """The instance that decides, from what a second one is told."""
    path = f"/internal/v1/organizations/{town.organisation_id()}/supervision"
    body = {"instance": "asks", "host": "here", "pid": 1}
    refused = town.service.request("POST", path, body, local=True)
    assert refused.error == (409, "conflict")
    return str(refused.json()["details"]["instance"])


def test_supervisors_with_folders_of_their_own_leave_each_others_seats_alone(
    town: Town, tmp_path: Path
) -> None:
    with SupervisorProcess(town) as first:
        answered(town, "one")
        pid = town.runner_pid("rep_a")
        with SupervisorProcess(town, data=tmp_path / "other") as second:
            second.says("standing by")
            first.kill()
            second.says("takes over")
            town.person("alice").say("/sleep 100ms")
            answered(town, "two")  # by the process that still holds the lease
            assert alive(pid)
            assert not (tmp_path / "other/seats/f" / town.seats["rep_a"]).exists()
            assert second.end() == 0
