"""Starts and stops the runners of one organisation on this machine.

One long poll tells what the service knows of all seats; once a second we look at our own
processes. Both meet in `_rules.decide`, one step per seat at a time. After a step nothing more is
decided about that seat until a view has come that was asked for later, so an old picture never
causes a second start or a needless fence.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steadmesh.client.address import Operator
from steadmesh.client.http import Service, Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner import starts
from steadmesh.runner._rules import (
    BLOCKED_RETRY,
    Action,
    Local,
    Policy,
    back_off,
    blocked_reason,
    decide,
    has_failed,
)
from steadmesh.runner.control import Control
from steadmesh.runner.harness import unavailable
from steadmesh.runner.places import (
    SeatPlaces,
    SupervisorLock,
    SupervisorRuns,
    organisation_folder,
)
from steadmesh.runner.platform import NotFound, PlatformError
from steadmesh.runner.settings import find_tools, limit_variables, machine_environment
from steadmesh.runner.starts import Record, Start
from steadmesh.runner.view import OrganisationView, SeatView
from steadmesh.runner.watch import Watch

_log = logging.getLogger(__name__)

TICK = 1.0
"""Seconds between two looks at our own processes."""
_CLOSING_TICK = 0.05
_TOKEN_ROTATION = 3_600.0
_RETRY = 2.0
_KILL_AFTER_INTERRUPT = 15.0


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """Which organisation to run, where, and how."""

    addresses: Sequence[str]
    """Of the service; the runners get the same."""
    organization_id: str
    data_dir: Path
    operator_key: str | None = None
    """Not needed over a Unix socket."""
    unenforced: Sequence[str] = ()
    """Sandbox features that seats ask for and are knowingly run without."""
    idle_timeout_seconds: float | None = None
    """Instead of what the organisation file says."""
    stop_grace_seconds: float = 250.0
    """How long running turns may go on after the supervisor was told to stop."""
    runner_environment: Mapping[str, str] = field(default_factory=dict)
    """More variables for the runners, such as `STEADMESH_RUNNER_QUIESCE_LIMIT`."""


def supervise(
    settings: SupervisorSettings,
    *,
    stop: threading.Event,
    tell: Callable[[str], None] = lambda line: None,
    operator: Operator | None = None,
) -> int:
    """Run the seats of one organisation until `stop` is set; then stop them. Returns the exit code.

    Blocks. 0: stopped as asked. 1: it cannot go on (no such organisation, not allowed, another
    supervisor runs here, the folder cannot be used); `tell` was given the reason. `tell` also
    hears what happens to seats, a line each. `operator` reaches the service in another way than
    by the addresses and the key of the settings.
    """
    if operator is None:
        operator = Operator(Service(settings.addresses), key=settings.operator_key)
    control = Control(operator, settings.organization_id)
    try:
        view = _first_view(control, stop, tell)
        if view is None:
            return 0
        with SupervisorLock(organisation_folder(settings.data_dir, view.key)):
            return _Supervisor(settings, control, view=view, tell=tell).run(stop)
    except (PlatformError, SupervisorRuns) as problem:
        tell(str(problem))
    except OSError as problem:
        tell(f"{problem.filename}: {problem.strerror}")
    return 1


def _first_view(
    control: Control, stop: threading.Event, tell: Callable[[str], None]
) -> OrganisationView | None:
    told = False
    while not stop.is_set():
        try:
            return control.runtime()
        except Unreachable as problem:
            if not told:
                tell(f"waiting for the service: {problem}")
            told = True
            stop.wait(TICK)
    return None


@dataclass(slots=True)
class _Seat:
    """What this supervisor remembers of a seat."""

    places: SeatPlaces
    start: Start | None = None
    noticed_end: bool = False
    failures: int = 0
    not_before: float = 0.0
    problem: str | None = None
    decided_at: float = 0.0
    """Views asked for before this moment do not count; monotonic, as the other moments."""
    token_at: float = 0.0
    stop_reason: str = ""


class _Supervisor:
    def __init__(
        self,
        settings: SupervisorSettings,
        control: Control,
        *,
        view: OrganisationView,
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._control = control
        self._view = view
        self._tell = tell
        self._policy = Policy(
            unenforced=tuple(settings.unenforced),
            idle_timeout_seconds=settings.idle_timeout_seconds,
        )
        self._folder = organisation_folder(settings.data_dir, view.key)
        self._seats: dict[str, _Seat] = {}
        self._closing = False

    def run(self, stop: threading.Event) -> int:
        news: queue.SimpleQueue[OrganisationView | PlatformError | None] = queue.SimpleQueue()
        self._adopt()
        watch = Watch(self._control, self._view.cursor, on_news=news.put)
        watch.start()
        threading.Thread(
            target=lambda: (stop.wait(), news.put(None)), name="stop", daemon=True
        ).start()
        exit_code = 0
        try:
            while not stop.is_set():
                self._step_all()
                try:
                    item = news.get(timeout=TICK)
                except queue.Empty:
                    continue
                if isinstance(item, PlatformError):
                    self._tell(f"the service refuses: {item}")
                    exit_code = 1
                    break
                if item is not None:
                    self._view = item
        finally:
            watch.stop()
            self._close()
        return exit_code

    # Steps

    def _adopt(self) -> None:
        """Take over what an earlier supervisor left running."""
        if not self._folder.is_dir():
            return
        for folder in sorted(self._folder.iterdir()):
            for start in starts.found_again(folder / "runner" / "run"):
                seat = self._seat(start.record.seat_id)
                if seat.start is not None and seat.start.runs():
                    continue
                seat.start = start
                if start.runs():
                    self._tell(f"{start.record.seat_key} found running")

    def _seat(self, seat_id: str) -> _Seat:
        if seat_id not in self._seats:
            self._seats[seat_id] = _Seat(SeatPlaces(self._folder / seat_id))
        return self._seats[seat_id]

    def _step_all(self) -> None:
        for seat_id in self._view.seats:
            self._seat(seat_id)
        for seat in self._seats.values():
            self._notice_end(seat)
        if any(seat.decided_at > self._view.asked_at for seat in self._seats.values()):
            self._refresh()
        for seat_id, seat in tuple(self._seats.items()):
            known = self._view.seats.get(seat_id)
            try:
                self._step(seat, known)
            except (PlatformError, Unreachable) as problem:
                seat.decided_at = time.monotonic()
                _log.warning(
                    "a step failed", extra=fields(seat=seat_id, reason=str(problem))
                )

    def _refresh(self) -> None:
        try:
            view = self._control.runtime()
        except (PlatformError, Unreachable) as problem:
            _log.warning("the service does not answer", extra=fields(reason=str(problem)))
            return
        if view is not None:
            self._view = view

    def _notice_end(self, seat: _Seat) -> None:
        start = seat.start
        if start is None or seat.noticed_end or start.runs():
            return
        seat.noticed_end = True
        seat.decided_at = time.monotonic()

    def _step(self, seat: _Seat, view: SeatView | None) -> None:
        if seat.decided_at > self._view.asked_at:
            return
        if view is None:
            self._step_of_nobody(seat)
            return
        self._rotate_token(seat, view)
        blocked = blocked_reason(view, self._policy, unavailable=unavailable(view.harness))
        action = decide(view, self._local(seat), self._policy, blocked=blocked)
        if action.kind == "wait" or (action.kind == "start" and self._closing):
            return
        seat.decided_at = time.monotonic()
        self._act(seat, view, action)

    def _step_of_nobody(self, seat: _Seat) -> None:
        """A seat that is no more: end what runs, then forget it."""
        start = seat.start
        if start is None:
            return
        if start.runs():
            if start.told_to_stop_at is None:
                start.tell_to_stop()
        elif start.has_leftovers():
            start.kill_everything()
        else:
            start.clear_away()
            seat.start = None

    def _act(self, seat: _Seat, view: SeatView, action: Action) -> None:
        _log.info(
            action.kind, extra=fields(seat=view.key, reason=action.reason, state=action.state)
        )
        start = seat.start
        match action.kind:
            case "start":
                self._start(seat, view)
            case "stop" if start is not None:
                seat.stop_reason = action.reason
                start.tell_to_stop()
            case "kill" if start is not None:
                start.kill_everything()
            case "fence":
                self._control.fence(view.seat_id, view.lease_generation)
            case "clear" if start is not None:
                self._clear(seat, view, start)
            case "report":
                self._control.set_state(view.seat_id, action.state, action.reason or None)
                if action.state == "Blocked":
                    self._tell(f"{view.key} blocked: {action.reason}")

    def _local(self, seat: _Seat) -> Local:
        now = time.monotonic()
        start = seat.start
        waiting = max(0.0, seat.not_before - now)
        if start is None:
            return Local(back_off_seconds=waiting, problem=seat.problem)
        ended = not start.runs()
        told = start.told_to_stop_at
        running = "running" if told is None else "stopping"
        return Local(
            phase="ended" if ended else running,  # type: ignore[arg-type]
            instance=start.record.instance,
            config_revision=start.record.config_revision,
            uptime_seconds=start.uptime_seconds,
            stopping_seconds=0.0 if told is None else now - told,
            has_leftovers=ended and start.has_leftovers(),
            back_off_seconds=waiting,
            problem=seat.problem,
        )
