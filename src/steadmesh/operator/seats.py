"""status, token, seat run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from steadmesh.operator.api import Api
from steadmesh.operator.terminal import age, note, result, result_json, table
from steadmesh.operator.trouble import WrongUse


def status(data: str | None, org: str | None, *, as_json: bool) -> int:
    """Show an organisation's seats."""
    api = Api.find(data)
    organisation = api.organisation(org)
    view = api.get(f"/internal/v1/organizations/{organisation.id}/status")
    if as_json:
        result_json(view)
        return 0
    columns = ["seat", "state", "waiting", "oldest", "dead", "last activity", "for", "why"]
    table(
        columns,
        [_row(seat) for seat in view["seats"]],
        title=f"{view['display_name']} ({view['key']})",
    )
    if not view["seats"]:
        note("the organisation has no seats; add some to its file and apply it")
    waiting = sum(seat["pending_messages"] for seat in view["seats"])
    if waiting and not any(seat["running"] for seat in view["seats"]):
        note(
            f"mail waits and no seat runs; if it stays so, no supervisor does: "
            f"steadmesh supervise {organisation.key}"
        )
    return 0


def _row(seat: dict[str, Any]) -> list[str]:
    return [
        seat["seat"],
        seat["state"],
        str(seat["pending_messages"] or ""),
        age(seat.get("oldest_pending_age_seconds")),
        str(seat.get("dead_letters") or ""),
        seat.get("last_activity", "")[:19].replace("T", " "),
        ", ".join(seat.get("represents", [])),
        seat.get("detail", ""),
    ]


def token(
    data: str | None, org: str | None, *, seat: str, instance: str, ttl: str, revoke: bool
) -> int:
    """Print a fresh token, or end those of an instance."""
    api = Api.find(data)
    organisation = api.organisation(org)
    seat_id = api.seat(organisation, seat)["seat_id"]
    if revoke:
        api.delete(f"/internal/v1/seats/{seat_id}/tokens/{quote(instance, safe='')}")
        note(f"every token of {seat} for the instance {instance} has ended")
        return 0
    issued = api.post(f"/internal/v1/seats/{seat_id}/tokens", {"instance": instance, "ttl": ttl})
    result(issued["token"])
    note(f"for the instance {instance}, until {issued['expires_at']}")
    return 0


def run(
    data: str | None, org: str | None, *, seat: str, command: list[str], print_mcp: bool
) -> int:
    """Run a command as a seat."""
    from steadmesh.runner import byhand

    if not command and not print_mcp:
        raise WrongUse("name a command to run: steadmesh seat run SEAT -- COMMAND…")
    api = Api.find(data)
    organisation = api.organisation(org)
    row = api.seat(organisation, seat)
    issued = api.post(f"/internal/v1/seats/{row['seat_id']}/tokens", {"instance": "manual"})
    folder = Path(tempfile.mkdtemp(prefix="steadmesh-seat-"))
    given = byhand.Seat(
        addresses=(str(api.operator),),
        organization_id=organisation.id,
        seat_id=row["seat_id"],
        seat_key=seat,
        token=issued["token"],
        folder=folder,
    )
    if print_mcp:
        result(json.dumps(byhand.mcp_configuration(given), indent=2))
        return 0
    return byhand.run(given, command)
