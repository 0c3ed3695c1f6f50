"""Identity tokens: 256 random bits that name one seat and one runner instance."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from steadmesh.kernel import durations
from steadmesh.kernel.clock import HOUR, MINUTE, Instant, rfc3339
from steadmesh.kernel.crypto import digest
from steadmesh.kernel.database import Transaction
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.ids import new_secret
from steadmesh.kernel.trimming import Trimming
from steadmesh.seats.identity import _store
from steadmesh.seats.identity.caller import TOKEN_PREFIX
from steadmesh.seats.identity.states import named_seat
from steadmesh.tools import Args, Call, Doc, NotBlank, Result, Size, endpoint

LIFE = 24 * HOUR
LONGEST_LIFE = 366 * 24 * HOUR
ROTATION_GRACE = 10 * MINUTE
KNOWN_AS_EXPIRED = 24 * HOUR
"""A token that has ended is told so for this long; then it is none."""


class BadLife(Invalid):
    """ttl: must be a duration such as 24h or 90m, from 1 minute to 8784h (a year)."""


class IssueToken(Args):
    seat: Annotated[str, Doc("Id of the seat.")]
    instance: Annotated[str, Doc("The runner instance it is bound to."), NotBlank(), Size(200)]
    ttl: Annotated[str, Doc("How long it lives, such as 24h.")] = "24h"


class TokenIssued(Result):
    token: Annotated[str, Field(repr=False)]
    expires_at: str


@endpoint("POST /internal/v1/seats/{seat}/tokens", family="operator", audited=True)
def issue(call: Call[Any], args: IssueToken) -> TokenIssued:
    """Issue a token. A second one for an instance rotates it: the first goes on for 10 minutes."""
    named_seat(call.tx, args.seat)
    return issue_token(call.tx, args.seat, args.instance, now=call.now, life=_life(args.ttl))


def issue_token(
    tx: Transaction, seat_id: str, instance: str, *, now: Instant, life: int = LIFE
) -> TokenIssued:
    """A fresh token; only its digest is stored."""
    token = new_secret(TOKEN_PREFIX)
    _store.shorten_tokens(tx, seat_id, instance, now + ROTATION_GRACE)
    _store.add_token(
        tx,
        digest=digest(token),
        seat_id=seat_id,
        instance=instance,
        expires_at=now + life,
        now=now,
    )
    return TokenIssued(token=token, expires_at=rfc3339(now + life))


class EndTokens(Args):
    seat: str
    instance: str
    lapse: Annotated[
        bool, Doc("Let them go on for 10 minutes: what was fenced then hears just that.")
    ] = False


@endpoint("DELETE /internal/v1/seats/{seat}/tokens/{instance}", family="operator", audited=True)
def end(call: Call[Any], args: EndTokens) -> None:
    """End every token of an instance, at once or in ten minutes."""
    if args.lapse:
        _store.shorten_tokens(call.tx, args.seat, args.instance, call.now + ROTATION_GRACE)
    else:
        _store.end_tokens(call.tx, args.seat, args.instance)


def _life(text: str) -> int:
    try:
        life = durations.parse(text) // durations.MICROSECOND
    except ValueError:
        raise BadLife() from None
    if not MINUTE <= life <= LONGEST_LIFE:
        raise BadLife()
    return life


TRIMMING = Trimming("tokens", _store.old_tokens, _store.remove_tokens, period=KNOWN_AS_EXPIRED)
