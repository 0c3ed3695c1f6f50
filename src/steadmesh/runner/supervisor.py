"""Starts and stops the runners of one organisation on this machine.

One long poll tells what the service knows of all seats; once a second we look at our own
processes. Both meet in `_rules.decide`, one step per seat at a time. After a step nothing more is
decided about that seat until a view has come that was asked for later, so an old picture never
causes a second start or a needless fence.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from steadmesh.client.address import Operator
from steadmesh.client.http import Service, Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.control import Control
from steadmesh.runner.keeper import Keeper, SupervisorSettings, Tell
from steadmesh.runner.places import SupervisorLock, SupervisorRuns, organisation_folder
from steadmesh.runner.platform import PlatformError
from steadmesh.runner.view import OrganisationView
from steadmesh.runner.watch import Watch

__all__ = ["SupervisorSettings", "supervise"]

_log = logging.getLogger(__name__)

TICK = 0.25
"""Seconds between two looks at our own processes."""
_CLOSING_TICK = 0.05
_SERVICE_AWAY = 1.0
"""Seconds until it is asked again."""
_AFTER_INTERRUPT = 15.0
"""Seconds from interrupting turns to killing."""
_AFTER_KILL = 5.0


def supervise(
    settings: SupervisorSettings,
    *,
    stop: threading.Event,
    hurry: threading.Event | None = None,
    tell: Tell = lambda line: None,
    operator: Operator | None = None,
) -> int:
    """Run the seats of one organisation until `stop` is set; then stop them. Returns the exit code.

    Blocks. 0: stopped as asked. 1: it cannot go on (no such organisation, not allowed, another
    supervisor runs here, the folder cannot be used); `tell` was given the reason. `tell` also
    hears what happens to seats, a line each. Once `hurry` is set too, stopping waits for no turn.
    `operator` reaches the service in another way than
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
            return _Supervisor(settings, control, view=view, tell=tell).run(
                stop, hurry or threading.Event()
            )
    except (PlatformError, SupervisorRuns) as problem:
        tell(str(problem))
    except OSError as problem:
        tell(f"{problem.filename}: {problem.strerror}")
    return 1


def _first_view(control: Control, stop: threading.Event, tell: Tell) -> OrganisationView | None:
    told = False
    while not stop.is_set():
        try:
            return control.runtime()
        except Unreachable as problem:
            if not told:
                tell(f"waiting for the service: {problem}")
            told = True
            stop.wait(_SERVICE_AWAY)
    return None


class _Supervisor:
    def __init__(
        self,
        settings: SupervisorSettings,
        control: Control,
        *,
        view: OrganisationView,
        tell: Tell,
    ) -> None:
        self._settings = settings
        self._control = control
        self._view = view
        self._tell = tell
        self._folder = organisation_folder(settings.data_dir, view.key)
        self._keepers: dict[str, Keeper] = {}
        self._is_away = False

    def run(self, stop: threading.Event, hurry: threading.Event) -> int:
        news: queue.SimpleQueue[OrganisationView | PlatformError | None] = queue.SimpleQueue()
        for folder in sorted(self._folder.iterdir()):
            if folder.is_dir():
                self._keeper(folder.name).adopt()
        watch = Watch(self._control, self._view.cursor, on_news=news.put)
        watch.start()
        threading.Thread(target=_pass_on, args=(stop, news), name="stop", daemon=True).start()
        exit_code = 0
        while not stop.is_set():
            self._step(may_start=True)
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
        watch.stop()
        self._close(hurry)
        return exit_code

    def _step(self, *, may_start: bool) -> None:
        """One step for every seat that a fresh enough view is there for."""
        for seat_id in self._view.seats:
            self._keeper(seat_id)
        for keeper in self._keepers.values():
            keeper.notice_end()
        if any(keeper.decided_at > self._view.asked_at for keeper in self._keepers.values()):
            self._refresh()
        for seat_id, keeper in self._keepers.items():
            if keeper.decided_at <= self._view.asked_at:
                keeper.step(
                    self._view.seats.get(seat_id),
                    view_age=time.monotonic() - self._view.seen_at,
                    may_start=may_start,
                )

    def _refresh(self) -> None:
        try:
            view = self._control.runtime()
        except (PlatformError, Unreachable) as problem:
            _log.warning("the service does not answer", extra=fields(reason=str(problem)))
            self._is_away = True
            return
        self._is_away = False
        if view is not None:
            self._view = view

    def _keeper(self, seat_id: str) -> Keeper:
        if seat_id not in self._keepers:
            self._keepers[seat_id] = Keeper(
                seat_id,
                self._folder / seat_id,
                self._settings,
                control=self._control,
                tell=self._tell,
            )
        return self._keepers[seat_id]

    def _close(self, hurry: threading.Event) -> None:
        """Stop every seat: in order, then interrupting turns, then by force."""
        began = time.monotonic()
        ways_out: list[tuple[float, Callable[[Keeper], None]]] = [
            (0.0, lambda keeper: keeper.tell_to_stop("the supervisor stops")),
            (self._settings.stop_grace_seconds, lambda keeper: keeper.tell_to_stop("")),
            (self._settings.stop_grace_seconds + _AFTER_INTERRUPT, Keeper.kill),
        ]
        give_up = ways_out[-1][0] + _AFTER_KILL
        while any(keeper.is_busy for keeper in self._keepers.values()):
            passed = time.monotonic() - began
            if hurry.is_set() and passed < self._settings.stop_grace_seconds:
                began -= self._settings.stop_grace_seconds - passed
                continue
            while ways_out and passed >= ways_out[0][0]:
                _, press = ways_out.pop(0)
                for keeper in self._keepers.values():
                    press(keeper)
            processes = any(keeper.has_processes() for keeper in self._keepers.values())
            if passed >= give_up or (self._is_away and not processes):
                # Only the record is left, and the next supervisor clears that away.
                _log.warning("not everything could be cleared away")
                return
            self._step(may_start=False)
            time.sleep(_SERVICE_AWAY if self._is_away else _CLOSING_TICK)


def _pass_on(
    stop: threading.Event, news: queue.SimpleQueue[OrganisationView | PlatformError | None]
) -> None:
    """Wake the loop when it is to stop."""
    stop.wait()
    news.put(None)
