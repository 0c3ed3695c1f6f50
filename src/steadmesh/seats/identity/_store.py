"""SQL about seats, leases and tokens."""

from __future__ import annotations

from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction


def holder(tx: Transaction, digest: str) -> Row | None:
    """Who a token names, with all that a call is judged by."""
    return tx.one(
        "SELECT t.seat_id, t.instance, t.expires_at, s.organisation_id, s.key, s.display_name,"
        " s.timezone, s.adapter, s.config_revision, s.policy_revision, s.policy_digest, s.retire_by,"
        " s.retired_at, o.key AS organisation_key, o.display_name AS organisation_name,"
        " o.deleted_at, l.generation, l.released"
        " FROM tokens t JOIN seats s ON s.id = t.seat_id JOIN leases l ON l.seat_id = s.id"
        " JOIN organisations o ON o.id = s.organisation_id WHERE t.digest = :digest",
        digest=digest,
    )


def policy(tx: Transaction, seat_id: str) -> Row:
    """The text of a seat's policy, and its digest."""
    row = tx.one("SELECT policy, policy_digest FROM seats WHERE id = :id", id=seat_id)
    if row is None:
        raise LookupError(f"seat {seat_id} is not there")
    return row


def standing(tx: Transaction, digest: str) -> Row | None:
    """What may have changed about a token's holder since it was read: short, for every call asks."""
    return tx.one(
        "SELECT t.expires_at, s.config_revision, s.policy_revision, s.retire_by, s.retired_at,"
        " o.deleted_at, l.generation, l.released"
        " FROM tokens t JOIN seats s ON s.id = t.seat_id JOIN leases l ON l.seat_id = s.id"
        " JOIN organisations o ON o.id = s.organisation_id WHERE t.digest = :digest",
        digest=digest,
    )


def seat(tx: Transaction, seat_id: str) -> Row | None:
    return tx.one(f"{_SEAT} WHERE s.id = :id", id=seat_id)


def live_seats(tx: Transaction, organisation_id: str) -> list[Row]:
    return tx.all(
        f"{_SEAT} WHERE s.organisation_id = :organisation AND s.retired_at IS NULL ORDER BY s.key",
        organisation=organisation_id,
    )


_SEAT = (
    "SELECT s.id, s.organisation_id, s.key, s.display_name, s.timezone, s.adapter,"
    " s.config_revision, s.policy_revision, s.policy_digest, s.profile, s.policy, s.suspended,"
    " s.suspended_reason, s.adopted_from, s.workspace_of, s.retire_by, s.retired_at, l.generation, l.instance, l.expires_at, l.released, l.state,"
    " l.state_detail, l.quiesced, l.adopted_revision, l.started_at, l.last_activity"
    " FROM seats s JOIN leases l ON l.seat_id = s.id"
)


def forget_tokens(tx: Transaction, organisation_id: str) -> None:
    """Whoever holds one is a stranger from now on."""
    tx.run(
        "DELETE FROM tokens WHERE seat_id IN"
        " (SELECT id FROM seats WHERE organisation_id = :organisation)",
        organisation=organisation_id,
    )


def forget_supervisor(tx: Transaction, organisation_id: str) -> None:
    tx.run("DELETE FROM supervisors WHERE organisation_id = :id", id=organisation_id)


def all_seats(tx: Transaction, organisation_id: str, limit: int) -> list[str]:
    """Ids of seats of an organisation, retired ones too."""
    rows = tx.all(
        "SELECT id FROM seats WHERE organisation_id = :organisation ORDER BY key LIMIT :limit",
        organisation=organisation_id,
        limit=limit,
    )
    return [row["id"] for row in rows]


def seat_called(tx: Transaction, organisation_id: str, name: str) -> Row | None:
    """The seat with this id; else the live one with this key; else the last that had it."""
    return tx.one(
        "SELECT id, key, retired_at FROM seats WHERE organisation_id = :organisation"
        " AND (key = :name OR id = :name) ORDER BY CASE WHEN id = :name THEN 0"
        "  WHEN retired_at IS NULL THEN 1 ELSE 2 END, retired_at DESC LIMIT 1",
        organisation=organisation_id,
        name=name,
    )


def seat_id(tx: Transaction, organisation_id: str, key: str) -> str | None:
    """The id of a live seat, and nothing more: for names of locks and recipients."""
    row = tx.one(
        "SELECT id FROM seats WHERE organisation_id = :organisation AND key = :key"
        " AND retired_at IS NULL",
        organisation=organisation_id,
        key=key,
    )
    return str(row["id"]) if row else None


def live_lease(tx: Transaction, organisation_id: str, key: str) -> Row | None:
    """What a sender needs to know of a live seat."""
    return tx.one(
        "SELECT s.id, s.key, s.display_name, s.suspended, s.retire_by, s.retired_at, l.state,"
        " l.instance, l.expires_at FROM seats s JOIN leases l ON l.seat_id = s.id"
        " WHERE s.organisation_id = :organisation AND s.key = :key AND s.retired_at IS NULL",
        organisation=organisation_id,
        key=key,
    )


def display_names(tx: Transaction, organisation_id: str) -> dict[str, str]:
    """The display name of each live seat by its key."""
    rows = tx.all(
        "SELECT key, display_name FROM seats"
        " WHERE organisation_id = :organisation AND retired_at IS NULL ORDER BY key",
        organisation=organisation_id,
    )
    return {row["key"]: row["display_name"] for row in rows}


def add_seat(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO seats (id, organisation_id, key, display_name, timezone, adapter,"
        " config_revision, policy_revision, policy_digest, profile, policy, adopted_from,"
        " workspace_of, created_at)"
        " VALUES (:id, :organisation_id, :key, :display_name, :timezone, :adapter,"
        " :config_revision, 1, :policy_digest, :profile, :policy, :adopted_from,"
        " :workspace_of, :now)",
        **row,
    )
    tx.run(
        "INSERT INTO leases (seat_id, generation, expires_at, released, state)"
        " VALUES (:id, 0, 0, 1, 'Stopped')",
        id=row["id"],
    )


def change_seat(tx: Transaction, **row: Any) -> None:
    tx.run(
        "UPDATE seats SET display_name = :display_name, timezone = :timezone, adapter = :adapter,"
        " config_revision = :config_revision, policy_revision = :policy_revision,"
        " policy_digest = :policy_digest, profile = :profile, policy = :policy, retire_by = NULL"
        " WHERE id = :id",
        **row,
    )


def change_policy(tx: Transaction, seat_id: str, *, text: str, digest: str) -> None:
    tx.run(
        "UPDATE seats SET policy = :text, policy_digest = :digest,"
        " policy_revision = policy_revision + 1 WHERE id = :id",
        id=seat_id,
        text=text,
        digest=digest,
    )


def start_retiring(tx: Transaction, seat_id: str, retire_by: Instant) -> None:
    tx.run(
        "UPDATE seats SET retire_by = :retire_by WHERE id = :id AND retire_by IS NULL",
        id=seat_id,
        retire_by=retire_by,
    )


def seats_to_retire(tx: Transaction, limit: int) -> list[Row]:
    """Seats on their way out, those that have to be gone first at the head."""
    return tx.all(
        "SELECT id, organisation_id, key, retire_by FROM seats"
        " WHERE retire_by IS NOT NULL AND retired_at IS NULL ORDER BY retire_by LIMIT :limit",
        limit=limit,
    )


def retire(tx: Transaction, seat_id: str, now: Instant) -> None:
    """The seat is no more: its tokens open nothing, and its generation is over."""
    tx.run("UPDATE seats SET retired_at = :now WHERE id = :id", id=seat_id, now=now)
    fence(tx, seat_id, "Retired")


def adopter(tx: Transaction, seat_id: str) -> Row | None:
    """The seat that has adopted a retired one."""
    return tx.one("SELECT id, key FROM seats WHERE adopted_from = :id", id=seat_id)


def suspend(tx: Transaction, seat_id: str, reason: str | None) -> None:
    tx.run(
        "UPDATE seats SET suspended = 1, suspended_reason = :reason WHERE id = :id",
        id=seat_id,
        reason=reason,
    )


def resume(tx: Transaction, seat_id: str) -> None:
    tx.run("UPDATE seats SET suspended = 0, suspended_reason = NULL WHERE id = :id", id=seat_id)


def forget_seat(tx: Transaction, seat_id: str) -> None:
    """Everything about a seat that stands here."""
    tx.run("DELETE FROM tokens WHERE seat_id = :seat", seat=seat_id)
    tx.run("DELETE FROM leases WHERE seat_id = :seat", seat=seat_id)
    tx.run("DELETE FROM seats WHERE id = :seat", seat=seat_id)


# Leases


def lease(tx: Transaction, seat_id: str) -> Row | None:
    return tx.one(
        "SELECT seat_id, generation, instance, expires_at, released, state, state_detail, quiesced"
        " FROM leases WHERE seat_id = :seat",
        seat=seat_id,
    )


def acquire(tx: Transaction, seat_id: str, instance: str, *, now: Instant, until: Instant) -> None:
    tx.run(
        "UPDATE leases SET generation = generation + 1, instance = :instance, expires_at = :until,"
        " released = 0, state = 'Provisioning', state_detail = NULL, quiesced = 0,"
        " adopted_revision = NULL,"
        " started_at = :now WHERE seat_id = :seat",
        seat=seat_id,
        instance=instance,
        now=now,
        until=until,
    )


def renew(tx: Transaction, seat_id: str, until: Instant) -> None:
    tx.run("UPDATE leases SET expires_at = :until WHERE seat_id = :seat", seat=seat_id, until=until)


def release(tx: Transaction, seat_id: str, now: Instant) -> None:
    tx.run(
        "UPDATE leases SET instance = NULL, expires_at = 0, released = 1, state = 'Stopped',"
        " last_activity = :now WHERE seat_id = :seat",
        seat=seat_id,
        now=now,
    )


def fence(tx: Transaction, seat_id: str, state: str) -> None:
    tx.run(
        "UPDATE leases SET generation = generation + 1, instance = NULL, expires_at = 0,"
        " released = 1, state = :state WHERE seat_id = :seat",
        seat=seat_id,
        state=state,
    )


def report_state(tx: Transaction, seat_id: str, **values: Any) -> None:
    tx.run(
        "UPDATE leases SET state = :state, state_detail = :detail,"
        " quiesced = CASE WHEN :state = 'Quiescing' THEN 1 ELSE quiesced END,"
        " adopted_revision = coalesce(CAST(:adopted AS TEXT), adopted_revision),"
        " last_activity = :now WHERE seat_id = :seat",
        seat=seat_id,
        **values,
    )


def set_state(tx: Transaction, seat_id: str, state: str, detail: str | None) -> None:
    """A word on the seat that is no activity of its own."""
    tx.run(
        "UPDATE leases SET state = :state, state_detail = :detail WHERE seat_id = :seat",
        seat=seat_id,
        state=state,
        detail=detail,
    )


def note_activity(tx: Transaction, seat_id: str, now: Instant) -> None:
    tx.run("UPDATE leases SET last_activity = :now WHERE seat_id = :seat", seat=seat_id, now=now)


# Supervisors


def supervisor(tx: Transaction, organisation_id: str) -> Row | None:
    return tx.one(
        "SELECT instance, host, pid, machine, started, seen_at, expires_at FROM supervisors"
        " WHERE organisation_id = :organisation",
        organisation=organisation_id,
    )


def put_supervisor(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO supervisors"
        " (organisation_id, instance, host, pid, machine, started, seen_at, expires_at)"
        " VALUES (:organisation_id, :instance, :host, :pid, :machine, :started, :seen_at,"
        " :expires_at)"
        " ON CONFLICT (organisation_id) DO UPDATE SET instance = excluded.instance,"
        " host = excluded.host, pid = excluded.pid, machine = excluded.machine,"
        " started = excluded.started, seen_at = excluded.seen_at, expires_at = excluded.expires_at",
        **row,
    )


def drop_supervisor(tx: Transaction, organisation_id: str, instance: str) -> int:
    return tx.run(
        "DELETE FROM supervisors WHERE organisation_id = :organisation AND instance = :instance",
        organisation=organisation_id,
        instance=instance,
    )


# Tokens


def add_token(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO tokens (digest, seat_id, instance, expires_at, created_at)"
        " VALUES (:digest, :seat_id, :instance, :expires_at, :now)",
        **row,
    )


def shorten_tokens(tx: Transaction, seat_id: str, instance: str, latest: Instant) -> None:
    tx.run(
        "UPDATE tokens SET expires_at = :latest"
        " WHERE seat_id = :seat AND instance = :instance AND expires_at > :latest",
        seat=seat_id,
        instance=instance,
        latest=latest,
    )


def end_tokens(tx: Transaction, seat_id: str, instance: str) -> int:
    return tx.run(
        "DELETE FROM tokens WHERE seat_id = :seat AND instance = :instance",
        seat=seat_id,
        instance=instance,
    )


def old_tokens(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT expires_at AS key, expires_at AS at FROM tokens WHERE expires_at > :after"
        " ORDER BY expires_at LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_tokens(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM tokens WHERE expires_at > :after AND expires_at <= :last"
        " AND expires_at < :before",
        after=after,
        last=last,
        before=before,
    )


def counts_by_state(tx: Transaction) -> list[Row]:
    return tx.all(
        "SELECT o.key AS organisation, CASE WHEN s.retire_by IS NOT NULL THEN 'Retiring'"
        "  WHEN s.suspended = 1 THEN 'Blocked' ELSE l.state END AS state, count(*) AS seats"
        " FROM seats s JOIN leases l ON l.seat_id = s.id"
        " JOIN organisations o ON o.id = s.organisation_id"
        " WHERE s.retired_at IS NULL AND o.deleted_at IS NULL GROUP BY 1, 2"
    )
