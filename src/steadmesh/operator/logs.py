"""logs: what a seat did, turn by turn, and the log of the service itself."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.api import Api, Refused, data_directory, nearest
from steadmesh.operator.following import AWAY, LEAST, Away, Ended, Service, ended_by_signals
from steadmesh.operator.logfile import LOG_NAME, Tail, last_lines, readable
from steadmesh.operator.reasons import NOBODY, doing, has_supervisor, sender, why
from steadmesh.operator.status import supervise_command
from steadmesh.operator.terminal import moment, note, result
from steadmesh.operator.trouble import CommandFailed

WAIT = 25.0
"""Seconds of one long poll; nothing is sent in between."""
TAIL_SECONDS = 0.5
_ONE_LINE = 300
"""Characters of an event's data on a line; --json has all of it."""


def seat_log(
    data: str | None, org: str | None, *, seat: str, follow: bool, limit: int, as_json: bool
) -> int:
    """Print a seat's last turns and events; with `follow`, also those to come."""
    service = Service(data, org)
    reader = SeatLog(service, data, seat, limit=limit, as_json=as_json)
    try:
        with ended_by_signals():
            reader.catch_up()
            while follow:
                reader.wait()
    except Ended as ended:
        return ended.status
    return 0


def service_log(data: str | None, *, follow: bool, limit: int, as_json: bool) -> int:
    """Print the last lines of the service's log, which lies in its data directory."""
    file = Path(data_directory(data)) / LOG_NAME
    show = result if as_json else _print_readable
    if not file.exists():
        raise CommandFailed(
            f"{file} is not there: no service has run on this data directory yet, or it runs "
            "elsewhere. Name its data directory with --data"
        )
    try:
        with ended_by_signals():
            tail = Tail(file)  # its end is marked before the lines up to there are read
            for line in last_lines(file, limit):
                show(line)
            sys.stdout.flush()
            while follow:
                for line in tail.new_lines():
                    show(line)
                sys.stdout.flush()
                time.sleep(TAIL_SECONDS)
    except Ended as ended:
        return ended.status
    return 0


class SeatLog:
    """Reads one seat's log page by page and prints what is new."""

    def __init__(
        self, service: Service, data: str | None, seat: str, *, limit: int, as_json: bool
    ) -> None:
        self._service = service
        self._data = data
        self._seat = seat
        self._limit = limit
        self._as_json = as_json
        organisation = service.organisation.id
        self._status = f"/internal/v1/organizations/{organisation}/status"
        self._place = f"/internal/v1/organizations/{organisation}/seats/{quote(seat, safe='')}/log"
        self._cursor = ""
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._said = ""
        self._is_away = False

    def catch_up(self) -> None:
        """Print all there is up to now."""
        while True:
            try:
                page = self._service.ask(
                    lambda api: api.get(self._place, limit=self._limit, after=self._cursor)
                )
            except Refused as refused:
                raise self._unknown(refused) from None
            except Away as away:
                raise CommandFailed(str(away)) from None
            self._print(page)
            if not page["more"]:
                break
        if not self._begun and not self._as_json:
            note(f"{page['seat']} has had no turn yet")
        self._say_why()

    def wait(self) -> None:
        """Print what comes next, once it comes; returns after a while without anything, too."""
        began = time.monotonic()
        wait = 0.0 if self._is_away else WAIT  # that it is there again is told at once
        try:
            page = self._service.ask(
                lambda api: api.poll(self._place, wait=wait, limit=self._limit, after=self._cursor)
            )
        except Away as away:
            if not self._is_away:
                note(f"the service does not answer; trying on. {away}")
            self._is_away = True
            time.sleep(AWAY)
            return
        if self._is_away:
            note("the service answers again")
            self._is_away = False
        if page is not None:
            self._print(page)
            if not page["more"]:
                self._say_why()
        time.sleep(max(0.0, began + LEAST - time.monotonic()))

    def _print(self, page: Mapping[str, Any]) -> None:
        self._cursor = page["cursor"]
        events: dict[str, list[Mapping[str, Any]]] = {}
        for event in page["events"]:
            events.setdefault(event["execution_id"], []).append(event)
        for turn in page["turns"]:
            own = turn["execution_id"]
            if own not in self._begun:
                self._begun.add(own)
                self._line(turn["started_at"], "turn", turn, begin_words(turn))
            for event in events.get(own, ()):
                self._line(event["at"], "event", event, event_words(event))
            is_cut = page["more"] and turn is page["turns"][-1]
            if turn["state"] != "running" and own not in self._ended and not is_cut:
                self._ended.add(own)
                self._line(turn["ended_at"], "end", turn, end_words(turn))
        sys.stdout.flush()

    def _line(self, at: str, what: str, entry: Mapping[str, Any], words: str) -> None:
        if self._as_json:
            print(json.dumps({"what": what, **entry}, ensure_ascii=False))
        else:
            result(for_terminal(f"{moment(at)}  {words}"))

    def _say_why(self) -> None:
        """Why nothing happens now, when that has changed."""
        try:
            view = self._service.ask(lambda api: api.get(self._status))
        except Away:
            return
        rows = [row for row in view["seats"] if self._seat in (row["seat"], row["seat_id"])]
        words = self._state_of(view, rows[0]) if rows else "retired: it does nothing any more"
        if words != self._said and not self._as_json:
            note(for_terminal(f"now: {words}"))
        self._said = words

    def _state_of(self, view: Mapping[str, Any], seat: Mapping[str, Any]) -> str:
        supervised = has_supervisor(view)
        if seat.get("turn"):
            return f"in a turn, {doing(seat)}" if not self._said else "in a turn"
        reason = why(seat, supervised=supervised)
        waiting = seat["pending_messages"]
        mail = f"{waiting} waiting" if waiting else "no mail waits"
        words = "; ".join(part for part in (f"{seat['state']}, {mail}", reason) if part)
        if NOBODY in words:
            words += f" (start one: {supervise_command(view['key'], self._data)})"
        if seat.get("dead_letters"):
            words += (
                f"; {seat['dead_letters']} given up: steadmesh dead-letters list"
                f" --seat {seat['seat']}"
            )
        return words

    def _unknown(self, refused: Refused) -> CommandFailed:
        if refused.status != 404:
            return refused
        with_seats = partial(Api.seats, organisation=self._service.organisation)
        known = sorted(self._service.ask(with_seats))
        key = self._service.organisation.key
        return CommandFailed(f"{key} has no seat {self._seat}.{nearest(self._seat, known)}")


def begin_words(turn: Mapping[str, Any]) -> str:
    """`turn began: mail from ada (message …)`, with the attempt from the second on."""
    attempt = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
    return f"turn began on mail from {sender(turn)}{attempt} (delivery {turn['delivery_id']})"


def end_words(turn: Mapping[str, Any]) -> str:
    """How a turn ended, and what becomes of its message."""
    words = f"turn {turn['state']}"
    if turn.get("error"):
        words += f": {_one_line(turn['error'])}"
    if turn.get("given_up"):
        letter = turn["delivery_id"]
        words += f". Given up: dead letter {letter}, see steadmesh dead-letters show {letter}"
    elif turn.get("next_attempt_at"):
        words += f". Tried again from {moment(turn['next_attempt_at'])}"
    return words


def event_words(event: Mapping[str, Any]) -> str:
    """What happened in a turn, on one line, indented below the turn."""
    kind, data = str(event["kind"]), dict(event.get("data") or {})
    tool = data.pop("tool", None)
    words = f"{_KINDS.get(kind, kind)} {tool}" if tool else _KINDS.get(kind, kind)
    if data.get("exit_code") == 0:
        del data["exit_code"]
    elif "exit_code" in data:
        words += f" failed ({data.pop('exit_code')})"
    for name in ("text", "arguments", "content", "outcome"):
        if len(left := {k: v for k, v in data.items() if v is not None}) == 1 and name in left:
            return f"  {words}: {_one_line(_plain(left[name]))}"
    left = {k: v for k, v in data.items() if v is not None}
    return f"  {words}: {_one_line(json.dumps(left, ensure_ascii=False))}" if left else f"  {words}"


_KINDS = {"tool_request": "calls", "tool_result": "answer of"}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    whole = " ⏎ ".join(text.splitlines())
    return whole if len(whole) <= _ONE_LINE else f"{whole[:_ONE_LINE]} …"


def _print_readable(line: str) -> None:
    result(readable(line))
