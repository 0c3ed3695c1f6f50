"""Keeping the lease: one thread that renews it, and says at once when it is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.platform import Fenced, Lease, LeaseHeld, NotFound, Platform, PlatformError

_log = logging.getLogger(__name__)

_RETRY = 1.0
"""Seconds between attempts after a failed one."""
_SHARE_OF_LIFE = 3
"""A lease is renewed at least this often in its life."""


class Renewal:
    """Renews a lease in the background until `stop`, or until it is lost.

    Lost means: the platform says so, or no renewal got through for as long as the lease lives.
    Then `on_lost` is called once, from this thread, with the reason.
    """

    def __init__(
        self,
        platform: Platform,
        lease: Lease,
        *,
        interval: float,
        on_lost: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._platform = platform
        self._life = lease.ttl_seconds
        self._interval = min(interval, self._life / _SHARE_OF_LIFE)
        self._on_lost = on_lost
        self._monotonic = monotonic
        self._ended = threading.Event()
        self._held_since = monotonic()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def start(self) -> None:
        """Begin; to be called right after the lease was acquired."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no more. A renewal under way may still get through."""
        self._ended.set()

    def _renew(self) -> None:
        pause = self._interval
        while not self._ended.wait(pause):
            # Counted from when we asked: the answer may have taken its time.
            asked = self._monotonic()
            left = self._held_since + self._life - asked
            try:
                lease = self._platform.renew(timeout=max(left, _RETRY))
            except (Fenced, LeaseHeld, NotFound) as refusal:
                self._lose(str(refusal))
                return
            except (PlatformError, Unreachable) as problem:
                _log.warning("lease renewal failed", extra=fields(reason=str(problem)))
                if self._monotonic() >= self._held_since + self._life:
                    self._lose(f"it could not be renewed for {self._life:g} s: {problem}")
                    return
                pause = min(_RETRY, self._interval)
            else:
                self._held_since = asked
                self._life = lease.ttl_seconds
                pause = self._interval

    def _lose(self, reason: str) -> None:
        if not self._ended.is_set():
            self._on_lost(reason)
