"""How a talk looks: in colours on a terminal, as plain lines in a pipe, as JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.terminal import note, write_to_nobody

REPRESENTATIVE, PLATFORM = "representative", "platform"
BLUE, GREEN, YELLOW, DIM, PLAIN = "\x1b[1;36m", "\x1b[1;32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was said. `origin`: `you`, `platform`, or nothing for the representative."""

    id: str
    text: str
    at: str
    origin: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any]) -> Line:
        """From the channel's JSON."""
        return cls(event["id"], event["text"], event["at"], event.get("origin"))


class View(Protocol):
    """What a talk is shown on. Lines come from another thread than the rest."""

    @property
    def wants_past(self) -> bool:
        """Whether the last lines are shown when nobody said how many."""

    def began(self, *, user: str, organisation: str, representative: str | None) -> None:
        """The talk is open."""

    def past(self, lines: list[Line]) -> None:
        """What was said before, oldest first."""

    def said(self, line: Line) -> None:
        """Something new from the other side."""

    def sent(self, message_id: str, text: str) -> None:
        """The service has a message of the user's."""

    def remark(self, text: str) -> None:
        """A word on the talk itself."""

    def messages(self) -> AbstractContextManager[Iterator[str]]:
        """What the user says, a message at a time."""


def view_for(*, as_json: bool, lines: Callable[[], Iterator[str]]) -> View:
    """The view that suits where input comes from and output goes to. `lines` reads plain input."""
    if as_json:
        return JsonView(lines)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return TerminalView()
    return PlainView(lines)


class PlainView:
    """`representative> …`, a line each; for pipes and files."""

    wants_past = False

    def __init__(self, lines: Callable[[], Iterator[str]]) -> None:
        self._lines = lines

    def began(self, *, user: str, organisation: str, representative: str | None) -> None:
        """Nothing to say: whoever reads this knows whose talk it is."""

    def past(self, lines: list[Line]) -> None:
        for line in lines:
            _write(f"[{line.at[:16].replace('T', ' ')}] {line.origin or REPRESENTATIVE}> ", line)

    def said(self, line: Line) -> None:
        _write(f"{line.origin or REPRESENTATIVE}> ", line)

    def sent(self, message_id: str, text: str) -> None:
        """The exit status tells."""

    def remark(self, text: str) -> None:
        note(text)

    @contextmanager
    def messages(self) -> Iterator[Iterator[str]]:
        yield self._lines()


class JsonView(PlainView):
    """One JSON object a line; `event` says what it is: `talk`, `past`, `said`, `sent`, `remark`."""

    def began(self, *, user: str, organisation: str, representative: str | None) -> None:
        self._print("talk", user=user, organization=organisation, representative=representative)

    def past(self, lines: list[Line]) -> None:
        for line in lines:
            self._line("past", line)

    def said(self, line: Line) -> None:
        self._line("said", line)

    def sent(self, message_id: str, text: str) -> None:
        self._print("sent", id=message_id, text=text)

    def remark(self, text: str) -> None:
        self._print("remark", text=text)

    def _line(self, event: str, line: Line) -> None:
        origin = line.origin or REPRESENTATIVE
        self._print(event, id=line.id, text=line.text, at=line.at, origin=origin)

    def _print(self, event: str, **values: object) -> None:
        try:
            print(json.dumps({"event": event} | values, ensure_ascii=False), flush=True)
        except BrokenPipeError:
            write_to_nobody()


class TerminalView:
    """Names in colours, and a line of input that what comes in does not garble."""

    wants_past = True

    def __init__(self) -> None:
        self._user, self._representative = "you", REPRESENTATIVE

    def began(self, *, user: str, organisation: str, representative: str | None) -> None:
        self._user = user
        self._representative = representative or REPRESENTATIVE
        with_whom = representative or "nobody yet"
        note(
            f"{user} at {organisation}, with {with_whom}. Enter sends, Esc and Enter begins a new "
            "line, Ctrl-D ends"
        )

    def past(self, lines: list[Line]) -> None:
        for line in lines:
            when = datetime.fromisoformat(line.at).astimezone().strftime("%d %b %H:%M")
            self._write(f"{DIM}{when}{PLAIN} ", line, dim=True)
        if lines:
            print(f"{DIM}— earlier —{PLAIN}", flush=True)

    def said(self, line: Line) -> None:
        self._write("", line)

    def sent(self, message_id: str, text: str) -> None:
        """It stands above already."""

    def remark(self, text: str) -> None:
        print(f"{YELLOW}{for_terminal(text)}{PLAIN}", flush=True)

    @contextmanager
    def messages(self) -> Iterator[Iterator[str]]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.formatted_text import ANSI
        from prompt_toolkit.patch_stdout import patch_stdout

        session: PromptSession[str] = PromptSession(ANSI(f"{BLUE}{self._user}>{PLAIN} "))

        def typed() -> Iterator[str]:
            while True:
                try:
                    text = session.prompt()
                except EOFError:
                    return
                if text.strip():
                    yield text

        with patch_stdout(raw=True):
            yield typed()

    def _write(self, before: str, line: Line, *, dim: bool = False) -> None:
        names = {
            "you": (self._user, BLUE),
            PLATFORM: (PLATFORM, YELLOW),
            None: (self._representative, GREEN),
        }
        name, colour = names.get(line.origin, (str(line.origin), YELLOW))
        text = for_terminal(line.text)
        text = f"{DIM}{text}{PLAIN}" if dim else text
        print(f"{before}{colour}{for_terminal(name)}>{PLAIN} {text}", flush=True)


def _write(name: str, line: Line) -> None:
    try:
        print(f"{name}{for_terminal(line.text)}", flush=True)
    except BrokenPipeError:  # who reads us has heard enough; we go on sending
        write_to_nobody()
