"""Talking to the platform while the lease is held: what to try again, and when to end at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.happenings import Happenings, LeaseLost, StopAsked
from steadmesh.runner.platform import Fenced, Platform, PlatformError, Unavailable

_log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY = 1.0
_LONGEST_DETAIL = 500
"""Characters of a state's reason."""


class OutOfTime(Exception):
    """The platform gave no answer for as long as we wait for it."""


class Link:
    """The platform under a held lease. A fenced answer calls `on_fenced` and raises LeaseLost."""

    def __init__(
        self,
        platform: Platform,
        happenings: Happenings,
        *,
        config_revision: str,
        on_fenced: Callable[[str], None],
    ) -> None:
        self.platform = platform
        self._happenings = happenings
        self._config_revision = config_revision
        self._on_fenced = on_fenced

    def report(self, state: str, *, detail: str | None = None, adopted: bool = False) -> None:
        """Say which state the seat is in, and whether it now runs at its revision."""
        shown = None if detail is None else detail[:_LONGEST_DETAIL]
        revision = (self._config_revision or None) if adopted else None
        self.attempt(
            lambda: self.platform.report(state, detail=shown, adopted_revision=revision),
            f"report {state}",
        )

    def attempt(self, request: Callable[[], object], purpose: str) -> bool:
        """Something worth saying but not worth stopping for; answers whether it was said.

        Raises LeaseLost.
        """
        self._happenings.check()
        try:
            request()
        except Fenced as refusal:
            raise self._fenced(refusal) from None
        except (PlatformError, Unreachable) as problem:
            _log.warning("the platform did not take a word", extra=_about(purpose, problem))
            return False
        return True

    def persist(
        self,
        request: Callable[[], T],
        purpose: str,
        *,
        limit: float | None = None,
        ends_on_stop: bool = False,
    ) -> T:
        """Try until there is an answer, for `limit` seconds or as long as the lease lives.

        Raises PlatformError for an answer that another try would not change, OutOfTime, LeaseLost;
        StopAsked, where wanted, once the seat is told to stop.
        """
        give_up = None if limit is None else time.monotonic() + limit
        while True:
            self._happenings.check()
            try:
                return request()
            except Fenced as refusal:
                raise self._fenced(refusal) from None
            except (Unavailable, Unreachable) as problem:
                _log.warning("the platform does not answer", extra=_about(purpose, problem))
                if give_up is not None and time.monotonic() >= give_up:
                    raise OutOfTime(f"could not {purpose} in {limit:g} s: {problem}") from None
            self._happenings.next(_RETRY)
            if ends_on_stop and self._happenings.stops_asked:
                raise StopAsked

    def _fenced(self, refusal: Fenced) -> LeaseLost:
        self._on_fenced(str(refusal))
        return LeaseLost(str(refusal))


def _about(purpose: str, problem: Exception) -> dict[str, object]:
    return fields(purpose=purpose, reason=str(problem))
