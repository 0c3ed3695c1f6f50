"""A seat runner in a thread of the test, against the platform double."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from steadmesh.client.http import Service
from steadmesh.kernel.clock import SystemClock
from steadmesh.runner.folder import RunFolder
from steadmesh.runner.harness import Harness
from steadmesh.runner.harness.fake import FakeHarness
from steadmesh.runner.platform import Platform
from steadmesh.runner.seat import SeatRunner
from steadmesh.runner.settings import Limits, RunnerSettings
from tests.runner.platform_double import TOKEN, PlatformDouble
from tests.runner.stub_tools import StubTools


class RunningSeat:
    """The seat `builder`; `start` runs it, `stop` ends it and gives the exit code."""

    def __init__(self, folder: Path, platform: PlatformDouble) -> None:
        self.folder = folder
        self.platform = platform
        self.tools = StubTools(folder / "tools")
        self.run_folder = RunFolder(folder / "runner/run/i-1")
        self.run_folder.path.mkdir(parents=True)
        self.run_folder.write_token(TOKEN)
        for name in ("workspace", "home"):
            (folder / name).mkdir()
        self.exit_codes: list[int] = []

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def settings(self, **limits: float) -> RunnerSettings:
        return RunnerSettings(
            addresses=(self.platform.url,),
            token_file=self.run_folder.token_file,
            organization_id="o-1",
            seat_id="s-1",
            seat_key="builder",
            config_revision="rev-1",
            harness="fake",
            manifest_dir=self.folder / "manifest",
            workspace_dir=self.workspace,
            home_dir=self.folder / "home",
            runner_dir=self.folder / "runner",
            tools_bin=str(self.tools.path),
            health_address=None,
            limits=Limits(**{"acquire_retry": 0.02, "poll_wait": 5.0, **limits}),
        )

    def start(self, harness: Harness | None = None, **limits: Any) -> SeatRunner:
        self.runner = SeatRunner(
            self.settings(**limits),
            Platform(Service(self.settings().addresses), self.run_folder.token_file),
            harness or FakeHarness(),
            clock=SystemClock(),
            machine={"PATH": os.environ["PATH"], "SECRET_KEY": "x"},
        )
        self._thread = threading.Thread(
            target=lambda: self.exit_codes.append(self.runner.run()), daemon=True
        )
        self._thread.start()
        return self.runner

    def stop(self) -> int:
        self.runner.ask_to_stop()
        return self.exit_code()

    def exit_code(self, *, limit: float = 10.0) -> int:
        """Wait for the runner to end by itself."""
        self._thread.join(limit)
        assert not self._thread.is_alive(), f"the runner still runs after {limit:g} s"
        return self.exit_codes[-1]
