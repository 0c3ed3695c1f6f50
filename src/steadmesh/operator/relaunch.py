"""How a running service was started, so that it can be started again in the same way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from steadmesh.kernel.config import Config, ConfigError, explain, load
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from steadmesh.client.address import Address

FLAGS = ("host", "port", "database")


def flags_of(address: Address, data: str) -> dict[str, str]:
    """The flags of a running service; its port is kept even if it was any free one.

    Raises `CommandFailed` if variables that it was started with are missing here: started again
    without them it might come up with another database, or open to everybody.
    """
    words = _null_separated(address.pid, "cmdline")
    flags = _flags_in(words)
    if not words or flags.get("port") == "0":
        flags["port"] = (address.url or "").rpartition(":")[2]
    missing = _missing_variables(address.pid, {"data": data, **flags})
    if missing:
        raise CommandFailed(
            f"the service (pid {address.pid}) runs with {', '.join(missing)}, which this terminal "
            f"does not have. Set the same, or write the settings into {data}/steadmesh.toml. "
            "Nothing was stopped; to go on without them, stop the service first"
        )
    return flags


def _flags_in(words: list[str]) -> dict[str, str]:
    flags = {}
    for place, word in enumerate(words):
        name, separator, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in FLAGS:
            flags[name] = value if separator else "".join(words[place + 1 : place + 2])
    return flags


def _missing_variables(pid: int, flags: dict[str, str]) -> list[str]:
    pairs = [word.partition("=") for word in _null_separated(pid, "environ")]
    theirs = {name: value for name, separator, value in pairs if separator}
    try:
        then, now = load(flags, theirs), load(flags, os.environ)
    except ConfigError:
        return []  # the settings are wrong by now, which is told elsewhere
    before = {row.name: row.value for row in explain(now)}
    missing = [
        row.source
        for row in explain(then)
        if row.source in theirs and row.source not in os.environ and row.value != before[row.name]
    ]
    return missing + [name for name in _passwords(then, theirs) if name not in os.environ]


def _passwords(config: Config, environment: dict[str, str]) -> list[str]:
    """Where PostgreSQL's own library was told to look for one."""
    if config.database is None:
        return []
    return [name for name in ("PGPASSFILE", "PGPASSWORD", "PGSERVICEFILE") if name in environment]


def _null_separated(pid: int, name: str) -> list[str]:
    """What the system tells of a process; nothing where it does not."""
    try:
        content = Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return []
    return [os.fsdecode(word) for word in content.split(b"\0")]
