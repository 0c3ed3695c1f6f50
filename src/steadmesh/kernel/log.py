"""Logs: one JSON object per line, or readable text on a terminal; never a secret.

Code logs with the standard library, an event as the message and what it is about as fields:

    log = logging.getLogger(__name__)
    log.info("lease acquired", extra=fields(organization="acme", seat="lead", generation=4))

`start` says where the lines go. The caller of a logging method formats the line (tens of
microseconds) and puts it into a queue; one thread writes. So a full disk or a stalled reader of
stderr delays nobody: when 10 000 lines wait, new ones are dropped and counted, and the count is
logged when there is room again. A clean end writes what waits; a killed process loses it.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from steadmesh.kernel.clock import SECOND, rfc3339
from steadmesh.kernel.redaction import Redaction, Secrets
from steadmesh.kernel.text import for_terminal

MOST_WAITING = 10_000
_LONGEST_TRACE = 16_384
_FLUSHED_WITHIN = 2.0
_RESERVED = frozenset({"time", "level", "logger", "event", "exception"})


def fields(**values: object) -> dict[str, Any]:
    """What an event is about, as the `extra` of a logging call."""
    return {"fields": values}


class Logs:
    """Where log lines go, until closed."""

    def __init__(self, handler: _QueueHandler, quiet: dict[str, int], root_level: int) -> None:
        self._handler = handler
        self._quiet = quiet
        self._root_level = root_level

    def close(self) -> None:
        """Write what waits (for at most 2 s) and leave the logging system as it was."""
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._root_level)
        for name, level in self._quiet.items():
            logging.getLogger(name).setLevel(level)
        self._handler.close()


def start(
    secrets: Secrets,
    *,
    level: str = "info",
    file: Path | None = None,
    max_bytes: int = 10 * 1024 * 1024,
    stream: TextIO | None = None,
) -> Logs:
    """Send every log line of the process to a file, a stream, or both.

    `level` is the least severity (debug, info, warning, error). The file is private and bounded:
    at `max_bytes` it becomes `<name>.1`, in place of the one before. The stream gets text if it is
    a terminal, else JSON. Raises OSError if the file cannot be opened.
    """
    redaction = Redaction(secrets)
    sinks: list[tuple[logging.Formatter, Callable[[str], None]]] = []
    if file is not None:
        sinks.append((JsonFormatter(redaction), BoundedFile(file, max_bytes).write))
    if stream is not None:
        on_terminal = stream.isatty()
        formatter = TextFormatter(redaction) if on_terminal else JsonFormatter(redaction)
        sinks.append((formatter, _stream_writer(stream)))
    handler = _QueueHandler(sinks)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    return Logs(handler, _hush_libraries(), before)


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "event", ...fields, "exception"?}` in ASCII, on one line."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        try:
            return json.dumps(_content(record, self._redaction), allow_nan=False)
        except Exception as problem:
            return json.dumps(_unwritable(record, problem))


class TextFormatter(logging.Formatter):
    """`12:00:01.123 info  lease acquired  seat=lead`, for people."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        try:
            content = _content(record, self._redaction)
        except Exception as problem:
            content = _unwritable(record, problem)
        shown = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        trace = content.pop("exception", None)
        words = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in content.items()
            if name not in _RESERVED
        ]
        line = f"{shown} {content['level']:<7} {content['event']}"
        line = for_terminal("  ".join([line, *words])).replace("\n", "\\n")
        if trace is not None:
            line += "\n" + for_terminal(str(trace)).rstrip("\n").replace("\n", "\n    ")
        return line


class BoundedFile:
    """A private file that begins anew at a size, keeping one predecessor (`<name>.1`)."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._size = 0
        self._descriptor: int | None = self._opened()

    def write(self, line: str) -> None:
        """Append a line. Raises OSError; the next call tries afresh."""
        data = line.encode("utf-8", "replace") + b"\n"
        if self._descriptor is not None and self._size + len(data) > self._max_bytes:
            self._set_aside(self._descriptor)
        if self._descriptor is None:
            self._descriptor = self._opened()
        self._size += os.write(self._descriptor, data)

    def _set_aside(self, descriptor: int) -> None:
        try:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        except OSError:  # bounded matters more than kept
            os.ftruncate(descriptor, 0)
        self._descriptor = None
        os.close(descriptor)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        self._size = os.fstat(descriptor).st_size
        return descriptor


class _QueueHandler(logging.Handler):
    """Formats where the event happens (what it is about may change later) and writes elsewhere."""

    def __init__(self, sinks: list[tuple[logging.Formatter, Callable[[str], None]]]) -> None:
        super().__init__()
        self._sinks = sinks
        self._waiting: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._dropped = 0
        self._closed = False
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() >= MOST_WAITING:
            self._dropped += 1
            return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._put(_notice("log lines dropped", count=dropped))
        self._put(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Nobody who logs is to hear of it."""

    def flush(self) -> None:
        """Waits for nothing: the writer is never behind for long."""

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._writer.join(_FLUSHED_WITHIN)
        super().close()

    def _put(self, record: logging.LogRecord) -> None:
        self._waiting.put([formatter.format(record) for formatter, _ in self._sinks])

    def _write(self) -> None:
        while (lines := self._waiting.get()) is not None:
            for line, (_, write) in zip(lines, self._sinks, strict=True):
                try:
                    write(line)
                except Exception:  # a full disk, a reader that is gone
                    self._dropped += 1


def _content(record: logging.LogRecord, redaction: Redaction) -> dict[str, Any]:
    content: dict[str, Any] = {
        "time": rfc3339(int(record.created * SECOND)),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": redaction.text(record.getMessage()),
    }
    given = getattr(record, "fields", None)
    if isinstance(given, dict):
        for name, value in redaction.fields(given).items():
            content[f"field_{name}" if name in _RESERVED else name] = value
    if record.exc_info and record.exc_info[0] is not None:
        trace = "".join(traceback.format_exception(*record.exc_info))
        # The end says what happened, the beginning only where it came from.
        content["exception"] = redaction.end_of(trace, _LONGEST_TRACE)
    return content


def _unwritable(record: logging.LogRecord, problem: Exception) -> dict[str, Any]:
    """What can be said of an event whose message or fields cannot be shown."""
    return {
        "time": rfc3339(int(record.created * SECOND)),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": "an event could not be logged",
        "where": f"{record.pathname}:{record.lineno}",
        "problem": type(problem).__name__,
    }


def _notice(event: str, **values: object) -> logging.LogRecord:
    record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, event, None, None)
    record.fields = values
    return record


def _stream_writer(stream: TextIO) -> Callable[[str], None]:
    encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(line: str) -> None:
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()

    return write


def _hush_libraries() -> dict[str, int]:
    """Libraries that log each request or statement at info are heard from warnings on."""
    before = {}
    for name in ("asyncio", "httpx2", "mcp", "psycopg.pool", "uvicorn"):
        logger = logging.getLogger(name)
        before[name] = logger.level
        logger.setLevel(logging.WARNING)
    return before
