"""The fake agent's turns: which rule applies, what each command does, what is kept."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from steadmesh.runner.harness import (
    Busy,
    Checkpoint,
    Quiescing,
    Recovery,
    Stopped,
    TurnResult,
)
from tests.runner.fake_seat import FakeSeat, from_seat, message
from tests.runner.waiting import until


@pytest.fixture
def seat(tmp_path: Path) -> FakeSeat:
    return FakeSeat(tmp_path)


def in_thread(work: Callable[[], TurnResult]) -> tuple[threading.Thread, list[TurnResult]]:
    results: list[TurnResult] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    return thread, results


# Rules


def test_s97_a_long_text_is_answered_with_its_first_200_bytes(seat: FakeSeat) -> None:
    """S-97: 300-character text gets `ack: ` and the first 200."""
    trigger = message("x" * 300)
    seat.turn(trigger)
    assert seat.replies() == [{"message_id": trigger.message_id, "body": "ack: " + "x" * 200}]


def test_s101_an_answer_that_belongs_to_no_delegation_is_not_answered(seat: FakeSeat) -> None:
    """S-101: seat reply without delegation gets no ack."""
    assert seat.said(from_seat("lead", "thanks", parent_id="m-0")) == [
        "received reply; no response needed"
    ]
    assert seat.said(from_seat("lead", "ack: hello")) == ["received reply; no response needed"]
    assert seat.tools.calls() == []


def test_a_first_message_of_a_seat_is_acknowledged(seat: FakeSeat) -> None:
    seat.turn(from_seat("lead", "hello"))
    assert [reply["body"] for reply in seat.replies()] == ["ack: hello"]


def test_a_task_reports_its_outputs_to_the_sender(seat: FakeSeat) -> None:
    seat.tools.answer("clock.now", {"now": "noon"})
    trigger = from_seat("lead", "/task look at the clock\n/tool clock.now\n/claim done")
    seat.turn(trigger)
    assert seat.replies() == [
        {
            "message_id": trigger.message_id,
            "body": 'task result from builder:\ntool clock.now: {"now":"noon"}\nclaimed: done',
        }
    ]


def test_a_task_may_start_on_its_own_line_and_say_nothing(seat: FakeSeat) -> None:
    seat.turn(from_seat("lead", "/task\nplease"))
    assert [reply["body"] for reply in seat.replies()] == [
        "task result from builder:\ntask done (no output)"
    ]


def test_a_failed_task_sends_no_result(seat: FakeSeat) -> None:
    result = seat.turn(from_seat("lead", "/task\n/claim half\n/fail no luck\n/claim whole"))
    assert (result.outcome, result.error) == ("failed", "scripted failure: no luck")
    assert result.output == "claimed: half"
    assert seat.replies() == []


def test_a_person_cannot_give_a_task_by_that_word(seat: FakeSeat) -> None:
    assert seat.said(message("/task\n/claim x")) == ["error: unknown command /task", "claimed: x"]


def test_a_platform_notice_is_noted_and_never_executed(seat: FakeSeat) -> None:
    notice = message("not delivered\n/fail\n/tool self", origin="system")
    assert seat.said(notice) == ["platform notice: not delivered"]
    assert seat.tools.calls() == []


def test_a_retirement_notice_saves_a_handoff(seat: FakeSeat) -> None:
    seat.tools.answer("handoff.update", {"saved": True})
    said = seat.said(message("Retirement notice: finish up\n/tool self", origin="system"))
    assert said == ['handoff saved for retirement: {"saved":true}']
    (call,) = seat.tools.calls()
    assert call[0] == "handoff.update"
    assert "builder" in call[1]["objective"]
    assert "builder" in call[1]["notes"]


def test_queued_messages_come_first_and_are_cut_to_500_bytes(seat: FakeSeat) -> None:
    said = seat.said(
        message("/claim x"),
        from_seat("lead", "y" * 600),
        message("late news", origin="system"),
    )
    assert said == [
        "queued message from lead: " + "y" * 500,
        "queued message from system: late news",
        "claimed: x",
    ]


def test_a_scheduled_run_without_commands_logs_the_rejected_reply(seat: FakeSeat) -> None:
    seat.tools.answer("messages.reply", {"error": "invalid"}, exit_code=1)
    assert seat.said(message("water the plants", origin="schedule")) == [
        'error: messages.reply rejected: {"error":"invalid"}'
    ]


# Commands


def test_s98_a_mixed_script(seat: FakeSeat) -> None:
    """S-98: prose, files, confinement, sleep, claim, an unknown command; the turn completes."""
    result = seat.turn(
        message(
            "Good morning!\n"
            "/file write notes/a.md hello there\n"
            "/file read notes/a.md\n"
            "and some prose\n"
            "/file write ../../etc/passwd mine\n"
            "/sleep 10ms\n"
            "/claim all done\n"
            "/dance\n"
        )
    )
    assert result.outcome == "completed"
    assert result.output.split("\n") == [
        "wrote notes/a.md (11 bytes)",
        "file notes/a.md: hello there",
        "wrote ../../etc/passwd (4 bytes)",
        "slept 10ms",
        "claimed: all done",
        "error: unknown command /dance",
    ]
    assert result.claim is not None
    assert (result.claim.kind, result.claim.text) == ("task_done", "all done")
    assert (seat.workspace / "etc/passwd").read_text() == "mine"
    assert "mine" not in Path("/etc/passwd").read_text()


def test_a_tool_gets_its_arguments_on_standard_input_and_nothing_else(seat: FakeSeat) -> None:
    seat.said(message('/tool memory.write {"text": "a b"}\n/tool self'))
    records = seat.tools.records()
    assert [record["argv"] for record in records] == [
        ["call", "memory.write", "-"],
        ["call", "self", "-"],
    ]
    assert [record["arguments"] for record in records] == ['{"text": "a b"}', "{}"]


def test_a_tool_runs_with_the_given_environment_only(
    seat: FakeSeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    seat.said(message("/tool self"))
    names = set(seat.tools.records()[0]["environment"]) - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert names == {"PATH", "HOME"}


def test_a_tool_error_is_an_output_and_the_script_goes_on(seat: FakeSeat) -> None:
    seat.tools.answer("memory.read", {"error": "not_found"}, exit_code=1)
    assert seat.said(message("/tool memory.read\n/claim x")) == [
        'tool memory.read error: {"error":"not_found"}',
        "claimed: x",
    ]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("/tool", "error: /tool needs the name of a tool"),
        ("/tool self {oops", "error: tool self failed (exit 2): the arguments are not JSON"),
        ("/tool down", "error: tool down failed (exit 3): no answer"),
        ("/file read missing.md", "error: /file read: No such file or directory"),
        ("/file read .", "error: /file read: Is a directory"),
        (
            "/file burn x",
            "error: /file is used as: /file write <path> <text>, or /file read <path>",
        ),
        (
            "/delegate lead",
            "error: /delegate is used as: /delegate <seat> <text>, the text over many lines",
        ),
    ],
)
def test_a_mistake_is_a_line_and_no_failure(seat: FakeSeat, script: str, line: str) -> None:
    seat.tools.answer("down", "", exit_code=3, err="no answer")
    assert seat.said(message(script)) == [line]


def test_a_bad_sleep_is_an_error_line(seat: FakeSeat) -> None:
    (line,) = seat.said(message("/sleep -1s"))
    assert line.startswith("error: /sleep -1s: a duration is")


def test_reading_a_named_pipe_does_not_hang(seat: FakeSeat) -> None:
    os.mkfifo(seat.workspace / "pipe")
    assert seat.said(message("/file read pipe")) == ["error: /file read: not a regular file"]


def test_reply_answers_the_message_and_shows_the_result(seat: FakeSeat) -> None:
    seat.tools.answer("messages.reply", {"message_id": "r-1"})
    trigger = message("/reply  all is well")
    assert seat.said(trigger) == ['replied: {"message_id":"r-1"}']
    assert seat.replies() == [{"message_id": trigger.message_id, "body": "all is well"}]


def test_report_answers_with_all_outputs_so_far(seat: FakeSeat) -> None:
    seat.turn(message("/report\n/claim a\n/claim b\n/report"))
    bodies = [reply["body"] for reply in seat.replies()]
    assert bodies[0] == "(no output)"
    assert bodies[1].split("\n")[1:] == ["claimed: a", "claimed: b"]


def test_an_output_line_is_at_most_4096_bytes_and_a_reply_8000(seat: FakeSeat) -> None:
    lines = seat.said(message(f"/claim {'é' * 3000}\n/claim {'e' * 5000}\n/report"))
    assert [len(line.encode()) for line in lines[:2]] == [4095, 4096]
    assert len(seat.replies()[0]["body"].encode()) <= 8000


def test_a_fenced_tool_call_fails_the_turn_and_stops_the_script(seat: FakeSeat) -> None:
    """S-63: the tool client exits 4, and nothing is written afterwards."""
    seat.tools.answer("memory.write", "", exit_code=4, err="fenced")
    result = seat.turn(message("/tool memory.write\n/file write after.md x"))
    assert result.outcome == "failed"
    assert result.error == "tool memory.write: a newer execution holds this seat"
    assert not (seat.workspace / "after.md").exists()


# Delegations


def test_s99_a_delegation_is_reported_back_once_even_across_a_restart(seat: FakeSeat) -> None:
    """S-99: sent with the trigger as correlation; the answer reaches the asker once."""
    seat.tools.answer("messages.send", {"message_id": "sent-1"})
    trigger = message("/delegate lead  please\n  look at it\n/claim never runs")
    (said,) = seat.said(trigger)
    assert said.startswith('delegated to lead: {"message_id":"sent-1"}')
    assert seat.tools.calls() == [
        (
            "messages.send",
            {
                "to": "lead",
                "body": "please\nlook at it\n/claim never runs",
                "correlation_id": trigger.message_id,
            },
        )
    ]
    seat.restart()
    answer = from_seat("lead", "done", parent_id="sent-1", correlation_id=trigger.message_id)
    seat.turn(answer)
    assert seat.replies() == [{"message_id": trigger.message_id, "body": "Update from lead: done"}]
    assert seat.said(from_seat("lead", "again", parent_id="sent-1")) == [
        "received reply; no response needed"
    ]


def test_a_delegation_whose_report_was_refused_is_kept(seat: FakeSeat) -> None:
    seat.tools.answer("messages.send", {"message_id": "sent-1"})
    seat.said(message("/delegate lead go"))
    seat.tools.answer("messages.reply", {"error": "inbox_full"}, exit_code=1)
    seat.said(from_seat("lead", "done", parent_id="sent-1"))
    seat.tools.answer("messages.reply", {"message_id": "r-1"})
    seat.said(from_seat("lead", "done", parent_id="sent-1"))
    assert len(seat.replies()) == 2


def test_s100_a_task_that_delegates_sends_no_interim_reply(seat: FakeSeat) -> None:
    """S-100: nested `/task` with `/delegate`: the end result arrives hop by hop."""
    seat.tools.answer("messages.send", {"message_id": "sent-2"})
    asked = from_seat("rep", "/task\n/delegate reviewer /task\n/tool clock.now", correlation_id="h")
    seat.said(asked)
    assert seat.replies() == []
    seat.said(from_seat("reviewer", "fine", parent_id="sent-2", correlation_id=asked.message_id))
    assert seat.replies() == [
        {"message_id": asked.message_id, "body": "Update from reviewer: fine"}
    ]


def test_a_refused_delegation_in_a_task_is_reported_like_any_result(seat: FakeSeat) -> None:
    seat.tools.answer("messages.send", {"error": "forbidden"}, exit_code=1)
    seat.said(from_seat("lead", "/task\n/delegate rep hi"))
    assert [reply["body"] for reply in seat.replies()] == [
        'task result from builder:\nerror: messages.send rejected: {"error":"forbidden"}'
    ]


def test_an_answer_that_is_a_task_delegates_on_for_the_first_asker(seat: FakeSeat) -> None:
    seat.tools.answer("messages.send", {"message_id": "sent-1"})
    asked = message("/delegate lead go")
    seat.said(asked)
    seat.tools.answer("messages.send", {"message_id": "sent-2"})
    seat.said(from_seat("lead", "/task\n/delegate reviewer check", parent_id="sent-1"))
    seat.said(from_seat("reviewer", "good", parent_id="sent-2"))
    assert seat.replies() == [
        {"message_id": asked.message_id, "body": "Update from reviewer: good"}
    ]


def test_a_turn_tried_again_delegates_twice_and_reports_once(seat: FakeSeat) -> None:
    trigger = message("/delegate lead go")
    for sent in ("sent-1", "sent-2"):
        seat.tools.answer("messages.send", {"message_id": sent})
        seat.said(trigger)
    seat.said(from_seat("lead", "done", parent_id="sent-1"))
    seat.said(from_seat("lead", "done", parent_id="sent-2"))
    assert len(seat.replies()) == 1


def test_a_scheduled_delegation_is_reported_to_the_person_of_the_binding(tmp_path: Path) -> None:
    seat = FakeSeat(tmp_path)
    seat.bindings.append("ada")
    seat.tools.answer("messages.send", {"message_id": "sent-1"})
    seat.said(message("/delegate lead go", origin="schedule"))
    seat.said(from_seat("lead", "done", parent_id="sent-1"))
    assert seat.replies() == [{"binding": "ada", "body": "Update from lead: done"}]


# Sessions


def test_a_session_is_taken_up_again(seat: FakeSeat) -> None:
    assert seat.start.mode == "fresh"
    assert seat.harness.checkpoint() is None
    first = seat.turn(message("/claim x", message_id="m-a"))
    seat.turn(message("/fail", message_id="m-b"))
    stored = json.loads((seat.home / ".fake-session").read_text())
    assert stored["turns"] == 1
    assert stored["last_message_ids"] == ["m-a"]
    assert seat.restart().mode == "native_resume"
    assert seat.turn(message("/claim y")).session_id == first.session_id
    assert seat.harness.checkpoint() == Checkpoint(
        "fake", "fake-session/1", f"{first.session_id}:turns=2"
    )


def test_a_lost_session_is_not_claimed_to_go_on(seat: FakeSeat) -> None:
    start = seat.restart(Recovery(session=Checkpoint("fake", "fake-session/1", "gone:turns=3")))
    assert start.mode == "portable_handoff"
    assert start.note is not None
    assert seat.turn(message("/claim x")).recovery == start.note
    assert seat.turn(message("/claim y")).recovery is None


def test_damaged_state_files_are_as_good_as_none(seat: FakeSeat) -> None:
    (seat.home / ".fake-session").write_text("{")
    (seat.runner_dir / "fake-state.json").write_text('{"delegations": {"a": 3}}')
    assert seat.restart().mode == "fresh"
    assert seat.said(from_seat("lead", "x", parent_id="a")) == [
        "received reply; no response needed"
    ]


# Contract


def test_all_events_of_a_turn_precede_its_return_and_are_correlated(seat: FakeSeat) -> None:
    seat.turn(message("/tool self\n/fail x", correlation_id="topic"))
    events = seat.harness.events()
    assert [event.kind for event in events] == [
        "tool_request",
        "tool_result",
        "output",
        "error",
        "completion",
    ]
    assert {event.correlation_id for event in events} == {"topic"}
    assert events[-1].data["outcome"] == "failed"
    assert seat.harness.events() == ()


def test_a_second_turn_beside_the_first_is_refused(seat: FakeSeat) -> None:
    seat.tools.answer("slow", "", hang=True)
    thread, results = in_thread(lambda: seat.turn(message("/tool slow")))
    until(seat.tools.hanging.exists, "the tool call is running")
    with pytest.raises(Busy):
        seat.turn(message("hello"))
    assert seat.harness.quiesce(grace_seconds=0)
    thread.join(10)
    assert results[0].outcome == "interrupted"


def test_quiescing_interrupts_a_sleep_and_refuses_new_turns(seat: FakeSeat) -> None:
    """S-61: a turn that outlasts the quiesce limit is interrupted."""
    thread, results = in_thread(lambda: seat.turn(message("/claim a\n/sleep 60s\n/claim b")))
    until(seat.harness.events, "the turn has begun")
    assert seat.harness.quiesce(grace_seconds=0.05)
    thread.join(10)
    assert (results[0].outcome, results[0].output) == ("interrupted", "claimed: a")
    with pytest.raises(Quiescing):
        seat.turn(message("hello"))


def test_quiescing_waits_for_a_turn_that_ends_in_time(seat: FakeSeat) -> None:
    thread, results = in_thread(lambda: seat.turn(message("/claim a\n/sleep 50ms")))
    until(seat.harness.events, "the turn has begun")
    assert not seat.harness.quiesce(grace_seconds=10)
    thread.join(10)
    assert results[0].outcome == "completed"


def test_a_turn_over_its_limit_times_out(tmp_path: Path) -> None:
    seat = FakeSeat(tmp_path, turn_limit=0.05)
    result = seat.turn(message("/sleep 60s"))
    assert (result.outcome, result.error) == ("timed_out", "the turn was out of time")


def test_stopping_without_grace_kills_the_running_tool_call(seat: FakeSeat) -> None:
    seat.tools.answer("slow", "", hang=True)
    thread, results = in_thread(lambda: seat.turn(message("/tool slow\n/claim b")))
    pid = int(until(lambda: seat.tools.hanging.exists() and seat.tools.hanging.read_text(), "call"))
    seat.harness.stop(grace_seconds=0)
    thread.join(10)
    assert results[0].outcome == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(Stopped):
        seat.turn(message("hello"))
