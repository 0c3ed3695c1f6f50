"""Starts and stops the runners of one organisation on this machine.

One long poll tells what the service knows of all seats; once a second we look at our own
processes. Both meet in `_rules.decide`, one step per seat at a time. After a step nothing more is
decided about that seat until a view has come that was asked for later, so an old picture never
causes a second start or a needless fence.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steadmesh.client.address import Operator
from steadmesh.client.http import Service, Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.claim import Claim, Claimant
from steadmesh.runner.control import Control, Rival
from steadmesh.runner.folder import make_private
from steadmesh.runner.keeper import Keeper, SupervisorSettings, Tell
from steadmesh.runner.places import organisation_folder
from steadmesh.runner.platform import NotFound, PlatformError
from steadmesh.runner.starts import Start
from steadmesh.runner.view import OrganisationView
from steadmesh.runner.watch import Watch

__all__ = ["SupervisorSettings", "supervise"]

_log = logging.getLogger(__name__)

TICK = 0.25
"""Seconds between two looks at our own processes."""
LONG_TICK = 30.0
"""The same while there are none: all news come from the service then."""
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

    Blocks. While another supervisor of the organisation lives, here or elsewhere, it stands by and
    takes over when that one is gone. 0: stopped as asked. 1: it cannot go on (no such organisation,
    not allowed, the folder cannot be used); `tell` was given the reason. `tell` also hears what
    happens to seats, a line each. Once `hurry` is set too, stopping waits for no turn. `operator`
    reaches the service in another way than by the addresses and the key of the settings.
    """
    if operator is None:
        operator = Operator(Service(settings.addresses), key=settings.operator_key)
    control = Control(operator, settings.organization_id)
    try:
        view = _first_view(control, stop, tell)
        if view is None:
            return 0
        folder = make_private(organisation_folder(settings.data_dir, view.key))
        supervisor = _Supervisor(settings, control, view=view, folder=folder, tell=tell)
        return supervisor.run(stop, hurry or threading.Event())
    except PlatformError as problem:
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
        folder: Path,
        tell: Tell,
    ) -> None:
        self._settings = settings
        self._control = control
        self._view = view
        self._stepped: OrganisationView | None = None
        self._tell = tell
        self._folder = folder
        self._claimant = Claimant.here(folder)
        self._keepers: dict[str, Keeper] = {}
        self._left: list[Start] = []
        """Starts of ours that another supervisor has by now; the system wants their ends noticed."""
        self._is_away = False
        self._turn = 0
        self._since = 0.0
        """When the present turn began; a view asked for earlier does not count."""
        self._rival: Rival | None = None

    def run(self, stop: threading.Event, hurry: threading.Event) -> int:
        news: queue.SimpleQueue[OrganisationView | PlatformError | None] = queue.SimpleQueue()
        claim = Claim(self._control, self._claimant, on_change=lambda: news.put(None))
        watch = Watch(self._control, self._view.cursor, on_news=news.put)
        claim.start()
        watch.start()
        threading.Thread(target=_pass_on, args=(stop, news), name="stop", daemon=True).start()
        refusal: PlatformError | None = None
        try:
            while not stop.is_set() and refusal is None:
                if self._decides(claim):
                    self._step(may_start=True)
                item = self._next(news)
                if isinstance(item, OrganisationView):
                    self._view = item
                refusal = item if isinstance(item, PlatformError) else claim.refusal
        finally:
            watch.stop()
        if refusal is not None:
            self._tell(f"the service refuses: {refusal}")
            if isinstance(
                refusal, NotFound
            ):  # then every seat is no more, and no view can be newer
                self._view = replace(self._view, seats={}, asked_at=math.inf)
        self._close(hurry, claim)
        claim.end()
        return 0 if refusal is None else 1

    def _next(
        self, news: queue.SimpleQueue[OrganisationView | PlatformError | None]
    ) -> OrganisationView | PlatformError | None:
        """What comes next from outside; None when it is time to look at our own processes."""
        self._left = [start for start in self._left if start.runs()]
        is_idle = not (
            self._left
            or self._needed() > self._view.asked_at
            or any(keeper.is_active for keeper in self._keepers.values())
        )
        try:
            return news.get(timeout=LONG_TICK if is_idle else TICK)
        except queue.Empty:
            return None

    def _decides(self, claim: Claim) -> bool:
        """Whether we may decide about seats; lets go of them, or takes them over, as the claim goes."""
        rival = claim.rival
        if rival is not None:
            if self._rival is None or self._rival.instance != rival.instance:
                self._stand_by(rival)
            return False
        if not claim.holds:
            return False
        if self._turn != claim.turn:
            if self._rival is not None:
                self._tell(f"that supervisor ({self._rival}) is gone; this supervisor takes over")
            self._turn, self._rival = claim.turn, None
            self._take_over()
        return True

    def _stand_by(self, rival: Rival) -> None:
        self._rival = rival
        self._tell(
            f"another supervisor ({rival}) runs the seats of {self._view.key}; standing by, to take"
            " over when it is gone"
        )
        self._let_go(rival)

    def _let_go(self, rival: Rival) -> None:
        to_stop = not self._claimant.shares_files_with(rival)
        for keeper in self._keepers.values():
            # Elsewhere they could not be found: they end in order, and their seats start there.
            self._left += keeper.let_go(to_stop=to_stop)
        self._keepers.clear()

    def _take_over(self) -> None:
        """Find what runs here; nothing that was known before counts."""
        for keeper in self._keepers.values():
            self._left += keeper.let_go(to_stop=False)
        self._keepers.clear()
        self._since = time.monotonic()
        for folder in sorted(self._folder.iterdir()):
            if folder.is_dir():
                self._keeper(folder.name).adopt()

    def _step(self, *, may_start: bool) -> None:
        """One step for every seat that a fresh enough view is there for."""
        for seat_id in self._view.seats:
            self._keeper(seat_id)
        for keeper in self._keepers.values():
            keeper.notice_end()
        if self._needed() > self._view.asked_at:
            self._refresh()
        if self._since > self._view.asked_at:
            return
        is_news, self._stepped = self._view is not self._stepped, self._view
        for seat_id, keeper in self._keepers.items():
            if keeper.decided_at <= self._view.asked_at and (is_news or keeper.is_active):
                keeper.step(
                    self._view.seats.get(seat_id),
                    view_age=time.monotonic() - self._view.seen_at,
                    may_start=may_start,
                )

    def _needed(self) -> float:
        """A view asked for earlier does not tell all that is to be known."""
        return max(self._since, *(keeper.decided_at for keeper in self._keepers.values()), 0.0)

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

    def _close(self, hurry: threading.Event, claim: Claim) -> None:
        """Stop every seat: in order, then interrupting turns, then by force.

        What another supervisor has taken over is left to it.
        """
        began = time.monotonic()
        ways_out: list[tuple[float, Callable[[Keeper], None]]] = [
            (0.0, lambda keeper: keeper.tell_to_stop("the supervisor stops")),
            (self._settings.stop_grace_seconds, lambda keeper: keeper.tell_to_stop("")),
            (self._settings.stop_grace_seconds + _AFTER_INTERRUPT, Keeper.kill),
        ]
        give_up = ways_out[-1][0] + _AFTER_KILL
        while any(keeper.is_busy for keeper in self._keepers.values()):
            if claim.rival is not None:
                self._let_go(claim.rival)
                return
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
