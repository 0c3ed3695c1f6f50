"""One fake harness with a home, a workspace and a stand-in for the tool client."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

from steadmesh.kernel.clock import TurnedClock
from steadmesh.runner.harness import (
    Bootstrap,
    Delivery,
    Envelope,
    Recovery,
    SeatEnvironment,
    Start,
    TurnResult,
)
from steadmesh.runner.harness.fake import FakeHarness
from steadmesh.runner.processes import ChildGroups
from tests.runner.stub_tools import StubTools

_numbers = itertools.count(1)


def message(body: str, *, origin: str = "human", **fields: Any) -> Envelope:
    """A message to the seat `builder`."""
    return Envelope(
        message_id=fields.pop("message_id", f"m-{next(_numbers)}"),
        conversation_id="c-1",
        origin=origin,
        recipient_seat="builder",
        body=body,
        created_at="2026-10-08T01:55:00Z",
        **fields,
    )


def from_seat(sender: str, body: str, **fields: Any) -> Envelope:
    """A message from another seat to the seat `builder`."""
    return message(body, origin="seat", sender_seat=sender, **fields)


class FakeSeat:
    """The seat `builder` on this machine; `restart` makes its next start."""

    def __init__(self, folder: Path, *, turn_limit: float = 30.0) -> None:
        self.tools = StubTools(folder / "tools")
        self.workspace = folder / "workspace"
        self.home = folder / "home"
        self.runner_dir = folder / "runner"
        for path in (self.workspace, self.home, self.runner_dir):
            path.mkdir()
        self.turn_limit = turn_limit
        self.bindings: list[str] = []
        self.start = self.restart()

    def restart(self, recovery: Recovery = Recovery()) -> Start:  # noqa: B008 - frozen
        """A new harness process's worth of state over the same files."""
        self.harness = FakeHarness(new_id=lambda: f"session-{next(_numbers)}")
        self.harness.prepare(self.environment())
        self.start = self.harness.start_or_resume(recovery)
        return self.start

    def turn(self, envelope: Envelope, *passive: Envelope) -> TurnResult:
        """One turn on that message."""
        return self.harness.deliver(
            Delivery(next(_numbers), "e-1", attempt=1, message=envelope, passive=passive)
        )

    def said(self, envelope: Envelope, *passive: Envelope) -> list[str]:
        """The output lines of a turn that completes."""
        result = self.turn(envelope, *passive)
        assert result.outcome == "completed", result
        return result.output.split("\n")

    def replies(self) -> list[dict[str, str]]:
        """The arguments of every `messages.reply` so far."""
        return [arguments for name, arguments in self.tools.calls() if name == "messages.reply"]

    def environment(self) -> SeatEnvironment:
        return SeatEnvironment(
            seat_key="builder",
            seat_id="s-1",
            config_revision="rev-1",
            workspace=self.workspace,
            home=self.home,
            runner_dir=self.runner_dir,
            manifest_dir=self.home,
            tools_bin=str(self.tools.path),
            variables={"PATH": os.environ["PATH"], "HOME": str(self.home)},
            children=ChildGroups(self.runner_dir),
            turn_limit_seconds=self.turn_limit,
            clock=TurnedClock(),
            bootstrap=Bootstrap(identity={"channel_bindings": self.bindings}),
        )
