"""Deleting an organisation: its seats are retired at once, and its data stays or goes.

Whoever deletes does not wait for the data: it may be much, and one long transaction would hold up every
other organisation. A background job takes it away in small pieces.
"""

from __future__ import annotations

import logging
from typing import Annotated, Any, Literal

from steadmesh.kernel import outbox
from steadmesh.kernel.database import Locks, Transaction, exclusive
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.seats import connections, identity, messages, organisation, turns
from steadmesh.seats.lifecycle import _store, probe
from steadmesh.tools import Args, Call, Doc, endpoint

log = logging.getLogger(__name__)

BATCH = 500
"""Rows of a table that go in one transaction."""
DELETED = "the organisation was deleted"


class Delete(Args):
    organization: str
    retention: Annotated[
        Literal["retain", "delete"], Doc("Whether its data stays in the database.")
    ] = "retain"


def whole_organisation(tx: Transaction, caller: Any, args: Delete) -> Locks:
    return [exclusive("organisation", args.organization)]


@endpoint(
    "DELETE /internal/v1/organizations/{organization}",
    family="operator",
    audited=True,
    locks=whole_organisation,
)
def delete_organisation(call: Call[Any], args: Delete) -> None:
    """Retire all seats at once, without notices. Their tokens open nothing from now on."""
    tx, scope = call.tx, args.organization
    identity.named_organisation(tx, scope)
    purge = args.retention == "delete"
    for row in identity.live_seats(tx, scope):
        turns.give_up_inbox(
            tx, row["id"], organisation_id=scope, reason=DELETED, now=call.now, with_turns=True
        )
        identity.retire(tx, row["id"], call.now)
        _store.forget_retirement(tx, row["id"])
    if purge:
        identity.forget_tokens(tx, scope)
    organisation.replace_bindings(tx, scope, [])
    organisation.delete_organisation(tx, scope, call.now, purge=purge)
    outbox.record(tx, "organisation.deleted", scope=scope, at=call.now, retention=args.retention)
    tx.wake(f"runtime:{scope}")


def purge(context: JobContext) -> int:
    """Take away one batch of the data of organisations that were deleted with it."""
    for scope in context.database.read_blocking(organisation.organisations_to_purge):
        _purge_batch(context, scope)
        return BATCH  # there is more, of this organisation or the next: go on at once
    return 0


def _purge_batch(context: JobContext, scope: str) -> None:
    context.database.write_blocking(
        lambda tx: _purge(tx, scope), locks=lambda tx: [exclusive("organisation", scope)]
    )


def _purge(tx: Transaction, scope: str) -> None:
    """The next piece of an organisation; its own row comes last."""
    seat_id = next(iter(identity.all_seats(tx, scope, 1)), None)
    if seat_id is not None:
        if turns.forget_seat(tx, seat_id, BATCH) or messages.forget_seat(tx, seat_id, BATCH):
            return
        probe.forget_probes(tx, seat_id)
        _store.forget_retirement(tx, seat_id)
        identity.forget_seat(tx, seat_id)
    elif not connections.forget_organisation(tx, scope, BATCH):
        identity.forget_supervisor(tx, scope)
        organisation.forget_organisation(tx, scope)
        log.info("organisation purged", extra={"fields": {"organisation": scope}})


PURGE = Job("purge deleted organisations", purge, every=5.0, batch=BATCH)
