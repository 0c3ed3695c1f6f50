"""One turn: the harness works in a thread of its own, and we govern it from outside."""

from __future__ import annotations

import logging
import threading
import time

from steadmesh.kernel.log import fields
from steadmesh.runner.folder import RunFolder
from steadmesh.runner.happenings import Happenings, TurnEnded
from steadmesh.runner.harness.contract import (
    Delivery,
    Event,
    Harness,
    TurnRefused,
    TurnResult,
)
from steadmesh.runner.link import Link
from steadmesh.runner.platform import PlatformError
from steadmesh.runner.settings import Limits

_log = logging.getLogger(__name__)

_EVENTS_EVERY = 1.0
_LATE = 30.0
"""Seconds that a harness may take over its own limits before it is taken for hung."""


class HarnessBroken(Exception):
    """The harness cannot be trusted with another turn; the seat has to be started anew."""


class Turns:
    """Runs deliveries one after another."""

    def __init__(
        self,
        harness: Harness,
        link: Link,
        *,
        happenings: Happenings,
        folder: RunFolder,
        limits: Limits,
    ) -> None:
        self._harness = harness
        self._link = link
        self._happenings = happenings
        self._folder = folder
        self._limits = limits
        self._events: list[Event] = []

    def run(self, delivery: Delivery) -> None:
        """One turn to its end: events posted, delivery acknowledged, checkpoint stored.

        Raises LeaseLost and HarnessBroken.
        """
        about = {
            "execution": delivery.execution_id,
            "message": delivery.message.message_id,
            "attempt": delivery.attempt,
        }
        _log.info("turn begins", extra=fields(**about))
        self._name_execution(delivery.execution_id)
        try:
            self._link.report("Executing")
            result = self._govern(delivery)
            self._post_events(delivery.execution_id, retry_for=0.0)
            self._close(delivery, result)
            # What the service did not take while it was away; the delivery mattered more.
            self._post_events(delivery.execution_id, retry_for=5.0)
            self._events.clear()
        finally:
            self._name_execution(None)
        outcome = "refused" if result is None else result.outcome
        _log.info("turn ended", extra=fields(**about, outcome=outcome))
        if self._happenings.stops_asked:
            return
        if result is None or result.outcome == "interrupted":
            # Nobody asked for this, and the same delivery would come again at once.
            raise HarnessBroken(f"the harness ended a turn as {outcome} without being asked to")
        self._link.report("Warm", adopted=True)

    def store_checkpoint(self) -> None:
        """Keep the place where the session can be taken up again."""
        checkpoint = self._harness.checkpoint()
        if checkpoint is not None:
            self._link.attempt(
                lambda: self._link.platform.put_checkpoint(checkpoint), "store the checkpoint"
            )

    def _name_execution(self, execution_id: str | None) -> None:
        self._folder.write_execution(execution_id)
        self._link.platform.execution_id = execution_id

    def _govern(self, delivery: Delivery) -> TurnResult | None:
        threading.Thread(target=self._work, args=(delivery,), name="turn", daemon=True).start()
        hung_at = time.monotonic() + self._limits.turn_limit + _LATE
        stops_seen = 0
        while True:
            happening = self._happenings.next(_EVENTS_EVERY)
            if isinstance(happening, TurnEnded):
                return happening.result
            if self._happenings.stops_asked > stops_seen:
                grace = 0.0 if stops_seen else self._limits.quiesce_limit
                stops_seen = self._happenings.stops_asked
                hung_at = min(hung_at, time.monotonic() + grace + _LATE)
                self._quiesce(grace)
            if time.monotonic() >= hung_at:
                self._harness.stop(grace_seconds=0)
                raise HarnessBroken("the harness did not end its turn in time and was killed")
            self._post_events(delivery.execution_id, retry_for=0.0)

    def _work(self, delivery: Delivery) -> None:
        try:
            result: TurnResult | None = self._harness.deliver(delivery)
        except TurnRefused as refusal:
            _log.warning("turn refused", extra=fields(reason=str(refusal)))
            result = None
        except Exception as fault:
            _log.exception("the harness failed")
            result = TurnResult("failed", error=f"the harness failed: {type(fault).__name__}")
        self._happenings.put(TurnEnded(result))

    def _quiesce(self, grace: float) -> None:
        # Beside the loop: it waits for the turn, while the loop passes on what the turn says.
        threading.Thread(
            target=self._harness.quiesce,
            kwargs={"grace_seconds": grace},
            name="quiesce",
            daemon=True,
        ).start()
        self._link.report("Quiescing")

    def _post_events(self, execution_id: str, *, retry_for: float) -> None:
        self._events.extend(self._harness.events())
        if self._events:
            posted = self._link.attempt(
                lambda: self._link.platform.post_events(
                    execution_id, self._events, retry_for=retry_for
                ),
                "post events",
            )
            if posted:
                self._events.clear()

    def _close(self, delivery: Delivery, result: TurnResult | None) -> None:
        if result is None or result.outcome == "interrupted":
            # Stays leased: the next start gets it again.
            return
        completed = result.outcome == "completed"
        failed = None if completed else result.error or result.outcome
        try:
            self._link.persist(
                lambda: self._link.platform.ack(delivery, failed=failed), "acknowledge the delivery"
            )
        except PlatformError as refusal:
            # Handed out again, or gone: the platform has decided, and nothing is left to close.
            _log.warning("delivery not acknowledged", extra=fields(reason=str(refusal)))
        self.store_checkpoint()
