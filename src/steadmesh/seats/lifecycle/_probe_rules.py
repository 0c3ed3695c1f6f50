"""How a probe ended: one pure decision from its delivery, its execution and what that reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steadmesh.kernel.database import Row
from steadmesh.kernel.text import truncated

Status = Literal["pending", "passed", "failed"]

REASON_BYTES = 1_024
LARGEST_REPORT = 20
"""Checks; a probe has two to five."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a probe stands. `checks` maps each check to `ok`, or to a text that begins with `fail`."""

    status: Status
    checks: Mapping[str, str]
    reason: str | None = None
    revision: str | None = None


def outcome(probe: Row, reports: Sequence[Mapping[str, Any]]) -> Outcome:
    """Where a pending probe stands, from the row that follows it and what its execution reported.

    It passes when its delivery was acknowledged as completed and no check failed. A turn that began
    before the seat's retirement may still end; everything else that cannot be answered any more
    has failed.
    """
    checks = checks_of(reports)
    revision = _revision(probe, reports)
    if probe["delivery_state"] == "done" and probe["execution_state"] == "completed":
        failing = first_failing(checks)
        status: Status = "passed" if failing is None else "failed"
        return Outcome(status, checks, failing, revision)
    reason = _end_without_success(probe)
    if reason is None:
        return Outcome("pending", checks, None, revision)
    return Outcome("failed", checks, truncated(reason, REASON_BYTES), revision)


def checks_of(reports: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The checks of all reports; a later word on a check replaces an earlier one."""
    found: dict[str, str] = {}
    for report in reports:
        checks = report.get("checks")
        if isinstance(checks, dict):
            for name, text in list(checks.items())[:LARGEST_REPORT]:
                found[str(name)] = text if isinstance(text, str) else f"fail: {text!r} is no text"
    return found


def first_failing(checks: Mapping[str, str]) -> str | None:
    """The first check that is not ok, by name, with what it said."""
    for name, text in sorted(checks.items()):
        if text != "ok":
            return truncated(f"{name}: {text}", REASON_BYTES)
    return None


def _end_without_success(probe: Row) -> str | None:
    state = probe["delivery_state"]
    if state == "done":
        return str(probe["execution_error"] or "its turn failed")
    if state == "dead":
        return f"given up: {probe['delivery_error'] or 'no turn with it completed'}"
    if probe["retired_at"] is not None:
        return "the seat was retired before it answered"
    if probe["retire_by"] is not None and state != "leased":
        return "the seat is retiring"
    if state is None:
        return "its message is gone"
    return None


def _revision(probe: Row, reports: Sequence[Mapping[str, Any]]) -> str | None:
    """The configuration that answered: a runner knows better than we what it was started with."""
    for report in reversed(reports):
        named = report.get("config_revision")
        if isinstance(named, str) and named:
            return truncated(named, 200)
    found = probe["execution_revision"]
    return None if found is None else str(found)
