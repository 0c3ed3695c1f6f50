"""Time zone names: those of the shipped `tzdata` package, the same on every machine."""

from __future__ import annotations

import difflib
from functools import cache
from importlib.resources import files

UTC = "UTC"

# Names that depend on the machine they are read on, or stand for "no zone at all".
_NOT_ZONES = frozenset({"localtime", "Factory", "Local"})
_NOT_ZONE_FOLDERS = ("posix", "right/")


@cache
def names() -> frozenset[str]:
    """Every valid zone name, in its exact case."""
    listed = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(
        name for name in listed if name not in _NOT_ZONES and not name.startswith(_NOT_ZONE_FOLDERS)
    )


def is_zone(name: str) -> bool:
    """Whether `name` names a zone. Case counts; the empty string is no zone."""
    return name in names()


def nearest(name: str) -> str | None:
    """The valid name that `name` was most likely meant to be, or None."""
    wanted = name.strip().replace(" ", "_").casefold()
    by_folded = {zone.casefold(): zone for zone in sorted(names())}
    if wanted in by_folded:
        return by_folded[wanted]
    # People know the city better than its continent.
    for folded, zone in by_folded.items():
        if folded.rsplit("/", 1)[-1] == wanted:
            return zone
    close = difflib.get_close_matches(wanted, by_folded, n=1, cutoff=0.75)
    return by_folded[close[0]] if close else None
