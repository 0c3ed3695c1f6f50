"""Sends per second over HTTP and MCP, as a ratio to a floor measured in the same run.

    python -m benchmarks.messages [--rounds 5] [--callers 1 8 32] [--database URL]

A poller drains inboxes meanwhile, so that no recipient's cap is met. See `floor.py` for the floor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.load import Measured, http_post, measure
from benchmarks.organisation import RECIPIENTS, SENDERS, MeasuredService

BODY = "The plan is in notes/plan.md; please look at the second part and tell me what is missing."


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    options.add_argument("--rounds", type=int, default=5, help="the median of so many counts")
    options.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32])
    options.add_argument("--database", help="a PostgreSQL URL instead of SQLite")
    given = options.parse_args()
    print(f"{'':12}{'callers':>8}{'per second':>12}{'p50 ms':>9}{'p99 ms':>9}{'of floor':>10}")
    insert = http_post("/insert", json.dumps({"arguments": {"body": BODY}}).encode(), {})
    for callers in given.callers:  # each from an empty database, so that none pays for the last
        with floor(given.database) as port, sending_service(given.database) as (service, senders):
            ways: dict[str, tuple[int, Callable[[], bytes], bytes]] = {
                "floor": (port, lambda: insert, b" 200 "),
                "/v1/tools": (service.port, tool_requests(senders[:callers]), b"message_id"),
                "/mcp": (service.port, mcp_requests(senders[:callers]), b"message_id"),
            }
            show(callers, in_turn(ways, callers, given.rounds, given.seconds))


def in_turn(
    ways: dict[str, tuple[int, Callable[[], bytes], bytes]],
    callers: int,
    rounds: int,
    seconds: float,
) -> dict[str, list[Measured]]:
    """Measure all ways in turn, again and again: a slow moment of the machine hits each of them."""
    runs: dict[str, list[Measured]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (port, request, good) in ways.items():
            run = measure(port, request, callers=callers, seconds=seconds, good=good)
            runs[name].append(run)
    return runs


def show(callers: int, runs: dict[str, list[Measured]]) -> None:
    """A line for each way: medians over the rounds, and the median of each round's own ratio."""
    floors = [run.per_second for run in runs["floor"]]
    for name, measured in runs.items():
        rates = [run.per_second for run in measured]
        ratio = median(rate / below for rate, below in zip(rates, floors, strict=True))
        errors = sum(run.errors for run in measured)
        print(
            f"{name:12}{callers:>8}{median(rates):>12.0f}"
            f"{median(run.percentile(0.5) for run in measured):>9.2f}"
            f"{median(run.percentile(0.99) for run in measured):>9.2f}{ratio:>10.2f}"
            + (f"  {errors} errors" if errors else ""),
            flush=True,
        )


Sender = tuple[str, int]
"""A token and its generation."""


def tool_requests(senders: list[Sender]) -> Callable[[], bytes]:
    """Sends over `/v1/tools`, from all senders to all recipients in turn."""
    return _prepared(senders, "/v1/tools/messages.send", lambda arguments: {"arguments": arguments})


def mcp_requests(senders: list[Sender]) -> Callable[[], bytes]:
    """The same sends over `/mcp`."""
    return _prepared(
        senders,
        "/mcp",
        lambda arguments: {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "messages_send", "arguments": arguments},
        },
    )


def _prepared(
    senders: list[Sender], path: str, body: Callable[[dict[str, str]], dict[str, object]]
) -> Callable[[], bytes]:
    prepared = []
    for n in range(RECIPIENTS):
        token, generation = senders[n % len(senders)]
        headers = {"Authorization": f"Bearer {token}", "X-Steadmesh-Generation": str(generation)}
        arguments = {"to": f"recipient_{n:03d}", "body": BODY}
        prepared.append(http_post(path, json.dumps(body(arguments)).encode(), headers))
    return itertools.cycle(prepared).__next__


@contextmanager
def floor(database: str | None) -> Iterator[int]:
    """The floor in a process of its own; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="steadmesh-bench-") as folder:
        place = database or str(Path(folder) / "floor.db")
        process = subprocess.Popen([sys.executable, "-m", "benchmarks.floor", place, str(port)])
        try:
            _wait_until_open(port)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def _wait_until_open(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit("the floor did not start")


@contextmanager
def sending_service(database: str | None) -> Iterator[tuple[MeasuredService, list[Sender]]]:
    """A service with its senders' leases taken, and a poller that drains."""
    service = MeasuredService(database)
    done = threading.Event()
    try:
        senders = []
        for n in range(SENDERS):
            token = service.token(f"sender_{n:02d}")
            senders.append((token, service.acquire(token)))
        recipients = [service.token(f"recipient_{n:03d}") for n in range(RECIPIENTS)]
        leases = [(token, service.acquire(token)) for token in recipients]
        poller = threading.Thread(target=drain, args=(service, leases, done), daemon=True)
        poller.start()
        yield service, senders
        done.set()
        poller.join(30)
    finally:
        service.close()


def drain(service: MeasuredService, leases: list[Sender], done: threading.Event) -> None:
    """Take and acknowledge one delivery of each recipient in turn, without hurry."""
    for token, generation in itertools.cycle(leases):
        if done.wait(0.05):
            return
        headers = {"Authorization": f"Bearer {token}", "X-Steadmesh-Generation": str(generation)}
        answer = service.service.request("GET", "/v1/inbox/next?wait=0", headers=headers)
        if answer.status != 200:
            continue
        delivery = answer.json()
        service.service.request(
            "POST",
            f"/v1/inbox/{delivery['delivery_id']}/ack",
            body={"execution_id": delivery["execution_id"]},
            headers=headers,
        )


if __name__ == "__main__":
    main()
