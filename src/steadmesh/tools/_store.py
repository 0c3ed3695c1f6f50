"""SQL about calls: the audit, and kept answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction


def add_audit(tx: Transaction, row: Mapping[str, Any]) -> None:
    tx.run(
        "INSERT INTO audit (at, scope, caller, tool, outcome, execution)"
        " VALUES (:at, :scope, :caller, :tool, :outcome, :execution)",
        **row,
    )


def add_audits(tx: Transaction, rows: Iterable[Mapping[str, Any]]) -> None:
    tx.many(
        "INSERT INTO audit (at, scope, caller, tool, outcome, execution)"
        " VALUES (:at, :scope, :caller, :tool, :outcome, :execution)",
        rows,
    )


def kept_answer(tx: Transaction, answer_id: str, now: Instant) -> Row | None:
    return tx.one(
        "SELECT arguments, answer FROM kept_answers WHERE id = :id AND expires_at > :now",
        id=answer_id,
        now=now,
    )


def keep_answer(tx: Transaction, answer_id: str, **row: Any) -> None:
    tx.run(
        "INSERT INTO kept_answers (id, arguments, answer, expires_at)"
        " VALUES (:id, :arguments, :answer, :expires_at) ON CONFLICT (id) DO UPDATE"
        " SET arguments = excluded.arguments, answer = excluded.answer,"
        " expires_at = excluded.expires_at",
        id=answer_id,
        **row,
    )


# Trimming


def old_answers(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT expires_at AS key, expires_at AS at FROM kept_answers WHERE expires_at > :after"
        " ORDER BY expires_at LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_answers(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM kept_answers WHERE expires_at > :after AND expires_at <= :last"
        " AND expires_at < :before",
        after=after,
        last=last,
        before=before,
    )


def old_audits(tx: Transaction, after: int, limit: int) -> list[Row]:
    return tx.all(
        "SELECT id AS key, at FROM audit WHERE id > :after ORDER BY id LIMIT :limit",
        after=after,
        limit=limit,
    )


def remove_audits(tx: Transaction, *, after: int, last: int, before: Instant) -> int:
    return tx.run(
        "DELETE FROM audit WHERE id > :after AND id <= :last AND at < :before",
        after=after,
        last=last,
        before=before,
    )
