"""serve, stop, restart, config."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from steadmesh.client.address import from_data_directory
from steadmesh.kernel.config import Config, explain, load
from steadmesh.operator.api import Api
from steadmesh.operator.terminal import note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from steadmesh.client.address import Address

STOP_SECONDS = 45.0
START_SECONDS = 30.0


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
    _stop(address, data)
    result(f"stopped (pid {address.pid})")
    return 0


def restart(data: str | None) -> int:
    """Stop the service if one runs, and start one in the background."""
    address = running(data)
    if address is not None:
        _stop(address, data)
    started = start(data_directory(data), {}, port=_port_of(address))
    result(f"running (pid {started.pid}) on {started.url}")
    return 0


def show_config(data: str | None, *, as_json: bool) -> int:
    """Print the effective settings."""
    config = configuration({"data": data})
    rows = explain(config)
    if as_json:
        result_json({row.name: {"value": row.value, "source": row.source} for row in rows})
        return 0
    table(["setting", "value", "from", ""], [[r.name, r.value, r.source, r.sentence] for r in rows])
    for warning in config.warnings:
        note(f"steadmesh: {warning}")
    return 0


def data_directory(data: str | None) -> Path:
    """The data directory that a command is about."""
    return configuration({"data": data}).data


def running(data: str | None) -> Address | None:
    """Where the service of a data directory is, if one runs."""
    address = from_data_directory(data_directory(data))
    return address if address is not None and address.is_alive() else None


def start(data: Path, environment: Mapping[str, str], *, port: int | None = None) -> Address:
    """Start a service in the background and wait until it listens.

    Its standard error goes to a file only until then; afterwards it has the log.
    """
    command = [sys.executable, "-m", "steadmesh.operator.main", "serve", "--data", str(data)]
    if port is not None:
        command += ["--port", str(port)]
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    said = data / "start.err"
    with said.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own program, by absolute path
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env={**os.environ, **environment},
            start_new_session=True,
        )
    try:
        return _wait_until_listening(process, data)
    except CommandFailed:
        process.terminate()
        raise CommandFailed(
            f"the service did not start: {said.read_text(errors='replace').strip()}"
        ) from None
    finally:
        said.unlink(missing_ok=True)


def _wait_until_listening(process: subprocess.Popen[bytes], data: Path) -> Address:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        address = from_data_directory(data)
        if address is not None and address.pid == process.pid:
            return address
        time.sleep(0.02)
    raise CommandFailed("no word from it")


def _stop(address: Address, data: str | None) -> None:
    Api.find(data).post("/internal/v1/service:stop", {})
    until = time.monotonic() + STOP_SECONDS
    while address.is_alive():
        if time.monotonic() > until:
            raise CommandFailed(
                f"the service (pid {address.pid}) was asked to stop and still finishes calls "
                f"after {STOP_SECONDS:.0f} s. Wait, or end that process"
            )
        time.sleep(0.02)


def _port_of(address: Address | None) -> int | None:
    if address is None or not address.url:
        return None
    return int(address.url.rpartition(":")[2])
