"""Being a seat by hand: a command of one's own under the seat's lease, in place of a runner."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from steadmesh.client.http import Service, Unreachable
from steadmesh.runner.folder import RunFolder, make_private
from steadmesh.runner.lease import Renewal
from steadmesh.runner.places import SeatPlaces
from steadmesh.runner.platform import LeaseHeld, Platform, PlatformError
from steadmesh.runner.processes import ChildGroups, ChildrenKilled
from steadmesh.runner.settings import Limits, find_tools, machine_environment
from steadmesh.runner.terminal import Terminal, wait_for

ERROR, NOT_OBTAINED, FENCED, NOT_RUNNABLE, NOT_FOUND = 1, 2, 3, 126, 127
"""Exit codes besides the command's own."""

_TERMINAL_VARIABLES = ("TERM", "COLORTERM")
"""What a program on a terminal needs besides what every program of a seat gets."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class HandSeat:
    """Which seat, and where its files are on this machine."""

    addresses: Sequence[str]
    """Of the service."""
    organization_id: str
    seat_id: str
    seat_key: str
    folder: Path
    """`<data>/seats/<organisation>/<seat id>`, the same that a supervisor uses."""
    instance: str = "manual"
    """The one that the token is bound to; it gives the run folder its name."""
    config_revision: str = ""
    workspace_of: str | None = None
    """The seat whose workspace it goes on in, if not its own."""
    harness: str = "manual"
    home: Path | None = None
    """Home of the command; the seat's own unless given."""

    @property
    def run_folder(self) -> RunFolder:
        """Where token, generation and execution lie while the command runs."""
        return RunFolder(SeatPlaces(self.folder).runs / self.instance)

    def environment(self, machine: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of the command: files by name, no secret."""
        places, folder = SeatPlaces(self.folder, self.workspace_of), self.run_folder
        return {
            **machine_environment(machine, also=_TERMINAL_VARIABLES),
            "HOME": str(self.home or places.home),
            "STEADMESH_PLATFORM_URL": ",".join(self.addresses),
            "STEADMESH_TOKEN_FILE": str(folder.token_file),
            "STEADMESH_GENERATION_FILE": str(folder.generation_file),
            "STEADMESH_EXECUTION_FILE": str(folder.execution_file),
            "STEADMESH_ORG_ID": self.organization_id,
            "STEADMESH_SEAT_ID": self.seat_id,
            "STEADMESH_SEAT_KEY": self.seat_key,
            "STEADMESH_CONFIG_REVISION": self.config_revision,
            "STEADMESH_HARNESS": self.harness,
            "STEADMESH_MANIFEST_DIR": str(places.manifest),
            "STEADMESH_WORKSPACE_DIR": str(places.workspace),
            "STEADMESH_HOME_DIR": str(places.home),
            "STEADMESH_RUNNER_DIR": str(places.runner),
            "STEADMESH_TOOLS_BIN": find_tools(machine),
        }


def mcp_configuration(seat: HandSeat, machine: Mapping[str, str] = os.environ) -> dict[str, object]:
    """By which an MCP client finds the seat's tools while it is run by hand; holds no secret."""
    environment = seat.environment(machine)
    names = (
        "STEADMESH_PLATFORM_URL",
        "STEADMESH_TOKEN_FILE",
        "STEADMESH_GENERATION_FILE",
        "STEADMESH_EXECUTION_FILE",
    )
    server = {
        "command": environment["STEADMESH_TOOLS_BIN"],
        "args": ["mcp"],
        "env": {name: environment[name] for name in names},
    }
    return {"mcpServers": {"steadmesh": server}}


def run_by_hand(
    seat: HandSeat,
    command: Sequence[str],
    *,
    token: str,
    tell: Tell,
    machine: Mapping[str, str] = os.environ,
) -> int:
    """Take the lease, run the command on this terminal, give the lease back.

    `token` is an identity token of the seat, bound to `seat.instance`. Meanwhile the supervisor
    does not start the seat. Returns the command's exit code (128 + n if signal n ended it); 2 if
    the lease is held elsewhere; 3 if the seat was taken over, and the command killed; 126 or 127
    if the command cannot be run; 1 for other failures. `tell` hears the reason in words. To be
    called from the main thread. Raises OSError if the seat's folder cannot be used.
    """
    places = SeatPlaces(seat.folder, seat.workspace_of)
    places.make()
    with contextlib.ExitStack() as at_end:
        if not at_end.enter_context(_alone(places.runner / f"{seat.instance}.lock")):
            tell(f"{seat.seat_key} is already run by hand as {seat.instance}; end that first")
            return NOT_OBTAINED
        folder = seat.run_folder
        at_end.callback(shutil.rmtree, folder.path, ignore_errors=True)
        make_private(folder.path)
        folder.write_token(token)
        folder.write_execution(None)
        platform = Platform(Service(seat.addresses), folder.token_file)
        try:
            lease = platform.acquire(f"by hand: {socket.gethostname()}:{os.getpid()}")
        except LeaseHeld as problem:
            tell(str(problem))
            return NOT_OBTAINED
        except (PlatformError, Unreachable) as problem:
            tell(f"the lease was not obtained: {problem}")
            return ERROR
        folder.write_generation(lease.generation)
        children = ChildGroups(folder.path)
        lost = threading.Event()

        def end_it(reason: str) -> None:
            lost.set()
            tell(f"the seat was taken over; the command is ended ({reason})")
            children.kill_all()

        renewal = Renewal(platform, lease, interval=Limits().renew_interval, on_lost=end_it)
        renewal.start()
        _say(platform, "Warm")
        code = _run(command, children, environment=seat.environment(machine), tell=tell)
        renewal.stop()
        children.kill_all()
        if lost.is_set():
            return FENCED
        _say(platform, "Stopped")
        with contextlib.suppress(PlatformError, Unreachable):
            platform.release()
        return code


def _run(
    command: Sequence[str], children: ChildGroups, *, environment: Mapping[str, str], tell: Tell
) -> int:
    with _Forwarding() as signals, Terminal() as terminal:
        try:
            child = children.start(
                command,
                environment=environment,
                directory=Path.cwd(),
                stdin=None,
                stdout=None,
                stderr=None,
            )
        except ChildrenKilled:
            return FENCED
        except FileNotFoundError:
            tell(f"{command[0]}: no such program")
            return NOT_FOUND
        except OSError as problem:
            tell(f"{command[0]}: {problem.strerror}")
            return NOT_RUNNABLE
        signals.forward_to(child.pid)
        terminal.give_to(child.pid)
        code = wait_for(child, terminal, tell=tell)
    children.finished(child)
    return code if code >= 0 else 128 - code


def _say(platform: Platform, state: str) -> None:
    with contextlib.suppress(PlatformError, Unreachable):
        platform.report(state)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether nobody else holds this file; held until left, or until this process dies."""
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


class _Forwarding:
    """Signals to us are meant for the command, also one that comes while it is being started."""

    def __init__(self) -> None:
        self._group: int | None = None
        self._early: list[int] = []

    def __enter__(self) -> _Forwarding:
        self._before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def forward_to(self, group: int) -> None:
        """The command runs as this process group."""
        self._group = group
        while self._early:
            self._forward(self._early.pop(0), None)

    def _forward(self, number: int, _frame: object) -> None:
        if self._group is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._group, number)
