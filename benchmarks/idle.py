"""What 232 idle seats cost: processor time of the service and the supervisor, and their processes.

    python -m benchmarks.idle [--seconds 30] [--database URL]

All seats are stopped and have no mail. Nothing but the two programs should run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.organisation import RECIPIENTS, SENDERS, MeasuredService

Process = subprocess.Popen[bytes]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--settle", type=float, default=5.0, help="before it is measured")
    options.add_argument("--database", help="a PostgreSQL URL instead of SQLite")
    given = options.parse_args()
    service = MeasuredService(given.database)
    try:
        with supervisor(service) as supervising:
            time.sleep(given.settle)
            pids = {"service": service.process.pid, "supervisor": supervising.pid}
            before = {name: processor_seconds(pid) for name, pid in pids.items()}
            time.sleep(given.seconds)
            print(f"{SENDERS + RECIPIENTS} idle seats, {given.seconds:g} s")
            for name, pid in pids.items():
                used = processor_seconds(pid) - before[name]
                share = 100 * used / given.seconds
                print(f"{name:12}{used:8.2f} s of processor time  {share:6.2f} %  {rss(pid)} MiB")
            print(f"{'seats':12}{len(children(supervising.pid)):8} processes")
    finally:
        service.close()


@contextmanager
def supervisor(service: MeasuredService) -> Iterator[Process]:
    """`steadmesh supervise`, ended in order."""
    command = [sys.executable, "-m", "steadmesh.operator.main", "supervise"]
    environment = os.environ | {"STEADMESH_SUPERVISOR_UNENFORCED": "network_policy,non_root"}
    log = Path(service.folder.name) / "supervise.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--data", str(service.data)], stderr=output, env=environment
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss(pid: int) -> int:
    """Resident memory in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def children(pid: int) -> list[int]:
    """The processes that a process started and that still exist."""
    found = [
        Path(task).read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children")
    ]
    return [int(child) for row in found for child in row]


if __name__ == "__main__":
    main()
