"""suspend, resume, delete: what an operator decides about seats and organisations."""

from __future__ import annotations

import sys

from steadmesh.operator.api import Api
from steadmesh.operator.terminal import confirmed, count, note
from steadmesh.operator.trouble import CommandFailed, WrongUse

RETENTIONS = ("retain", "delete")


def suspend(data: str | None, org: str | None, *, seat: str, reason: str | None) -> int:
    """Stop a seat until it is resumed; its mail waits."""
    api = Api.find(data)
    row = api.seat(api.organisation(org), seat)
    body = {} if reason is None else {"reason": reason}
    api.post(f"/internal/v1/seats/{row['seat_id']}:suspend", body)
    waits = row["pending_deliveries"]
    mail = f"; {count(waits, 'message waits', 'messages wait')}" if waits else ""
    note(f"{seat} is suspended{mail}. Go on: steadmesh resume {seat}")
    return 0


def resume(data: str | None, org: str | None, *, seat: str) -> int:
    """Let a suspended seat go on."""
    api = Api.find(data)
    row = api.seat(api.organisation(org), seat)
    if not row["suspended"]:
        note(f"{seat} was not suspended; it is {row['state']}")
        return 0
    api.post(f"/internal/v1/seats/{row['seat_id']}:resume", {})
    note(f"{seat} is resumed")
    return 0


def delete(data: str | None, *, key: str, retention: str, yes: bool) -> int:
    """Retire an organisation with all its seats; with `delete` its data goes too."""
    if retention not in RETENTIONS:
        raise WrongUse(f"--retention: {retention} is neither of {', '.join(RETENTIONS)}")
    api = Api.find(data)
    organisation = api.organisation(key)
    seats = count(len(api.seats(organisation)), "seat", "seats")
    if retention == "delete":
        what = f"every message, note and workspace of its {seats} is removed for good"
    else:
        what = f"its {seats} retire at once; the data is kept"
    note(f"{organisation.display_name} ({key}) will be deleted: {what}")
    if not yes and not confirmed("Type the key of the organisation to go on:", key):
        if sys.stdin.isatty():
            raise CommandFailed("that is not its key; nothing was done")
        raise CommandFailed("nothing was done; without a terminal to ask on, say --yes")
    api.delete(f"/internal/v1/organizations/{organisation.id}?retention={retention}")
    note(f"{key} is deleted")
    return 0
