"""serve, stop, restart, config."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadmesh.client.address import from_data_directory
from steadmesh.kernel.config import Config, Row, explain, load
from steadmesh.operator.api import Api, data_directory
from steadmesh.operator.terminal import note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from steadmesh.client.address import Address

STOP_SECONDS = 45.0
START_SECONDS = 30.0
LOG_NAME = "steadmesh.log"


def configuration(flags: Mapping[str, object]) -> Config:
    """The settings of this program. Raises ConfigError."""
    return load(flags, os.environ)


def serve(flags: Mapping[str, object]) -> int:
    """Run the service until it is told to stop."""
    config = configuration(flags)
    from steadmesh.service.server import serve as run

    return run(config)


def stop(data: str | None) -> int:
    """Ask the service to stop, and wait for its end."""
    address = running(data)
    if address is None:
        note(f"no service runs on {data_directory(data)}; nothing to stop")
        return 0
    end(address, data)
    result(f"stopped (pid {address.pid})")
    return 0


def restart(data: str | None) -> int:
    """Stop the service if one runs, and start one in the background, with the same flags."""
    from steadmesh.operator.relaunch import flags_of

    address = running(data)
    directory = data_directory(data)
    flags = {} if address is None else flags_of(address, directory)
    config = configuration({"data": directory, **flags})  # wrong settings are told before the end
    if address is not None:
        end(address, data)
    started = start(config.data, flags)
    result(f"running (pid {started.pid}) on {started.url}")
    note(f"the log is {config.data / LOG_NAME}")
    return 0


def show_config(data: str | None, *, as_json: bool) -> int:
    """Print the effective settings."""
    config = configuration({"data": data})
    rows = explain(config)
    if as_json:
        shown = {row.name: {"value": _plain(config, row), "source": row.source} for row in rows}
        result_json(shown)
    else:
        cells = [[row.name, row.value, row.source, row.sentence] for row in rows]
        table(["setting", "value", "from", "meaning"], cells)
    for warning in config.warnings:
        note(f"steadmesh: {warning}")
    return 0


def running(data: str | None) -> Address | None:
    """Where the service of a data directory is, if one runs."""
    address = from_data_directory(data_directory(data))
    return address if address is not None and address.is_alive() else None


def start(data: Path, flags: Mapping[str, object]) -> Address:
    """Start a service in the background and wait until it listens. Raises `CommandFailed`.

    Its standard error is ours only until then; afterwards it has its log.
    """
    # -P: a file in the folder we happen to be in must not pass for a module of ours.
    command = [sys.executable, "-P", "-m", "steadmesh.operator.main", "serve", "--data", str(data)]
    for name, value in flags.items():
        command += [f"--{name}", str(value)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - our own program, by absolute path
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        try:
            address = _wait_until_listening(process, data)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if address is None:
            said.seek(0)
            raise CommandFailed(_why(said.read().decode(errors="replace"), data))
    # Whoever looks whether the service still runs must not find its unburied remains.
    threading.Thread(target=process.wait, daemon=True).start()
    return address


def end(address: Address, data: str | None) -> None:
    """Let a service end, and wait for it; one that has ended is fine. Raises `CommandFailed`."""
    if not address.is_alive():
        return
    Api.find(data_directory(data)).post("/internal/v1/service:stop", {})
    until = time.monotonic() + STOP_SECONDS
    while address.is_alive():
        if time.monotonic() > until:
            raise CommandFailed(
                f"the service (pid {address.pid}) was asked to stop and still finishes calls "
                f"after {STOP_SECONDS:.0f} s. Wait, or end that process"
            )
        with contextlib.suppress(ChildProcessError):
            os.waitpid(address.pid, os.WNOHANG)
        time.sleep(0.02)


def _wait_until_listening(process: subprocess.Popen[bytes], data: Path) -> Address | None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        address = from_data_directory(data)
        if address is not None and address.pid == process.pid:
            return address
        time.sleep(0.02)
    process.terminate()
    process.wait()
    return None


def _why(said: str, data: Path) -> str:
    """What a service that did not start has said, in one message with ours."""
    lines = [line.removeprefix("steadmesh: ") for line in said.splitlines() if line]
    lines = [line for line in lines if not line.startswith("the log is ")]
    if not lines:
        lines = [f"it did not listen within {START_SECONDS:.0f} s; see {data / LOG_NAME}"]
    return "\n".join(["the service did not start: " + lines[0], *lines[1:]])


def _plain(config: Config, row: Row) -> Any:
    """A setting as JSON has it: numbers and lists as such, nothing for what is not set."""
    if row.value == "-":
        return None
    value: Any = config
    for part in row.name.split("."):
        value = getattr(value, part)
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, int) and str(value) == row.value else row.value
