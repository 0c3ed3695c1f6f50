"""How much of something fits."""

from __future__ import annotations

from collections.abc import Callable


def largest_that_fits(most: int, fits: Callable[[int], bool], *, least: int = 0) -> int:
    """The largest count up to `most` that fits, where all below it fit too; `least` is taken anyway."""
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
