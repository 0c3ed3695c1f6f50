"""The family of people: each with her own token, on the paths of her channel only."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.crypto import digest, same
from steadmesh.kernel.database import Locks, Transaction, shared
from steadmesh.kernel.errors import Unauthenticated, Unavailable
from steadmesh.kernel.text import flaw
from steadmesh.seats import organisation
from steadmesh.seats.connections._secrets import Entries, Secrets, SecretUnreadable
from steadmesh.tools import Call, Caller, Credentials, Family, Tool

log = logging.getLogger(__name__)


class NoToken(Unauthenticated):
    """This needs your own token as `Authorization: Bearer …`; whoever runs the organisation hands it out."""


class BadToken(Unauthenticated):
    """This token is of no user of the connection {connection} of {organization}. Check all three."""


class NotConfigured(Unavailable):
    """The service cannot check tokens of {organization}/{connection} now; its log says why. Try again later."""


_secrets = Secrets()
"""Of every service in this process: a reference means the same to all of them."""


@dataclass(slots=True)
class PersonCaller(Caller):
    """A verified user of a connection, whether or not a binding ties her to a seat."""

    organisation_id: str
    connection: str
    external_user_id: str


def authenticate(tx: Transaction, credentials: Credentials, now: Instant) -> PersonCaller:
    """Whose token it is, on the connection that the path names."""
    organization = credentials.path.get("organization", "")
    connection = credentials.path.get("connection", "")
    if not credentials.bearer:
        raise NoToken()
    # PostgreSQL would refuse the very question after a name with a NUL in it.
    row = None if flaw(organization) else organisation.organisation_by_key(tx, organization)
    reference = _terminals(row["document"]).get(connection) if row else None
    if row is None or reference is None:
        raise BadToken(organization=organization, connection=connection)
    try:
        entries = _secrets.entries(reference, now)
    except SecretUnreadable as problem:
        fields = {"organisation": organization, "connection": connection, "reason": str(problem)}
        log.error("the secret of a connection cannot be read", extra={"fields": fields})
        raise NotConfigured(organization=organization, connection=connection) from None
    user = _user(entries, credentials.bearer)
    if user is None:
        raise BadToken(organization=organization, connection=connection)
    return PersonCaller(
        name=f"{connection}/{user}",
        scope=row["id"],
        credential=digest(credentials.bearer),
        organisation_id=row["id"],
        connection=connection,
        external_user_id=user,
    )


def _admit(caller: PersonCaller, tool: Tool, credentials: Credentials) -> None:
    """Whoever was verified may call every route of the channel."""


def _confirm(call: Call[PersonCaller]) -> None:
    call.caller = authenticate(call.tx, call.credentials, call.now)


def _locks(caller: PersonCaller, tool: Tool) -> Locks:
    return [shared("organisation", caller.organisation_id)]


def _user(entries: Entries, token: str) -> str | None:
    """Whose token it is. Every entry is compared, so that the time tells nothing."""
    given = token.encode("utf-8", "surrogatepass")
    found = [user for user, expected in entries.items() if same(expected.encode(), given)]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=64)
def _terminals(document: str) -> Mapping[str, str]:
    """The secret reference of each terminal connection. Kept by the text, so no change is missed."""
    connections: Mapping[str, Any] = json.loads(document).get("connections", {})
    return {
        key: str(declared["secret_ref"])
        for key, declared in connections.items()
        if declared["adapter"] == "terminal"
    }


PEOPLE = Family("people", authenticate, _admit, _confirm, _locks)
