"""What happens once work is durable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)


def act_on_commit(actions: Iterable[Callable[[], None]]) -> None:
    """Do what the work asked for. The work stands whatever becomes of it: a failure is logged, and
    neither told to the caller as one of the work nor allowed to keep the rest from being done."""
    for action in actions:
        try:
            action()
        except Exception:
            log.exception("an action after a commit failed")
