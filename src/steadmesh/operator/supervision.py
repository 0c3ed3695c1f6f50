"""supervise, up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from steadmesh.kernel import durations
from steadmesh.kernel import log as logs
from steadmesh.kernel.config import Config
from steadmesh.kernel.redaction import Secrets
from steadmesh.operator import service
from steadmesh.operator.api import Api, Organisation
from steadmesh.operator.terminal import note
from steadmesh.operator.trouble import CommandFailed

LOG_NAME = "supervisor.log"


def supervise(data: str | None, org: str | None) -> int:
    """Run the seats of one organisation until told to stop."""
    config = service.configuration({"data": data})
    api = Api.find(data)
    with stop_on_signals() as stop:
        return run_seats(config, api, api.organisation(org), stop)


def up(file: str, flags: Mapping[str, object]) -> int:
    """Serve, apply and supervise; ends all three."""
    from steadmesh.operator.organisation import explain, put_in_force
    from steadmesh.seats.organisation import InvalidOrganisation

    config = service.configuration(flags)
    data = str(config.data)
    with stop_on_signals() as stop, _service(config) as api:
        try:
            synced = put_in_force(api, file)
        except InvalidOrganisation as invalid:
            return explain(invalid, file)
        note(f"applied {synced['key']}: {len(synced['seats'])} seats")
        organisation = api.organisation(synced["key"])
        note(f"talk to it: steadmesh chat --user USER --data {data}; end with Ctrl-C")
        return run_seats(config, api, organisation, stop)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_seats(config: Config, api: Api, organisation: Organisation, stop: threading.Event) -> int:
    """The supervisor of one organisation, with a bounded log of its own."""
    from steadmesh.runner.supervisor import SupervisorSettings
    from steadmesh.runner.supervisor import supervise as run

    idle = config.supervisor.idle_timeout
    settings = SupervisorSettings(
        addresses=str(api.operator.service).split(", "),
        organization_id=organisation.id,
        data_dir=config.data,
        unenforced=config.supervisor.unenforced,
        idle_timeout_seconds=None if idle is None else idle / durations.SECOND,
    )
    config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = config.data / LOG_NAME
    lines = logs.start(
        Secrets(config.secrets()), level=config.log_level, file=file, max_bytes=config.log_max_bytes
    )
    try:
        note(f"supervising {organisation.key}; the log is {file}")
        return run(settings, stop=stop, tell=note, operator=api.operator)
    finally:
        lines.close()


@contextmanager
def _service(config: Config) -> Iterator[Api]:
    """The service of the data directory: the one that runs, or one of our own, ended at the end."""
    data = str(config.data)
    already = service.running(data)
    if already is not None:
        note(f"using the service that already runs on {data} (pid {already.pid})")
        yield Api.find(data)
        return
    environment = {"STEADMESH_HOST": config.host}
    if config.database is not None and config.sources.get("database") == "--database":
        environment["STEADMESH_DATABASE"] = config.database
    address = service.start(Path(data), environment, port=config.port)
    note(f"listening on {address.url}; the log is {config.data / 'steadmesh.log'}")
    try:
        yield Api.find(data)
    finally:
        try:
            service.stop(data)
        except CommandFailed as problem:
            note(f"steadmesh: {problem}")
