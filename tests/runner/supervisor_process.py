"""A supervisor as a process of its own, which a test can kill: `python -m … SOCKET ORG DATA`."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from steadmesh.runner.supervisor import SupervisorSettings, supervise
from tests.runner.waiting import until

if TYPE_CHECKING:
    from tests.runner.town import Town


class SupervisorProcess:
    """A supervisor that can be killed as by an accident, paused, or ended in order."""

    def __init__(self, town: Town, *, data: Path | None = None) -> None:
        module = "tests.runner.supervisor_process"
        words = [str(town.service.socket), town.organisation_id(), str(data or town.data)]
        self._output = town.folder / f"supervisor-{id(self)}.out"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", module, *words], stdout=output
            )
        self.pid = self._process.pid

    def __enter__(self) -> SupervisorProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.resume()
        self.kill()

    def says(self, words: str, *, limit: float = 20.0) -> str:
        """The first line that has the words in it; fails the test after the limit."""

        def found() -> str:
            return next((line for line in self.lines() if words in line), "")

        try:
            return until(found, f"{words!r} is said", limit=limit)
        except AssertionError as error:
            raise AssertionError(f"{error}; said {self.lines()}") from None

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """In order; the exit code."""
        self._process.terminate()
        return self._process.wait(40)


def main() -> None:
    """Run until killed, or until SIGTERM."""
    socket, organization_id, data = sys.argv[1:]
    settings = SupervisorSettings(
        addresses=[f"unix:{socket}"],
        organization_id=organization_id,
        data_dir=Path(data),
        unenforced=("network_policy", "non_root"),
        stop_grace_seconds=5.0,
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    sys.exit(supervise(settings, stop=stop, tell=print))


if __name__ == "__main__":
    main()
