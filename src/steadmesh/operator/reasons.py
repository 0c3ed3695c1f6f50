"""What a seat does now, and why it does nothing: in words for people, from the view of an organisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadmesh.operator.terminal import age, moment, seconds_since

NOBODY = "no supervisor is running: mail will wait"
STARTED_BY_SUPERVISOR = "start-"
"""How the instances begin that a supervisor starts."""
_HELD = "lease held by instance"
"""How the supervisor's own word on it begins."""
_NOT_AT_WORK = ("Stopped", "Recovering", "Provisioning")
_SENDERS = {
    "schedule": "a schedule",
    "system": "the platform",
    "probe": "a probe",
    "human": "a person",
}


def has_supervisor(view: Mapping[str, Any]) -> bool:
    """Whether somebody runs the seats of an organisation (what is null is left out of an answer)."""
    return view.get("supervisor") is not None


def sender(turn: Mapping[str, Any]) -> str:
    """From whom the message of a turn came."""
    origin = str(turn.get("origin") or "")
    named = turn.get("sender_seat") or turn.get("external_user_id")
    return str(named or _SENDERS.get(origin, origin or "somebody"))


def doing(seat: Mapping[str, Any]) -> str:
    """The turn a seat is in: since when, which attempt, from whom. Nothing if it is in none."""
    turn = seat.get("turn")
    if not turn:
        return ""
    attempt = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
    return f"{age(seconds_since(turn['since']))} on mail from {sender(turn)}{attempt}"


def why(seat: Mapping[str, Any], *, supervised: bool) -> str:
    """Why a seat does not do more than it does; nothing if there is nothing to explain."""
    state, detail = seat["state"], seat.get("detail")
    if seat.get("suspended"):
        return detail or "suspended by an operator"
    if seat.get("retiring_until"):
        return f"retiring until {moment(seat['retiring_until'])}; it takes no new mail"
    found = []
    if state == "Blocked":
        found.append(f"blocked: {detail}" if detail else "blocked")
    elif detail and not detail.startswith(_HELD):  # that is told below, with the lease's end
        found.append(detail)
    if not seat.get("turn"):
        found += _why_mail_waits(seat, supervised=supervised)
    if seat.get("running") and not seat.get("on_current_config", True):
        found.append("still runs with an older configuration")
    return "; ".join(found)


def _why_mail_waits(seat: Mapping[str, Any], *, supervised: bool) -> list[str]:
    holder = seat.get("lease_holder")
    by_hand = holder is not None and not holder.startswith(STARTED_BY_SUPERVISOR)
    found = []
    if seat.get("running") and holder and (by_hand or seat["state"] in _NOT_AT_WORK):
        until = seat.get("lease_expires_at")
        renewed = f" until {moment(until)} unless renewed" if until else ""
        found.append(f"{_HELD} {holder}{renewed}")
    if not seat["pending_messages"]:
        return found
    if seconds_since(seat.get("next_attempt_at")) == 0:  # it lies in the future
        found.append(f"waiting for back-off until {moment(seat['next_attempt_at'])}")
    if not seat.get("running") and not supervised:
        found.append(NOBODY)
    return found
