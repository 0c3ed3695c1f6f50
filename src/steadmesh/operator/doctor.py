"""doctor: what is right and wrong on this machine and with its service, on one page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from steadmesh.operator.terminal import count, note, result, result_json

Verdict = Literal["ok", "wrong", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `do` says what to do about what is wrong."""

    about: str
    verdict: Verdict
    says: str
    do: str = ""


def ok(about: str, says: str) -> Finding:
    """All is well."""
    return Finding(about, "ok", says)


def info(about: str, says: str) -> Finding:
    """Neither right nor wrong."""
    return Finding(about, "info", says)


def wrong(about: str, says: str, do: str) -> Finding:
    """Something for a person to do."""
    return Finding(about, "wrong", says, do)


def doctor(data: str | None, *, as_json: bool) -> int:
    """Look at everything and print what was found; 1 if anything is wrong."""
    from steadmesh.operator import doctor_machine, doctor_service

    shown: list[Finding] = []
    parts = (doctor_machine.findings(data), doctor_service.findings(data))
    for finding in _each(parts):
        shown.append(finding)
        if not as_json:
            _print(finding)
    problems = sum(finding.verdict == "wrong" for finding in shown)
    if as_json:
        result_json({"ok": not problems, "findings": [_plain(finding) for finding in shown]})
    elif problems:
        note(f"{count(problems, 'thing is', 'things are')} wrong")
    else:
        note("nothing is wrong")
    return 1 if problems else 0


def _each(parts: Iterable[Iterable[Finding]]) -> Iterator[Finding]:
    for part in parts:
        yield from part


def _plain(finding: Finding) -> dict[str, str]:
    return {name: value for name, value in asdict(finding).items() if value}


def _print(finding: Finding) -> None:
    from steadmesh.kernel.text import for_terminal

    words = for_terminal(f"{finding.about}: {finding.says}")
    colour = _COLOURS[finding.verdict] if sys.stdout.isatty() else ""
    mark = f"{_MARKS[finding.verdict]:<6}"
    result(f"{colour}{mark}{_PLAIN if colour else ''} {words}")
    if finding.do:
        result(for_terminal(f"       do: {finding.do}"))
    sys.stdout.flush()


_MARKS: dict[Verdict, str] = {"ok": "ok", "wrong": "WRONG", "info": "-"}
_COLOURS: dict[Verdict, str] = {"ok": "\033[32m", "wrong": "\033[1;31m", "info": "\033[2m"}
_PLAIN = "\033[0m"
