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


def drop_expired_answers(tx: Transaction, now: Instant, limit: int) -> int:
    return tx.run(
        "DELETE FROM kept_answers WHERE id IN"
        " (SELECT id FROM kept_answers WHERE expires_at <= :now LIMIT :limit)",
        now=now,
        limit=limit,
    )
