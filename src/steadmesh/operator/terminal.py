"""Output: results on stdout, everything else on stderr, colour only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any


def result(text: str) -> None:
    """A line of what was asked for."""
    print(text)


def note(text: str) -> None:
    """A word to the person; never part of the result."""
    print(text, file=sys.stderr, flush=True)


def result_json(value: Any) -> None:
    """JSON alone, for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """A table: drawn on a terminal, with tabs between the cells in a pipe."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(drawn)


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


def age(seconds: int | None) -> str:
    """`3 s`, `5 min`, `2 h`; nothing for nothing."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h"
