"""The suite's files and words are read as they are, and a silent one is no success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.conformance.programs import Ended, Node
from tests.conformance.suite import VERSIONS, Check, NoVerdict, read, run, scenarios

LIST = """
Server scenarios (test against a server):
  - ping [2025-06-18,2025-11-25]
  - server-stateless [2026-07-28]
  - tasks-lifecycle [extension]
"""
KNOWN = {
    "ping": ("2025-06-18", "2025-11-25"),
    "server-stateless": ("2026-07-28",),
    "tasks-lifecycle": ("extension",),
}


class Played:
    """A suite that lists, and writes results of the scenarios it is told to write."""

    def __init__(self, *written: str, says: str = LIST, status: int = 0) -> None:
        self._written = written
        self._ended = Ended(status, says, "")

    def run(self, program: Path, *words: str) -> Ended:
        if words[0] == "server":
            folder = Path(words[words.index("-o") + 1])
            for scenario in self._written:
                write(folder, scenario)
        return self._ended


def write(folder: Path, scenario: str) -> None:
    place = folder / f"server-{scenario}-2026-12-03T12-54-42-852Z"
    place.mkdir(parents=True)
    checks = [
        {"id": "a", "status": "SUCCESS"},
        {"id": "b", "status": "FAILURE", "errorMessage": "no"},
    ]
    (place / "checks.json").write_text(json.dumps(checks))


def node(played: Played) -> Node:
    return cast(Node, played)


def test_the_list_names_scenarios_and_their_versions() -> None:
    assert scenarios(node(Played())) == KNOWN


@pytest.mark.parametrize("played", [Played(says="nothing"), Played(status=1)])
def test_a_list_that_cannot_be_read_is_an_error(played: Played) -> None:
    with pytest.raises(NoVerdict):
        scenarios(node(played))


def test_a_result_is_every_check_with_its_message(tmp_path: Path) -> None:
    write(tmp_path, "tools-call-image")
    (result,) = read(tmp_path, VERSIONS[0])
    assert result.scenario == "tools-call-image"
    assert result.checks == (Check("a", "SUCCESS", ""), Check("b", "FAILURE", "no"))


def test_each_version_is_run(tmp_path: Path) -> None:
    played = node(Played("ping", "server-stateless"))
    ran = list(run(played, "http://x/mcp", known=KNOWN, results=tmp_path))
    assert [each.version for each in ran] == [version for version in VERSIONS for _ in range(2)]


def test_a_scenario_without_a_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoVerdict, match="no result of server-stateless"):
        list(run(node(Played("ping")), "http://x/mcp", known=KNOWN, results=tmp_path))
