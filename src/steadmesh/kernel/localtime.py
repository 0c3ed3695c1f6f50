"""Instants as people in a zone read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from steadmesh.kernel.clock import SECOND, Instant


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """A zone of the `tzdata` package, whatever the machine has. The name has to be valid."""
    with files("tzdata").joinpath("zoneinfo").joinpath(*name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


def local_text(instant: Instant, zone_name: str) -> str:
    """`Mon 2026-10-12 09:00 AEDT (+11:00)`."""
    moment = _local(instant, zone_name)
    return (
        f"{_DAYS[moment.weekday()]} {moment:%Y-%m-%d %H:%M} {moment.tzname()} ({_offset(moment)})"
    )


def turn_text(instant: Instant, zone_name: str) -> str:
    """`Thu 2026-10-08T04:00:12+02:00 (Europe/Paris)`."""
    moment = _local(instant, zone_name)
    day = _DAYS[moment.weekday()]
    return f"{day} {moment:%Y-%m-%dT%H:%M:%S}{_offset(moment)} ({zone_name})"


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # strftime would ask the locale


def _local(instant: Instant, zone_name: str) -> datetime:
    return datetime.fromtimestamp(instant // SECOND, UTC).astimezone(zone(zone_name))


def _offset(moment: datetime) -> str:
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
