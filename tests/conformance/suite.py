"""Runs the conformance suite against a URL, and reads what each of its checks came to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.programs import SUITE, Ended, Node

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
"""What the suite can judge of what we speak: two versions with a handshake, and the one without."""

_LISTED = re.compile(r"^\s+- (?P<name>\S+) \[(?P<versions>[^\]]*)\]$", re.MULTILINE)
_FOLDER = re.compile(r"^server-(?P<name>.+?)-\d{4}-\d\d-\d\dT[\d-]+Z$")


class NoVerdict(Exception):
    """The suite did not do what was asked of it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a scenario looks at."""

    id: str
    status: str
    """SUCCESS, FAILURE, WARNING, SKIPPED, or INFO, which judges nothing."""
    message: str


@dataclass(frozen=True, slots=True)
class Ran:
    """One scenario in one version of the protocol."""

    version: str
    scenario: str
    checks: tuple[Check, ...]


def scenarios(node: Node) -> dict[str, tuple[str, ...]]:
    """Every server scenario of the suite, with the versions it is of, or `extension`."""
    ended = node.run(SUITE, "list", "--server")
    found = {
        match["name"]: tuple(match["versions"].split(","))
        for match in _LISTED.finditer(ended.stdout)
    }
    if ended.status != 0 or not found:
        raise NoVerdict(f"the suite lists no scenarios: {_last_words(ended)}")
    return found


def run(
    node: Node, url: str, *, known: Mapping[str, tuple[str, ...]], results: Path
) -> Iterator[Ran]:
    """Run all scenarios in all versions; `results` is a folder for the suite's files."""
    for version in VERSIONS:
        folder = results / version
        words = ("--url", url, "--suite", "all", "--spec-version", version, "-o", str(folder))
        # Its exit status says that something failed, which is for us to judge.
        ended = node.run(SUITE, "server", *words)
        ran = list(read(folder, version)) if folder.is_dir() else []
        expected = {name for name, versions in known.items() if version in versions}
        if missing := expected - {each.scenario for each in ran}:
            names = ", ".join(sorted(missing))
            raise NoVerdict(f"{version}: no result of {names}: {_last_words(ended)}")
        yield from ran


def read(folder: Path, version: str) -> Iterator[Ran]:
    """What the suite wrote about one version, in the order it ran."""
    for place in sorted(folder.iterdir(), key=lambda place: place.stat().st_mtime_ns):
        if match := _FOLDER.match(place.name):
            written = json.loads((place / "checks.json").read_text())
            checks = tuple(
                Check(each["id"], each["status"], str(each.get("errorMessage") or ""))
                for each in written
            )
            yield Ran(version, match["name"], checks)


def _last_words(ended: Ended) -> str:
    return (ended.stderr.strip() or ended.stdout.strip())[-500:] or f"exit status {ended.status}"
