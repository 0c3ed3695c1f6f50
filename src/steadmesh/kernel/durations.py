"""Durations as people write them: `90m`, `1h30m`, `1.5h`.

One or more `<decimal><unit>` joined, units h, m, s, ms, us, ns. No days or weeks, because a day
is not always 24 hours long; no sign. In the program a duration is a whole number of nanoseconds.
"""

from __future__ import annotations

import re
from fractions import Fraction

NANOSECOND = 1
MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

LONGEST = 2**63 - 1
"""About 292 years: what fits the integer columns of both databases."""

_UNITS = {
    "h": HOUR,
    "m": MINUTE,
    "s": SECOND,
    "ms": MILLISECOND,
    "us": MICROSECOND,
    "ns": NANOSECOND,
}
_PIECE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(ms|us|ns|h|m|s)")


def parse(text: str) -> int:
    """The nanoseconds that `text` stands for; fractions of one are dropped.

    Raises ValueError, in words for whoever wrote the text, when it is no duration or is longer
    than `LONGEST`.
    """
    total = Fraction(0)
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            break
        total += Fraction(piece[1]) * _UNITS[piece[2]]
        position = piece.end()
    if not text or position < len(text):
        raise ValueError("a duration is numbers with units h, m, s, ms, us or ns, such as 1h30m")
    if total > LONGEST:
        raise ValueError("a duration can be at most about 292 years (2562047h)")
    return int(total)


def show(nanoseconds: int) -> str:
    """The shortest way to write it in whole units: `20m`, `1h30m`, `10ms`; nothing is `0s`.

    Negative durations do not exist; raises ValueError.
    """
    if nanoseconds < 0:
        raise ValueError("a duration cannot be negative")
    pieces = []
    rest = nanoseconds
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            pieces.append(f"{count}{unit}")
    return "".join(pieces) or "0s"
