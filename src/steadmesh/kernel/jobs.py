"""Background jobs: small batches of what is due, run in turn by one thread.

A job says how much it did. One that did a full batch runs again at once; one that fails is logged and
tried again at its next turn. Replicas may run the same job: it claims what it works on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from steadmesh.kernel.clock import Clock
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Database

log = logging.getLogger(__name__)


def _count_nothing(metric: str, *labels: str) -> None:
    """For a run whose counters nobody reads."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job may use."""

    database: Database
    clock: Clock
    stopping: Callable[[], bool]
    count: Callable[..., None] = _count_nothing
    """Add one to a metric. Inside a transaction: `tx.after_commit(lambda: context.count(…))`."""
    retention: Retention = field(default_factory=Retention)
    walks: dict[str, Any] = field(default_factory=dict)
    """How far jobs that look through whole tables have come, by table; a restart begins anew."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do again and again.

    `run` does one batch of at most `batch` items and returns how many it did. `every` is in seconds;
    a hint on one of `topics` lets it run at once. After a full batch it waits `rest` times as long as
    that took, so that what can wait leaves the database to others.
    """

    name: str
    run: Callable[[JobContext], int]
    every: float = 2.0
    batch: int = 100
    topics: tuple[str, ...] = ()
    rest: float = 0.0


@dataclass(slots=True)
class _Turn:
    job: Job
    due: float = 0.0
    stirred: bool = False


class JobRunner:
    """One loop in one thread."""

    def __init__(
        self,
        jobs: Sequence[Job],
        database: Database,
        clock: Clock,
        *,
        retention: Retention | None = None,
        observed: Callable[[str, int, float], None] = lambda name, done, seconds: None,
        count: Callable[..., None] = _count_nothing,
    ) -> None:
        self._turns = [_Turn(job) for job in jobs]
        self._by_topic: dict[str, list[_Turn]] = {}
        for turn in self._turns:
            for topic in turn.job.topics:
                self._by_topic.setdefault(topic, []).append(turn)
        self._observed = observed
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._context = JobContext(
            database, clock, self._stop.is_set, count, retention=retention or Retention()
        )
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the batch that is running."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def stir(self, topics: Sequence[str]) -> None:
        """A hint: jobs that watch one of the topics run now."""
        for topic in topics:
            for turn in self._by_topic.get(topic, ()):
                turn.stirred = True
                self._wake.set()

    def run_once(self) -> int:
        """Run every job until none has a full batch left; how much was done. For tests and commands."""
        total = 0
        for turn in self._turns:
            while done := turn.job.run(self._context):
                total += done
                if done < turn.job.batch:
                    break
        return total

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            now = time.monotonic()
            for turn in self._turns:
                if self._stop.is_set():
                    return
                if turn.stirred or now >= turn.due:
                    self._take(turn)
            next_due = min((turn.due for turn in self._turns), default=now + 60)
            self._wake.wait(max(0.0, next_due - time.monotonic()))

    def _take(self, turn: _Turn) -> None:
        turn.stirred = False
        started = time.monotonic()
        done = 0
        try:
            done = turn.job.run(self._context)
        except Exception:
            log.exception("job failed", extra={"fields": {"job": turn.job.name}})
        finished = time.monotonic()
        self._observed(turn.job.name, done, finished - started)
        full = done >= turn.job.batch
        turn.due = finished + (turn.job.rest * (finished - started) if full else turn.job.every)
