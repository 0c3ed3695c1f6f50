"""status, token, seat run."""

from __future__ import annotations

import contextlib
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from steadmesh.client.address import NoService
from steadmesh.client.http import Unreachable
from steadmesh.operator.api import Api, data_directory
from steadmesh.operator.terminal import age, note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed, WrongUse, say

BY_HAND = "seat-run"
"""The runner instance of `seat run`; not `manual`, whose token somebody may be using."""
LONGEST_RUN = "168h"


def status(data: str | None, org: str | None, *, as_json: bool) -> int:
    """Show an organisation's seats."""
    api = Api.find(data)
    organisation = api.organisation(org)
    view = api.get(f"/internal/v1/organizations/{organisation.id}/status")
    if as_json:
        result_json(view)
        return 0
    seats = view["seats"]
    reasons = _reasons(seats) if sys.stdout.isatty() else {}
    table(
        ["seat", "state", "waiting", "oldest", "dead", "active", "for", "why"],
        [_row(seat, with_reason=not reasons) for seat in seats],
        title=f"{view['display_name']} ({view['key']})",
    )
    for reason, keys in reasons.items():  # below the table: they are long, and often the same
        result(f"{', '.join(keys)}: {reason}")
    if not seats:
        note("the organisation has no seats; add some to its file and apply it")
    waiting = any(seat["pending_messages"] and seat["state"] == "Stopped" for seat in seats)
    if waiting and not any(seat["running"] for seat in seats):
        note(
            "mail waits and no seat runs; if it stays so, no supervisor does: "
            + shlex.join(
                ["steadmesh", "supervise", organisation.key, *(["--data", data] if data else [])]
            )
        )
    return 0


def token(
    data: str | None,
    org: str | None,
    *,
    seat: str,
    instance: str,
    ttl: str,
    revoke: bool,
    as_json: bool,
) -> int:
    """Print a fresh token, or end those of an instance."""
    api = Api.find(data)
    seat_id = api.seat(api.organisation(org), seat)["seat_id"]
    about = {"seat": seat, "seat_id": seat_id, "instance": instance}
    if revoke:
        _end_tokens(api, seat_id, instance)
        note(f"{seat} has no token for the instance {instance} any more")
        if as_json:
            result_json(about)
        return 0
    issued = _issue(api, seat_id, instance, ttl=ttl)
    if as_json:
        result_json(about | issued)
        return 0
    result(issued["token"])
    note(f"for the instance {instance}, until {issued['expires_at']}")
    return 0


def run(
    data: str | None, org: str | None, *, seat: str, command: list[str], print_mcp: bool
) -> int:
    """Run a command as a seat; its exit status."""
    if not command and not print_mcp:
        raise WrongUse("name a command to run: steadmesh seat run SEAT -- COMMAND…")
    from steadmesh.runner import byhand
    from steadmesh.runner.places import organisation_folder

    api = Api.find(data)
    organisation = api.organisation(org)
    row = api.seat(organisation, seat)
    by_hand = byhand.HandSeat(
        addresses=str(api.operator.service).split(", "),
        organization_id=organisation.id,
        seat_id=row["seat_id"],
        seat_key=seat,
        folder=organisation_folder(Path(data_directory(data)), organisation.key) / row["seat_id"],
        instance=BY_HAND,
        config_revision=row["config_revision"],
    )
    if print_mcp:
        result_json(byhand.mcp_configuration(by_hand))
        note(f"good while a command runs as {seat}: steadmesh seat run {seat} -- COMMAND…")
        return 0
    if row["lease_live"]:  # seen before a token is issued, which would shorten a running one's
        say(
            f"{seat} runs already, as {row['lease_holder'] or 'an unknown instance'}; end that first"
        )
        return byhand.NOT_OBTAINED
    issued = _issue(api, row["seat_id"], BY_HAND, ttl=LONGEST_RUN)
    status = byhand.run_by_hand(by_hand, command, token=issued["token"], tell=say)
    if status != byhand.NOT_OBTAINED:
        with contextlib.suppress(CommandFailed, Unreachable, NoService):
            _end_tokens(api, row["seat_id"], BY_HAND)
    return status


def _row(seat: dict[str, Any], *, with_reason: bool) -> list[str]:
    active = age(_seconds_since(seat.get("last_activity")))
    return [
        seat["seat"],
        seat["state"],
        str(seat["pending_messages"] or ""),
        age(seat.get("oldest_pending_age_seconds")),
        str(seat.get("dead_letters") or ""),
        active and f"{active} ago",
        ", ".join(seat.get("represents", [])),
        seat.get("detail", "") if with_reason else "",
    ]


def _reasons(seats: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What there is to say about the states of seats, and about which."""
    found: dict[str, list[str]] = {}
    for seat in seats:
        if seat.get("detail"):
            found.setdefault(seat["detail"], []).append(seat["seat"])
    return found


def _seconds_since(time: str | None) -> int | None:
    """By this machine's clock, which may be a little behind the service's."""
    if time is None:
        return None
    return max(0, int((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()))


def _issue(api: Api, seat_id: str, instance: str, *, ttl: str) -> dict[str, str]:
    body = {"instance": instance, "ttl": ttl}
    issued: dict[str, str] = api.post(f"/internal/v1/seats/{seat_id}/tokens", body)
    return issued


def _end_tokens(api: Api, seat_id: str, instance: str) -> None:
    api.delete(f"/internal/v1/seats/{seat_id}/tokens/{quote(instance, safe='')}")
