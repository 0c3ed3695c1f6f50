"""Which supervisor runs the seats of an organisation: one claim, kept by renewing it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from steadmesh.kernel.clock import SECOND, Instant, rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive, shared
from steadmesh.kernel.errors import Conflict, NotFound
from steadmesh.seats.identity import _store
from steadmesh.seats.organisation import organisation
from steadmesh.tools import Args, Call, Doc, NotBlank, Result, Size, endpoint

TTL = 30 * SECOND
NOBODY = "no supervisor is running: mail will wait"
"""What a sender, and whoever looks at the organisation, is told then."""


class NoSuchOrganisation(NotFound):
    """There is no organisation with this id. `steadmesh status` lists those that are there."""


class SupervisorRuns(Conflict):
    """A supervisor on {host} (pid {pid}) runs the seats of this organisation; its claim holds until {expires_at} and is renewed while it lives. Stand by, or stop it."""

    details = ("host", "pid", "expires_at", "instance", "machine", "started")


class Supervisor(Result):
    """The supervisor that was heard of in time."""

    host: str
    pid: int
    seen_at: str


def named_organisation(tx: Transaction, organisation_id: str) -> Row:
    """An organisation that is there, by its id. Raises `NoSuchOrganisation`."""
    row = organisation(tx, organisation_id)
    if row is None or row["deleted_at"] is not None:
        raise NoSuchOrganisation()
    return row


def live_supervisor(tx: Transaction, organisation_id: str, now: Instant) -> Supervisor | None:
    """Who runs the seats of an organisation now; None when nobody does."""
    row = _store.supervisor(tx, organisation_id)
    if row is None or row["expires_at"] <= now:
        return None
    return Supervisor(host=row["host"], pid=row["pid"], seen_at=rfc3339(row["seen_at"]))


def claim_of(tx: Transaction, caller: Any, args: Claim | EndClaim) -> Locks:
    return [
        shared("organisation", args.organization),
        exclusive("supervision", args.organization),
    ]


class Claim(Args):
    organization: str
    instance: Annotated[str, Doc("A name that no other supervisor has."), NotBlank(), Size(200)]
    host: Annotated[str, Doc("Its machine, for people."), NotBlank(), Size(255)]
    pid: Annotated[int, Field(gt=0)]
    machine: Annotated[
        str | None, Doc("Equal for those that see each other's processes and files."), Size(500)
    ] = None
    started: Annotated[
        str | None, Doc("When the process began, as its system words it."), Size(100)
    ] = None
    replaces: Annotated[
        str | None, Doc("The instance whose process is known to be gone: it is not waited for.")
    ] = None


class Claimed(Result):
    expires_at: str
    ttl_seconds: int
    continued: Annotated[bool, Doc("Nobody else had it since this instance last did.")]


@endpoint(
    "POST /internal/v1/organizations/{organization}/supervision", family="operator", locks=claim_of
)
def claim(call: Call[Any], args: Claim) -> Claimed:
    """Run the seats of an organisation from now on, or go on doing so for another 30 seconds."""
    named_organisation(call.tx, args.organization)
    held = _store.supervisor(call.tx, args.organization)
    continued = held is not None and held["instance"] == args.instance
    is_another = held is not None and held["instance"] not in (args.instance, args.replaces)
    if held is not None and is_another and held["expires_at"] > call.now:
        raise SupervisorRuns(
            host=held["host"],
            pid=held["pid"],
            expires_at=rfc3339(held["expires_at"]),
            instance=held["instance"],
            machine=held["machine"],
            started=held["started"],
        )
    _store.put_supervisor(
        call.tx,
        organisation_id=args.organization,
        instance=args.instance,
        host=args.host,
        pid=args.pid,
        machine=args.machine,
        started=args.started,
        seen_at=call.now,
        expires_at=call.now + TTL,
    )
    if not continued:
        call.tx.wake(f"runtime:{args.organization}")
    return Claimed(
        expires_at=rfc3339(call.now + TTL), ttl_seconds=TTL // SECOND, continued=continued
    )


class EndClaim(Args):
    organization: str
    instance: str


@endpoint(
    "DELETE /internal/v1/organizations/{organization}/supervision/{instance}",
    family="operator",
    locks=claim_of,
)
def end_claim(call: Call[Any], args: EndClaim) -> None:
    """Run the seats no more; whoever stands by may take over at once. Does nothing to another's claim."""
    if _store.drop_supervisor(call.tx, args.organization, args.instance):
        call.tx.wake(f"runtime:{args.organization}")
