"""Trimming: tables that grow with use are kept small, a span of old rows in a transaction.

Rows are looked at in the order of a key that rises with time, so no index on their age is needed and a
span costs the same in a small table and in a huge one. What is old is not always done with: each table's
own statement decides again, in the transaction that removes, which rows of the span may go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Row, Transaction, exclusive
from steadmesh.kernel.jobs import Job, JobContext

log = logging.getLogger(__name__)

BATCH = 500
SPANS = 20
"""Spans of one turn in which hardly anything may go; then other tables have theirs."""
EVERY = 60.0
REST = 4.0
"""Whoever works while old rows are removed keeps at least four fifths of the writer's time."""


class Remove(Protocol):
    """Removes the rows of a span of keys (`after` < key <= `last`) that are older than `before` and
    done with; how many those were."""

    def __call__(self, tx: Transaction, *, after: Any, last: Any, before: Instant) -> int: ...


@dataclass(frozen=True, slots=True)
class Trimming:
    """How one table is kept small."""

    table: str
    rows: Callable[[Transaction, Any, int], list[Row]]
    """The next rows behind a key, in its order, at most so many: `key`, and `at`, the time the row is
    from (0: it may go whatever the time)."""
    remove: Remove
    setting: str = ""
    """The name in `[retention]` of how long rows are kept."""
    period: Instant = 0
    """How long they are kept, where there is no setting."""
    start: Any = 0
    """A key before all others."""
    whole: bool = False
    """The key says nothing about age: the walk goes to the end. Else the first young span ends it."""

    def kept_for(self, retention: Retention) -> Instant | None:
        """How long rows are kept; nothing for ever."""
        return retention.period(self.setting) if self.setting else self.period

    def oldest(self, tx: Transaction) -> Instant | None:
        """When the first of the rows is from; nothing if there is none, or it has no age."""
        return next((row["at"] or None for row in self.rows(tx, self.start, 1)), None)

    def step(self, context: JobContext) -> int:
        """Go on with the walk, until a batch was removed or the walk is over; how much was removed."""
        period = self.kept_for(context.retention)
        if period is None:
            return 0
        walk = context.walks.setdefault(self.table, Walk(self.start))
        removed = 0
        for _ in range(SPANS):
            if removed >= BATCH or context.stopping():
                break
            done = self._one_span(context, walk, period)
            if done is None:
                del context.walks[self.table]
                walk.tell(self.table)
                break
            removed += done
        return removed

    def _one_span(self, context: JobContext, walk: Walk, period: Instant) -> int | None:
        """How much of the next span was removed; nothing if the walk is over."""
        now = context.clock.now()
        before = now - period
        rows = context.database.read_blocking(lambda tx: self.rows(tx, walk.after, BATCH))
        # Rows of a clock that was ahead are passed: they must not hide all that comes behind them.
        passed = [row["key"] for row in rows if not before <= row["at"] <= now]
        if not rows or not (passed or self.whole):
            return None
        done = self._remove(context, walk.after, passed[-1], before) if passed else 0
        walk.after = rows[-1]["key"] if self.whole else passed[-1]
        walk.removed += done
        return done

    def _remove(self, context: JobContext, after: Any, last: Any, before: Instant) -> int:
        return context.database.write_blocking(
            lambda tx: self.remove(tx, after=after, last=last, before=before),
            locks=lambda tx: [exclusive("trimming", self.table)],
        )


@dataclass(slots=True)
class Walk:
    """How far a table was looked through, and what was removed on the way."""

    after: Any
    removed: int = 0

    def tell(self, table: str) -> None:
        if self.removed:
            log.info("old rows removed", extra={"fields": {"table": table, "rows": self.removed}})


def trimming_job(trimmings: Sequence[Trimming]) -> Job:
    """The job that keeps all these tables small. One that cannot be trimmed holds up no other."""

    def trim(context: JobContext) -> int:
        removed = 0
        for trimming in trimmings:
            if context.stopping():
                break
            try:
                removed += trimming.step(context)
            except Exception:
                log.exception("table not trimmed", extra={"fields": {"table": trimming.table}})
        return removed

    return Job("trim", trim, every=EVERY, batch=BATCH, rest=REST)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is trimmed in a service, and what of it is kept how long."""

    trimmings: Sequence[Trimming] = ()
    retention: Retention = field(default_factory=Retention)
