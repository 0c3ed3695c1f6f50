"""status --watch: the table of seats, kept up to date until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.following import Ended, Picture, Service, ended_by_signals, pictures
from steadmesh.operator.reasons import has_supervisor, why
from steadmesh.operator.status import COLUMNS, reasons_of, remarks_on, rows_of, title_of
from steadmesh.operator.terminal import drawn, note, result, table

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.live import Live

REFRESH_SECONDS = 0.5
"""Ages go on between two pictures, and a resized terminal is filled anew."""


def watch(data: str | None, org: str | None, *, as_json: bool) -> int:
    """Show an organisation's seats until a signal ends it; the exit status."""
    service = Service(data, org)
    if as_json:
        return _repeated(service, data, _print_json)
    if not sys.stdout.isatty():
        return _repeated(service, data, _print_plain)
    from rich.console import Console

    console = Console()
    if console.is_dumb_terminal:
        return _repeated(service, data, _print_plain)
    return _on_screen(service, data, console)


# On a terminal


def _on_screen(service: Service, data: str | None, console: Console) -> int:
    from rich.live import Live

    board = Board(console, data)
    news = _followed(service)
    try:
        with (
            _signals_as_news(news),
            Live(board, console=console, screen=True, auto_refresh=False) as live,
        ):
            status = _shown(board, live, news)
    finally:
        if board.view is not None:  # the last picture stays, as the screen is taken away
            console.print(board.whole())
    return status


class _Pause:
    """Ctrl-Z was pressed."""


News = SimpleQueue[Picture | Exception | Ended | _Pause]
"""All that happens, for the one thread that draws: a signal never comes between its strokes."""


def _followed(service: Service) -> News:
    news: News = SimpleQueue()

    def follow() -> None:
        try:
            for picture in pictures(service):
                news.put(picture)
        except Exception as problem:
            news.put(problem)

    # A daemon: a poll that is under way when we end may go on for its whole wait.
    threading.Thread(target=follow, name="follow", daemon=True).start()
    return news


def _shown(board: Board, live: Live, news: News) -> int:
    """Draw until a signal asks for the end; the exit status."""
    live.refresh()
    while True:
        try:
            item = news.get(timeout=REFRESH_SECONDS)
        except Empty:
            live.refresh()
            continue
        match item:
            case Picture():
                board.show(item)
                live.refresh()
            case _Pause():
                live.stop()
                os.kill(os.getpid(), signal.SIGSTOP)  # and here it goes on
                live.start(refresh=True)
            case Ended():
                return item.status
            case _:
                raise item


@contextmanager
def _signals_as_news(news: News) -> Iterator[None]:
    """Ctrl-C, SIGTERM and Ctrl-Z. A second Ctrl-C does not disturb the clearing up."""

    def hear(number: int, frame: FrameType | None) -> None:
        news.put(_Pause() if number == signal.SIGTSTP else Ended(number))

    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP)
    before = {number: signal.signal(number, hear) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Board:
    """What stands on the screen; drawn anew with each refresh, for the size it then has."""

    def __init__(self, console: Console, data: str | None) -> None:
        self._console = console
        self._data = data
        self.view: Mapping[str, Any] | None = None
        self._seen = 0.0
        self._picture = Picture(None)

    def show(self, picture: Picture) -> None:
        """The newest picture; a view is kept while there is trouble."""
        self._picture = picture
        if picture.view is not None:
            self.view, self._seen = picture.view, time.monotonic()

    def __rich__(self) -> RenderableType:
        return self._drawn(self._console.size.height - 1)

    def whole(self) -> RenderableType:
        """All of it, however long."""
        return self._drawn(None)

    def _drawn(self, height: int | None) -> Group:
        from rich.console import Group
        from rich.text import Text

        if self.view is None:
            return Group(Text("asking the service …", style="dim"))
        view = _aged(self.view, time.monotonic() - self._seen)
        below = [Text(for_terminal(line)) for line in reasons_of(view)]
        below += [Text(for_terminal(line), style="yellow") for line in remarks_on(view, self._data)]
        below += [Text(line, style="bold red") for line in self._trouble()]
        lines = self._console.size.width
        taken = sum(1 + len(text) // max(1, lines) for text in below) + _HEADING
        left_out: list[Mapping[str, Any]] = []
        if height is not None and len(view["seats"]) + taken > height:
            view, left_out = _shortened(view, max(1, height - taken - 1))
        if left_out:
            below.insert(0, Text(f"… and {len(left_out)} more", style="dim"))
        heading = Text.assemble(
            (for_terminal(title_of(view)), "bold"),
            (f"   {datetime.now():%H:%M:%S}   {_supervisor(view)}", "dim"),
        )
        style = "dim" if self._picture.trouble else "none"
        rows = rows_of(view, with_reasons=False)
        seats = drawn(COLUMNS, rows, style=style, keep=_ALWAYS)
        return Group(heading, Text(), seats, *below)

    def _trouble(self) -> list[str]:
        if not self._picture.trouble:
            return []
        since = self._picture.since
        told = f" since {since.astimezone():%H:%M:%S}" if since else ""
        return [f"the service does not answer{told}; trying on. {self._picture.trouble}"]


_ALWAYS = ("doing", "waiting", "oldest", "dead", "active")
"""Columns that stay when they are empty, so that the table does not jump about."""
_HEADING = 3
"""Lines above the first seat: title, empty line, names of the columns."""


def _supervisor(view: Mapping[str, Any]) -> str:
    found = view.get("supervisor")
    if not found:
        return ""
    return for_terminal(f"supervisor on {found['host']} (pid {found['pid']})")


def _aged(view: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """The view with the ages that it has by now."""
    name = "oldest_pending_age_seconds"
    seats = [
        {**seat, name: seat[name] + int(seconds)} if seat.get(name) is not None else seat
        for seat in view["seats"]
    ]
    return {**view, "seats": seats}


def _shortened(
    view: Mapping[str, Any], room: int
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """As many seats as there is room for, those first where something goes on; and the others."""
    supervised = has_supervisor(view)

    def rank(seat: Mapping[str, Any]) -> int:
        if seat.get("turn") or why(seat, supervised=supervised):
            return 0
        return 1 if seat["pending_messages"] or seat.get("dead_letters") or seat["running"] else 2

    ordered = sorted(view["seats"], key=rank)
    return {**view, "seats": ordered[:room]}, ordered[room:]


# Into a pipe


def _repeated(service: Service, data: str | None, show: Any) -> int:
    """A new copy whenever something but an age has changed."""
    shown = ""
    away = False
    try:
        with ended_by_signals():
            for picture in pictures(service):
                if picture.view is None:
                    if not away:
                        note(f"the service does not answer; trying on. {picture.trouble}")
                    away = True
                    continue
                if away:
                    note("the service answers again")
                    away = False
                told = _without_ages(picture.view)
                if told != shown:
                    shown = told
                    show(picture.view, data)
                    sys.stdout.flush()
    except Ended as ended:
        return ended.status
    return 0


def _print_json(view: Mapping[str, Any], data: str | None) -> None:
    print(json.dumps(view, ensure_ascii=False))


def _print_plain(view: Mapping[str, Any], data: str | None) -> None:
    result(f"{title_of(view)} at {datetime.now():%H:%M:%S}")
    table(COLUMNS, rows_of(view, with_reasons=True))
    for line in remarks_on(view, data):
        result(line)
    result("")


def _without_ages(view: Mapping[str, Any]) -> str:
    moving = ("oldest_pending_age_seconds", "last_activity", "lease_expires_at", "seen_at")
    seats = [{k: v for k, v in seat.items() if k not in moving} for seat in view["seats"]]
    supervisor = {k: v for k, v in (view.get("supervisor") or {}).items() if k not in moving}
    return json.dumps({**view, "seats": seats, "supervisor": supervisor}, sort_keys=True)
