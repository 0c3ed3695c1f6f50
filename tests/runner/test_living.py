"""Seats that really run: service, supervisor, runner processes and tool client, nothing stood in."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steadmesh.runner import keeper
from steadmesh.runner.settings import find_tools
from steadmesh.runner.supervisor import supervise
from tests.runner.supervisor_process import SupervisorProcess
from tests.runner.town import ShiftedClock, Town, alive, eventually_gone, live
from tests.runner.waiting import until


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with live(tmp_path) as running:
        yield running


def hanging_tools(town: Town) -> Path:
    """A tool client that says its pid in `child` and hangs."""
    program = town.folder / "tools"
    program.write_text(f"#!/bin/sh\necho $$ > {town.folder}/child.new\n")
    with program.open("a") as file:
        file.write(f"mv {town.folder}/child.new {town.folder}/child\nexec sleep 60\n")
    program.chmod(0o755)
    return program


def late_call(town: Town, run: Path) -> int:
    """The exit code of a tool call with the token and the generation of an earlier start."""
    environment = {
        "PATH": os.environ["PATH"],
        "STEADMESH_PLATFORM_URL": f"unix:{town.service.socket}",
        "STEADMESH_TOKEN_FILE": str(run / "token"),
        "STEADMESH_GENERATION_FILE": str(run / "generation"),
    }
    words = [find_tools({}), "call", "handoff.update", "-"]
    body = '{"objective": "late"}'
    return subprocess.run(words, input=body, text=True, env=environment, check=False).returncode


def bootstrap(town: Town, key: str) -> dict[str, Any]:
    """What a seat's harness would be told now."""
    path = f"/internal/v1/seats/{town.seats[key]}/tokens"
    issued = town.service.request("POST", path, {"instance": "look"}, local=True).json()
    headers = {"Authorization": f"Bearer {issued['token']}"}
    answer: dict[str, Any] = town.service.request("GET", "/v1/bootstrap", headers=headers).json()
    return answer


def test_s57_a_message_to_a_stopped_seat_is_answered_without_anybodys_help(town: Town) -> None:
    """S-57, S-97: started, answered; the echo is 200 bytes."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("x" * 300)
        assert alice.hears("ack: ") == "ack: " + "x" * 200
        pid = town.runner_pid("rep_a")
        assert town.told == ["rep_a started"]
    assert not alive(pid)
    assert town.runs("rep_a") == []
    town.state_until("rep_a", {"state": "Stopped", "lease_live": False, "pending_deliveries": 0})


def test_s59_a_runner_killed_in_a_turn_is_replaced_and_the_message_tried_again(town: Town) -> None:
    """S-59: same seat id, workspace intact, generation advanced, message tried again."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("/file write kept.md here\n/file read again.md\n/sleep 3s\n/report")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        generation = town.seat("rep_a")["lease_generation"]
        (town.workspace("rep_a") / "again.md").write_text("second time")
        (run,) = town.runs("rep_a")
        kept = shutil.copytree(run, town.folder / "kept")
        os.kill(pid, signal.SIGKILL)
        assert "again.md: second time" in alice.hears("wrote kept.md (4 bytes)")
        after = town.seat("rep_a")
        assert after["seat_id"] == town.seats["rep_a"]
        assert after["lease_generation"] >= generation + 2  # fenced, then acquired
        assert late_call(town, kept) == 4
        assert (town.workspace("rep_a") / "kept.md").read_text() == "here"
        assert [line for line in alice.lines if line.startswith("wrote")] == [alice.lines[-1]]


def test_s59_a_tool_call_that_outlives_its_runner_is_ended_before_the_next_start(
    town: Town,
) -> None:
    """S-59: a process that still exists is never bypassed."""
    environment = {
        "STEADMESH_TOOLS_BIN": str(hanging_tools(town)),
        "STEADMESH_RUNNER_QUIESCE_LIMIT": "0s",
    }
    child = town.folder / "child"
    with town.supervised(runner_environment=environment):
        town.person("alice").say("/tool self")
        until(child.exists, "the tool call is running", limit=20)
        first, pid = int(child.read_text()), town.runner_pid("rep_a")
        child.unlink()
        os.kill(pid, signal.SIGKILL)
        until(child.exists, "the message is tried again", limit=20)
        assert not alive(first)
        assert town.runner_pid("rep_a") != pid


def test_s60_an_idle_seat_is_stopped_and_wakes_again_with_its_session(town: Town) -> None:
    """S-60: workspace and session survive; the next message wakes it."""
    alice = town.person("alice")
    with town.supervised(idle_timeout_seconds=0.3):
        alice.say("/file write a.md x\n/reply one")
        alice.hears("one")
        pid = town.runner_pid("rep_a")
        eventually_gone(pid)
        town.state_until("rep_a", {"state": "Stopped"})
        checkpoint = town.seat("rep_a")["latest_checkpoint"]
        assert checkpoint is not None
        alice.say("/file read a.md\n/report")
        alice.hears("file a.md: x")
        town.state_until("rep_a", {"state": "Stopped"})
    session = (town.workspace("rep_a").parent / "home/.fake-session").read_text()
    assert '"turns": 2' in session
    assert any("idle for 0.3 s" in line for line in town.told)


def test_s61_a_turn_that_outlasts_the_quiesce_limit_is_redelivered(town: Town) -> None:
    """S-61: SIGTERM during a long sleep: interrupted, redelivered, no attempt counted."""
    alice = town.person("alice")
    limits = {"STEADMESH_RUNNER_QUIESCE_LIMIT": "100ms"}
    with town.supervised(runner_environment=limits):
        alice.say("/file read go.md\n/sleep 60s")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        os.kill(pid, signal.SIGTERM)
        eventually_gone(pid)
        town.state_until("rep_a", {"state": "Executing", "dead_deliveries": 0})
        assert town.runner_pid("rep_a") != pid


def test_s62_a_configuration_change_waits_for_the_turn(town: Town) -> None:
    """S-62: the turn finishes, then the runner restarts on the new revision."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("/sleep 1s\n/reply done with it")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        town.document["seats"]["rep_a"]["display_name"] = "Representative"
        town.apply()
        alice.hears("done with it")
        eventually_gone(pid)
        alice.say("/reply again")
        alice.hears("again")
        row = town.seat("rep_a")
        town.state_until("rep_a", {"adopted_revision": row["config_revision"]})


def test_s63_a_fenced_runner_stops_writing_and_acknowledges_nothing(town: Town) -> None:
    """S-63: its tool client exits 4, its delivery is not acked but tried again by the next."""
    alice = town.person("alice")
    with town.supervised():
        alice.say('/sleep 1s\n/tool handoff.update {"objective": "x"}\n/file write w x\n/report')
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        (run,) = town.runs("rep_a")
        kept = shutil.copytree(run, town.folder / "kept")
        town.fence("rep_a")
        eventually_gone(pid)
        assert late_call(town, kept) == 4
        assert not (town.workspace("rep_a") / "w").exists()
        assert '"event": "lease lost"' in town.runner_log("rep_a")
        assert alice.hears("slept 1s") == (
            'slept 1s\ntool handoff.update: {"saved":true}\nwrote w (1 bytes)'
        )
        town.state_until("rep_a", {"pending_deliveries": 0})


def test_s64_a_seat_with_an_adapter_that_is_not_here_is_blocked(town: Town) -> None:
    """S-64: blocked with the reason; its bootstrap has the handoff and says what is lost."""
    alice = town.person("alice")
    with town.supervised():
        alice.say('/tool handoff.update {"objective": "carry on"}\n/reply saved')
        alice.hears("saved")
        town.state_until("rep_a", {"state": "Warm"})
        town.document["harness_profiles"]["other"] = {
            "adapter": "codex",
            "image_digest": "local",
            "model": {"connection": "models", "id": "m"},
        }
        town.document["connections"]["models"] = {"adapter": "openai", "secret_ref": "env:X"}
        town.document["seats"]["rep_a"]["harness_profile"] = "other"
        town.apply()
        blocked = {
            "state": "Blocked",
            "state_detail": "adapter codex is not available in this version",
        }
        town.state_until("rep_a", blocked)
        alice.say("hello?")
        town.state_until("rep_a", {**blocked, "pending_deliveries": 1})
        assert town.runs("rep_a") == []
    recovery = bootstrap(town, "rep_a")["recovery"]
    assert recovery["handoff"]["objective"] == "carry on"
    assert "fake" in recovery["note"]
    assert "codex" in recovery["note"]


def test_a_seat_whose_sandbox_is_not_enforced_here_is_blocked_until_that_is_accepted(
    town: Town,
) -> None:
    alice = town.person("alice")
    with town.supervised(unenforced=()):
        alice.say("hello")
        town.state_until("rep_a", {"state": "Blocked"})
        detail = town.seat("rep_a")["state_detail"]
        assert 'unenforced = ["network_policy", "non_root"]' in detail
        assert town.runs("rep_a") == []
    with town.supervised():
        assert alice.hears("ack: ") == "ack: hello"


def test_s66_seats_go_on_when_the_service_is_restarted(town: Town) -> None:
    """S-66: queued messages are answered, seats keep their ids and even their processes."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("/reply before")
        alice.hears("before")
        pid = town.runner_pid("rep_a")
        seat_id = town.seat("rep_a")["seat_id"]
        town.restart_service()
        alice = town.person("alice")
        alice.say("/reply after")
        alice.hears("after")
        assert town.runner_pid("rep_a") == pid
        assert town.seat("rep_a")["seat_id"] == seat_id


def test_s66_seats_go_on_while_the_supervisor_is_replaced(town: Town) -> None:
    """S-66: a supervisor that was killed finds its seats again; they keep their processes."""
    alice = town.person("alice")
    first = SupervisorProcess(town)
    alice.say("hello")
    alice.hears("ack: hello")
    pid = town.runner_pid("rep_a")
    first.kill()
    assert alive(pid)
    alice.say("/reply still here")
    alice.hears("still here")
    with town.supervised():
        alice.say("/reply and again")
        alice.hears("and again")
        assert town.runner_pid("rep_a") == pid
        until(lambda: "rep_a found running" in town.told, "it is found")
        assert "rep_a started" not in town.told
    assert not alive(pid)


def test_a_seat_that_died_without_a_supervisor_is_fenced_and_started_by_the_next(
    town: Town,
) -> None:
    alice = town.person("alice")
    first = SupervisorProcess(town)
    alice.say("/sleep 60s")
    pid = town.runner_pid("rep_a")
    town.state_until("rep_a", {"state": "Executing"})
    first.kill()
    os.kill(pid, signal.SIGKILL)
    limits = {"STEADMESH_RUNNER_QUIESCE_LIMIT": "0s"}
    with town.supervised(runner_environment=limits):
        town.state_until("rep_a", {"state": "Executing", "lease_generation": 3})


def test_s67_a_suspended_seat_keeps_its_mail_and_answers_once_it_is_resumed(town: Town) -> None:
    """S-67: messages queue, nothing starts; resumed: answered. What runs ends in order."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("/sleep 1s\n/reply before")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        town.change("UPDATE seats SET suspended = 1 WHERE id = :seat", "rep_a")
        alice.hears("before")
        eventually_gone(pid)
        alice.say("/reply after")
        bob = town.person("bob")
        bob.say("hello")
        bob.hears("ack: hello")  # by now the supervisor has seen both
        waiting = {"state": "Blocked", "pending_deliveries": 1, "lease_live": False}
        town.state_until("rep_a", waiting)
        assert town.runs("rep_a") == []
        town.change("UPDATE seats SET suspended = 0 WHERE id = :seat", "rep_a")
        alice.hears("after")


def test_a_retired_seats_process_ends_in_the_middle_of_its_turn_and_its_workspace_stays(
    town: Town,
) -> None:
    alice = town.person("alice")
    with town.supervised():
        alice.say("/file write kept.md x\n/sleep 60s")
        pid = town.runner_pid("rep_a")
        town.state_until("rep_a", {"state": "Executing"})
        until((town.workspace("rep_a") / "kept.md").exists, "the file is written")
        fence = (
            "UPDATE leases SET generation = generation + 1, instance = NULL WHERE seat_id = :seat"
        )
        town.change(fence, "rep_a")
        town.change("UPDATE seats SET retired_at = 1 WHERE id = :seat", "rep_a")
        eventually_gone(pid)
        until(lambda: town.runs("rep_a") == [], "its run folder is cleared away")
        assert "rep_a is no more" in town.told
        assert (town.workspace("rep_a") / "kept.md").read_text() == "x"


def test_an_organisation_that_is_deleted_ends_its_seats_and_its_supervisor(town: Town) -> None:
    alice = town.person("alice")
    told: list[str] = []
    codes: list[int] = []
    settings = town.settings()
    stop = threading.Event()
    running = threading.Thread(
        target=lambda: codes.append(supervise(settings, stop=stop, tell=told.append)), daemon=True
    )
    running.start()
    alice.say("/sleep 60s")
    pid = town.runner_pid("rep_a")
    town.state_until("rep_a", {"state": "Executing"})
    database = town.service.service.database
    database.write_blocking(lambda tx: tx.run("UPDATE organisations SET deleted_at = 1"))
    running.join(30)
    assert codes == [1]
    assert any("There is no organisation with this id" in line for line in told)
    assert not alive(pid)
    assert town.runs("rep_a") == []


def test_who_holds_the_lease_of_a_seat_with_mail_is_said_and_taken_back(town: Town) -> None:
    hand = town.by_hand("rep_a")
    with town.supervised():
        town.person("alice").say("hello")
        held = "lease held by instance test"
        town.state_until("rep_a", {"state_detail": held, "pending_deliveries": 1})
        assert town.told == [f"rep_a is left alone: {held}"]
        body = {"generation": hand.generation}
        town.service.request("POST", "/v1/lease/release", body, headers=hand.headers)
        town.state_until("rep_a", {"state": "Warm", "pending_deliveries": 0})
        assert "state_detail" not in town.seat("rep_a")


def test_a_seat_started_by_hand_is_left_alone(town: Town) -> None:
    alice = town.person("alice")
    hand = town.by_hand("rep_a")
    with town.supervised():
        alice.say("hello")
        bob = town.person("bob")
        bob.say("hello")
        bob.hears("ack: hello")  # by now the supervisor has seen both
        assert town.runs("rep_a") == []
        body = {"generation": hand.generation}
        town.service.request("POST", "/v1/lease/release", body, headers=hand.headers)
        alice.hears("ack: hello")


def test_an_unknown_organisation_is_said_and_ends_the_supervisor(town: Town) -> None:
    told: list[str] = []
    settings = replace(town.settings(), organization_id="no-such-id")
    assert supervise(settings, stop=threading.Event(), tell=told.append) == 1
    assert "steadmesh status" in told[0]


def test_a_start_that_fails_says_why_and_backs_off(town: Town) -> None:
    alice = town.person("alice")
    with town.supervised(runner_environment={"STEADMESH_TOOLS_BIN": "/nowhere/tools"}):
        alice.say("hello")
        until(lambda: any("tried again at " in line for line in town.told), "a back-off")

        def detail() -> str:
            return str(town.seat("rep_a").get("state_detail"))

        until(lambda: "tried again at " in detail(), "when it is tried again")
        assert "start failed: the tool client /nowhere/tools is not a program" in detail()
        assert re.search(r"; tried again at \d\d:\d\d:\d\d \S+$", detail())
        assert town.seat("rep_a")["state"] == "Stopped"


def test_a_machine_that_cannot_make_the_seats_folders_blocks_it_and_says_when_it_tries_again(
    town: Town,
) -> None:
    seats = town.data / "seats/f"
    seats.mkdir(parents=True)
    (seats / town.seats["rep_a"]).write_text("in the way")
    with town.supervised():
        town.person("alice").say("hello")
        town.state_until("rep_a", {"state": "Blocked", "pending_deliveries": 1})
        detail = town.seat("rep_a")["state_detail"]
        assert re.fullmatch(r"/.*: Not a directory; tried again at \d\d:\d\d:\d\d \S+", detail)


def test_a_token_is_replaced_under_a_running_seat(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_TOKEN_ROTATION", 0.2)
    alice = town.person("alice")
    with town.supervised():
        alice.say("/reply one")
        alice.hears("one")
        (run,) = town.runs("rep_a")
        first = (run / "token").read_text()
        until(lambda: (run / "token").read_text() != first, "another token")
        alice.say("/reply two")
        alice.hears("two")
        assert town.told == ["rep_a started"]


def test_the_memory_limit_of_the_file_holds_for_the_seats_processes(town: Town) -> None:
    town.document["execution_profiles"]["normal"]["memory_limit"] = "1Gi"
    town.apply()
    with town.supervised():
        town.person("alice").say("/claim x")
        pid = town.runner_pid("rep_a")
        if hasattr(resource, "prlimit"):  # elsewhere nothing is promised
            assert resource.prlimit(pid, resource.RLIMIT_DATA) == (2**30, 2**30)
            assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)


# Turns


def test_s58_a_failing_message_is_retried_and_holds_nobody_else_up(town: Town) -> None:
    """S-58, S-56: tried again after a second; another conversation goes through meanwhile."""
    alice, bob = town.person("alice"), town.person("bob")
    with town.supervised():
        alice.say("/delegate lead /fail no luck")
        town.state_until("lead", {"state": "Warm", "pending_deliveries": 1})
        bob.say("/delegate lead hello")
        bob.hears("Update from lead: ack: hello")
        attempts = "turn begins"
        until(lambda: town.runner_log("lead").count(attempts) >= 3, "a second attempt")
        assert town.seat("lead")["pending_deliveries"] == 1


def test_s58_a_message_that_always_fails_becomes_a_dead_letter(tmp_path: Path) -> None:
    """S-58: after 1, 8, 64, 300 s, in real turns; later messages go through."""
    clock = ShiftedClock()
    with live(tmp_path, clock=clock) as town, town.supervised():
        alice = town.person("alice")
        alice.say("/fail no luck")
        for attempt, delay in enumerate((1, 8, 64, 300), start=1):
            town.runner_says("rep_a", f'"attempt": {attempt}, "outcome": "failed"')
            town.state_until("rep_a", {"state": "Warm", "dead_deliveries": 0})
            clock.advance(delay)
        town.state_until("rep_a", {"dead_deliveries": 1, "pending_deliveries": 0})
        alice.say("hello")
        alice.hears("ack: hello")


def test_s98_a_mixed_script(town: Town) -> None:
    """S-98: prose, files, confinement, sleep, claim, an unknown command; the turn completes."""
    alice = town.person("alice")
    with town.supervised():
        alice.say(
            "Good morning.\n/file write notes/a.md hello\n  /file read notes/a.md\nprose\n"
            "/file write ../../etc/passwd x\n/sleep 10ms\n/claim done\n/dance\n/report"
        )
        assert alice.hears("wrote notes/a.md").split("\n") == [
            "wrote notes/a.md (5 bytes)",
            "file notes/a.md: hello",
            "wrote ../../etc/passwd (1 bytes)",
            "slept 10ms",
            "claimed: done",
            "error: unknown command /dance",
        ]
        assert (town.workspace("rep_a") / "etc/passwd").read_text() == "x"


def test_s99_a_delegation_comes_back_once_even_across_a_restart(town: Town) -> None:
    """S-99: the person gets `Update from lead` once, though her representative was restarted."""
    alice = town.person("alice")
    with town.supervised(idle_timeout_seconds=0.2):
        alice.say("/delegate lead /task\n/sleep 2s\n/tool clock.now")
        pid = town.runner_pid("rep_a")
        eventually_gone(pid)
        update = alice.hears("Update from lead: ")
        assert update.startswith(
            "Update from lead: task result from lead:\nslept 2s\ntool clock.now"
        )
        alice.say("/reply that is all")
        alice.hears("that is all")
    assert len([line for line in alice.lines if line.startswith("Update")]) == 1


def test_s100_a_nested_task_comes_back_hop_by_hop(town: Town) -> None:
    """S-100: no interim reply; each hop says from whom it has it."""
    alice = town.person("alice")
    with town.supervised():
        alice.say("/delegate lead /task\n/delegate engineer /task\n/claim built")
        assert alice.hears("Update from") == (
            "Update from lead: Update from engineer: task result from engineer:\nclaimed: built"
        )
        assert len(alice.lines) == 1


def test_s101_seats_do_not_answer_each_others_answers(town: Town) -> None:
    """S-101: one message, one acknowledgement, and quiet."""
    alice = town.person("alice")
    with town.supervised():
        alice.say('/tool messages.send {"to": "lead", "body": "hi"}\n/reply sent')
        alice.hears("sent")
        town.state_until("lead", {"state": "Warm", "pending_deliveries": 0})
        town.state_until("rep_a", {"state": "Warm", "pending_deliveries": 0})
        alice.say("/tool messages.history {}\n/report")
        alice.hears("tool messages.history")
    assert town.told.count("lead started") == 1
