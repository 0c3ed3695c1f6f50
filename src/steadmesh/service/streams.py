"""Streams: server-sent events that follow positions, so that a new connection goes on where one broke."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from steadmesh.kernel.errors import Failure
from steadmesh.service.replies import NO_STORE, Flow, Headers, Refusal, Reply, refused
from steadmesh.service.requests import Request
from steadmesh.service.waiting import Waiting
from steadmesh.tools import Credentials, Tool
from steadmesh.tools.run import Answer, Runner

ROUND_SECONDS = 1.0
COMMENT_SECONDS = 30.0
COMMENT = b": steadmesh\n\n"
EVENT_STREAM: Headers = (
    (b"content-type", b"text/event-stream"),
    NO_STORE,
    (b"x-accel-buffering", b"no"),
)


async def follow(
    runner: Runner,
    tool: Tool,
    arguments: Mapping[str, Any],
    credentials: Credentials,
    request: Request,
) -> Reply | Flow:
    """A stream of a tool's events; a refusal of the first round is an ordinary answer."""
    following = _Following(runner, tool, arguments, credentials, request)
    answer = await following.round()
    if answer.failure is not None:
        return refused(answer.failure)
    return Flow(following.pieces(answer), EVENT_STREAM)


class _Following:
    def __init__(
        self,
        runner: Runner,
        tool: Tool,
        arguments: Mapping[str, Any],
        credentials: Credentials,
        request: Request,
    ) -> None:
        self._runner = runner
        self._tool = tool
        self._arguments = dict(arguments)
        self._credentials = credentials
        self._request = request
        self._after = _last_position(request)
        self._topics: tuple[str, ...] = ()

    async def round(self, *, first: bool = True) -> Answer:
        """The next events, or the failure that ends the stream."""
        arguments = self._arguments
        if self._after is not None:
            arguments = arguments | {"after": self._after}
        try:
            if first or self._tool.ready is not None:
                glance = await self._runner.glance(self._tool, arguments, self._credentials)
                self._topics = glance.topics
                if not glance.ready and not first:
                    return Answer(json.dumps({"after": self._after}).encode())
        except Failure as failure:
            return Answer(b"", failure)
        return await self._runner.run(self._tool, arguments, self._credentials)

    async def pieces(self, answer: Answer) -> AsyncGenerator[bytes, None]:
        """The events as they are sent, and an empty piece whenever there are none."""
        clock = asyncio.get_running_loop().time
        yield COMMENT
        spoken = clock()
        looked = False
        async with Waiting(self._runner.signals, self._topics, self._request) as waiting:
            while not waiting.over:
                # A failure such as a busy database passes; one about the caller does not.
                if answer.failure is not None and answer.failure.kind != "unavailable":
                    return
                piece = b"" if answer.failure else self._encoded(answer.content)
                if not piece and clock() - spoken >= COMMENT_SECONDS:
                    piece = COMMENT
                yield piece
                if piece:
                    spoken = clock()
                elif looked:  # the first round was before the watch: a hint may have been missed
                    await waiting.hint(ROUND_SECONDS)
                looked = True
                answer = await self.round(first=False)

    def _encoded(self, content: bytes) -> bytes:
        followed = json.loads(content)
        self._after = followed["after"]
        return b"".join(_event(entry) for entry in followed.get("entries", ()))


def _event(entry: Mapping[str, Any]) -> bytes:
    data = json.dumps(entry["data"], separators=(",", ":"), ensure_ascii=False)
    return f"id: {entry['position']}\ndata: {data}\n\n".encode()


def _last_position(request: Request) -> int | None:
    text = request.header(b"last-event-id")
    if not text:
        return None
    if not text.isdigit() or len(text) > 18:
        raise Refusal(400, "Last-Event-ID must be the id of an event of this stream")
    return int(text)
