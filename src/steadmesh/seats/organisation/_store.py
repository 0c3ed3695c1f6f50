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
