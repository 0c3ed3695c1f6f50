"""Running the client programs as a seat's harness does: as processes, with an environment."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIMIT = 20.0
PROGRAM = (sys.executable, "-m", "steadmesh.client.tools")


class SeatFiles:
    """A run folder with token and generation, and the environment that names them."""

    def __init__(self, folder: Path, url: str, *, token: str, generation: str) -> None:
        self.token = folder / "token"
        self.generation = folder / "generation"
        self.execution = folder / "execution"
        self.token.write_text(token + "\n")
        self.generation.write_text(generation + "\n")
        self.execution.write_text("")
        self.environ = {
            "PATH": os.environ["PATH"],
            "STEADMESH_PLATFORM_URL": url,
            "STEADMESH_TOKEN_FILE": str(self.token),
            "STEADMESH_GENERATION_FILE": str(self.generation),
            "STEADMESH_EXECUTION_FILE": str(self.execution),
        }

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """`steadmesh-tools WORDS`, to its end."""
        return run_tools(*words, environ=self.environ, stdin=stdin)

    def bridge(self) -> BridgeProcess:
        """`steadmesh-tools mcp`, running."""
        return BridgeProcess(self.environ)


def run_tools(
    *words: str, environ: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """`steadmesh-tools WORDS` with just that environment."""
    return subprocess.run(
        [*PROGRAM, *words], env=dict(environ), input=stdin, capture_output=True, timeout=LIMIT
    )


class BridgeProcess:
    """A bridge under test: lines in, lines out, within a limit."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [*PROGRAM, "mcp"],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> BridgeProcess:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(LIMIT)
        self._reader.join(LIMIT)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def send(self, method: str, params: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """A message; with `id=` a request."""
        message = {"jsonrpc": "2.0", "method": method, **fields}
        self.send_line(json.dumps(message if params is None else {**message, "params": params}))

    def call(self, message_id: object, name: str) -> None:
        """A tool call."""
        self.send("tools/call", {"name": name, "arguments": {}}, id=message_id)

    def send_line(self, line: str | bytes) -> None:
        assert self._process.stdin is not None
        data = line.encode() if isinstance(line, str) else line
        self._process.stdin.write(data + b"\n")
        self._process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next line of output, which must be a JSON-RPC message."""
        message = json.loads(self._lines.get(timeout=LIMIT))
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def end(self) -> tuple[int, list[bytes], str]:
        """Exit code, the lines not yet read, and standard error, once it has ended."""
        code = self._process.wait(LIMIT)
        self._reader.join(LIMIT)
        assert self._process.stderr is not None
        rest = []
        while not self._lines.empty():
            rest.append(self._lines.get())
        return code, rest, self._process.stderr.read().decode()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
