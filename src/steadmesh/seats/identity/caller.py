"""The family of seats: who a token names, and whether its generation is the current one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.crypto import digest
from steadmesh.kernel.database import Locks, Row, Transaction, shared
from steadmesh.kernel.errors import Fenced, Forbidden, Unauthenticated
from steadmesh.seats.identity import _store
from steadmesh.seats.identity.policy import Policy, parse_policy
from steadmesh.tools import Call, Caller, Credentials, Family, Tool

TOKEN_PREFIX = "sms_"  # noqa: S105 - the word that tells a seat's token, not a secret


class NoSeatToken(Unauthenticated):
    """This needs the identity token of a seat, as `Authorization: Bearer sms_…`. `steadmesh token SEAT` prints one."""


class BadSeatToken(Unauthenticated):
    """This identity token is unknown or has expired. Read the token file again; `steadmesh token SEAT` makes a fresh one."""


class SeatNotActive(Forbidden):
    """The seat of this token is retired, or its organisation was deleted. It can do nothing any more."""

    ends_access = True


class NoGeneration(Fenced):
    """This call writes, so it needs the lease's generation (X-Steadmesh-Generation). Acquire the lease of the seat first."""


class StaleGeneration(Fenced):
    """A newer execution holds this seat's lease. Stop now and do not try again: what you write is refused."""


@dataclass(slots=True)
class SeatCaller(Caller):
    """A seat, as its token and the lease stand at this moment."""

    organisation_id: str
    organisation_key: str
    organisation_name: str
    seat_id: str
    seat_key: str
    display_name: str
    instance: str
    timezone: str
    adapter: str
    config_revision: str
    policy_revision: int
    policy: Policy
    retire_by: Instant | None
    generation: int
    released: bool


SeatCall = Call[SeatCaller]


def authenticate(tx: Transaction, credentials: Credentials, now: Instant) -> SeatCaller:
    """The seat that the bearer token names."""
    bearer = credentials.bearer
    if bearer is None:
        raise NoSeatToken()
    if not bearer.startswith(TOKEN_PREFIX):
        raise BadSeatToken()
    return _caller(tx, digest(bearer), now)


def admit(caller: SeatCaller, tool: Tool, credentials: Credentials) -> None:
    """A writing call has to name a generation at all."""
    if tool.fenced and credentials.generation is None:
        raise NoGeneration()


def confirm(call: SeatCall) -> None:
    """Under the locks: the token still stands, and the policy and the generation are today's."""
    before = call.caller
    row = _still_active(_store.standing(call.tx, before.credential), call.now)
    if (row["policy_revision"], row["config_revision"], row["retire_by"]) != (
        before.policy_revision,
        before.config_revision,
        before.retire_by,
    ):
        call.caller = _caller(call.tx, before.credential, call.now)
    elif (row["generation"], bool(row["released"])) != (before.generation, before.released):
        call.caller = replace(before, generation=row["generation"], released=bool(row["released"]))


def judge(call: SeatCall) -> None:
    """A fenced call needs the generation that is current now."""
    if call.tool.fenced:
        require_current(call.caller, call.credentials.generation)


def require_current(caller: SeatCaller, generation: int | None) -> None:
    """Refuse a generation that is not the current one, or whose lease was released."""
    if caller.released or generation != caller.generation:
        raise StaleGeneration()


def locks(caller: SeatCaller, tool: Tool) -> Locks:
    """Every write shares its organisation; a fenced one also shares its seat's lease."""
    held = [shared("organisation", caller.organisation_id)]
    if tool.fenced:
        held.append(shared("lease", caller.seat_id))
    return held


def _caller(tx: Transaction, token_digest: str, now: Instant) -> SeatCaller:
    row = _still_active(_store.holder(tx, token_digest), now)
    policy = _POLICIES.find(tx, row["seat_id"], row["policy_digest"])
    return _from_row(row, token_digest, policy)


def _still_active(row: Row | None, now: Instant) -> Row:
    if row is None or row["expires_at"] <= now:
        raise BadSeatToken()
    if row["retired_at"] is not None or row["deleted_at"] is not None:
        raise SeatNotActive()
    return row


def _from_row(row: Row, token_digest: str, policy: Policy) -> SeatCaller:
    fields: dict[str, Any] = {
        name: row[name]
        for name in (
            "organisation_id",
            "organisation_key",
            "organisation_name",
            "seat_id",
            "display_name",
            "instance",
            "timezone",
            "adapter",
            "config_revision",
            "policy_revision",
            "retire_by",
            "generation",
        )
    }
    return SeatCaller(
        name=row["key"],
        scope=row["organisation_id"],
        credential=token_digest,
        seat_key=row["key"],
        policy=policy,
        released=bool(row["released"]),
        **fields,
    )


class _Policies:
    """Parsed policies, by seat and digest. Not by revision: an apply that was rolled back leaves its
    number to the next one."""

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._known: dict[tuple[str, str], Policy] = {}

    def find(self, tx: Transaction, seat_id: str, digest: str) -> Policy:
        known = self._known.get((seat_id, digest))
        if known is None:
            row = _store.policy(tx, seat_id)
            known = parse_policy(row["policy"])
            if len(self._known) >= self._most:
                self._known.clear()
            # A change may have come between the two statements: then the text is a later one's.
            self._known[seat_id, row["policy_digest"]] = known
        return known


_POLICIES = _Policies()

SEATS = Family("seats", authenticate, admit, confirm, locks, judge)
