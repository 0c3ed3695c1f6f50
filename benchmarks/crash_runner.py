"""Kill a seat's runner in the middle of a turn, again and again, and look what comes of it.

    python -m benchmarks.crash_runner [--rounds 20] [--database URL]

Each round: a message, kill -9 of the runner while its harness waits for a tool, and then the message
has to be tried again under a newer generation and be answered once; a tool call with what the killed
start had (token, generation) has to end with exit code 4; nothing of the killed start may live.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks.idle import supervisor
from benchmarks.organisation import MeasuredService
from steadmesh.runner._rules import SHORT_LIFE
from steadmesh.runner.processes import ProcessId, identify, is_alive, left_of_session

T = TypeVar("T")

SENDER, WORKER = "sender_00", "recipient_000"
TOOL_SECONDS = 1.5
TOOLS = Path(sys.executable).with_name("steadmesh-tools")


@dataclass(frozen=True)
class Round:
    """What came of one kill. Times in seconds after it."""

    again: float
    """Until the message was in a turn again."""
    answered: float
    generations: int
    """By how many the generation rose."""
    late_exit: int
    left: int
    answers: int


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--database", help="a PostgreSQL URL instead of SQLite")
    given = options.parse_args()
    service = MeasuredService(given.database)
    try:
        os.environ["STEADMESH_TOOLS_BIN"] = str(slow_tools(Path(service.folder.name)))
        with supervisor(service):
            town = Town(service)
            rounds = [town.round(number) for number in range(given.rounds)]
        left = processes_about(service.folder.name) - {service.process.pid}
    finally:
        service.close()
    show(rounds, left)
    good = all((r.late_exit, r.left, r.answers) == (4, 0, 1) and r.generations > 0 for r in rounds)
    sys.exit(0 if good and not left else 1)


def show(rounds: list[Round], left: set[int]) -> None:
    """The figures."""
    print(f"{len(rounds)} runners killed in a turn")
    for name, values in (
        ("tried again after", [r.again for r in rounds]),
        ("answered after", [r.answered for r in rounds]),
    ):
        print(f"{name:36}median {median(values):.2f} s, longest {max(values):.2f} s")
    print(f"{'generations more':36}{sorted({r.generations for r in rounds})}")
    print(f"{'exit code of late tool calls':36}{sorted({r.late_exit for r in rounds})}")
    print(f"{'answers to a message':36}{sorted({r.answers for r in rounds})}")
    print(f"{'processes left by killed starts':36}{sum(r.left for r in rounds)}")
    print(f"{'processes left at the end':36}{len(left)}")


class Town:
    """A sender played by hand, and the worker whose runner is killed."""

    def __init__(self, service: MeasuredService) -> None:
        self._service = service
        self._folder = Path(service.folder.name)
        token = service.token(SENDER)
        generation = service.acquire(token)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "X-Steadmesh-Generation": str(generation),
        }
        threading.Thread(target=self._renew, args=(generation,), daemon=True).start()
        organisations = service.service.request("GET", "/internal/v1/organizations").json()
        self._id = organisations["organizations"][0]["organization_id"]
        self._runs = service.data / "seats/measured" / service.seats[WORKER] / "runner/run"

    def round(self, number: int) -> Round:
        """One message, and one kill."""
        until(self._is_settled, "the runner is no longer young")
        sent = self._tool("messages.send", to=WORKER, body="/task\n/tool clock.now")
        before = until(self._in_turn, "the turn has begun")
        run = next(run for run in self._runs.iterdir() if (run / "ready").exists())
        child = until(lambda: next(iter(run.glob("group-*")), None), "the harness calls a tool")
        pid, started = (run / "process").read_text().split(" ")
        runner = ProcessId(int(pid), started)
        old = {*left_of_session(runner), ProcessId(int(child.name[6:]), child.read_text())}
        kept = shutil.copytree(run, self._folder / f"kept-{number}")
        os.kill(runner.pid, signal.SIGKILL)
        killed = time.monotonic()

        def newer() -> int | None:
            generation = self._in_turn()
            return generation if generation and generation > before else None

        after = until(newer, "the message is tried again")
        again = time.monotonic() - killed
        late = late_call(kept, self._service.address["socket"])
        answers = until(lambda: self._answers(sent["message_id"]), "the answer")
        answered = time.monotonic() - killed
        until(lambda: not self._row()["pending_deliveries"], "the turn is closed")
        return Round(
            again=again,
            answered=answered,
            generations=after - before,
            late_exit=late,
            left=sum(is_alive(process) for process in old),
            answers=len(answers),
        )

    def _renew(self, generation: int) -> None:
        # Or the supervisor would start the sender to handle its answers.
        while True:
            time.sleep(5)
            body = {"generation": generation}
            self._service.service.request(
                "POST", "/v1/lease/renew", body=body, headers=self._headers
            )

    def _is_settled(self) -> bool:
        """Whether a runner has been up for so long that its end does not count as a failed start.

        Those are held back for longer and longer, which is not what is measured here.
        """
        ready = [run / "ready" for run in self._runs.glob("*") if (run / "ready").exists()]
        if not ready and not self._row()["pending_deliveries"]:
            self._tool("messages.send", to=WORKER, body="ack: wake up")
        return any(time.time() - file.stat().st_mtime > SHORT_LIFE for file in ready)

    def _in_turn(self) -> int | None:
        row = self._row()
        return int(row["lease_generation"]) if row["state"] == "Executing" else None

    def _row(self) -> dict[str, Any]:
        path = f"/internal/v1/organizations/{self._id}/runtime"
        return dict(self._service.service.request("GET", path).json()["seats"][WORKER])

    def _answers(self, message_id: str) -> list[str]:
        # By hand the sender polls as a runner does, and closes what it got.
        answers: list[str] = []
        while True:
            given = self._service.service.request(
                "GET", "/v1/inbox/next?wait=0", headers=self._headers
            )
            if given.status == 204:
                return answers
            delivery = given.json()
            if delivery["message"].get("parent_id") == message_id:
                answers.append(delivery["message"]["body"])
            path = f"/v1/inbox/{delivery['delivery_id']}/ack"
            body = {"execution_id": delivery["execution_id"]}
            self._service.service.request("POST", path, body=body, headers=self._headers)

    def _tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self._service.service.request(
            "POST", f"/v1/tools/{name}", body={"arguments": arguments}, headers=self._headers
        )
        return dict(answer.json()["content"])


def slow_tools(folder: Path) -> Path:
    """The tool client, with a pause in which it can be interrupted."""
    program = folder / "tools"
    program.write_text(f'#!/bin/sh\nsleep {TOOL_SECONDS}\nexec {shlex.quote(str(TOOLS))} "$@"\n')
    program.chmod(0o755)
    return program


def late_call(run: Path, socket: str) -> int:
    """The exit code of a tool call with the token and the generation of an earlier start."""
    environment = {
        "PATH": os.environ["PATH"],
        "STEADMESH_PLATFORM_URL": f"unix:{socket}",
        "STEADMESH_TOKEN_FILE": str(run / "token"),
        "STEADMESH_GENERATION_FILE": str(run / "generation"),
    }
    return subprocess.run(
        [str(TOOLS), "call", "handoff.update", "-"],
        input=json.dumps({"objective": "late"}),
        text=True,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    ).returncode


def processes_about(folder: str) -> set[int]:
    """Every other process that names the folder in its arguments or its environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = entry.joinpath("cmdline").read_bytes() + entry.joinpath("environ").read_bytes()
        except OSError:
            continue
        if folder.encode() in text and identify(int(entry.name)):
            found.add(int(entry.name))
    return found


def until(look: Callable[[], T | None], what: str, *, limit: float = 60.0) -> T:
    """The first answer that is one; ends the program after the limit."""
    give_up = time.monotonic() + limit
    while time.monotonic() < give_up:
        if answer := look():
            return answer
        time.sleep(0.02)
    raise SystemExit(f"waited {limit:g} s in vain until {what}")


if __name__ == "__main__":
    main()
