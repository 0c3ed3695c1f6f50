"""Output: results on stdout, everything else on stderr, colour only on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from steadmesh.kernel.text import for_terminal

if TYPE_CHECKING:
    from rich.table import Table


def result(text: str) -> None:
    """A line of what was asked for."""
    print(text)


def note(text: str) -> None:
    """A word to the person; never part of the result."""
    with contextlib.suppress(OSError):  # the terminal may have been closed meanwhile
        print(text, file=sys.stderr, flush=True)


def result_json(value: Any) -> None:
    """JSON alone, for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """A table: drawn on a terminal, with tabs between the cells in a pipe.

    In a pipe the columns are always the same; on a terminal those without content are left out.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print("\t".join(row))
        return
    from rich.console import Console

    Console().print(drawn(columns, rows, title=title))


def drawn(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    style: str = "none",
    keep: Collection[str] = (),
) -> Table:
    """The table for a terminal; columns without content are left out, but for those to keep.

    What would steer the terminal is taken out of the cells.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, style=style)
    shown = [
        place
        for place, name in enumerate(columns)
        if name in keep or any(row[place] for row in rows)
    ]
    for place in shown:
        short = all(len(row[place]) <= _NEVER_BROKEN for row in rows)
        made.add_column(columns[place], overflow="fold", no_wrap=short)
    for row in rows:
        cells = [for_terminal(row[place]) for place in shown]
        made.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return made


_NEVER_BROKEN = 24
"""Characters: a column of cells up to this length keeps each on one line."""

_STYLES = {
    "Executing": "green",
    "Warm": "green",
    "Quiescing": "yellow",
    "Provisioning": "yellow",
    "Retiring": "yellow",
    "Recovering": "red",
    "Blocked": "red",
    "Stopped": "dim",
}


def write_to_nobody() -> None:
    """Whoever read our output has gone: what is still written goes nowhere, and does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def count(number: int, one: str, several: str) -> str:
    """`1 seat`, `5 seats`."""
    return f"{number} {one if number == 1 else several}"


def age(seconds: int | None) -> str:
    """`3 s`, `5 min`, `2 h`, `4 days`; nothing for nothing."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    if seconds < 172_800:
        return f"{seconds // 3_600} h"
    return f"{seconds // 86_400} days"


def moment(time: str) -> str:
    """A time of the service as this machine's clock says it: `14:03:07`, with the date if not today's."""
    then = datetime.fromisoformat(time).astimezone()
    is_today = then.date() == datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if is_today else f"{then:%Y-%m-%d %H:%M:%S}"


def seconds_since(time: str | None) -> int | None:
    """By this machine's clock, which may be a little behind the service's."""
    if time is None:
        return None
    return max(0, int((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()))


def confirmed(question: str, expected: str) -> bool:
    """Whether the person types what is expected; where nobody can be asked, she did not."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == expected


def never_fail_on_characters() -> None:
    """What the terminal's encoding does not have is written as an escape instead of ending us."""
    for stream in (sys.stdout, sys.stderr):
        _set_errors(stream, "backslashreplace")
    _set_errors(sys.stdin, "replace")


def _set_errors(stream: TextIO | None, how: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=how)
