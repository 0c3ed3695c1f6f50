"""`steadmesh-runner`: the process behind one seat."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from steadmesh import __version__
from steadmesh.client.http import BadAddress, Service
from steadmesh.kernel import log
from steadmesh.kernel.clock import SystemClock
from steadmesh.kernel.redaction import Secrets
from steadmesh.runner import harness
from steadmesh.runner.harness.contract import HarnessError
from steadmesh.runner.platform import Platform
from steadmesh.runner.processes import own_process, write_process
from steadmesh.runner.seat import FAILED, SeatRunner
from steadmesh.runner.settings import RunnerSettings, SettingsError, read_settings

_LOG_BYTES = 1024 * 1024

USAGE = """\
steadmesh-runner: runs the turns of one seat. The supervisor starts it; it takes no arguments.

  steadmesh-runner            run the seat that the environment names
  steadmesh-runner --help     this text
  steadmesh-runner --version

It needs in its environment:
  STEADMESH_PLATFORM_URL      where the service is; several, separated by commas, are tried in turn
  STEADMESH_TOKEN_FILE        the seat's token; generation and execution are written beside it
  STEADMESH_SEAT_ID, STEADMESH_SEAT_KEY
  STEADMESH_WORKSPACE_DIR, STEADMESH_HOME_DIR, STEADMESH_RUNNER_DIR, STEADMESH_MANIFEST_DIR
and may have:
  STEADMESH_ORG_ID, STEADMESH_CONFIG_REVISION
  STEADMESH_HARNESS           the adapter (fake)
  STEADMESH_TOOLS_BIN         the tool client (the one installed with this program)
  STEADMESH_HEALTH_ADDR       host:port that answers /healthz and /readyz
  STEADMESH_RUNNER_ACQUIRE_TIMEOUT (3m), _ACQUIRE_RETRY (2s), _BOOTSTRAP_TIMEOUT (2m),
  _RENEW_INTERVAL (10s), _POLL_WAIT (25s), _TURN_LIMIT (20m), _QUIESCE_LIMIT (4m), _STOP_GRACE (10s)

SIGTERM lets a running turn finish within the quiesce limit; a second one interrupts it.
The log is runner.log in STEADMESH_RUNNER_DIR.
Exit codes: 0 stopped, 1 error, 2 the lease was not obtained in time, 3 fenced by a newer start.
"""


def main() -> None:
    """The program. Exits with one of the codes that the usage lists."""
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the seat that `environment` names, or answer about ourselves. Returns the exit code."""
    if arguments:
        return _about(arguments)
    try:
        settings = read_settings(environment)
        secrets = Secrets()
        logs = log.start(secrets, file=settings.runner_dir / "runner.log", max_bytes=_LOG_BYTES)
    except SettingsError as problem:
        print(f"steadmesh-runner: {problem}; see steadmesh-runner --help", file=sys.stderr)
        return FAILED
    except OSError as problem:
        print(f"steadmesh-runner: {problem.filename}: {problem.strerror}", file=sys.stderr)
        return FAILED
    try:
        return _run(settings, environment)
    except (HarnessError, BadAddress, OSError, ValueError) as problem:
        logging.getLogger(__name__).error("start failed", extra=log.fields(reason=str(problem)))
        print(f"steadmesh-runner: {problem}", file=sys.stderr)
        return FAILED
    finally:
        logs.close()


def _about(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:
        print(f"steadmesh-runner {__version__}")
        return 0
    if list(arguments) in (["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    print(
        f"steadmesh-runner takes no arguments, but got: {' '.join(arguments)}\n"
        "see steadmesh-runner --help",
        file=sys.stderr,
    )
    return FAILED


def _run(settings: RunnerSettings, environment: Mapping[str, str]) -> int:
    # Who started us records it too, unless killed in between.
    write_process(settings.run_dir, own_process())
    runner = SeatRunner(
        settings,
        Platform(Service(settings.addresses), settings.token_file),
        harness.create(settings.harness),
        clock=SystemClock(),
        machine=environment,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: runner.ask_to_stop())
    # The terminal that started the supervisor may close; the seat goes on.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.ExitStack() as at_end:
        if settings.health_address is not None:
            from steadmesh.runner.health import HealthEndpoint

            health = HealthEndpoint(settings.health_address, is_ready=runner.is_ready.is_set)
            at_end.callback(health.close)
        return runner.run()


if __name__ == "__main__":
    main()
