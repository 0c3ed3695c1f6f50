"""clock.now: what time it is."""

from __future__ import annotations

from typing import Annotated

from steadmesh.kernel.clock import SECOND, rfc3339
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.localtime import local_text
from steadmesh.kernel.zones import is_zone
from steadmesh.seats.identity import SeatCall
from steadmesh.tools import Args, Doc, Result, tool


class UnknownZone(Invalid):
    """timezone: {zone} is no time zone. Use a name such as Europe/Paris or UTC, in exact case."""


class ClockNow(Args):
    timezone: Annotated[str | None, Doc("IANA zone, such as Europe/Paris. Default: yours.")] = None


class Now(Result):
    now: str
    rfc3339: str
    timezone: str


@tool("clock.now", reads=True)
def now(call: SeatCall, args: ClockNow) -> Now:
    """The current time in your time zone, or another."""
    zone = call.caller.timezone if args.timezone is None else args.timezone
    if not is_zone(zone):
        raise UnknownZone(zone=zone)
    whole = call.now // SECOND * SECOND
    return Now(now=local_text(call.now, zone), rfc3339=rfc3339(whole), timezone=zone)
