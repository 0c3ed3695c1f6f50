"""Which process is which: pid with start time, process groups, and making sure one is gone.

A pid alone names nobody for long, because the system hands it out again; with the moment the
process started it does. A start is gone when its runner is gone and nothing is left of the
runner's session (which its children stay in) nor of any process group it recorded.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from steadmesh.runner.folder import write_atomically

_PROC = Path("/proc")
_GROUP_FILE = "group-"
_PROCESS_FILE = "process"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for good: its pid and the moment it started, as the system words it."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class _Row:
    pid: int
    group: int
    session: int
    started: str
    dead: bool


def identify(pid: int) -> ProcessId | None:
    """The process that has `pid` now; None when there is none, or only its remains."""
    row = _row(pid)
    return None if row is None or row.dead else ProcessId(pid, row.started)


def identify_child(pid: int) -> ProcessId:
    """A child that was not waited for yet, though it may have ended. Raises ProcessLookupError."""
    row = _row(pid)
    if row is None:
        raise ProcessLookupError(f"this system ({sys.platform}) does not tell of process {pid}")
    return ProcessId(pid, row.started)


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process still runs."""
    return identify(process.pid) == process


def group_exists(leader: ProcessId) -> bool:
    """Whether anything is left of the process group that `leader` led."""
    return any(row.group == leader.pid for row in _living_beside(leader))


def left_of_session(leader: ProcessId) -> tuple[ProcessId, ...]:
    """The living processes of the session that `leader` opened, the leader included."""
    return tuple(
        ProcessId(row.pid, row.started)
        for row in _living_beside(leader)
        if row.session == leader.pid
    )


def kill_group(leader: ProcessId, number: signal.Signals) -> None:
    """Signal the group that `leader` led; nothing happens when it is gone."""
    if _number_is_still_of(leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, number)


def kill(process: ProcessId, number: signal.Signals) -> None:
    """Signal exactly this process; nothing happens when it is gone."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _number_is_still_of(leader: ProcessId) -> bool:
    # While a group or session lives the system gives its number to no new process; so when the
    # number belongs to another process today, nothing is left of ours.
    today = identify(leader.pid)
    return today is None or today == leader


def _living_beside(leader: ProcessId) -> Iterator[_Row]:
    if _number_is_still_of(leader):
        for row in _rows():
            if not row.dead:
                yield row


def _row(pid: int) -> _Row | None:
    if _has_proc():
        return _linux_row(str(pid))
    return next((row for row in _listed_rows(["-p", str(pid)]) if row.pid == pid), None)


def _rows() -> Iterator[_Row]:
    if not _has_proc():
        yield from _listed_rows(["-ax"])
        return
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            row = _linux_row(entry)
            if row is not None:
                yield row


def _linux_row(pid: str) -> _Row | None:
    try:
        text = _PROC.joinpath(pid, "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may itself hold brackets and blanks.
    fields = text.rpartition(")")[2].split()
    return _Row(
        pid=int(pid),
        group=int(fields[2]),
        session=int(fields[3]),
        started=f"{_boot()}:{fields[19]}",
        dead=fields[0] in "ZXx",
    )


@functools.cache
def _has_proc() -> bool:
    return _PROC.joinpath("self/stat").exists()


@functools.cache
def _boot() -> str:
    # Ticks count from boot: without its id a process of an earlier boot could look like one of now.
    return _PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]


def _listed_rows(which: Sequence[str]) -> Iterator[_Row]:
    listing = subprocess.run(  # noqa: S603  # fixed program and arguments
        ["/bin/ps", *which, "-o", "pid=,pgid=,stat=,lstart="],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    for line in listing.stdout.splitlines():
        pid, group, state, started = line.split(None, 3)
        try:
            session = os.getsid(int(pid))
        except OSError:
            session = 0
        yield _Row(int(pid), int(group), session, started.strip(), dead=state.startswith("Z"))


class ChildrenKilled(Exception):
    """The start has been told to die; it starts no more processes."""


class ChildGroups:
    """The child processes of one start, each leading a group of its own.

    Every group is recorded in `folder` while it lives, so that whoever cleans up after a crash
    finds it. After `kill_all` none can be started any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._leaders: dict[int, ProcessId] = {}
        self._killed = False

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        stdin: IO[bytes] | int | None = subprocess.PIPE,
        stdout: IO[bytes] | int | None = subprocess.PIPE,
        stderr: IO[bytes] | int | None = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start `command` at the head of a new process group. Raises ChildrenKilled, OSError."""
        with self._lock:
            if self._killed:
                raise ChildrenKilled
            child = subprocess.Popen(  # noqa: S603  # an argument list, never a shell
                command,
                env=dict(environment),
                cwd=directory,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
            # Ended or not: what it starts stays in its group.
            leader = identify_child(child.pid)
            self._leaders[child.pid] = leader
            self._folder.joinpath(f"{_GROUP_FILE}{child.pid}").write_text(
                leader.started, encoding="utf-8"
            )
            return child

    def finished(self, child: subprocess.Popen[bytes]) -> None:
        """Forget a child that has ended; what it left in its group is killed."""
        with self._lock:
            leader = self._leaders.pop(child.pid, None)
        if leader is not None:
            kill_group(leader, signal.SIGKILL)
            self._folder.joinpath(f"{_GROUP_FILE}{child.pid}").unlink(missing_ok=True)

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """End one child and its group at once."""
        with self._lock:
            leader = self._leaders.get(child.pid)
        if leader is not None:
            kill_group(leader, signal.SIGKILL)

    def kill_all(self) -> None:
        """End every group at once and start no more."""
        with self._lock:
            self._killed = True
            leaders = tuple(self._leaders.values())
        for leader in leaders:
            kill_group(leader, signal.SIGKILL)


def recorded_groups(folder: Path) -> tuple[ProcessId, ...]:
    """The group leaders that a start recorded in its run folder and did not see end."""
    found = []
    for entry in folder.glob(f"{_GROUP_FILE}*"):
        number = entry.name.removeprefix(_GROUP_FILE)
        with contextlib.suppress(OSError, ValueError):
            found.append(ProcessId(int(number), entry.read_text(encoding="utf-8")))
    return tuple(found)


def process_space() -> str | None:
    """Equal for processes that see each other under the same ids; None if the system does not say.

    Containers of one machine share its boot and still number their processes each for themselves.
    """
    if not _has_proc():
        return None
    return f"{_boot()}.{os.readlink('/proc/self/ns/pid')}"


def own_process() -> ProcessId:
    """This very process."""
    process = identify(os.getpid())
    if process is None:
        raise RuntimeError(f"this system ({sys.platform}) does not tell a process's start time")
    return process


def write_process(folder: Path, process: ProcessId) -> None:
    """Record which process a start is."""
    write_atomically(folder / _PROCESS_FILE, f"{process.pid} {process.started}")


def read_process(folder: Path) -> ProcessId | None:
    """Which process a start is, once that was recorded."""
    try:
        pid, _, started = folder.joinpath(_PROCESS_FILE).read_text(encoding="utf-8").partition(" ")
        return ProcessId(int(pid), started)
    except (OSError, ValueError):
        return None
