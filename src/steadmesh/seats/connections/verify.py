"""verify: whether the organisation's ways to the outside work at this moment. Nothing is remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from steadmesh.kernel.database import Row, Transaction
from steadmesh.kernel.errors import Invalid
from steadmesh.seats import organisation as organisations
from steadmesh.seats.connections._secrets import Entries, SecretUnreadable, secret_entries
from steadmesh.seats.identity import live_seats, named_organisation
from steadmesh.seats.organisation import (
    Binding,
    Connection,
    InvalidOrganisation,
    Organisation,
    in_force,
)
from steadmesh.tools import Args, Call, Doc, Result, endpoint

AVAILABLE = ("terminal",)
"""Adapters that this version has."""


class Check(Result):
    ok: bool
    detail: Annotated[str | None, Doc("What is wrong and where, when it is not ok.")] = None


class ConnectionCheck(Check):
    adapter: str
    required: Annotated[bool, Doc("A failing one that is not required never blocks readiness.")]


class Verified(Result):
    """By the keys of connections and bindings."""

    connections: dict[str, ConnectionCheck]
    ingress: Annotated[dict[str, Check], Doc("Whether what people write comes in.")]
    bindings: dict[str, Check]
    credentials: Annotated[dict[str, Check], Doc("Whether the secret holds what is needed.")]


class NotValidNow(Invalid):
    """The organisation file in force is not valid in this version ({first}). Correct it and apply it again."""


class Verify(Args):
    organization: str


@endpoint("POST /internal/v1/organizations/{organization}/verify", family="operator", audited=True)
def verify(call: Call[Any], args: Verify) -> Verified:
    """Check connections, ingress, bindings and credentials anew. That it answers shows that the database takes writes."""
    row = named_organisation(call.tx, args.organization)
    try:
        return checks_of(call.tx, row)
    except InvalidOrganisation as invalid:
        first = invalid.problems[0]
        raise NotValidNow(first=f"{first.path}: {first.message}") from None


def checks_of(tx: Transaction, row: Row) -> Verified:
    """The checks of an organisation in force; each secret is read once, and none is in the result.

    Raises InvalidOrganisation, as `in_force` does.
    """
    organisation = in_force(row["document"])
    secrets = {key: _secret(c.secret_ref) for key, c in sorted(organisation.connections.items())}
    credentials = {
        key: _credentials(organisation.connections[key], secret) for key, secret in secrets.items()
    }
    ingress = {
        key: _ingress(organisation, connection, secrets[key])
        for key, connection in sorted(organisation.connections.items())
        if connection.kind == "communication"
    }
    seats = {seat["key"]: seat for seat in live_seats(tx, row["id"])}
    return Verified(
        connections={
            key: _connection(connection, credentials[key])
            for key, connection in sorted(organisation.connections.items())
        },
        ingress=ingress,
        bindings={
            key: _binding(tx, row["id"], binding, seats, secrets[binding.connection], organisation)
            for key, binding in sorted(organisation.bindings.items())
        },
        credentials=credentials,
    )


@dataclass(frozen=True, slots=True)
class _Secret:
    entries: Entries
    problem: str | None = None


def _secret(reference: str) -> _Secret:
    try:
        return _Secret(secret_entries(reference))
    except SecretUnreadable as problem:
        return _Secret({}, str(problem))


_GOOD = Check(ok=True)


def _wrong(detail: str) -> Check:
    return Check(ok=False, detail=detail)


def _credentials(connection: Connection, secret: _Secret) -> Check:
    if secret.problem is not None:
        return _wrong(secret.problem)
    if connection.adapter == "terminal":
        return _GOOD if secret.entries else _wrong("the secret has no token of any user")
    wanted = organisations.ADAPTERS[connection.adapter].secret_keys
    missing = [name for name in wanted if not secret.entries.get(name, "").strip()]
    if connection.adapter == "github" and missing:
        app = ("app_id", "installation_id", "private_key")
        if all(secret.entries.get(name, "").strip() for name in app):
            return _GOOD
        return _wrong(f"the secret has neither token nor all of {', '.join(app)}")
    return _wrong(f"the secret has no {', no '.join(missing)}") if missing else _GOOD


def _connection(connection: Connection, credentials: Check) -> ConnectionCheck:
    found = credentials
    if connection.adapter not in AVAILABLE:
        found = _wrong(_unavailable(connection))
    return ConnectionCheck(
        ok=found.ok,
        detail=found.detail,
        adapter=connection.adapter,
        required=connection.required,
    )


def _ingress(organisation: Organisation, connection: Connection, secret: _Secret) -> Check:
    """A token that is blank or of two users lets nobody in. Only names of the file are repeated."""
    if connection.adapter not in AVAILABLE:
        return _wrong(_unavailable(connection))
    if secret.problem is not None:
        return _wrong(secret.problem)
    users = sorted(
        binding.external_user_id
        for binding in organisation.bindings.values()
        if binding.connection == connection.key
    )
    times = Counter(secret.entries.values())
    shut_out = [
        user
        for user in users
        if user in secret.entries
        and (not secret.entries[user].strip() or times[secret.entries[user]] > 1)
    ]
    if shut_out:
        return _wrong(f"the token of {', '.join(shut_out)} is empty or also another user's")
    return _GOOD


def _binding(
    tx: Transaction,
    organisation_id: str,
    binding: Binding,
    seats: Mapping[str, Row],
    secret: _Secret,
    organisation: Organisation,
) -> Check:
    """A person is tied to a live seat that may answer her, over a connection that knows her."""
    seat = seats.get(binding.seat)
    if seat is None:
        return _wrong(f"the seat {binding.seat} is not there; apply the organisation file again")
    if seat["retire_by"] is not None:
        return _wrong(f"the seat {binding.seat} is retiring")
    stored = organisations.binding_of_user(
        tx, organisation_id, binding.connection, binding.external_user_id
    )
    if stored is None or stored["seat"] != binding.seat:
        return _wrong("it is not in force; apply the organisation file again")
    connection = organisation.connections[binding.connection]
    if connection.adapter not in AVAILABLE:
        return _wrong(_unavailable(connection))
    if secret.problem is None and binding.external_user_id not in secret.entries:
        return _wrong(
            f"the secret of {binding.connection} has no token of {binding.external_user_id}"
        )
    return _wrong(secret.problem) if secret.problem is not None else _GOOD


def _unavailable(connection: Connection) -> str:
    return f"adapter {connection.adapter} is not available in this version"
