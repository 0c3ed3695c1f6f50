"""`make demo`, without the making."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from steadmesh.operator.demo import GO_ON
from tests.operator.commands import environment, nothing_runs_about
from tests.test_documentation import command_lines, commands, problem_of

SAID = [
    "ada> hello",
    "representative> ack: hello",
    "ada> /delegate lead /task",
    "representative> Update from lead: Update from builder_one: task result from builder_one:",
    "representative> file notes/plan.md: built by builder_one",
    "what happened",
    "done in ",
]
TURNS = ["rep_ada", "rep_ada", "lead", "builder_one", "lead", "rep_ada"]


def test_a_request_goes_down_the_chain_and_comes_back_and_nothing_is_left(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "steadmesh.operator.demo"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(tmp_path, TMPDIR=str(temporary), STEADMESH_DATABASE_FILE="/nowhere"),
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = iter(done.stdout.splitlines())
    assert [text for text in SAID if not any(text in line for line in lines)] == [], done.stdout
    turns = re.findall(r"\d  (\w+) +completed, attempt 1, generation 1", done.stdout)
    assert turns == TURNS, done.stdout
    assert "\x1b" not in done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["tmp"]
    assert list(temporary.iterdir()) == []
    nothing_runs_about(temporary)


def test_it_says_how_to_go_on_with_commands_that_exist() -> None:
    text = "\n".join(["```", *GO_ON, "```"])
    lines = [line for _, line in command_lines(text)]
    assert [problem_of(line, commands()) for line in lines] == [None] * 4
