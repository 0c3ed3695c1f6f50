"""Keeping one seat: carries out what `_rules.decide` says, a step at a time."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner import starts
from steadmesh.runner._rules import (
    BLOCKED_RETRY,
    CLEAN_EXITS,
    FENCED,
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
from steadmesh.runner.places import SeatPlaces
from steadmesh.runner.platform import PlatformError
from steadmesh.runner.settings import find_tools, limit_variables, machine_environment
from steadmesh.runner.starts import Record, Start
from steadmesh.runner.view import SeatView

_log = logging.getLogger(__name__)

_TOKEN_ROTATION = 3_600.0
END_SECONDS = 10.0
"""Until the processes of a seat that is no more are killed."""
_RETRY = 2.0
"""Seconds until a step that the service did not take is tried again."""

Tell = Callable[[str], None]


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

    def policy(self) -> Policy:
        """What of this the decisions depend on."""
        return Policy(
            unenforced=tuple(self.unenforced), idle_timeout_seconds=self.idle_timeout_seconds
        )


class Keeper:
    """One seat on this machine."""

    def __init__(
        self,
        seat_id: str,
        folder: Path,
        settings: SupervisorSettings,
        *,
        control: Control,
        tell: Tell,
    ) -> None:
        self._seat_id = seat_id
        self._places = SeatPlaces(folder)
        self._settings = settings
        self._policy = settings.policy()
        self._control = control
        self._tell = tell
        self._start: Start | None = None
        self._older: list[Start] = []
        self._noticed_end = False
        self._was_fenced = False
        self._failures = 0
        self._not_before = 0.0
        self._problem: str | None = None
        self._stop_reason = ""
        self._token_at = 0.0
        self.decided_at = 0.0
        """A view asked for before this moment (monotonic) does not count for this seat."""

    @property
    def is_busy(self) -> bool:
        """Whether any start of the seat is not cleared away yet."""
        return self._start is not None

    def has_processes(self) -> bool:
        """Whether any process of the seat exists."""
        start = self._start
        return start is not None and (start.runs() or start.has_leftovers())

    @property
    def is_active(self) -> bool:
        """Whether there may be something to do although the service has no news of the seat."""
        return self._start is not None or self._not_before > 0.0

    def adopt(self) -> None:
        """Take over what another supervisor left here, running or not."""
        known = {start.record.instance for start in (self._start, *self._older) if start}
        for start in starts.found_again(self._places.runs, self._settings.organization_id):
            if start.record.instance in known:
                continue
            self._older.append(start)
            if start.runs():
                self._tell(f"{start.record.seat_key} found running")
        self._take_next()

    def let_go(self, *, to_stop: bool) -> list[Start]:
        """Decide about the seat no more; its starts, which another supervisor may have by now.

        With `to_stop` they are told to end in order.
        """
        left = [start for start in (self._start, *self._older) if start is not None]
        self._start, self._older = None, []
        for start in left:
            if to_stop and start.told_to_stop_at is None:
                start.tell_to_stop()
        return left

    def notice_end(self) -> None:
        """Look whether the runner has ended; what was known before then does not count any more."""
        if self._start is not None and not self._noticed_end and not self._start.runs():
            self._noticed_end = True
            self.decided_at = time.monotonic()

    def tell_to_stop(self, reason: str) -> None:
        """Ask the runner to end in order; a second time also interrupts a running turn."""
        if self._start is not None:
            self._stop_reason = self._stop_reason or reason
            self._start.tell_to_stop()

    def kill(self) -> None:
        """End every process of the seat at once."""
        if self._start is not None:
            self._start.kill_everything()

    def step(self, view: SeatView | None, *, view_age: float, may_start: bool) -> None:
        """Do what comes next; `view` is None for a seat that the service does not know any more.

        `view_age` in seconds. What fails is tried again a little later.
        """
        if view is None:
            self._end_of_seat()
            return
        try:
            if self._start is None and view.lease_live:
                # A start that another supervisor made here in the moment in which we took over.
                self.adopt()
            self._rotate_token(view)
            blocked = blocked_reason(view, self._policy, unavailable=unavailable(view.harness))
            action = decide(view, self._local(view_age), self._policy, blocked=blocked)
            if self._not_before <= time.monotonic():
                self._not_before = 0.0
            if action.kind == "wait" or (action.kind == "start" and not may_start):
                return
            _log.info(action.kind, extra=fields(seat=view.key, reason=action.reason))
            self._act(view, action)
        except (PlatformError, Unreachable, OSError) as problem:
            _log.warning("a step failed", extra=fields(seat=view.key, reason=str(problem)))
            self._not_before = max(self._not_before, time.monotonic() + _RETRY)
        self.decided_at = time.monotonic()

    def _act(self, view: SeatView, action: Action) -> None:
        start = self._start
        match action.kind:
            case "start":
                self._begin(view)
            case "stop":
                self.tell_to_stop(action.reason)
            case "kill":
                self.kill()
            case "fence":
                self._control.fence(view.seat_id, view.lease_generation)
                self._was_fenced = True
            case "clear" if start is not None:
                self._clear(view, start)
            case "explain":
                self._control.explain(view.seat_id, action.reason)
                self._tell(f"{view.key} is left alone: {action.reason}")
            case "report":
                self._control.set_state(view.seat_id, action.state, action.reason or None)
                if action.state == "Blocked":
                    self._tell(f"{view.key} blocked: {action.reason}")

    def _local(self, view_age: float) -> Local:
        now = time.monotonic()
        waiting = max(0.0, self._not_before - now)
        start = self._start
        if start is None:
            return Local(back_off_seconds=waiting, problem=self._problem)
        told = start.told_to_stop_at
        # Not `start.runs()`: an end that was not noticed yet would be judged by an older view.
        ended = self._noticed_end
        return Local(
            phase="ended" if ended else "running" if told is None else "stopping",
            instance=start.record.instance,
            config_revision=start.record.config_revision,
            uptime_seconds=start.uptime_seconds,
            view_age_seconds=view_age,
            stopping_seconds=0.0 if told is None else now - told,
            has_leftovers=ended and start.has_leftovers(),
            back_off_seconds=waiting,
        )

    # Beginning

    def _begin(self, view: SeatView) -> None:
        record = Record(
            instance=f"start-{secrets.token_hex(8)}",
            seat_id=view.seat_id,
            seat_key=view.key,
            config_revision=view.config_revision,
            began=time.time(),
            organization_id=self._settings.organization_id,
        )
        token = self._control.issue_token(view.seat_id, record.instance)
        self._places = SeatPlaces(self._places.folder, view.workspace_of)
        try:
            self._places.make()
            folder = starts.prepare(record, self._places.runs, token)
            self._start = starts.launch(
                record,
                folder,
                command=starts.runner_command(),
                environment=self._environment(view, folder.token_file),
                directory=self._places.runner,
                memory_limit_bytes=view.memory_limit_bytes,
            )
        except OSError as problem:
            again = self._try_again_in(BLOCKED_RETRY)
            self._problem = f"{problem.filename}: {problem.strerror}; {again}"
            shutil.rmtree(self._places.runs / record.instance, ignore_errors=True)
            self._control.end_tokens(view.seat_id, record.instance)
            return
        self._problem = None
        self._noticed_end = False
        self._stop_reason = ""
        self._token_at = time.monotonic()
        self._tell(f"{view.key} started")

    def _environment(self, view: SeatView, token_file: Path) -> dict[str, str]:
        places = self._places
        return {
            **machine_environment(os.environ, also=limit_variables()),
            "HOME": str(places.home),
            "STEADMESH_PLATFORM_URL": ",".join(self._settings.addresses),
            "STEADMESH_TOKEN_FILE": str(token_file),
            "STEADMESH_ORG_ID": self._settings.organization_id,
            "STEADMESH_SEAT_ID": view.seat_id,
            "STEADMESH_SEAT_KEY": view.key,
            "STEADMESH_CONFIG_REVISION": view.config_revision,
            "STEADMESH_HARNESS": view.harness,
            "STEADMESH_MANIFEST_DIR": str(places.manifest),
            "STEADMESH_WORKSPACE_DIR": str(places.workspace),
            "STEADMESH_HOME_DIR": str(places.home),
            "STEADMESH_RUNNER_DIR": str(places.runner),
            "STEADMESH_TOOLS_BIN": find_tools(os.environ),
            **self._settings.runner_environment,
        }

    def _rotate_token(self, view: SeatView) -> None:
        start = self._start
        now = time.monotonic()
        if start is None or now - self._token_at < _TOKEN_ROTATION or not start.runs():
            return
        # Counted before it is tried: a service that is away is not asked each second.
        self._token_at = now
        start.folder.write_token(self._control.issue_token(view.seat_id, start.record.instance))

    # Ending

    def _clear(self, view: SeatView, start: Start) -> None:
        """Nothing of the start exists any more, and the service knows: forget it."""
        code = start.exit_code
        # Should anything of a fenced start have got away, it hears that it is fenced (exit 4), which
        # tells it to stop, rather than that it is unknown, which sounds as if it could try again.
        self._control.end_tokens(
            view.seat_id, start.record.instance, lapse=self._was_fenced or code == FENCED
        )
        told = start.told_to_stop_at is not None
        failed = not told and has_failed(
            code, was_ready=start.folder.is_ready(), life_seconds=start.uptime_seconds
        )
        word = start.last_word()
        said_itself = view.state == "Stopped" and (view.state_detail or code is None)
        reason = view.state_detail if said_itself else self._reason_of_failure(word)
        if failed:
            self._failures += 1
            again = self._try_again_in(back_off(self._failures))
            self._tell(f"{view.key} failed: {word}; {again}")
            reason = f"{reason or word}; {again}"
        else:
            self._failures = 0
            self._tell(f"{view.key} stopped ({self._stop_reason or word})")
        is_clean = told or code in CLEAN_EXITS or said_itself
        if not view.lease_live and (failed or not is_clean):
            self._control.set_state(view.seat_id, "Stopped", reason)
        self._forget(start)

    def _reason_of_failure(self, word: str) -> str:
        return f"the seat failed: {word}; log: {self._places.runner / 'runner.log'}"

    def _try_again_in(self, seconds: float) -> str:
        """No start before that; when that is, in words for people, who may be anywhere."""
        self._not_before = time.monotonic() + seconds
        when = time.localtime(time.time() + seconds)
        return f"tried again at {time.strftime('%H:%M:%S %Z', when)}"

    def _end_of_seat(self) -> None:
        """Retired or deleted: nothing that its runner does counts any more, so no turn is waited for."""
        start = self._start
        if start is None:
            return
        told = start.told_to_stop_at
        if start.runs() and told is None:
            self._tell(f"{start.record.seat_key} is no more")
            start.tell_to_stop()
        elif start.runs() and time.monotonic() - (told or 0.0) < END_SECONDS:
            return
        elif self.has_processes():
            start.kill_everything()
        else:
            self._forget(start)

    def _forget(self, start: Start) -> None:
        start.clear_away()
        self._start = None
        self._noticed_end = self._was_fenced = False
        self._take_next()

    def _take_next(self) -> None:
        """Only one start can hold the lease; the others are cleared away one after another."""
        if self._start is None and self._older:
            # The newest last, and one that runs after all those that do not.
            self._older.sort(key=lambda start: (start.runs(), start.record.began))
            self._start = self._older.pop(0)
            self._token_at = time.monotonic()
