"""SQL about organisations, their instruction bundles and bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steadmesh.kernel.database import Row, Transaction

_COLUMNS = (
    "SELECT id, key, namespace, source_uid, display_name, timezone, digest, document, created_at,"
    " applied_at, deleted_at FROM organisations"
)


def organisation(tx: Transaction, organisation_id: str) -> Row | None:
    return tx.one(f"{_COLUMNS} WHERE id = :id", id=organisation_id)


def organisation_by_key(tx: Transaction, key: str) -> Row | None:
    return tx.one(f"{_COLUMNS} WHERE key = :key AND deleted_at IS NULL", key=key)


def organisations(tx: Transaction) -> list[Row]:
    return tx.all(f"{_COLUMNS} WHERE deleted_at IS NULL ORDER BY key")


def add_organisation(tx: Transaction, **row: Any) -> None:
    tx.run(
        "INSERT INTO organisations (id, key, namespace, source_uid, display_name, timezone, digest,"
        " document, created_at, applied_at) VALUES (:id, :key, :namespace, :source_uid,"
        " :display_name, :timezone, :digest, :document, :now, :now)",
        **row,
    )


def change_organisation(tx: Transaction, **row: Any) -> None:
    tx.run(
        "UPDATE organisations SET namespace = :namespace, source_uid = :source_uid,"
        " display_name = :display_name, timezone = :timezone, digest = :digest,"
        " document = :document, applied_at = :now WHERE id = :id",
        **row,
    )


def replace_bundles(tx: Transaction, organisation_id: str, texts: Mapping[str, str]) -> None:
    tx.run(
        "DELETE FROM bundles WHERE organisation_id = :organisation", organisation=organisation_id
    )
    tx.many(
        "INSERT INTO bundles (organisation_id, ref, text) VALUES (:organisation, :ref, :text)",
        [
            {"organisation": organisation_id, "ref": ref, "text": text}
            for ref, text in sorted(texts.items())
        ],
    )


def bundle_text(tx: Transaction, organisation_id: str, ref: str) -> str | None:
    row = tx.one(
        "SELECT text FROM bundles WHERE organisation_id = :organisation AND ref = :ref",
        organisation=organisation_id,
        ref=ref,
    )
    return str(row["text"]) if row else None


def replace_bindings(
    tx: Transaction, organisation_id: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    tx.run(
        "DELETE FROM bindings WHERE organisation_id = :organisation", organisation=organisation_id
    )
    tx.many(
        "INSERT INTO bindings (organisation_id, key, connection, external_user_id, seat)"
        " VALUES (:organisation_id, :key, :connection, :external_user_id, :seat)",
        rows,
    )


def binding(tx: Transaction, organisation_id: str, key: str) -> Row | None:
    return tx.one(
        "SELECT key, connection, external_user_id, seat FROM bindings"
        " WHERE organisation_id = :organisation AND key = :key",
        organisation=organisation_id,
        key=key,
    )


def binding_of_user(
    tx: Transaction, organisation_id: str, connection: str, external_user_id: str
) -> Row | None:
    return tx.one(
        "SELECT key, connection, external_user_id, seat FROM bindings"
        " WHERE organisation_id = :organisation AND connection = :connection"
        " AND external_user_id = :user",
        organisation=organisation_id,
        connection=connection,
        user=external_user_id,
    )


def representatives(tx: Transaction, organisation_id: str) -> list[str]:
    """Keys of the seats that stand for a person."""
    rows = tx.all(
        "SELECT DISTINCT seat FROM bindings WHERE organisation_id = :organisation ORDER BY seat",
        organisation=organisation_id,
    )
    return [row["seat"] for row in rows]


def delete_organisation(tx: Transaction, organisation_id: str, now: int, *, purge: bool) -> None:
    """It is there no more; with `purge` its rows go too, in time."""
    tx.run(
        "UPDATE organisations SET deleted_at = :now, purge = :purge WHERE id = :id",
        id=organisation_id,
        now=now,
        purge=int(purge),
    )


def organisations_to_purge(tx: Transaction) -> list[str]:
    rows = tx.all("SELECT id FROM organisations WHERE purge = 1 ORDER BY id")
    return [row["id"] for row in rows]


def forget_organisation(tx: Transaction, organisation_id: str) -> None:
    """Its row and all that stands beside it here."""
    tx.run("DELETE FROM bundles WHERE organisation_id = :id", id=organisation_id)
    tx.run("DELETE FROM bindings WHERE organisation_id = :id", id=organisation_id)
    tx.run("DELETE FROM organisations WHERE id = :id", id=organisation_id)
