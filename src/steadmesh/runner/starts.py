"""One start of a seat on this machine: its processes, its run folder, and finding it again.

A start is recorded in its run folder (`start.json`, `process`), so that a supervisor that was
killed finds its starts when it comes back. They are processes of a session of their own.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from steadmesh.runner.folder import RunFolder, make_private, write_atomically
from steadmesh.runner.processes import (
    ProcessId,
    group_exists,
    identify_child,
    is_alive,
    kill,
    kill_group,
    left_of_session,
    read_process,
    recorded_groups,
    write_process,
)

Child = subprocess.Popen[bytes]

_RECORD = "start.json"
_LONGEST_LAST_WORD = 300
_NEVER_STARTED_AFTER = 60.0
"""Seconds after which a recorded start without a process is taken for one that never came to be."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is worth knowing of a start after a restart of the supervisor."""

    instance: str
    seat_id: str
    seat_key: str
    config_revision: str
    began: float
    """Seconds since 1970."""
    organization_id: str = ""


class Start:
    """A start whose processes may still exist."""

    def __init__(
        self, record: Record, folder: RunFolder, process: ProcessId | None, *, child: Child | None
    ) -> None:
        self.record = record
        self.folder = folder
        self._process = process
        self._child = child
        self.told_to_stop_at: float | None = None
        """Monotonic seconds."""

    @property
    def uptime_seconds(self) -> float:
        """Since it began."""
        return max(0.0, time.time() - self.record.began)

    def runs(self) -> bool:
        """Whether the runner's own process exists."""
        if self._child is not None:
            return self._child.poll() is None
        if self._process is None:
            self._process = read_process(self.folder.path)
            return self._process is not None or self.uptime_seconds < _NEVER_STARTED_AFTER
        return is_alive(self._process)

    @property
    def exit_code(self) -> int | None:
        """Of an ended runner; negative for a signal, None for a start that we did not begin."""
        return None if self._child is None else self._child.returncode

    def has_leftovers(self) -> bool:
        """Whether any process of this start still exists, its runner aside."""
        if self._process is not None and left_of_session(self._process):
            return True
        return any(group_exists(leader) for leader in recorded_groups(self.folder.path))

    def tell_to_stop(self) -> None:
        """Ask for an orderly end; a second time also interrupts a running turn."""
        self.told_to_stop_at = self.told_to_stop_at or time.monotonic()
        if self._process is not None and self.runs():
            kill(self._process, signal.SIGTERM)

    def kill_everything(self) -> None:
        """End every process of this start at once."""
        if self._process is not None:
            for member in left_of_session(self._process):
                kill(member, signal.SIGKILL)
            kill_group(self._process, signal.SIGKILL)
        for leader in recorded_groups(self.folder.path):
            kill_group(leader, signal.SIGKILL)

    def kill_runner(self) -> int | None:
        """End the runner alone, as an accident would; its pid."""
        if self._process is None:
            return None
        kill(self._process, signal.SIGKILL)
        return self._process.pid

    def last_word(self) -> str:
        """How the runner ended, in words for people."""
        code = self.exit_code
        if code is not None and code < 0:
            return f"the runner was ended by signal {-code} ({signal.Signals(-code).name})"
        with contextlib.suppress(OSError):
            lines = self.folder.path.joinpath("stderr").read_text("utf-8", "replace").splitlines()
            if lines:
                return lines[-1][:_LONGEST_LAST_WORD]
        if code == 2:
            return "the lease was not obtained in time"
        return "the runner ended unexpectedly" if code is None else f"the runner ended with {code}"

    def clear_away(self) -> None:
        """Remove the run folder; only when nothing of the start exists any more."""
        shutil.rmtree(self.folder.path, ignore_errors=True)


def prepare(record: Record, runs: Path, token: str) -> RunFolder:
    """Make the run folder, with the token and the record in it. Raises OSError."""
    folder = RunFolder(make_private(runs / record.instance))
    folder.write_token(token)
    write_atomically(folder.path / _RECORD, json.dumps(asdict(record)))
    return folder


def launch(
    record: Record,
    folder: RunFolder,
    *,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    memory_limit_bytes: int | None,
) -> Start:
    """Start the runner in a session of its own. Raises OSError."""
    with open(folder.path / "stderr", "wb") as stderr:
        child = subprocess.Popen(  # noqa: S603  # an argument list, never a shell
            command,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,
        )
    process = identify_child(child.pid)
    write_process(folder.path, process)
    _limit(child.pid, memory_limit_bytes)
    return Start(record, folder, process, child=child)


def found_again(runs: Path, organization_id: str | None = None) -> list[Start]:
    """The starts that another supervisor of the organisation (or any) made here, running or not."""
    starts = []
    for path in sorted(runs.glob(f"*/{_RECORD}")):
        try:
            record = Record(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if organization_id not in (None, record.organization_id):
            continue  # of another service that has an organisation of the same name
        folder = RunFolder(path.parent)
        starts.append(Start(record, folder, read_process(folder.path), child=None))
    return starts


def runner_command() -> list[str]:
    """This installation's `steadmesh-runner`, whatever the working folder and PATH are."""
    prefix = [] if sys.pycache_prefix is None else ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    # -P: a file of the seat named like a module of ours must not be imported in its place.
    return [sys.executable, "-P", *prefix, "-m", "steadmesh.runner.main"]


def _limit(pid: int, memory_limit_bytes: int | None) -> None:
    """Limits that the runner's children inherit; only Linux can set them from outside."""
    if not hasattr(resource, "prlimit"):
        return
    with contextlib.suppress(OSError, ValueError):
        # A crash must not leave tokens on the disk.
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if memory_limit_bytes is not None:
            # Not the address space, of which some runtimes reserve far more than they use.
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_limit_bytes, memory_limit_bytes))
