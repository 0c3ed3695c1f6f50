"""Where the supervisor keeps what belongs to seats on this machine."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from steadmesh.runner.folder import make_private


class SeatPlaces:
    """`<data>/seats/<organisation>/<seat id>/`: workspace, home, manifest, runner."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.home = folder / "home"
        self.manifest = folder / "manifest"
        self.runner = folder / "runner"
        self.runs = self.runner / "run"

    def make(self) -> None:
        """Make what is missing. Raises OSError."""
        for folder in (self.folder, self.workspace, self.home, self.runner, self.runs):
            make_private(folder)


def organisation_folder(data_dir: Path, key: str) -> Path:
    """Where an organisation's seats live."""
    return data_dir / "seats" / key


class SupervisorRuns(Exception):
    """Another supervisor already runs the seats of this organisation here."""


class SupervisorLock:
    """Held while a supervisor runs; the system lets go of it when the process dies.

    Raises SupervisorRuns, naming the holder, and OSError.
    """

    def __init__(self, folder: Path) -> None:
        path = make_private(folder) / "supervisor.lock"
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise SupervisorRuns(
                f"another supervisor (pid {holder or 'unknown'}) already runs the seats in {folder};"
                " stop it first"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode("ascii"))

    def __enter__(self) -> SupervisorLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let the next one in."""
        os.close(self._descriptor)
