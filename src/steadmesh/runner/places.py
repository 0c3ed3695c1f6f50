"""Where the supervisor keeps what belongs to seats on this machine."""

from __future__ import annotations

from pathlib import Path

from steadmesh.runner.folder import make_private


class SeatPlaces:
    """`<data>/seats/<organisation>/<seat id>/`: workspace, home, manifest, runner.

    A seat that adopted another one works in that one's workspace (`workspace_of`, a seat id).
    """

    def __init__(self, folder: Path, workspace_of: str | None = None) -> None:
        self.folder = folder
        self.workspace = (folder.parent / workspace_of if workspace_of else folder) / "workspace"
        self.home = folder / "home"
        self.manifest = folder / "manifest"
        self.runner = folder / "runner"
        self.runs = self.runner / "run"

    def make(self) -> None:
        """Make what is missing. Raises OSError."""
        for folder in (
            self.folder,
            self.workspace.parent,
            self.workspace,
            self.home,
            self.runner,
            self.runs,
        ):
            make_private(folder)


def organisation_folder(data_dir: Path, key: str) -> Path:
    """Where an organisation's seats live."""
    return data_dir / "seats" / key
