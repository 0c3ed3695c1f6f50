"""A stand-in for the tool client: notes each call and answers what the test laid down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python} -IS
import json, os, pathlib, sys, time
here = pathlib.Path({folder!r})
arguments = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
name = sys.argv[2]
call = dict(argv=sys.argv[1:], arguments=arguments, environment=dict(os.environ), cwd=os.getcwd())
with open(here / "calls.jsonl", "a") as calls:
    calls.write(json.dumps(call) + chr(10))
number = len((here / "calls.jsonl").read_text().splitlines())
answers = json.loads((here / "answers.json").read_text())
answer = answers.get(name, dict(exit=0, out=json.dumps(dict(message_id="sent-%d" % number))))
if answer.get("hang"):
    (here / "hanging").write_text(str(os.getpid()))
    time.sleep(60)
try:
    json.loads(arguments)
except ValueError:
    answer = dict(exit=2, out="", err="the arguments are not JSON")
print(answer.get("out", ""))
print(answer.get("err", ""), file=sys.stderr)
sys.exit(answer["exit"])
"""


class StubTools:
    """`path` is the program; `answer` says what a tool answers; `calls` is what was called."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._answers: dict[str, dict[str, Any]] = {}
        self.path = folder / "steadmesh-tools"
        self.path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.path.chmod(0o755)
        self.hanging = folder / "hanging"
        self._write()

    def answer(
        self,
        name: str,
        out: object = None,
        *,
        exit_code: int = 0,
        err: str = "",
        hang: bool = False,
    ) -> None:
        """From now on the tool `name` answers this."""
        text = out if isinstance(out, str) else json.dumps(out, separators=(",", ":"))
        self._answers[name] = {"exit": exit_code, "out": text, "err": err, "hang": hang}
        self._write()

    def records(self) -> list[dict[str, Any]]:
        """Every call so far, whole."""
        file = self._folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def calls(self) -> list[tuple[str, Any]]:
        """Every call so far: tool and arguments."""
        return [(record["argv"][1], json.loads(record["arguments"])) for record in self.records()]

    def _write(self) -> None:
        (self._folder / "answers.json").write_text(json.dumps(self._answers))
