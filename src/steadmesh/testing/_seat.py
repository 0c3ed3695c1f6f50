"""A seat for one harness: folders, environment, turns, and a stand-in for the tool client."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from steadmesh.kernel.clock import SystemClock
from steadmesh.runner.harness.contract import (
    Bootstrap,
    Delivery,
    Envelope,
    Harness,
    Recovery,
    SeatEnvironment,
    TurnResult,
)
from steadmesh.runner.processes import ChildGroups, ProcessId, group_exists, identify_child

PLANTED = "PLANTED_PROVIDER_KEY"
"""A variable of this process that no program of a seat may see."""

_TOOLS = """#!{python} -IS
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(dict(environment=dict(os.environ), group=os.getpgrp())) + chr(10))
if sys.argv[1:2] != ["mcp"]:
    sys.stdin.buffer.read()
    print(json.dumps(dict(message_id="sent", conversation_id="c", correlation_id="c")))
    sys.exit()
tool = dict(name="self", description="Who you are.", inputSchema=dict(type="object"))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    version = asked.get("params", dict()).get("protocolVersion", "2025-06-18")
    answers = dict(
        initialize=dict(protocolVersion=version, capabilities=dict(tools=dict()),
                        serverInfo=dict(name="stand-in", version="1")),
    )
    answers["tools/list"] = dict(tools=[tool])
    answers["tools/call"] = dict(content=[dict(type="text", text="ok")], isError=False)
    print(json.dumps(dict(jsonrpc="2.0", id=asked["id"],
                          result=answers.get(asked.get("method"), dict()))), flush=True)
"""

_numbers = itertools.count(1)


def check(condition: bool, message: str) -> None:
    """Fails the test with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


class RecordedChildren(ChildGroups):
    """Starts children as a runner's does, and keeps what each was given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environments: list[dict[str, str]] = []
        self._started: list[ProcessId] = []

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        stdin: IO[bytes] | int | None = subprocess.PIPE,
        stdout: IO[bytes] | int | None = subprocess.PIPE,
        stderr: IO[bytes] | int | None = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """As `ChildGroups.start`."""
        self.environments.append(dict(environment))
        child = super().start(
            command,
            environment=environment,
            directory=directory,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
        self._started.append(identify_child(child.pid))
        return child

    def left(self) -> list[int]:
        """The leaders of groups of which something still runs."""
        return [leader.pid for leader in self._started if group_exists(leader)]


class Stage:
    """One start of a harness. Folders that are there already are those of an earlier start."""

    def __init__(
        self, folder: Path, harness: Harness, recovery: Recovery, *, turn_limit: float
    ) -> None:
        places = {name: folder / name for name in ("workspace", "home", "runner", "manifest")}
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True)
        run = folder / "runner" / "run" / f"start-{next(_numbers)}"
        run.mkdir(parents=True)
        self._tool_log = run / "tools.jsonl"
        tools = run / "steadmesh-tools"
        tools.write_text(_TOOLS.format(python=sys.executable, log=str(self._tool_log)))
        tools.chmod(0o755)
        for name in ("token", "generation", "execution"):
            (run / name).write_text({"token": "sms_stand-in", "generation": "1"}.get(name, ""))
        self.children = RecordedChildren(run)
        self.variables = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(places["home"]),
            "STEADMESH_PLATFORM_URL": "http://127.0.0.1:1",
            "STEADMESH_TOKEN_FILE": str(run / "token"),
            "STEADMESH_GENERATION_FILE": str(run / "generation"),
            "STEADMESH_EXECUTION_FILE": str(run / "execution"),
            "STEADMESH_SEAT_KEY": "builder",
            "STEADMESH_TOOLS_BIN": str(tools),
        }
        self.harness = harness
        harness.prepare(
            SeatEnvironment(
                seat_key="builder",
                seat_id="seat-1",
                config_revision="revision-1",
                workspace=places["workspace"],
                home=places["home"],
                runner_dir=places["runner"],
                manifest_dir=places["manifest"],
                tools_bin=str(tools),
                variables=self.variables,
                children=self.children,
                turn_limit_seconds=turn_limit,
                clock=SystemClock(),
                bootstrap=Bootstrap(identity={"seat": "builder"}, recovery=recovery),
            )
        )
        self.start = harness.start_or_resume(recovery)

    def turn(self, body: str, *, correlation_id: str | None = None) -> TurnResult:
        """One turn on a person's message. Raises TurnRefused."""
        number = next(_numbers)
        message = Envelope(
            message_id=f"message-{number}",
            conversation_id="conversation-1",
            origin="human",
            recipient_seat="builder",
            body=body,
            created_at="2026-10-08T01:55:00Z",
            binding="person",
            external_user_id="person",
            correlation_id=correlation_id,
            reply_route="binding:person",
        )
        return self.harness.deliver(Delivery(number, f"execution-{number}", 1, message))

    def tool_environments(self) -> list[dict[str, str]]:
        """What each run of the tool client found in its environment."""
        # What the interpreter of the stand-in adds by itself is nobody's gift.
        ours = {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
        return [
            {name: value for name, value in row["environment"].items() if name not in ours}
            for row in self._tool_runs()
        ]

    def tool_groups(self) -> set[int]:
        """The process groups in which the tool client ran."""
        return {int(row["group"]) for row in self._tool_runs()}

    def _tool_runs(self) -> list[dict[str, Any]]:
        if not self._tool_log.exists():
            return []
        return [json.loads(line) for line in self._tool_log.read_text().splitlines()]


class RunningTurn:
    """A turn in a thread of its own, as the runner has it."""

    def __init__(self, stage: Stage, body: str) -> None:
        self.outcome: TurnResult | Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(stage, body), daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def has_ended_within(self, seconds: float) -> bool:
        """Whether it ends in that time."""
        self._thread.join(seconds)
        return self.has_ended

    def result(self, limit: float) -> TurnResult:
        """How it ended; fails the test if it does not, or has no result."""
        check(self.has_ended_within(limit), f"the turn went on for {limit:g} s more")
        if not isinstance(self.outcome, TurnResult):
            raise AssertionError(f"the turn has no result: {self.outcome!r}")
        return self.outcome

    def _run(self, stage: Stage, body: str) -> None:
        try:
            self.outcome = stage.turn(body)
        except Exception as problem:
            self.outcome = problem
