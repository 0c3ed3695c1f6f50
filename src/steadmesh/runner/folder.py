"""The files that a start keeps: atomically replaced, readable by their owner alone.

Every start of a seat has a run folder of its own. The programs of the seat read `token`,
`generation` and `execution` there for each request, so a file is always whole: replaced by
rename, never rewritten in place.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def make_private(folder: Path) -> Path:
    """Make the folder and its parents, closed to others; an existing one is left as it is."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        with contextlib.suppress(FileExistsError):
            part.mkdir(mode=PRIVATE_FOLDER)
    return folder


def write_atomically(path: Path, text: str, *, mode: int = PRIVATE_FILE) -> None:
    """Replace the file's content; a reader sees the old text or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class RunFolder:
    """`<runner dir>/run/<instance>/`: what one start tells the programs it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.token_file = path / "token"
        self.generation_file = path / "generation"
        self.execution_file = path / "execution"
        self.ready_file = path / "ready"

    def write_token(self, token: str) -> None:
        """Put the identity token in place, or its successor."""
        write_atomically(self.token_file, token)

    def write_generation(self, generation: int) -> None:
        """The lease's generation; empty before the lease is held."""
        write_atomically(self.generation_file, str(generation))

    def write_execution(self, execution_id: str | None) -> None:
        """The running turn's execution; emptied between turns."""
        write_atomically(self.execution_file, execution_id or "")

    def write_ready(self) -> None:
        """Say to the supervisor that this start came up."""
        write_atomically(self.ready_file, "ready")

    def is_ready(self) -> bool:
        """Whether this start ever came up."""
        return self.ready_file.exists()
