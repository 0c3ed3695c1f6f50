"""Waiting for mail: one thread that long-polls, one delivery at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from steadmesh.client.cancellation import Cancellation, Cancelled
from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.harness.contract import Delivery
from steadmesh.runner.platform import Fenced, Platform, PlatformError

_log = logging.getLogger(__name__)

_PAUSE_AFTER_FAILURE = 1.0
"""Seconds. Short: a person may be waiting for the answer of a seat whose service restarts."""
_LEAST_BETWEEN_POLLS = 0.2
"""Seconds. A service that answers "nothing" at once must not be asked in a tight loop."""


class Inbox:
    """Asks for the next delivery each time it is told to `ask`, until it gets one.

    `on_delivery` and `on_fenced` are called from its own thread.
    """

    def __init__(
        self,
        platform: Platform,
        *,
        wait_seconds: float,
        on_delivery: Callable[[Delivery], None],
        on_fenced: Callable[[str], None],
    ) -> None:
        self._platform = platform
        self._wait_seconds = wait_seconds
        self._on_delivery = on_delivery
        self._on_fenced = on_fenced
        self._wanted = threading.Semaphore(0)
        self._cancellation = Cancellation()
        self._thread = threading.Thread(target=self._serve, name="inbox", daemon=True)

    def start(self) -> None:
        """Begin; nothing is asked yet."""
        self._thread.start()

    def ask(self) -> None:
        """One more delivery is wanted."""
        self._wanted.release()

    def stop(self) -> None:
        """Hang up at once. A delivery that was on its way stays unacknowledged."""
        self._cancellation.cancel()
        self._wanted.release()

    def _serve(self) -> None:
        try:
            while True:
                self._wanted.acquire()
                self._on_delivery(self._next())
        except Cancelled:
            return
        except Fenced as refusal:
            self._on_fenced(str(refusal))

    def _next(self) -> Delivery:
        while True:
            self._cancellation.check()
            asked = time.monotonic()
            try:
                delivery = self._platform.next_delivery(
                    wait_seconds=self._wait_seconds, cancellation=self._cancellation
                )
            except Fenced:
                raise
            except (PlatformError, Unreachable) as problem:
                _log.warning("asking for mail failed", extra=fields(reason=str(problem)))
                self._cancellation.wait(_PAUSE_AFTER_FAILURE)
            else:
                if delivery is not None:
                    return delivery
                self._cancellation.wait(asked + _LEAST_BETWEEN_POLLS - time.monotonic())
