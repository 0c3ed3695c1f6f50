"""verify: a fresh look at everything an organisation needs to work, a probe of every seat included."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from steadmesh.kernel import durations
from steadmesh.operator.api import Api, Organisation, Refused
from steadmesh.operator.terminal import count, note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed, WrongUse

LOOK_SECONDS = 0.5
"""Between two looks, and a hundredth of a second more for each seat: a look at many is work."""
AT_ONCE = 8
"""Seats that are asked at a time: all of a large organisation at once would only be slower."""
SUPERVISOR_SECONDS = 2.0
"""How long a supervisor that is just starting may take to say so."""
BLOCKED_SECONDS = 3.0
"""How long a seat may be called blocked before that is believed: it may be old news."""
READY = "OperationalReady"


def verify(data: str | None, org: str | None, *, timeout: str, as_json: bool) -> int:
    """Check connections, people and every seat anew; 0 when the organisation is ready."""
    limit = _seconds(timeout)
    api = Api.find(data)
    organisation = api.organisation(org)
    checks = api.post(f"/internal/v1/organizations/{organisation.id}/verify", {})
    probing = _Probing(api, organisation, limit=limit, limit_text=timeout)
    problem = probing.run()
    view = _status(api, organisation)
    conditions = _judged(view, probing.failures, problem)
    ready = next(condition for condition in conditions if condition["name"] == READY)
    if as_json:
        result_json(
            {
                "organization": organisation.key,
                "ready": ready["ok"],
                "reason": ready.get("reason"),
                "conditions": conditions,
                **checks,
                "seats": _seats(view, probing.failures),
            }
        )
    else:
        _show(conditions, _seats(view, probing.failures))
    if not ready["ok"]:
        raise CommandFailed(f"{organisation.key} is not ready: {ready['reason']}")
    if not as_json:
        result(f"{organisation.key} is ready")
    return 0


@dataclass(slots=True)
class _Asked:
    """A seat that was asked to show that it works."""

    probe_id: str
    at: float
    detail: str
    """What was said of the seat then: old news."""
    blocked_since: float | None = None


@dataclass
class _Probing:
    """One pass of probes over the seats of an organisation. Times are monotonic seconds."""

    api: Api
    organisation: Organisation
    limit: float
    limit_text: str
    asked: dict[str, _Asked] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)
    """Why a seat did not pass, by key."""

    def run(self) -> str | None:
        """Probe every seat, and wait for the answers. Why that cannot be done, if so."""
        view = self._first_view()
        reason = self._nobody_starts(view)
        if reason is not None:
            return reason
        give_up = time.monotonic() + self.limit
        with _progress() as show:
            while self._step(view):
                show(self._words(view))
                if time.monotonic() >= give_up:
                    self._out_of_time(view)
                    return None
                time.sleep(LOOK_SECONDS + len(view["seats"]) / 100)
                view = _status(self.api, self.organisation)
                reason = self._nobody_starts(view)
                if reason is not None:
                    return reason
        return None

    def _first_view(self) -> dict[str, Any]:
        """With a moment of patience for a supervisor that is about to say that it is there."""
        give_up = time.monotonic() + SUPERVISOR_SECONDS
        view = _status(self.api, self.organisation)
        while self._nobody_starts(view) and time.monotonic() < give_up:
            time.sleep(LOOK_SECONDS)
            view = _status(self.api, self.organisation)
        return view

    def _nobody_starts(self, view: dict[str, Any]) -> str | None:
        seats = [_seat_of(view, key) for key in self._open(view)]
        stopped = [seat["seat"] for seat in seats if not (seat["running"] or seat["suspended"])]
        if not stopped or view.get("supervisor"):
            return None
        return (
            f"{', '.join(stopped)} cannot be probed, for no supervisor is running. Start one: "
            f"steadmesh supervise {self.organisation.key}"
        )

    def _open(self, view: dict[str, Any]) -> list[str]:
        """Seats without a result yet, those that were asked included."""
        keys = [seat["seat"] for seat in view["seats"] if "retiring_until" not in seat]
        return [key for key in keys if key not in self.passed and key not in self.failures]

    def _step(self, view: dict[str, Any]) -> bool:
        """Take in what has come, and ask more seats; whether there is anything left to wait for."""
        still = self._open(view)
        for gone in set(self.asked) - set(still):
            del self.asked[gone]
        for key in list(self.asked):
            self._look(_seat_of(view, key), self.asked[key])
        for key in still:
            if len(self.asked) >= AT_ONCE:
                break
            if key not in self.asked and key not in self.passed and key not in self.failures:
                self._ask(_seat_of(view, key))
        return bool(self.asked)

    def _ask(self, seat: dict[str, Any]) -> None:
        if seat["suspended"]:
            self.failures[seat["seat"]] = seat["reason"]
            return
        try:
            started = self.api.post(f"/internal/v1/seats/{seat['seat_id']}/probe", {})
        except Refused as refusal:
            if refusal.status != 404:
                raise
            self.failures[seat["seat"]] = str(refusal)  # retiring since we looked
            return
        self.asked[seat["seat"]] = _Asked(
            started["probe_id"], time.monotonic(), seat.get("detail", "")
        )

    def _look(self, seat: dict[str, Any], asked: _Asked) -> None:
        key, probe = seat["seat"], seat.get("probe") or {}
        if probe.get("probe_id") != asked.probe_id:  # somebody else has asked after us
            path = f"/internal/v1/seats/{seat['seat_id']}/probe/{asked.probe_id}"
            probe = self.api.get(path)
        if probe["status"] == "passed":
            del self.asked[key]
            if probe.get("revision") == seat["config_revision"]:
                self.passed.add(key)
            # Else it answered before it took up its new configuration, and is asked again.
        elif probe["status"] == "failed":
            del self.asked[key]
            self.failures[key] = f"its probe failed: {probe.get('reason', 'without a reason')}"
        else:
            reason = _hopeless(seat, asked)
            if reason is not None:
                del self.asked[key]
                self.failures[key] = reason

    def _out_of_time(self, view: dict[str, Any]) -> None:
        for key in self._open(view):
            seat = _seat_of(view, key)
            said = f": {seat['detail']}" if seat.get("detail") else ""
            self.failures[key] = f"no answer in {self.limit_text} ({seat['state']}{said})"

    def _words(self, view: dict[str, Any]) -> str:
        done, total = len(self.passed) + len(self.failures), len(view["seats"])
        states = [f"{key} {_seat_of(view, key)['state'].lower()}" for key in sorted(self.asked)]
        return f"probing seats: {done} of {total}; {', '.join(states)}"


def _hopeless(seat: dict[str, Any], asked: _Asked) -> str | None:
    """Why a seat will not answer, once that is clear from news since it was asked."""
    detail = seat.get("detail", "")
    is_news = detail != asked.detail
    if seat["state"] != "Blocked":
        asked.blocked_since = None
        failed = not seat["running"] and is_news and "failed" in detail
        return detail if failed else None
    now = time.monotonic()
    asked.blocked_since = asked.blocked_since or now
    lasts = now - asked.blocked_since >= BLOCKED_SECONDS
    is_retried = "tried again" in detail  # then an old reason may be gone at the next try
    return f"blocked: {detail}" if is_news or (lasts and not is_retried) else None


def _judged(
    view: dict[str, Any], failures: dict[str, str], problem: str | None
) -> list[dict[str, Any]]:
    """The conditions, with what this pass has found: a seat that passed before has to pass now."""
    own = [f"{key}: {reason}" for key, reason in sorted(failures.items())]
    own = [problem, *own] if problem else own
    found: list[dict[str, Any]] = []
    for condition in view["conditions"]:
        name = condition["name"]
        if name == "RoutesExecutable" and own:
            more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
            found.append({"name": name, "ok": False, "reason": f"{own[0]}{more}"})
        elif name == READY:
            false = next((c for c in found if not c["ok"]), None)
            reason = {} if false is None else {"reason": f"{false['name']}: {false['reason']}"}
            found.append({"name": name, "ok": false is None, **reason})
        else:
            found.append(condition)
    return found


def _seats(view: dict[str, Any], failures: dict[str, str]) -> dict[str, dict[str, Any]]:
    found = {}
    for seat in view["seats"]:
        reason = failures.get(seat["seat"]) or seat.get("reason")
        probe = seat.get("probe") or {}
        found[seat["seat"]] = {
            "ready": reason is None,
            "reason": reason,
            "checks": probe.get("checks", {}),
        }
    return found


def _show(conditions: list[dict[str, Any]], seats: dict[str, dict[str, Any]]) -> None:
    rows = [
        [condition["name"], "yes" if condition["ok"] else "no", condition.get("reason", "")]
        for condition in conditions
        if not condition.get("informational")
    ]
    table(["condition", "holds", "why"], rows)
    table(
        ["seat", "ready", "why"],
        [
            [key, "yes" if seat["ready"] else "no", seat["reason"] or ""]
            for key, seat in seats.items()
        ],
    )
    for condition in conditions:
        if condition.get("informational") and not condition["ok"]:
            note(f"works without: {condition.get('reason', '')}")
    if seats:
        ready = sum(seat["ready"] for seat in seats.values())
        note(f"{ready} of {count(len(seats), 'seat', 'seats')} ready")


def _status(api: Api, organisation: Organisation) -> dict[str, Any]:
    view: dict[str, Any] = api.get(f"/internal/v1/organizations/{organisation.id}/status")
    return view


def _seat_of(view: dict[str, Any], key: str) -> dict[str, Any]:
    seat: dict[str, Any] = next(seat for seat in view["seats"] if seat["seat"] == key)
    return seat


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A line that moves, on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status("probing seats") as line:
        yield line.update


def _seconds(text: str) -> float:
    try:
        seconds = durations.parse(text) / durations.SECOND
    except ValueError:
        seconds = 0.0
    if seconds < 1:
        raise WrongUse("--timeout: give a duration of at least a second, such as 90s or 10m")
    return seconds
