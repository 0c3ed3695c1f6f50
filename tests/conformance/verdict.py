"""What a run of the suite means: what passed, what is known not to be offered and why, what failed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.suite import Check, Ran

EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
WIRE = ("wire-schema-valid", "wire-schema-harness-error")
"""Each message is held to the protocol's JSON schema. What is written of a whole scenario never
excuses this."""


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What is not offered, with reasons, and which scenarios need no fixture."""

    generic: frozenset[str]
    """Scenarios that the product itself has to pass; the others call fixtures."""
    reasons: dict[str, dict[str, str]]
    """For each target: the reason by scenario, or by `scenario:check`."""
    used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path = EXCEPTIONS) -> Exceptions:
        """Raises `ValueError` for an entry that is double or has no reason."""
        written = tomllib.loads(path.read_text())
        reasons: dict[str, dict[str, str]] = {"service": {}, "fixtures": {}}
        for entry in written["not_offered"]:
            if not entry["reason"].strip():
                raise ValueError(f"{entry['checks']}: a reason is missing")
            for target in entry.get("on", ["fixtures"]):
                for check in entry["checks"]:
                    if check in reasons[target]:
                        raise ValueError(f"{check} is listed twice for {target}")
                    reasons[target][check] = entry["reason"].strip()
        return cls(frozenset(written["generic"]), reasons)

    def reason(self, target: str, scenario: str, check: str) -> str | None:
        """Why a check may fail, if it may."""
        known = self.reasons[target]
        found = f"{scenario}:{check}"
        if found not in known and check not in WIRE:
            found = scenario
        if found not in known:
            return None
        self.used.add(f"{target} {found}")
        return known[found]

    def unused(self) -> list[str]:
        """Entries that excused nothing: what they speak of passes, or is not there."""
        listed = {f"{target} {check}" for target, known in self.reasons.items() for check in known}
        return sorted(listed - self.used)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one scenario in one version came to, on one target."""

    target: str
    ran: Ran
    passed: int
    excused: tuple[tuple[str, str], ...]
    """Check and reason."""
    failed: tuple[Check, ...]

    @property
    def word(self) -> str:
        """For a cell of a table."""
        if self.failed:
            return "FAIL"
        if not self.excused:
            return "pass"
        return "part" if any(self.passed_checks) else "not offered"

    @property
    def passed_checks(self) -> list[str]:
        """Those that say something of the scenario itself."""
        return [
            check.id
            for check in self.ran.checks
            if check.status == "SUCCESS" and check.id not in WIRE
        ]


def judge(target: str, ran: Ran, exceptions: Exceptions) -> Verdict:
    """Everything but a success has to be excused; also a scenario that came to look at nothing."""
    checks: Sequence[Check] = [check for check in ran.checks if check.status != "INFO"]
    passed = [check for check in checks if check.status == "SUCCESS"]
    if not checks:
        checks = [Check(ran.scenario, "SKIPPED", "the scenario looked at nothing")]
    excused, failed = [], []
    for check in checks:
        if check.status == "SUCCESS":
            continue
        reason = exceptions.reason(target, ran.scenario, check.id)
        if reason is None:
            failed.append(check)
        else:
            excused.append((check.id, reason))
    return Verdict(target, ran, len(passed), tuple(excused), tuple(failed))


def judge_all(target: str, every: Iterable[Ran], exceptions: Exceptions) -> list[Verdict]:
    """On the product only what needs no fixture is judged; on the fixtures everything."""
    return [
        judge(target, ran, exceptions)
        for ran in every
        if target == "fixtures" or ran.scenario in exceptions.generic
    ]
