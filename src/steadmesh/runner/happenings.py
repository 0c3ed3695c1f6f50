"""What happens to a running seat, in one queue, so that one thread decides about all of it."""

from __future__ import annotations

import queue
from dataclasses import dataclass

from steadmesh.runner.harness.contract import Delivery, TurnResult


@dataclass(frozen=True, slots=True)
class Mail:
    """A delivery was handed out."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The harness is done with the turn; `result` is None when it refused it."""

    result: TurnResult | None


@dataclass(frozen=True, slots=True)
class _StopAsked:
    pass


@dataclass(frozen=True, slots=True)
class _LeaseLost:
    reason: str


class LeaseLost(Exception):
    """This start may not act any more: write nothing, say nothing, end."""


class StopAsked(Exception):
    """The seat was told to stop while it waited for the platform."""


class Happenings:
    """The queue of one start. Anything may be put from any thread."""

    def __init__(self) -> None:
        # SimpleQueue, because its `put` alone may be called from a signal handler.
        self._queue: queue.SimpleQueue[Mail | TurnEnded | _StopAsked | _LeaseLost] = (
            queue.SimpleQueue()
        )
        self._lost: str | None = None
        self.stops_asked = 0
        """How often the seat was told to stop, as far as the queue has been read."""

    def put(self, happening: Mail | TurnEnded) -> None:
        """Something happened."""
        self._queue.put(happening)

    def ask_to_stop(self) -> None:
        """The seat is to stop; from a signal handler too."""
        self._queue.put(_StopAsked())

    def lose_lease(self, reason: str) -> None:
        """The lease is gone; from now on `next` and `check` raise."""
        self._lost = reason
        self._queue.put(_LeaseLost(reason))

    def check(self) -> None:
        """Raises LeaseLost when the lease is gone."""
        if self._lost is not None:
            raise LeaseLost(self._lost)

    def next(self, timeout: float | None = None) -> Mail | TurnEnded | None:
        """The next mail or end of turn; None when the time is up or a stop was asked for.

        Raises LeaseLost.
        """
        self.check()
        try:
            happening = self._queue.get(timeout=timeout)
        except queue.Empty:
            return None
        match happening:
            case _StopAsked():
                self.stops_asked += 1
                return None
            case _LeaseLost():
                raise LeaseLost(happening.reason)
            case _:
                return happening
