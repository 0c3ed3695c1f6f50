"""The service's one secret, made with the database: every replica derives the same keys from it."""

from __future__ import annotations

import secrets

from steadmesh.kernel.crypto import derived_key
from steadmesh.kernel.database import Database, Transaction


def service_secret(database: Database) -> bytes:
    """The 32 bytes, made at the first start."""

    def remember(tx: Transaction) -> str:
        tx.run(
            "INSERT INTO service (name, value) VALUES ('secret', :value)"
            " ON CONFLICT (name) DO NOTHING",
            value=secrets.token_hex(32),
        )
        row = tx.one("SELECT value FROM service WHERE name = 'secret'")
        if row is None:
            raise LookupError("secret")
        return str(row["value"])

    return bytes.fromhex(database.write_blocking(remember))


def purpose_key(secret: bytes, purpose: str) -> bytes:
    """A key for one purpose."""
    return derived_key(secret, purpose)
