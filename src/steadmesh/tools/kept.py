"""Kept answers: a call repeated under the same `Idempotency-Key` gets its answer and does nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steadmesh.kernel.clock import MINUTE, Instant
from steadmesh.kernel.crypto import derived_key, digest, seal, unseal
from steadmesh.kernel.database import Lock, Transaction, exclusive
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.trimming import Trimming
from steadmesh.tools import _store

LIFE = 10 * MINUTE


class OtherArguments(Invalid):
    """This Idempotency-Key was used for a call with other arguments. Use a fresh key for each call, and the same key only to repeat one."""


class KeptAnswer:
    """The place of one call's answer."""

    def __init__(
        self, *, credential: str, tool: str, key: str, arguments: Mapping[str, Any]
    ) -> None:
        self._id = digest(json.dumps([credential, tool, key]))
        self._arguments = digest(json.dumps(arguments, sort_keys=True, default=str))
        self._key = derived_key(key.encode(), f"kept answer {self._id}")

    @property
    def lock(self) -> Lock:
        return exclusive("answer", self._id)

    def find(self, tx: Transaction, now: Instant) -> bytes | None:
        """The answer of the first call, nothing if there was none; other arguments are refused."""
        row = _store.kept_answer(tx, self._id, now)
        if row is None:
            return None
        if row["arguments"] != self._arguments:
            raise OtherArguments()
        return unseal(self._key, bytes(row["answer"]))

    def keep(self, tx: Transaction, now: Instant, answer: bytes) -> None:
        _store.keep_answer(
            tx,
            self._id,
            arguments=self._arguments,
            answer=seal(self._key, answer),
            expires_at=now + LIFE,
        )


TRIMMING = Trimming("kept_answers", _store.old_answers, _store.remove_answers)
