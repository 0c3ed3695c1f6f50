"""The service's one secret, made with the database: every replica derives the same keys from it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from steadmesh.kernel.crypto import derived_key
from steadmesh.kernel.database import Database, Transaction


def service_secret(database: Database) -> bytes:
    """The 32 bytes, made at the first start."""
    return bytes.fromhex(_remember(database, "secret", lambda: secrets.token_hex(32)))


def installation_id(database: Database, make: Callable[[], str]) -> str:
    """What tells this database from every other."""
    return _remember(database, "installation", make)


def purpose_key(secret: bytes, purpose: str) -> bytes:
    """A key for one purpose."""
    return derived_key(secret, purpose)


def _remember(database: Database, name: str, make: Callable[[], str]) -> str:
    def remember(tx: Transaction) -> str:
        tx.run(
            "INSERT INTO service (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
            name=name,
            value=make(),
        )
        row = tx.one("SELECT value FROM service WHERE name = :name", name=name)
        if row is None:
            raise LookupError(name)
        return str(row["value"])

    return database.write_blocking(remember)
