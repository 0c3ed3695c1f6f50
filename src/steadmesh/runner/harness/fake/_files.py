"""The fake agent's files: small, plain, inside the workspace."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def write(place: Path, text: str) -> int:
    """Write one line of text, making folders as needed; answers its size in bytes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("utf-8", "surrogatepass")
    place.write_bytes(content)
    return len(content)


def read(place: Path, *, limit: int) -> str:
    """The beginning of a regular file, at most `limit` bytes; unreadable bytes are replaced."""
    # Opening a named pipe would wait for a writer that never comes.
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit).decode("utf-8", "replace")
