"""One start of a seat: take the lease, bring up the harness, run turns until told to stop.

One thread decides (`Happenings`). Beside it run the thread that renews the lease, the one that
waits for mail and, during a turn, the one in which the harness works.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from steadmesh.client.http import Unreachable
from steadmesh.kernel.clock import Clock
from steadmesh.kernel.log import fields
from steadmesh.runner import bundles
from steadmesh.runner.folder import RunFolder
from steadmesh.runner.happenings import Happenings, LeaseLost, Mail, StopAsked
from steadmesh.runner.harness.contract import Bootstrap, Harness, HarnessError, SeatEnvironment
from steadmesh.runner.inbox import Inbox
from steadmesh.runner.lease import Renewal
from steadmesh.runner.link import Link, OutOfTime
from steadmesh.runner.platform import (
    Lease,
    LeaseHeld,
    Platform,
    PlatformError,
    Unavailable,
)
from steadmesh.runner.probe import Probing
from steadmesh.runner.processes import ChildGroups
from steadmesh.runner.settings import RunnerSettings, is_program, seat_environment
from steadmesh.runner.turn import HarnessBroken, Turns

_log = logging.getLogger(__name__)

T = TypeVar("T")

STOPPED, FAILED, LEASE_NOT_OBTAINED, FENCED = 0, 1, 2, 3
"""Exit codes of a runner."""


class StartFailed(Exception):
    """The seat cannot be brought up; the text says why."""


class SeatRunner:
    """Runs one seat once. `run` blocks and returns the exit code; `ask_to_stop` ends it."""

    def __init__(
        self,
        settings: RunnerSettings,
        platform: Platform,
        harness: Harness,
        *,
        clock: Clock,
        machine: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._platform = platform
        self._harness = Probing(harness)
        self._clock = clock
        self._machine = machine
        self._folder = RunFolder(settings.run_dir)
        self._children = ChildGroups(settings.run_dir)
        self._happenings = Happenings()
        self._link = Link(
            platform,
            self._happenings,
            config_revision=settings.config_revision,
            on_fenced=self._lease_lost,
        )
        self._turns = Turns(
            self._harness,
            self._link,
            happenings=self._happenings,
            folder=self._folder,
            limits=self._limits,
        )
        self.is_ready = threading.Event()
        """Set while the lease is held and the bootstrap is loaded."""

    def ask_to_stop(self) -> None:
        """Finish the running turn within the quiesce limit and end; a second call interrupts it.

        May be called from a signal handler.
        """
        self._happenings.ask_to_stop()

    def run(self) -> int:
        """Take the lease, serve, give it back. Returns the exit code."""
        try:
            lease = self._acquire()
        except StartFailed as failure:
            _log.error("start failed", extra=fields(reason=str(failure)))
            return FAILED
        if lease is None:
            return STOPPED if self._happenings.stops_asked else LEASE_NOT_OBTAINED
        renewal = Renewal(
            self._platform,
            lease,
            interval=self._limits.renew_interval,
            on_lost=self._lease_lost,
        )
        renewal.start()
        try:
            return self._hold()
        except LeaseLost as end:
            _log.error("lease lost", extra=fields(reason=str(end)))
            return FENCED
        finally:
            renewal.stop()
            self.is_ready.clear()
            self._kill()

    def _hold(self) -> int:
        """What is done while the lease is held. Raises LeaseLost."""
        try:
            self._start()
            self._serve()
            self._wind_down()
        except StopAsked:
            self._last_words()
        except StartFailed as failure:
            _log.error("start failed", extra=fields(reason=str(failure)))
            self._last_words(detail=f"start failed: {failure}")
            return FAILED
        except HarnessBroken as fault:
            _log.error("harness broken", extra=fields(reason=str(fault)))
            self._last_words(detail=str(fault))
            return FAILED
        return STOPPED

    # Start

    def _acquire(self) -> Lease | None:
        """The lease; None when it was not to be had in time, or a stop was asked for."""
        holder = f"{socket.gethostname()}:{os.getpid()}"
        give_up = time.monotonic() + self._limits.acquire_timeout
        while not self._happenings.stops_asked:
            try:
                lease = self._platform.acquire(holder)
            except (LeaseHeld, Unavailable, Unreachable) as problem:
                _log.info("lease not obtained yet", extra=fields(reason=str(problem)))
            except PlatformError as refusal:
                raise StartFailed(f"the lease was refused: {refusal}") from None
            else:
                self._folder.write_generation(lease.generation)
                _log.info("lease acquired", extra=fields(generation=lease.generation))
                return lease
            left = give_up - time.monotonic()
            if left <= 0:
                _log.error("lease not obtained in time")
                return None
            self._happenings.next(min(self._limits.acquire_retry, left))
        return None

    def _start(self) -> None:
        """Bring the harness up. Raises StartFailed, LeaseLost."""
        settings = self._settings
        bootstrap = self._load(self._platform.bootstrap, "load the bootstrap")
        instructions = self._load(self._platform.instructions, "load the instructions")
        self.is_ready.set()
        if not is_program(settings.tools_bin):
            raise StartFailed(
                f"the tool client {settings.tools_bin} is not a program; "
                "set STEADMESH_TOOLS_BIN to the installed steadmesh-tools"
            )
        try:
            self._folder.write_execution(None)
            bundles.render(settings.manifest_dir, settings.seat_key, instructions)
            self._harness.prepare(self._environment(bootstrap))
            start = self._harness.start_or_resume(bootstrap.recovery)
            self._folder.write_ready()
        except (HarnessError, bundles.BundleMismatch) as problem:
            raise StartFailed(str(problem)) from None
        except OSError as problem:
            raise StartFailed(f"{problem.filename}: {problem.strerror}") from problem
        self._link.report("Warm", detail=start.note, adopted=True)
        _log.info("ready", extra=fields(mode=start.mode, note=start.note))

    def _load(self, request: Callable[[], T], purpose: str) -> T:
        try:
            return self._link.persist(
                request, purpose, limit=self._limits.bootstrap_timeout, ends_on_stop=True
            )
        except (OutOfTime, PlatformError) as problem:
            raise StartFailed(f"could not {purpose}: {problem}") from None

    def _environment(self, bootstrap: Bootstrap) -> SeatEnvironment:
        settings = self._settings
        return SeatEnvironment(
            seat_key=settings.seat_key,
            seat_id=settings.seat_id,
            config_revision=settings.config_revision,
            workspace=settings.workspace_dir,
            home=settings.home_dir,
            runner_dir=settings.runner_dir,
            manifest_dir=settings.manifest_dir,
            tools_bin=settings.tools_bin,
            variables=seat_environment(settings, self._machine),
            children=self._children,
            turn_limit_seconds=self._limits.turn_limit,
            clock=self._clock,
            bootstrap=bootstrap,
        )

    # Serve

    def _serve(self) -> None:
        """Run turns until asked to stop. Raises LeaseLost, HarnessBroken."""
        inbox = Inbox(
            self._platform,
            wait_seconds=self._limits.poll_wait,
            on_delivery=lambda delivery: self._happenings.put(Mail(delivery)),
            on_fenced=self._lease_lost,
        )
        inbox.start()
        inbox.ask()
        try:
            while not self._happenings.stops_asked:
                happening = self._happenings.next()
                if isinstance(happening, Mail):
                    self._turns.run(happening.delivery)
                    inbox.ask()
        finally:
            inbox.stop()

    # End

    def _wind_down(self) -> None:
        """Finish in order: no turn, session kept, harness ended, lease given back."""
        self._link.report("Quiescing")
        self._harness.quiesce(grace_seconds=0)
        self._turns.store_checkpoint()
        self._harness.stop(grace_seconds=self._limits.stop_grace)
        self._last_words()
        _log.info("stopped")

    def _last_words(self, *, detail: str | None = None) -> None:
        self._kill()
        self._link.report("Stopped", detail=detail)
        self._link.attempt(self._platform.release, "release the lease")

    def _lease_lost(self, reason: str) -> None:
        """From whichever thread hears it: nothing of this seat may act from now on."""
        self._kill()
        self._happenings.lose_lease(reason)

    def _kill(self) -> None:
        self._children.kill_all()
        self._harness.stop(grace_seconds=0)
