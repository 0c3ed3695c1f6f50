"""Replies and notices on their way to people: a background job takes them from the queue, an item a transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Row, Transaction, shared
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.kernel.retries import retry_delay
from steadmesh.seats import organisation
from steadmesh.seats.connections import _store, terminal
from steadmesh.seats.identity import seat_id
from steadmesh.seats.messages import OUTBOX_TOPIC

log = logging.getLogger(__name__)

BATCH = 100


def send_queued(context: JobContext) -> int:
    """Send what is due, oldest first. One that cannot be sent is put off and holds up no other."""
    now = context.clock.now()
    replies, adapters = context.database.read_blocking(lambda tx: due(tx, now))
    for reply in replies:
        if context.stopping():
            break
        try:
            send(context, reply, adapters[reply["organisation_id"]].get(reply["connection"]))
        except Exception:
            log.exception(
                "reply to a person not sent",
                extra={"fields": {"message": reply["message_id"], "seat": reply["seat_id"]}},
            )
            _put_off(context, reply)
    return len(replies)


def due(tx: Transaction, now: Instant) -> tuple[list[Row], Mapping[str, Mapping[str, str]]]:
    """A batch of what waits, and the adapters of its organisations' connections."""
    replies = _store.due_replies(tx, now, BATCH)
    scopes = {str(reply["organisation_id"]) for reply in replies}
    return replies, {scope: organisation.connection_adapters(tx, scope) for scope in scopes}


def send(context: JobContext, reply: Row, adapter: str | None) -> None:
    """Over a terminal a line is sent when it is stored, in the transaction that says so: nothing can
    be lost or doubled between the two."""

    def locks(tx: Transaction) -> Locks:
        scope = reply["organisation_id"]
        reader = terminal.reader_lock(scope, reply["connection"], reply["external_user_id"])
        return [shared("organisation", scope), *reader]

    def settle(tx: Transaction) -> None:
        error = _obstacle(tx, reply, adapter)
        state = "failed" if error else "succeeded"
        now = context.clock.now()
        if not _store.settle_reply(tx, reply["number"], state=state, error=error, now=now) or error:
            return
        terminal.show(
            tx,
            organisation_id=reply["organisation_id"],
            connection=reply["connection"],
            external_user_id=reply["external_user_id"],
            line_id=reply["message_id"],
            text=reply["body"],
            at=reply["created_at"],
            origin="platform" if _is_notice(reply) else None,
        )

    context.database.write_blocking(settle, locks=locks)


def _obstacle(tx: Transaction, reply: Row, adapter: str | None) -> str | None:
    """Why the reply can never be sent."""
    scope = reply["organisation_id"]
    if adapter is None:
        return f"the organisation has no connection {reply['connection']} any more"
    if adapter != "terminal":
        return f"adapter {adapter} is not available in this version"
    if _is_notice(reply):  # about a seat that may have lost the binding, which is what it says
        return None
    bound = organisation.binding_of_user(tx, scope, reply["connection"], reply["external_user_id"])
    if bound is None or seat_id(tx, scope, bound["seat"]) != reply["seat_id"]:
        return "the seat no longer represents this person"
    return None


def _is_notice(reply: Row) -> bool:
    """Whether the platform wrote it, and not the representative."""
    return bool(reply["origin"] == "system")


def _put_off(context: JobContext, reply: Row) -> None:
    """After the last attempt it has failed."""
    attempts: int = reply["attempts"]
    delay = retry_delay(attempts + 1)
    now = context.clock.now()
    error = "the service could not store it"

    def put_off(tx: Transaction) -> None:
        if delay is None:
            _store.settle_reply(tx, reply["number"], state="failed", error=error, now=now)
        else:
            _store.postpone_reply(
                tx, reply["number"], attempts=attempts, due=now + delay, error=error
            )

    context.database.write_blocking(put_off)


SENDING = Job("send to channels", send_queued, every=2.0, batch=BATCH, topics=(OUTBOX_TOPIC,))
