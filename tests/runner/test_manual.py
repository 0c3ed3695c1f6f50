"""docs/harnesses.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from steadmesh.runner._rules import OFFERED
from steadmesh.runner.harness import Harness
from tests.runner.fake_seat import FakeSeat, message

MANUAL = (Path(__file__).parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")


def test_the_example_script_answers_as_shown(tmp_path: Path) -> None:
    script, shown = re.findall(r"```text\n(.*?)```", MANUAL, re.DOTALL)[:2]
    seat = FakeSeat(tmp_path)
    seat.tools.answer("clock.now", {"now": "Thu 2026-10-08 04:00 CEST (+02:00)"})
    seat.said(message(script))
    said = seat.replies()[0]["body"].split("\n")
    assert len(said) == 3
    for line, expected in zip(said, shown.splitlines(), strict=True):
        assert line.startswith(expected.removesuffix(", …}"))


def test_every_command_is_in_the_table_and_does_something(tmp_path: Path) -> None:
    commands = re.findall(r"^\| `/(\w+)", MANUAL, re.MULTILINE)
    assert set(commands) == {
        "tool", "reply", "report", "file", "delegate", "sleep", "claim", "fail"
    }  # fmt: skip
    seat = FakeSeat(tmp_path)
    for command in commands:
        result = seat.turn(message(f"/{command} a b"))
        assert "unknown command" not in result.output


def test_every_method_of_the_contract_and_every_offered_feature_is_named() -> None:
    for name in (
        "prepare",
        "start_or_resume",
        "deliver",
        "events",
        "quiesce",
        "checkpoint",
        "stop",
    ):
        assert hasattr(Harness, name)
        assert f"`{name}(" in MANUAL
    for feature in OFFERED:
        assert f"`{feature}`" in MANUAL
