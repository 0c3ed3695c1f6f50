"""verify: as processes with `up`, and what it says when something does not work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.commands import (
    Program,
    Said,
    Screen,
    kill_all_about,
    nothing_runs_about,
    started,
    steadmesh,
)
from tests.operator.conftest import Lumen

SEATS = ["builder_one", "builder_two", "lead", "rep_ada", "reviewer"]


@pytest.fixture
def up(example: Path, tmp_path: Path) -> Iterator[Program]:
    """The example organisation, up."""
    words = ["up", str(example / "organisation.yaml"), "--data", str(example / "data")]
    try:
        with started(*words, "--port", "0", home=tmp_path) as program:
            program.until_says("supervising lumen")
            yield program
            program.end()
        nothing_runs_about(example)
    finally:
        kill_all_about(example)


def verify(example: Path, *words: str) -> Said:
    return steadmesh("verify", "--data", str(example / "data"), "--timeout", "50s", *words)


def folder_of(example: Path, seat: str) -> Path:
    """What belongs to a seat on this machine."""
    view = json.loads(steadmesh("status", "--data", str(example / "data"), "--json").out)
    seat_id = next(row["seat_id"] for row in view["seats"] if row["seat"] == seat)
    return example / "data" / "seats" / "lumen" / str(seat_id)


def test_up_and_verify_says_ready_and_a_broken_workspace_is_named(
    up: Program, example: Path
) -> None:
    said = verify(example)
    assert said.code == 0, said
    assert said.out.splitlines()[-1] == "lumen is ready"
    assert "RoutesExecutable\tyes\t" in said.out
    assert not list(example.glob("data/seats/*/*/workspace/*")), "probes leave nothing behind"

    workspace = folder_of(example, "lead") / "workspace"
    shutil.rmtree(workspace)
    workspace.write_text("a file in its place")
    broken = verify(example)
    assert broken.code == 1
    assert (
        "steadmesh: lumen is not ready: RoutesExecutable: lead: its probe failed: workspace: fail: "
        f"{workspace} cannot be written and read: Not a directory" in broken.err
    )
    assert "reviewer\tyes\t" in broken.out

    as_json = verify(example, "--json")
    found = json.loads(as_json.out)
    assert (as_json.code, found["ready"]) == (1, False)
    assert found["reason"].startswith("RoutesExecutable: lead: ")
    assert found["seats"]["lead"]["checks"]["workspace"].startswith("fail: ")
    assert [key for key, seat in found["seats"].items() if seat["ready"]] == [
        key for key in SEATS if key != "lead"
    ]
    assert found["bindings"] == {"ada": {"ok": True}}

    assert steadmesh("suspend", "builder_one", "--data", str(example / "data")).code == 0
    assert "builder_one\tno\tsuspended by an operator" in verify(example).out


def test_a_stopped_seat_whose_start_fails_is_named_and_not_waited_for(
    up: Program, example: Path
) -> None:
    workspace = folder_of(example, "reviewer") / "workspace"
    workspace.parent.mkdir(parents=True)
    workspace.write_text("a file in its place")
    said = verify(example)
    assert said.code == 1
    assert "RoutesExecutable: reviewer: start failed: " in said.err
    assert "no answer in" not in said.err
    assert str(workspace) in said.err


def test_without_a_supervisor_it_says_so_at_once(lumen: Lumen) -> None:
    said = lumen.run("verify")
    assert said.code == 1
    assert "no supervisor is running. Start one: steadmesh supervise lumen" in said.err
    seats = json.loads(lumen.run("status", "--json").out)["seats"]
    assert not any(seat["pending_messages"] for seat in seats)


def test_the_first_failing_condition_is_named(lumen: Lumen) -> None:
    Path(lumen.token_file).unlink()
    said = lumen.run("verify", "--json")
    assert said.code == 1
    assert "not ready: ConnectionsAuthenticated: chat: " in said.err
    assert json.loads(said.out)["credentials"]["chat"]["ok"] is False


@pytest.mark.parametrize("wrong", ["soon", "0s", "10ms", "-1m"])
def test_a_timeout_that_is_none_is_wrong_use(lumen: Lumen, wrong: str) -> None:
    code, words = lumen.run("verify", f"--timeout={wrong}").failure
    assert code == 2
    assert "--timeout: give a duration" in words


def test_on_a_terminal_the_result_is_drawn(lumen: Lumen) -> None:
    screen = Screen()
    steadmesh("verify", "--data", str(lumen.service.data), screen=screen)
    assert "RoutesExecutable" in screen.getvalue()
    assert "\t" not in screen.getvalue()
