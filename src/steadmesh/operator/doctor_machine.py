"""What the doctor looks at on this machine: programs, settings, the data directory, logs."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

from steadmesh import __version__
from steadmesh.kernel.config import ConfigError
from steadmesh.operator import service
from steadmesh.operator.api import data_directory
from steadmesh.operator.doctor import Finding, info, ok, wrong
from steadmesh.operator.logfile import LOG_NAME, SUPERVISOR_LOG_NAME, backwards, parsed
from steadmesh.operator.terminal import count, moment

LEAST_FREE = 500 * 1024 * 1024
"""Bytes. Below that a busy service may find its disk full before anybody looks again."""
LOOKED_BACK = timedelta(hours=1)
_PRIVATE = (
    "steadmesh.db",
    "steadmesh.db-wal",
    "operator.key",
    "address.json",
    LOG_NAME,
    SUPERVISOR_LOG_NAME,
)
_LIBRARIES = ("apsw", "psycopg", "pydantic", "starlette", "uvicorn", "mcp", "typer", "rich")


def findings(data: str | None) -> Iterator[Finding]:
    """All of it. What cannot be looked at is wrong itself."""
    yield from _programs()
    try:
        config = service.configuration({"data": data})
        folder = Path(data_directory(data))
    except ConfigError as problem:
        yield wrong("settings", str(problem), "correct that, then look again")
        return
    yield from (
        wrong("settings", warning, "remove it, or write it as `steadmesh config` does")
        for warning in config.warnings
    )
    yield from _directory(folder)
    yield from _logs(folder)


def _programs() -> Iterator[Finding]:
    yield ok(
        "program",
        f"steadmesh {__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}",
    )
    versions, missing = [], []
    for name in _LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield wrong("packages", f"not installed: {', '.join(missing)}", "install steadmesh again")
    yield info("packages", ", ".join(versions))


def _directory(folder: Path) -> Iterator[Finding]:
    about = "data directory"
    try:
        state = folder.stat()
    except FileNotFoundError:
        yield info(about, f"{folder} is not there yet; the first start of a service makes it")
        return
    except OSError as problem:
        yield wrong(about, f"{folder}: {problem.strerror}", "name another one with --data")
        return
    if not stat.S_ISDIR(state.st_mode):
        yield wrong(about, f"{folder} is no folder", "name another one with --data")
        return
    mode = stat.S_IMODE(state.st_mode)
    if state.st_uid != os.geteuid():
        yield wrong(
            about,
            f"{folder} belongs to another user (uid {state.st_uid})",
            "run as that user, or name another one with --data",
        )
    elif mode & 0o077:
        yield wrong(about, f"{folder} is open to others ({mode:04o})", f"chmod 700 {folder}")
    else:
        yield ok(about, f"{folder}, closed to others ({mode:04o})")
    yield from _open_files(folder)
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        yield wrong("disk", f"{size(free)} free", "make room: on a full disk nothing is stored")
    else:
        yield ok("disk", f"{size(free)} free")


def _open_files(folder: Path) -> Iterator[Finding]:
    for name in _PRIVATE:
        file = folder / name
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            continue
        if mode & 0o077:
            yield wrong("files", f"{file} can be read by others ({mode:04o})", f"chmod 600 {file}")


def _logs(folder: Path) -> Iterator[Finding]:
    for name in (LOG_NAME, SUPERVISOR_LOG_NAME):
        file = folder / name
        if not file.exists():
            continue
        try:
            errors = _errors(file)
        except OSError as problem:
            yield wrong("log", f"{file}: {problem.strerror}", "make it readable for this user")
            continue
        if not errors:
            yield ok("log", f"no error in {name} within the last hour")
            continue
        newest = errors[0]
        look = "steadmesh logs --service" if name == LOG_NAME else f"less {file}"
        yield wrong(
            "log",
            f"{count(len(errors), 'error', 'errors')} in {name} within the last hour, the last at "
            f"{moment(newest[0])}: {newest[1]}",
            look,
        )


def _errors(file: Path) -> list[tuple[str, str]]:
    """Time and event of each error of the last hour, newest first."""
    since = datetime.now(UTC) - LOOKED_BACK
    found = []
    for line in backwards(file):
        entry = parsed(line)
        if entry is None:
            continue
        if datetime.fromisoformat(entry["time"]) < since:
            break
        if entry.get("level") in ("error", "critical"):
            found.append((str(entry["time"]), str(entry.get("event", ""))))
    return found


def size(number: int) -> str:
    """Bytes in words: `812 B`, `3.4 MiB`."""
    shown = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if shown < 1024 or unit == "GiB":
            break
        shown /= 1024
    return f"{shown:.0f} {unit}" if unit == "B" else f"{shown:.1f} {unit}"
