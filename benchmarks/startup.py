"""How long the client programs take as whole processes, against an interpreter that does nothing.

    python -m benchmarks.startup [--runs 40] [--url URL --token-file FILE [--generation N]]

Without a URL it starts a service of its own. Measured in turn, so that whatever else the machine
does meets all alike: `python -c pass`; `steadmesh-tools call clock.now` to its end;
`steadmesh-tools mcp` from its start to its first `tools/list` answer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

GOAL = 60.0
"""Milliseconds above the interpreter itself."""

Environment = Mapping[str, str]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--url", help="of a running service; needs --token-file")
    options.add_argument("--token-file", help="with the token of any seat")
    options.add_argument("--generation", default="")
    given = options.parse_args()
    if bool(given.url) != bool(given.token_file):
        options.error("--url and --token-file go together")
    if given.url:
        environ = seat_environment(given.url, given.token_file, given.generation)
        report(given.runs, environ)
    else:
        with own_service() as environ:
            report(given.runs, environ)


def report(runs: int, environ: Environment) -> None:
    programs: dict[str, Callable[[Environment], float]] = {
        "python -c pass": nothing,
        "steadmesh-tools call clock.now": one_call,
        "steadmesh-tools mcp, first tools/list": first_list,
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    for run in range(runs + 1):
        for name, program in programs.items():
            took = program(environ)
            if run:  # the first one reads the files into memory
                times[name].append(took * 1_000)
    floor = statistics.median(times["python -c pass"])
    print(f"{'median of ' + str(runs):40}{'ms':>8}{'above':>8}{'ratio':>8}")
    for name, taken in times.items():
        median = statistics.median(taken)
        above = median - floor
        verdict = "" if above <= GOAL else f"  over the goal of {GOAL:g} ms"
        print(f"{name:40}{median:8.1f}{above:8.1f}{median / floor:8.2f}{verdict}")


def nothing(environ: Environment) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=environ, check=True)
    return time.perf_counter() - started


def one_call(environ: Environment) -> float:
    started = time.perf_counter()
    subprocess.run(
        [tools(), "call", "clock.now"], env=environ, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def first_list(environ: Environment) -> float:
    """The client has sent its handshake before it waits, as it can do nothing without the list."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [tools(), "mcp"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"name": "startup", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    send(process, {"id": 0, "method": "initialize", "params": hello})
    process.stdout.readline()
    send(process, {"method": "notifications/initialized"})
    send(process, {"id": 1, "method": "tools/list"})
    answer = json.loads(process.stdout.readline())
    took = time.perf_counter() - started
    process.stdin.close()
    process.wait()
    if not answer.get("result", {}).get("tools"):
        raise SystemExit(f"no tools were listed: {answer}")
    return took


def send(process: subprocess.Popen[bytes], fields: dict[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")
    process.stdin.flush()


def tools() -> str:
    """The installed console script: what agents start."""
    found = shutil.which("steadmesh-tools", path=str(Path(sys.executable).parent))
    if found is None:
        raise SystemExit("steadmesh-tools is not installed beside this interpreter")
    return found


def seat_environment(url: str, token_file: str, generation: str) -> Environment:
    environ = {
        "PATH": os.environ["PATH"],
        "STEADMESH_PLATFORM_URL": url,
        "STEADMESH_TOKEN_FILE": token_file,
    }
    return environ | ({"STEADMESH_GENERATION": generation} if generation else {})


@contextmanager
def own_service() -> Iterator[Environment]:
    """A service with an organisation, and the environment of one of its seats."""
    from benchmarks.organisation import MeasuredService

    service = MeasuredService()
    try:
        with tempfile.TemporaryDirectory() as folder:
            token = service.token("sender_00")
            token_file = Path(folder) / "token"
            token_file.write_text(token)
            yield seat_environment(
                f"http://127.0.0.1:{service.port}", str(token_file), str(service.acquire(token))
            )
    finally:
        service.close()


if __name__ == "__main__":
    main()
