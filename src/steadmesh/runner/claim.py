"""One supervisor at a time decides about an organisation's seats: the claim that it keeps.

The service holds the claim for 30 seconds from each renewal. A supervisor that could not renew it for
so long (it was paused, or the service was away) must not decide before it has it again: another may
have taken over meanwhile, here or on another machine.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.control import Control, Rival
from steadmesh.runner.platform import PlatformError, Unavailable
from steadmesh.runner.processes import ProcessId, is_alive, own_process, process_space

_log = logging.getLogger(__name__)

RENEWAL = 10.0
RETRY = 1.0
"""Seconds between two tries while it is not held."""


def uptime() -> float:
    """Seconds that also pass while the machine sleeps, where the system counts those."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who asks: this process, and where it keeps the seats' files."""

    instance: str
    host: str
    process: ProcessId
    space: str
    """Where the process ids of this machine mean what they mean here."""
    place: str
    """The folder of the organisation's seats, as no other on the machine."""

    @classmethod
    def here(cls, folder: Path) -> Claimant:
        """This process, with the seats in `folder`. Raises OSError."""
        status = folder.stat()
        return cls(
            instance=f"supervisor-{secrets.token_hex(8)}",
            host=socket.gethostname() or "localhost",
            process=own_process(),
            space=process_space() or f"{uuid.getnode():x}",
            place=f"{status.st_dev}-{status.st_ino}",
        )

    @property
    def machine(self) -> str:
        """Equal for supervisors that see each other's processes and share the seats' files."""
        return f"{self.space} {self.place}"

    def document(self) -> dict[str, object]:
        """As it is sent."""
        return {
            "instance": self.instance,
            "host": self.host,
            "pid": self.process.pid,
            "machine": self.machine,
            "started": self.process.started,
        }

    def shares_files_with(self, rival: Rival) -> bool:
        """Whether the other finds the starts that we made."""
        return rival.machine == self.machine

    def knows_gone(self, rival: Rival) -> bool:
        """Whether the other is a process of this machine that does not exist any more."""
        if (rival.machine or "").rpartition(" ")[0] != self.space or rival.started is None:
            return False
        return not is_alive(ProcessId(rival.pid, rival.started))


class Claim:
    """Gets the claim and keeps it, from a thread of its own, until `end`.

    `on_change` is called, from that thread, when it is got, lost or refused for good.
    """

    def __init__(
        self,
        control: Control,
        claimant: Claimant,
        *,
        on_change: Callable[[], None],
        now: Callable[[], float] = uptime,
    ) -> None:
        self._control = control
        self._claimant = claimant
        self._on_change = on_change
        self._now = now
        self._until = 0.0
        self._renewal = RENEWAL
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="claim", daemon=True)
        self.turn = 0
        """Rises each time it was got anew: what was known before may be outdated."""
        self.rival: Rival | None = None
        """Who has it instead, as far as we heard."""
        self.refusal: PlatformError | None = None
        """Why it will never be had: the organisation is gone, or the key is not valid."""

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    @property
    def holds(self) -> bool:
        """Whether we may decide now."""
        return self.rival is None and self._now() < self._until

    def end(self) -> None:
        """Ask no more, and let the next one in at once."""
        self._ended.set()
        # What is under way must not take it again after we gave it back.
        self._thread.join(15.0)
        if self.turn and self.rival is None:
            try:
                self._control.end_claim(self._claimant.instance)
            except (PlatformError, Unreachable) as problem:
                _log.warning("the claim could not be given back", extra=_about(problem))

    def try_once(self) -> None:
        """Ask for it, or for more time. Raises PlatformError, Unreachable."""
        asked = self._now()
        gone = self.rival
        replaces = gone.instance if gone and self._claimant.knows_gone(gone) else None
        answer = self._control.claim(self._claimant.document(), replaces=replaces)
        if isinstance(answer, Rival):
            is_news = self.rival is None or self.rival.instance != answer.instance
            self.rival, self._until = answer, 0.0
            if is_news:
                _log.warning("another supervisor decides", extra=fields(holder=str(answer)))
                self._on_change()
            return
        self._until = asked + answer.ttl_seconds
        self._renewal = min(RENEWAL, answer.ttl_seconds / 3)
        self.rival = None
        if not answer.continued or self.turn == 0:
            self.turn += 1
            _log.info("claim obtained", extra=fields(turn=self.turn))
            self._on_change()

    def _keep(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            pause = RETRY
            try:
                self.try_once()
            except (Unavailable, Unreachable) as problem:
                _log.warning("the claim could not be renewed", extra=_about(problem))
            except PlatformError as refusal:
                self.refusal = refusal
                self._on_change()
                return
            else:
                pause = self._renewal if self.rival is None else RETRY


def _about(problem: Exception) -> dict[str, object]:
    return fields(reason=str(problem))
