"""`make conformance`: run everything, print what came of it, fail if anything failed."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.conformance import fixtures, inspector, suite
from tests.conformance.inspector import Inspected
from tests.conformance.programs import Node, NotInstalled
from tests.conformance.seat import DidNotStart, running_seat
from tests.conformance.suite import VERSIONS, NoVerdict
from tests.conformance.verdict import Exceptions, Verdict, judge_all
from tests.support.service import RunningService

TARGETS = {
    "service": "The service, as a seat of the example organisation",
    "fixtures": "The suite's fixtures, behind the same transport",
}


def main() -> int:
    """The exit status."""
    console = Console(width=110, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with tempfile.TemporaryDirectory(prefix="steadmesh-conformance-") as name:
            return _run(console, Path(name))
    except KeyboardInterrupt:
        return 130
    except (NotInstalled, NoVerdict, DidNotStart) as problem:
        console.print(escape(str(problem)))
        return 2


def _run(console: Console, folder: Path) -> int:
    node = Node(folder)
    exceptions = Exceptions.read()
    known = suite.scenarios(node)
    extensions = [name for name, versions in known.items() if versions == ("extension",)]
    unlisted = [name for name in extensions if exceptions.reason("fixtures", name, name) is None]
    console.print(f"Node {node.version}, {len(known)} scenarios")
    with running_seat(folder) as seat:
        ran = suite.run(node, seat.url, known=known, results=folder / "service")
        verdicts = judge_all("service", ran, exceptions)
        inspected = list(inspector.inspect(node, seat))
    with RunningService(families=[fixtures.FAMILY], features=[fixtures.FEATURE]) as running:
        url = f"{running.url}/mcp"
        ran = suite.run(node, url, known=known, results=folder / "fixtures")
        verdicts += judge_all("fixtures", ran, exceptions)
    for target, title in TARGETS.items():
        _show(console, title, [verdict for verdict in verdicts if verdict.target == target])
    _show_inspected(console, inspected)
    _show_reasons(console, exceptions)
    stale = exceptions.unused()
    _show_failures(console, verdicts, inspected, unlisted=unlisted, stale=stale)
    words = [verdict.word for verdict in verdicts]
    failed = words.count("FAIL") + len(unlisted) + len(stale)
    failed += sum(bool(each.problem) for each in inspected)
    passed = words.count("pass") + words.count("part")
    passed += sum(not each.problem for each in inspected)
    skipped = words.count("not offered") + len(extensions) - len(unlisted)
    console.print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def _show(console: Console, title: str, verdicts: Sequence[Verdict]) -> None:
    table = Table("scenario", *VERSIONS, title=title, title_justify="left")
    words: dict[str, dict[str, str]] = {}
    for verdict in verdicts:
        words.setdefault(verdict.ran.scenario, {})[verdict.ran.version] = _cell(verdict)
    for scenario, by_version in words.items():
        table.add_row(scenario, *(by_version.get(version, "") for version in VERSIONS))
    console.print(table)


def _cell(verdict: Verdict) -> str:
    """The word, and how many of its checks passed where it is not all or nothing."""
    if verdict.word == "part":
        return f"pass {verdict.passed}, {len(verdict.excused)} not offered"
    return f"pass {verdict.passed}" if verdict.word == "pass" else verdict.word


def _show_inspected(console: Console, inspected: Sequence[Inspected]) -> None:
    table = Table("Inspector", "over", *inspector.ERAS)
    for what, transport in dict.fromkeys((each.what, each.transport) for each in inspected):
        problems = [
            each.problem for each in inspected if (each.what, each.transport) == (what, transport)
        ]
        table.add_row(what, transport, *("FAIL" if problem else "pass" for problem in problems))
    console.print(table)


def _show_reasons(console: Console, exceptions: Exceptions) -> None:
    """What is not offered, with the reason once."""
    checks: dict[str, dict[str, None]] = {}
    for known in exceptions.reasons.values():
        for check, reason in known.items():
            checks.setdefault(reason, {})[check] = None
    console.print("\nNot offered, and why:")
    for reason, about in checks.items():
        console.print(f"- {escape(' '.join(reason.split()))}")
        console.print(f"    [dim]{escape(', '.join(about))}[/dim]")


def _show_failures(
    console: Console,
    verdicts: Sequence[Verdict],
    inspected: Sequence[Inspected],
    *,
    unlisted: Sequence[str],
    stale: Sequence[str],
) -> None:
    lines = [
        f"{verdict.target} {verdict.ran.version} {verdict.ran.scenario}:{check.id}"
        f" {check.status}: {check.message}"
        for verdict in verdicts
        for check in verdict.failed
    ]
    lines += [
        f"Inspector {each.transport} {each.era} {each.what}: {each.problem}"
        for each in inspected
        if each.problem
    ]
    lines += [f"{name}: an extension that exceptions.toml does not list" for name in unlisted]
    lines += [f"{name}: listed in exceptions.toml, and excuses nothing" for name in stale]
    if lines:
        console.print("\nFailed:")
    for line in lines:
        console.print(f"- {escape(line)}")


if __name__ == "__main__":
    sys.exit(main())
