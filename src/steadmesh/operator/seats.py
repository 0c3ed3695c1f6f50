"""token, seat run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import quote

from steadmesh.client.address import NoService
from steadmesh.client.http import Unreachable
from steadmesh.operator.api import Api, data_directory
from steadmesh.operator.terminal import note, result, result_json
from steadmesh.operator.trouble import CommandFailed, WrongUse, say

BY_HAND = "seat-run"
"""The runner instance of `seat run`; not `manual`, whose token somebody may be using."""
LONGEST_RUN = "168h"


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
        workspace_of=row.get("workspace_of"),
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


def _issue(api: Api, seat_id: str, instance: str, *, ttl: str) -> dict[str, str]:
    body = {"instance": instance, "ttl": ttl}
    issued: dict[str, str] = api.post(f"/internal/v1/seats/{seat_id}/tokens", body)
    return issued


def _end_tokens(api: Api, seat_id: str, instance: str) -> None:
    api.delete(f"/internal/v1/seats/{seat_id}/tokens/{quote(instance, safe='')}")
