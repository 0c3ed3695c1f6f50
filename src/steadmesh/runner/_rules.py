"""What to do about a seat next: one pure decision from what the service and this machine know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from steadmesh.runner.view import SeatView

OFFERED = frozenset(
    {"warm_idle", "application_stop_restore", "persistent_workspace", "resource_limits"}
)
"""What running a seat as plain processes of this machine gives it."""

FIRST_BACK_OFF = 2.0
LONGEST_BACK_OFF = 300.0
"""Seconds after a start that failed."""
BLOCKED_RETRY = 30.0
"""Seconds until a machine that could not start a seat is tried again."""
SHORT_LIFE = 5.0
"""Seconds. A start that dies sooner has failed, although it came up."""

HELD = "lease held by instance"
"""How the reason begins why a seat with mail is left alone."""

FENCED = 3
CLEAN_EXITS = (0, FENCED)
"""Exit codes that are no failure of the start: stopped, and replaced by a newer one."""


@dataclass(frozen=True, slots=True)
class Local:
    """What this machine knows of a seat."""

    phase: Literal["none", "running", "stopping", "ended"] = "none"
    """`ended`: the runner's process is gone, its start is not cleared away yet."""
    instance: str | None = None
    config_revision: str = ""
    uptime_seconds: float = 0.0
    view_age_seconds: float = 0.0
    """Since the view of the seat was made."""
    stopping_seconds: float = 0.0
    has_leftovers: bool = False
    """Processes of an ended start that still exist."""
    back_off_seconds: float = 0.0
    """Until the next start may be tried; 0 for now."""
    problem: str | None = None
    """Why this machine could not start it, and when it is tried again; outlives the back-off."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How this supervisor was told to run seats."""

    unenforced: Collection[str] = ()
    idle_timeout_seconds: float | None = None
    """Instead of what the organisation file says."""
    kill_after_seconds: float = 300.0
    """A start that was told to stop and still runs is killed."""


@dataclass(frozen=True, slots=True)
class Action:
    """One step; after it the next view decides again."""

    kind: Literal["wait", "start", "stop", "kill", "fence", "clear", "report", "explain"]
    reason: str = ""
    state: str = ""


WAIT = Action("wait")


def decide(seat: SeatView, local: Local, policy: Policy, *, blocked: str | None) -> Action:
    """The next step for a seat. `blocked` is why it may not run here, if so."""
    match local.phase:
        case "ended":
            return _after_end(seat, local)
        case "stopping":
            too_long = local.stopping_seconds > policy.kill_after_seconds
            return Action("kill", "it did not stop in time") if too_long else WAIT
        case "running":
            reason = blocked or _reason_to_stop(seat, local, policy)
            return WAIT if reason is None else Action("stop", reason)
        case _:
            return _not_running(seat, local, blocked)


def blocked_reason(seat: SeatView, policy: Policy, *, unavailable: str | None) -> str | None:
    """Why this machine may not run the seat, in words that say what to do; None when it may."""
    if unavailable is not None:
        return unavailable
    missing = sorted(set(seat.sandbox_required) - OFFERED - set(policy.unenforced))
    if not missing:
        return None
    line = ", ".join(f'"{name}"' for name in sorted({*policy.unenforced, *missing}))
    return (
        f"this machine cannot enforce {', '.join(missing)} for the seat's program; to run it"
        f" without, put into the configuration file: [supervisor] unenforced = [{line}]"
    )


def back_off(failures: int) -> float:
    """Seconds to wait after that many failed starts in a row."""
    if failures == 0:
        return 0.0
    return min(FIRST_BACK_OFF * 2.0 ** min(failures - 1, 20), LONGEST_BACK_OFF)


def has_failed(exit_code: int | None, *, was_ready: bool, life_seconds: float) -> bool:
    """Whether a start that ended counts as failed. The exit code of an adopted one is unknown."""
    if exit_code in CLEAN_EXITS:
        return False
    return not was_ready or (exit_code is not None and life_seconds < SHORT_LIFE)


def _after_end(seat: SeatView, local: Local) -> Action:
    if local.has_leftovers:
        return Action("kill", "its runner is gone")
    if seat.lease_holder is not None and seat.lease_holder == local.instance:
        # It died without giving the lease back, and is confirmed gone.
        return Action("fence", "the runner is gone")
    return Action("clear")


def _reason_to_stop(seat: SeatView, local: Local, policy: Policy) -> str | None:
    if seat.suspended:
        return "suspended"
    if seat.config_revision != local.config_revision:
        return f"new configuration revision {seat.config_revision}"
    if seat.idle_policy != "warm_then_stop" or seat.state != "Warm" or seat.pending_deliveries:
        return None
    timeout = policy.idle_timeout_seconds
    if timeout is None:
        timeout = seat.idle_timeout_seconds
    quiet = local.uptime_seconds
    if seat.quiet_seconds is not None:
        quiet = min(quiet, seat.quiet_seconds + local.view_age_seconds)
    return f"idle for {timeout:g} s" if quiet >= timeout else None


def _not_running(seat: SeatView, local: Local, blocked: str | None) -> Action:
    if seat.suspended:
        return WAIT
    if seat.lease_live:
        # It is of a start by hand or of another machine, and is never bypassed.
        held = f"{HELD} {seat.lease_holder}"
        is_news = seat.state_detail != held and seat.state != "Executing"
        return Action("explain", held) if seat.pending_deliveries and is_news else WAIT
    waiting = local.back_off_seconds > 0
    reason = blocked or (local.problem if waiting else None)
    if reason is not None:
        return _reported(seat, "Blocked", reason)
    if waiting:
        return WAIT
    if seat.pending_deliveries or (seat.idle_policy == "warm" and not seat.retiring):
        return Action("start")
    if seat.state in ("Blocked", "Recovering") or (seat.state_detail or "").startswith(HELD):
        return _reported(seat, "Stopped", None)
    return WAIT


def _reported(seat: SeatView, state: str, reason: str | None) -> Action:
    # The state of a retiring seat is shown as that, whatever was reported.
    is_said = seat.state == state or seat.retiring
    if is_said and seat.state_detail == reason:
        return WAIT
    return Action("report", reason or "", state)
