"""Amounts of CPU and memory, written as in container files: `250m`, `2`, `512Mi`, `2Gi`."""

from __future__ import annotations

import re
from fractions import Fraction

_CPU = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(m?)")
_MEMORY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?")
_MEMORY_UNITS = {
    **{name: 1024**power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
    **{name: 1000**power for power, name in enumerate(("k", "M", "G", "T", "P"), 1)},
}


def cpu(text: str) -> Fraction:
    """Cores; a thousandth is `m`. Raises ValueError when it is none, or zero."""
    found = _CPU.fullmatch(text)
    amount = Fraction(found[1]) / (1000 if found[2] else 1) if found else Fraction(0)
    if not amount:
        raise ValueError("must be a number of cores such as 2, 0.5 or 250m")
    return amount


def memory(text: str) -> Fraction:
    """Bytes. Raises ValueError when it is no amount, or zero."""
    found = _MEMORY.fullmatch(text)
    amount = Fraction(found[1]) * _MEMORY_UNITS.get(found[2], 1) if found else Fraction(0)
    if not amount:
        raise ValueError("must be an amount of memory such as 512Mi or 2Gi")
    return amount
