"""The audit: a writing call's row is in its transaction; rows of reading, refused and failed calls are
gathered and written in batches, so that reading stays reading."""

from __future__ import annotations

from collections import deque
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.jobs import Job, JobContext
from steadmesh.kernel.trimming import Trimming
from steadmesh.tools import _store
from steadmesh.tools.call import Call

CAPACITY = 10_000
BATCH = 1_000


class Audit:
    """Rows that wait to be written. A full buffer drops the oldest and counts it."""

    def __init__(self) -> None:
        self._waiting: deque[dict[str, Any]] = deque()
        self.dropped = 0

    @staticmethod
    def write(call: Call[Any], outcome: str) -> None:
        """One row, in the call's own transaction."""
        row = _row(
            call.now,
            scope=call.caller.scope,
            caller=call.caller.name,
            tool=call.tool.name,
            outcome=outcome,
            execution=call.credentials.execution,
        )
        _store.add_audit(call.tx, row)

    def gather(self, now: Instant, **fields: Any) -> None:
        """One row, written within a second."""
        if len(self._waiting) >= CAPACITY:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(_row(now, **fields))

    def flush(self, context: JobContext) -> int:
        """Write what waits, at most a batch."""
        rows = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        if not rows:
            return 0
        try:
            context.database.write_blocking(lambda tx: _store.add_audits(tx, rows))
        except Exception:
            self._waiting.extendleft(reversed(rows))
            raise
        return len(rows)

    @property
    def job(self) -> Job:
        return Job("write audit", self.flush, every=1.0, batch=BATCH)


def _row(now: Instant, **fields: Any) -> dict[str, Any]:
    return {"at": now, "execution": None} | fields


TRIMMING = Trimming("audit", _store.old_audits, _store.remove_audits, setting="audit")
