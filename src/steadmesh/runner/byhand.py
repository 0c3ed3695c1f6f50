"""Being a seat by hand: a command of one's own under the seat's lease, in place of a runner."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steadmesh.client.http import Service, Unreachable
from steadmesh.runner.folder import RunFolder, make_private
from steadmesh.runner.lease import Renewal
from steadmesh.runner.platform import Lease, LeaseHeld, Platform, PlatformError
from steadmesh.runner.processes import ChildGroups
from steadmesh.runner.settings import Limits, find_tools, machine_environment

FENCED, NOT_RUN, NOT_FOUND, NOT_OBTAINED = 3, 126, 127, 2
_TERMINAL_VARIABLES = ("TERM",)
"""What a program on a terminal needs besides what every seat's program gets."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """Which seat, and where its files are."""

    addresses: Sequence[str]
    token: str
    """A fresh identity token; the lease goes to the instance that it names."""
    organization_id: str
    seat_id: str
    seat_key: str
    folder: Path
    """The seat's own folder on this machine, as the supervisor's; made if missing."""
    config_revision: str = ""
    home: Path | None = None
    """The home of the command; the seat's own unless given."""


def run_by_hand(
    seat: ByHand,
    command: Sequence[str],
    *,
    tell: Callable[[str], None],
    machine: Mapping[str, str] = os.environ,
) -> int:
    """Take the lease, run the command on this terminal, give the lease back.

    Returns the command's exit code (128 + n for signal n), 2 if the lease was not to be had, 3 if
    the seat was taken over meanwhile (the command is killed), 126 or 127 if the command cannot be
    run, 1 for everything else. `tell` hears the reason in words. Raises OSError if the seat's
    folder cannot be used.
    """
    run_dir = make_private(seat.folder / "runner" / "run" / f"hand-{secrets.token_hex(8)}")
    try:
        folder = RunFolder(run_dir)
        folder.write_token(seat.token)
        folder.write_execution(None)
        platform = Platform(Service(seat.addresses), folder.token_file)
        try:
            lease = platform.acquire(f"{socket.gethostname()}:{os.getpid()}")
        except LeaseHeld as problem:
            tell(str(problem))
            return NOT_OBTAINED
        except (PlatformError, Unreachable) as problem:
            tell(f"the lease was not obtained: {problem}")
            return 1
        folder.write_generation(lease.generation)
        environment = _environment(seat, folder, machine)
        return _Hand(platform, lease, run_dir, tell).run(command, environment)
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)


def mcp_configuration(environment: Mapping[str, str]) -> dict[str, object]:
    """The configuration by which an MCP client finds this seat's tools: names of files, no secret.

    `environment` is that of the seat's programs (`hand_environment`).
    """
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
