"""up and supervise: everything as processes, talked to, and ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadmesh.operator.supervision import Ending, end_with_it
from tests.operator.commands import (
    Program,
    kill_all_about,
    nothing_runs_about,
    processes_about,
    started,
    steadmesh,
)
from tests.operator.conftest import Lumen
from tests.runner.waiting import until
from tests.support.service import RunningService

CHAIN = "/delegate lead /task\\\n/tool clock.now\\\n/file write a.md built\n"


@pytest.fixture
def up(example: Path, tmp_path: Path) -> Iterator[Program]:
    """The example organisation, up."""
    words = ["up", str(example / "organisation.yaml"), "--data", str(example / "data")]
    try:
        with started(*words, "--port", "0", home=tmp_path) as program:
            program.until_says("supervising lumen")
            yield program
        nothing_runs_about(example)
    finally:
        kill_all_about(example)


def talk(example: Path, text: str, *, wait: str = "30") -> str:
    """What Ada hears."""
    tokens, data = str(example / "secrets" / "chat.json"), str(example / "data")
    words = ["chat", "--user", "ada", "--token-file", tokens, "--data", data, "--wait", wait]
    said = steadmesh(*words, stdin=text)
    assert said.code == 0
    return said.out


def test_up_and_chat_and_a_result_over_two_hops_and_ctrl_c_leaves_nothing(
    up: Program, example: Path
) -> None:
    assert talk(example, "hello\n") == "representative> ack: hello\n"
    heard = talk(example, CHAIN)
    assert heard.startswith("representative> Update from lead: task result from lead:\n")
    assert "wrote a.md (5 bytes)" in heard
    said = up.end(signal.SIGINT)
    assert (said.code, said.out) == (0, "")
    assert "lead stopped (the supervisor stops)" in said.err
    nothing_runs_about(example)


def test_up_says_how_to_talk_to_it_in_a_line_that_works(up: Program, example: Path) -> None:
    line = up.until_says("talk to it: ")
    assert (
        f"steadmesh chat --user ada --token-file {example}/secrets/chat.json "
        f"--data {example}/data" in line
    )
    assert up.end().code == 0


def test_up_ends_when_its_terminal_is_closed(up: Program, example: Path) -> None:
    assert up.end(signal.SIGHUP).code == 0
    nothing_runs_about(example)


def test_a_second_ctrl_c_interrupts_a_turn_instead_of_waiting_for_it(
    up: Program, example: Path
) -> None:
    talk(example, "/sleep 5m\n", wait="0")
    data = str(example / "data")
    until(lambda: "Executing" in steadmesh("status", "--data", data).out, "the turn runs")
    up.send(signal.SIGINT)
    up.until_says("stopping; running turns are finished first")
    assert up.end(signal.SIGINT).code == 0
    nothing_runs_about(example)


def test_up_ends_with_its_service_but_not_when_that_is_restarted(tmp_path: Path) -> None:
    data, ending, left = tmp_path / "d", Ending(), threading.Event()
    words = (str(data), ending, left)
    with RunningService(data=data):
        watching = threading.Thread(target=end_with_it, args=words, kwargs={"away_seconds": 0.5})
        watching.start()
    with RunningService(data=data):
        assert not ending.stop.wait(0.75)
    assert ending.stop.wait(10)
    watching.join()


def test_up_uses_a_service_that_runs_and_leaves_it_running(lumen: Lumen, tmp_path: Path) -> None:
    words = ["up", lumen.file, "--data", str(lumen.service.data)]
    with started(*words, home=tmp_path) as program:
        program.until_says("using the service that already runs")
        program.until_says("supervising lumen")
        assert program.end().code == 0
    assert lumen.run("status").code == 0
    code, said = steadmesh(*words, "--port", "0").failure
    assert code == 1
    assert "--port would have no effect" in said


def test_up_with_a_broken_file_starts_nothing(example: Path) -> None:
    file = example / "organisation.yaml"
    file.write_text(file.read_text().replace("adapter: fake", "adapter: fakee"))
    said = steadmesh("up", str(file), "--data", str(example / "data"), "--port", "0")
    assert said.code == 1
    assert "harness_profiles.scripted.adapter: " in said.out
    assert not (example / "data" / "steadmesh.db").exists()


def test_up_with_settings_that_refuse_it_starts_nothing(example: Path) -> None:
    words = ["up", str(example / "organisation.yaml"), "--data", str(example / "data")]
    code, said = steadmesh(*words, "--database", "postgresql://a:b@h/x").failure
    assert code == 1
    assert said.startswith("steadmesh: --database: holds a password")


def test_supervise_runs_the_seats_of_a_service_elsewhere(lumen: Lumen, tmp_path: Path) -> None:
    """A supervisor with a data directory of its own reaches the service by its URL."""
    variables = {
        "STEADMESH_URL": lumen.service.url,
        "STEADMESH_OPERATOR_KEY_FILE": str(lumen.service.data / "operator.key"),
        "STEADMESH_DATA": str(tmp_path / "seats"),
        "STEADMESH_SUPERVISOR_UNENFORCED": "network_policy,non_root",
    }
    with started("supervise", home=tmp_path, variables=variables) as program:
        program.until_says(f"supervising lumen; the log is {tmp_path}/seats/supervisor.log")
        words = ["--user", "ada", "--token", lumen.token, "--wait", "30"]
        assert lumen.run("chat", *words, stdin="hello\n").out == "representative> ack: hello\n"
        assert program.end().code == 0
    assert not (lumen.service.data / "seats").exists()


def test_a_second_supervisor_says_who_is_there_and_stands_by(up: Program, example: Path) -> None:
    words = ["supervise", "lumen", "--data", str(example / "data")]
    with started(*words, home=example) as second:
        line = second.until_says("another supervisor (")
        assert f"pid {up.pid}) runs the seats of lumen; standing by" in line
        assert second.end().code == 0
    assert talk(example, "hello\n") == "representative> ack: hello\n"
    assert up.end().code == 0


def test_supervise_of_nothing_says_what_to_do(empty: RunningService) -> None:
    code, words = steadmesh("supervise", "--data", str(empty.data)).failure
    assert code == 1
    assert "steadmesh apply FILE" in words


def test_seats_that_may_not_run_are_blocked_and_say_so(example: Path, tmp_path: Path) -> None:
    (example / "data" / "steadmesh.toml").unlink()
    words = ["up", str(example / "organisation.yaml"), "--data", str(example / "data")]
    with started(*words, "--port", "0", home=tmp_path) as program:
        line = program.until_says("lead blocked: ")
        assert "[supervisor] unenforced" in line
        assert "Blocked" in steadmesh("status", "--data", str(example / "data")).out
        assert not any("steadmesh-runner" in words for words in processes_about(example).values())
        assert program.end().code == 0
