"""supervise, up."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from steadmesh.kernel import durations
from steadmesh.kernel import log as logs
from steadmesh.kernel.config import Config
from steadmesh.kernel.redaction import Secrets
from steadmesh.operator import service
from steadmesh.operator.api import Api, Organisation
from steadmesh.operator.terminal import count, note
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from steadmesh.seats.organisation import Organisation as Compiled

LOG_NAME = "supervisor.log"
AWAY_SECONDS = 10.0
"""A service that is gone for so long is not being restarted."""
_LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Ending:
    """What signals have asked for."""

    stop: threading.Event = field(default_factory=threading.Event)
    hurry: threading.Event = field(default_factory=threading.Event)
    """Running turns are interrupted instead of waited for."""

    def ask(self) -> None:
        """Stop; a second time, hurry."""
        if self.stop.is_set():
            self.hurry.set()
            return
        self.stop.set()
        with contextlib.suppress(OSError):  # not `print`, which a signal may have interrupted
            os.write(
                sys.stderr.fileno(),
                b"\nstopping; running turns are finished first. Again: interrupt them\n",
            )


def supervise(data: str | None, org: str | None) -> int:
    """Run the seats of one organisation until told to stop."""
    config = service.configuration({"data": data})
    api = Api.find(data)
    with on_signals() as ending:
        return run_seats(config, api, api.organisation(org), ending)


def up(file: str, flags: Mapping[str, object]) -> int:
    """Serve, apply and supervise; ends all three."""
    from steadmesh.operator.organisation import explain, put_in_force
    from steadmesh.seats.organisation import InvalidOrganisation, load

    config = service.configuration(flags)
    try:
        _, compiled = load(Path(file))
    except InvalidOrganisation as invalid:  # told before anything is started
        return explain(invalid, file)
    with on_signals() as ending, _service(config, flags, ending) as api:
        try:
            synced = put_in_force(api, file)
        except InvalidOrganisation as invalid:
            return explain(invalid, file)
        note(f"applied {synced['key']}: {count(len(synced['seats']), 'seat', 'seats')}")
        organisation = api.organisation(synced["key"])
        note(f"talk to it: {_how_to_talk(compiled, file, flags)}; end with Ctrl-C")
        return run_seats(config, api, organisation, ending)


@contextmanager
def on_signals() -> Iterator[Ending]:
    """What Ctrl-C, SIGTERM and a closed terminal ask for."""
    ending = Ending()
    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it ignored
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: ending.ask()) for number in heard}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_seats(config: Config, api: Api, organisation: Organisation, ending: Ending) -> int:
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
        return run(settings, stop=ending.stop, hurry=ending.hurry, tell=note, operator=api.operator)
    finally:
        lines.close()


@contextmanager
def _service(config: Config, flags: Mapping[str, object], ending: Ending) -> Iterator[Api]:
    """The service of the data directory: the one that runs, or one of our own, ended at the end."""
    data = str(config.data)
    ours = {name: value for name, value in flags.items() if name != "data" and value is not None}
    already = service.running(data)
    if already is not None and ours:
        raise CommandFailed(
            f"a service already runs on {data} (pid {already.pid}), so --{' and --'.join(ours)} would "
            "have no effect. Leave that out, or stop the service first"
        )
    if already is not None:
        note(f"using the service that already runs on {data} (pid {already.pid})")
        yield Api.find(data)
        return
    address = service.start(config.data, ours)
    note(f"listening on {address.url}; the log is {config.data / service.LOG_NAME}")
    left = threading.Event()
    watcher = threading.Thread(target=end_with_it, args=(data, ending, left), daemon=True)
    watcher.start()
    try:
        yield Api.find(data)
    finally:
        left.set()
        watcher.join()
        _end(data)


def end_with_it(
    data: str, ending: Ending, left: threading.Event, *, away_seconds: float = AWAY_SECONDS
) -> None:
    """Somebody stopped our service: end too, unless it is only being restarted.

    Blocks until then, or until `left` is set.
    """
    gone = 0.0
    while not left.wait(_LOOK_SECONDS) and not ending.stop.is_set():
        gone = 0.0 if service.running(data) else gone + _LOOK_SECONDS
        if gone >= away_seconds:
            note("the service has ended")
            ending.stop.set()


def _end(data: str) -> None:
    address = service.running(data)
    if address is None:
        return
    try:
        service.end(address, data)
    except CommandFailed as problem:
        note(f"steadmesh: {problem}")


def _how_to_talk(organisation: Compiled, file: str, flags: Mapping[str, object]) -> str:
    """The command with which the first person of the file reaches her representative."""
    words = ["steadmesh", "chat", "--user"]
    for binding in organisation.bindings.values():
        connection = organisation.connections[binding.connection]
        if connection.adapter == "terminal":
            words.append(binding.external_user_id)
            kind, _, path = connection.secret_ref.partition(":")
            if kind == "file":
                words += ["--token-file", os.path.join(os.path.dirname(file), path)]
            break
    else:
        words.append("USER")
    if flags.get("data"):
        words += ["--data", str(flags["data"])]
    return shlex.join(words)
