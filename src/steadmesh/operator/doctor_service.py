"""What the doctor asks the service: its database, supervisors, organisations and their seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steadmesh import __version__
from steadmesh.client.address import NoService
from steadmesh.client.http import BadAddress, Unreachable
from steadmesh.kernel.config import ConfigError
from steadmesh.operator import service
from steadmesh.operator.api import Api, Organisation, Refused
from steadmesh.operator.doctor import Finding, info, ok, wrong
from steadmesh.operator.doctor_machine import size
from steadmesh.operator.reasons import NOBODY, why
from steadmesh.operator.status import failing_conditions, supervise_command
from steadmesh.operator.terminal import age, count, seconds_since

LONG_WAIT = 1_800
"""Seconds. The longest turn takes 20 minutes, and mail behind one is not stuck."""
_MOST_NAMES = 5
_MOST_TABLES = 6


def findings(data: str | None) -> Iterator[Finding]:
    """All of it, as far as the service answers."""
    try:
        api = Api.find(data, patient=False)
        about = api.get("/internal/v1/service")
    except (NoService, BadAddress, ConfigError) as problem:
        yield wrong("service", str(problem), f"steadmesh serve{_with(data)}")
        return
    except Unreachable as problem:
        yield wrong(
            "service",
            f"its process is there, but {problem}",
            f"look into its log (steadmesh logs --service{_with(data)}), then "
            f"steadmesh restart{_with(data)}",
        )
        return
    except Refused as refused:
        yield wrong("service", str(refused), _about_refusal(refused, data))
        return
    yield from _service(api, about, data)
    try:
        yield from _organisations(api, data)
        yield from _sizes(api)
    except (Unreachable, Refused) as problem:
        yield wrong("service", f"it stopped answering: {problem}", "look again in a moment")


def _about_refusal(refused: Refused, data: str | None) -> str:
    if refused.status == 404:
        return f"an older version runs; start this one: steadmesh restart{_with(data)}"
    return "name the data directory with --data, or the key with STEADMESH_OPERATOR_KEY_FILE"


def _service(api: Api, about: Mapping[str, Any], data: str | None) -> Iterator[Finding]:
    up = age(seconds_since(about["started_at"]))
    yield ok("service", f"pid {about['pid']} at {_place(api, data)}, up for {up}")
    if about["version"] == __version__:
        yield ok("version", f"service and program are both {__version__}")
    else:
        yield wrong(
            "version",
            f"the service is {about['version']}, this program {__version__}",
            f"run the newer one everywhere; here: steadmesh restart{_with(data)}",
        )
    database = about["database"]
    where = f"{database['engine']}, {database['place']}"
    if database["ready"]:
        yield ok("database", where)
    else:
        reason = database.get("reason", "it does not answer")
        yield wrong("database", f"{where}: {reason}", "see the log: steadmesh logs --service")
    dropped = about["audit_rows_dropped"]
    if dropped:
        yield wrong(
            "audit",
            f"{count(dropped, 'row', 'rows')} lost since the start, as the database took them "
            "too slowly",
            "look at the disk and the load; rows of calls that write are never lost",
        )
    else:
        yield ok("audit", "no row lost since the start")


def _place(api: Api, data: str | None) -> str:
    try:
        address = service.running(data)
    except (NoService, ConfigError):
        address = None
    if address is not None and address.socket and address.socket in str(api.operator):
        return f"{address.url} and {api.operator}"
    return str(api.operator)


def _organisations(api: Api, data: str | None) -> Iterator[Finding]:
    organisations = api.organisations()
    if not organisations:
        yield info("organisations", "none yet; steadmesh apply FILE puts one in force")
    for organisation in organisations:
        view = api.get(f"/internal/v1/organizations/{organisation.id}/status")
        yield from _supervisor(organisation, view, data)
        yield from _conditions(organisation, view)
        yield from _seats(organisation, view)


def _supervisor(
    organisation: Organisation, view: Mapping[str, Any], data: str | None
) -> Iterator[Finding]:
    about = f"{organisation.key}, supervisor"
    found = view.get("supervisor")
    if found:
        heard = age(seconds_since(found["seen_at"]))
        yield ok(about, f"on {found['host']} (pid {found['pid']}), heard of {heard} ago")
    elif view["seats"]:
        yield wrong(about, NOBODY, supervise_command(organisation.key, data))
    else:
        yield info(about, "none, and no seat that would need one")


def _conditions(organisation: Organisation, view: Mapping[str, Any]) -> Iterator[Finding]:
    conditions = view.get("conditions")
    if not conditions:
        return
    about = f"{organisation.key}, conditions"
    failed = failing_conditions(view)
    if not failed:
        yield ok(about, f"all {len(conditions)} hold")
    look = f"steadmesh verify --org {organisation.key}"
    for condition in failed:
        says = f"{condition['name']} does not hold: {condition.get('reason', 'no reason is given')}"
        if condition.get("untried"):
            yield info(about, f"not verified yet; {look}")
        elif condition.get("informational"):
            yield info(about, says)
        else:
            yield wrong(about, says, f"a fresh look: {look}")


def _seats(organisation: Organisation, view: Mapping[str, Any]) -> Iterator[Finding]:
    about = f"{organisation.key}, seats"
    seats = view["seats"]
    problems = [
        *_blocked(about, organisation, view),
        *_dead(about, organisation, seats),
        *_late(about, organisation, view),
    ]
    yield from problems
    suspended = [seat["seat"] for seat in seats if seat.get("suspended")]
    if suspended:
        yield info(about, f"suspended by an operator: {_some(suspended)}")
    if seats and not problems:
        running = sum(seat["running"] for seat in seats)
        yield ok(about, f"{count(len(seats), 'seat', 'seats')}, {running} running, none stuck")


def _blocked(about: str, organisation: Organisation, view: Mapping[str, Any]) -> Iterator[Finding]:
    reasons: dict[str, list[str]] = {}
    for seat in view["seats"]:
        if seat["state"] == "Blocked" and not seat.get("suspended"):
            reasons.setdefault(why(seat, supervised=True), []).append(seat["seat"])
    for reason, keys in reasons.items():
        yield wrong(
            about, f"{_some(keys)} {reason}", "remove the cause; it is tried again every 30 s"
        )


def _dead(
    about: str, organisation: Organisation, seats: list[Mapping[str, Any]]
) -> Iterator[Finding]:
    dead = {seat["seat"]: seat["dead_letters"] for seat in seats if seat.get("dead_letters")}
    if dead:
        number = count(sum(dead.values()), "dead letter", "dead letters")
        yield wrong(
            about,
            f"{number}: {_some([f'{key} ({n})' for key, n in dead.items()])}",
            f"steadmesh dead-letters list --org {organisation.key}",
        )


def _late(about: str, organisation: Organisation, view: Mapping[str, Any]) -> Iterator[Finding]:
    waiting = [
        (seat["oldest_pending_age_seconds"], seat["seat"])
        for seat in view["seats"]
        if seat.get("oldest_pending_age_seconds") is not None
    ]
    late = sorted((found for found in waiting if found[0] >= LONG_WAIT), reverse=True)
    if late:
        oldest, key = late[0]
        yield wrong(
            about,
            f"mail waits for {age(oldest)} at {key}"
            + (f", and long at {count(len(late) - 1, 'other', 'others')}" if late[1:] else ""),
            f"steadmesh logs {key} --org {organisation.key}",
        )


def _sizes(api: Api) -> Iterator[Finding]:
    try:
        found = api.get("/internal/v1/sizes")
    except Refused as refused:
        if refused.status != 404:
            raise
        return
    tables = found.get("tables") or ()
    largest = [
        f"{table['name']} {size(table['bytes'])} ({table['rows']} rows, kept {table['kept']})"
        if table.get("kept")
        else f"{table['name']} {size(table['bytes'])} ({table['rows']} rows)"
        for table in tables[:_MOST_TABLES]
    ]
    free = found.get("free_bytes")
    room = f", {size(free)} of it free to be used again" if free else ""
    yield info("size", f"database {size(found['bytes'])}{room}; largest: {', '.join(largest)}")


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _with(data: str | None) -> str:
    return f" --data {data}" if data else ""
