"""The Inspector's command line as a client: its strict judgement of our schemas, and a call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.conformance.programs import INSPECTOR, Ended, Node
from tests.conformance.seat import BIN, Seat

ERAS = ("legacy", "modern")
CALLED = "clock_now"


@dataclass(frozen=True, slots=True)
class Inspected:
    """One run of the Inspector."""

    what: str
    transport: str
    era: str
    problem: str
    """Empty if there is none."""


def inspect(node: Node, seat: Seat) -> Iterator[Inspected]:
    """List the seat's tools strictly and call one: over HTTP and over the stdio bridge, in both eras."""
    for transport in ("http", "stdio"):
        for era in ERAS:
            target = _target(seat, transport)
            options = ("--cli", "--protocol-era", era, "--transport", transport)
            listed = node.run(INSPECTOR, *options, "--method", "tools/list", "--strict", *target)
            yield Inspected("tools/list --strict", transport, era, _wrong_list(listed))
            call = ("--method", "tools/call", "--tool-name", CALLED)
            called = node.run(INSPECTOR, *options, *call, *target)
            yield Inspected(f"tools/call {CALLED}", transport, era, _wrong_call(called))


def _target(seat: Seat, transport: str) -> list[str]:
    if transport == "http":
        return ["--server-url", seat.url]
    given = [word for name, value in seat.environment.items() for word in ("-e", f"{name}={value}")]
    return [*given, str(BIN / "steadmesh-tools"), "mcp"]


def _wrong_list(listed: Ended) -> str:
    """Each finding is a problem, also those that the Inspector takes for mere advice."""
    problem = _wrong(listed)
    if not problem and CALLED not in {tool["name"] for tool in json.loads(listed.stdout)["tools"]}:
        problem = f"{CALLED} is not listed"
    return problem


def _wrong_call(called: Ended) -> str:
    problem = _wrong(called)
    if not problem:
        result = json.loads(called.stdout)
        if (
            result["isError"]
            or json.loads(result["content"][0]["text"]) != result["structuredContent"]
        ):
            problem = f"an odd result: {called.stdout}"
    return problem


def _wrong(ended: Ended) -> str:
    if ended.status != 0:
        return f"exit status {ended.status}: {ended.stderr.strip() or ended.stdout.strip()}"
    return ended.stderr.strip()
