"""status: the seats of an organisation in one table, and what there is to say about them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from steadmesh.operator.api import Api
from steadmesh.operator.reasons import NOBODY, doing, has_supervisor, why
from steadmesh.operator.terminal import age, note, result, result_json, seconds_since, table

COLUMNS = ("seat", "state", "doing", "waiting", "oldest", "dead", "active", "for", "why")


def status(data: str | None, org: str | None, *, as_json: bool) -> int:
    """Show an organisation's seats once."""
    api = Api.find(data)
    view = api.get(f"/internal/v1/organizations/{api.organisation(org).id}/status")
    if as_json:
        result_json(view)
        return 0
    on_terminal = sys.stdout.isatty()
    # On a terminal reasons stand below the table: they are long, and often the same.
    table(COLUMNS, rows_of(view, with_reasons=not on_terminal), title=title_of(view))
    if on_terminal:
        for line in reasons_of(view):
            result(line)
    for line in remarks_on(view, data):
        note(line)
    return 0


def title_of(view: Mapping[str, Any]) -> str:
    """The organisation's name and key."""
    return f"{view['display_name']} ({view['key']})"


def rows_of(view: Mapping[str, Any], *, with_reasons: bool) -> list[list[str]]:
    """A row of cells for each seat, as `COLUMNS` has them."""
    supervised = has_supervisor(view)
    return [
        _row(seat, why(seat, supervised=supervised) if with_reasons else "")
        for seat in view["seats"]
    ]


def reasons_of(view: Mapping[str, Any]) -> list[str]:
    """Why seats do nothing, a line for each reason with the seats that have it."""
    supervised = has_supervisor(view)
    found: dict[str, list[str]] = {}
    for seat in view["seats"]:
        reason = why(seat, supervised=supervised)
        if reason:
            found.setdefault(reason, []).append(seat["seat"])
    return [f"{_some(keys)}: {reason}" for reason, keys in found.items()]


def remarks_on(view: Mapping[str, Any], data: str | None) -> list[str]:
    """What is to be said about the organisation as a whole, with what to do."""
    if not view["seats"]:
        return ["the organisation has no seats; add some to its file and apply it"]
    found = []
    if not has_supervisor(view):
        found.append(f"{NOBODY}. Start one: {supervise_command(view['key'], data)}")
    for condition in failing_conditions(view):
        reason = condition.get("reason")
        if condition.get("untried"):
            found.append(f"not verified yet: steadmesh verify --org {view['key']}")
        else:
            found.append(f"not ok: {condition['name']}" + (f": {reason}" if reason else ""))
    return found


def failing_conditions(view: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions that do not hold, without the one that only sums them up."""
    conditions = view.get("conditions") or ()
    return [c for c in conditions if not c["ok"] and c["name"] != "OperationalReady"]


def supervise_command(key: str, data: str | None) -> str:
    """How to start a supervisor."""
    return shlex.join(["steadmesh", "supervise", key, *(["--data", data] if data else [])])


def _row(seat: Mapping[str, Any], reason: str) -> list[str]:
    active = age(seconds_since(seat.get("last_activity")))
    return [
        seat["seat"],
        seat["state"],
        doing(seat),
        str(seat["pending_messages"] or ""),
        age(seat.get("oldest_pending_age_seconds")),
        str(seat.get("dead_letters") or ""),
        active and f"{active} ago",
        ", ".join(seat.get("represents") or ()),
        reason,
    ]


def _some(keys: Sequence[str]) -> str:
    """The first few names, and how many more."""
    shown = ", ".join(keys[:_MOST_NAMES])
    more = len(keys) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


_MOST_NAMES = 8
