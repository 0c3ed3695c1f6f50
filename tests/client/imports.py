"""What a client program imports: `python -m tests.client.imports` writes `docs/imports.txt`.

Each module is paid for by every call of every agent, so a new line in that file is a question.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.client.double import Double
from tests.client.platform import GENERATION, TOKEN, Platform
from tests.client.programs import LIMIT, SeatFiles

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "docs" / "imports.txt"
WORDS: Mapping[str, Sequence[str]] = {"call": ("call", "clock.now"), "mcp": ("mcp",)}
_HEAD = """\
# What the client programs import beyond what the interpreter itself has loaded. Made by
#   python -m tests.client.imports
# Every module is loaded by every call of every agent: a new line here is a question.
# Python {version} on {system}
"""
_PROGRAM = """\
import sys
sys.path.insert(0, {source!r})
before = set(sys.modules)
from steadmesh.client.tools import main
main()
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def interpreter() -> str:
    """The line of the file that says where it was made."""
    major, minor, *_ = sys.version_info
    return f"# Python {major}.{minor} on {platform.system()}"


def imported(words: Sequence[str], seat: SeatFiles) -> list[str]:
    """The modules that one run of the program loads; without `site`, whose additions vary."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROGRAM.format(source=str(ROOT / "src")), *words],
        env=seat.environ,
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode(),
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    return done.stderr.decode().split()


def listed() -> dict[str, list[str]]:
    """The modules in the file, for each program."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in LISTED.read_text().splitlines():
        if line.startswith("["):
            current = found.setdefault(line.strip("[]").removeprefix("steadmesh-tools "), [])
        elif line and not line.startswith("#"):
            current.append(line)
    return found


def main() -> None:
    """Write the file anew."""
    version = ".".join(map(str, sys.version_info[:2]))
    text = _HEAD.format(version=version, system=platform.system())
    with tempfile.TemporaryDirectory() as folder, Double(Platform()) as service:
        seat = SeatFiles(Path(folder), service.url, token=TOKEN, generation=GENERATION)
        for name, words in WORDS.items():
            modules = "\n".join(imported(words, seat))
            text += f"\n[steadmesh-tools {name}]\n{modules}\n"
    LISTED.write_text(text)


if __name__ == "__main__":
    main()
