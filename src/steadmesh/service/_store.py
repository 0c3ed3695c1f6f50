"""SQL of the service itself: the digests of operator keys, and whether the database can be used."""

from __future__ import annotations

from steadmesh.kernel.database import Transaction

PREFIX = "operator key "
AFTER_PREFIX = "operator key!"
"""The first text behind all that begin with the prefix."""


def operator_digests(tx: Transaction) -> list[str]:
    rows = tx.all(
        "SELECT value FROM service WHERE name >= :first AND name < :after",
        first=PREFIX,
        after=AFTER_PREFIX,
    )
    return [row["value"] for row in rows]


def keep_operator_digest(tx: Transaction, place: str, digest: str) -> None:
    """The key of one data directory; another digest of the same place is replaced."""
    tx.run(
        "INSERT INTO service (name, value) VALUES (:name, :digest)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name=PREFIX + place,
        digest=digest,
    )


def drop_other_operator_digests(tx: Transaction, place: str) -> None:
    tx.run(
        "DELETE FROM service WHERE name >= :first AND name < :after AND name <> :name",
        first=PREFIX,
        after=AFTER_PREFIX,
        name=PREFIX + place,
    )


def touch(tx: Transaction) -> None:
    """A read that any database of ours can answer."""
    tx.one("SELECT value FROM service WHERE name = 'secret'")


def probe(tx: Transaction, instance_id: str) -> None:
    """A write that leaves nothing behind."""
    name = f"probe {instance_id}"
    tx.run(
        "INSERT INTO service (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
        name=name,
        value="x" * 4_096,
    )
    tx.run("DELETE FROM service WHERE name = :name", name=name)
