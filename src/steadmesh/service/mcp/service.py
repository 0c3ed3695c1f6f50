"""`POST /mcp`: the direct answers, and the way to the SDK for everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from steadmesh.kernel.errors import Unavailable
from steadmesh.service.mcp import results
from steadmesh.service.mcp.calls import Calls, UnknownName
from steadmesh.service.mcp.listing import Listing
from steadmesh.service.mcp.messages import Message, TooDeep, read_message
from steadmesh.service.mcp.protocol import INVALID_PARAMS
from steadmesh.service.replies import Reply
from steadmesh.service.requests import IN_A_THREAD
from steadmesh.tools import DEPTH_LIMIT, Credentials
from steadmesh.tools.run import Runner

if TYPE_CHECKING:
    from steadmesh.service.mcp.sdk import Sdk

BUDGETS = MappingProxyType({"seats": 49_152})
"""Bytes of a family's list up to which it carries the schemas of results."""


class Stopping(Unavailable):
    """The service is stopping. Try again in a moment; another one may have taken its place."""


class McpService:
    """Answers MCP requests. Nothing is kept between two of them."""

    def __init__(
        self,
        runner: Runner,
        *,
        family_of: Callable[[Credentials], str],
        budgets: Mapping[str, int] = BUDGETS,
    ) -> None:
        """`family_of` says which family's tools a request's credentials open."""
        self._calls = Calls(runner, family_of)
        self.listing = Listing(runner.catalogue, budgets)
        self._loading: asyncio.Task[Sdk] | None = None
        self._closed = False

    async def answer(self, body: bytes, scope: Scope, credentials: Credentials) -> Reply | None:
        """The answer to a request whose source and credentials' form were checked, or nothing if it
        should be passed on. Credentials that do not verify raise their `Failure`."""
        try:
            if len(body) > IN_A_THREAD:
                message = await asyncio.to_thread(read_message, body, scope["headers"])
            else:
                message = read_message(body, scope["headers"])
        except TooDeep:
            return results.too_deep(DEPTH_LIMIT)
        if message is None:
            return None
        if message.method == "tools/call" and message.id is not None:
            return await self._call(message, credentials)
        if message.method == "tools/list" and message.id is not None:
            return await self._list(message, credentials)
        await self._calls.verify(credentials)
        if message.id is None:
            return results.accepted(message)
        if message.method == "initialize":
            return results.initialized(message)
        if message.method == "server/discover":
            return results.discovered(message)
        return results.pong(message)

    async def pass_on(
        self, body: bytes, scope: Scope, receive: Receive, send: Send, credentials: Credentials
    ) -> None:
        """Let the SDK answer a request whose body was read. Credentials that do not verify raise
        their `Failure` before anything is sent."""
        await self._calls.verify(credentials)
        sdk = await self._sdk()
        await sdk(scope, _again(body, receive), send, credentials)

    async def close(self) -> None:
        """End what was started for the SDK. Requests that it still answers are cut off."""
        self._closed = True
        if self._loading is not None and (sdk := await _loaded(self._loading)) is not None:
            await sdk.close()

    async def _call(self, message: Message, credentials: Credentials) -> Reply:
        params = message.params
        try:
            called = await self._calls.call(params["name"], params.get("arguments"), credentials)
        except UnknownName as unknown:
            return results.refused(message, INVALID_PARAMS, str(unknown))
        return results.called(message, called)

    async def _list(self, message: Message, credentials: Credentials) -> Reply:
        tools = await self._calls.visible(credentials)
        if message.params.get("cursor"):
            return results.refused(message, INVALID_PARAMS, results.ONE_PAGE)
        return results.listed(message, self.listing.encoded(tools))

    async def _sdk(self) -> Sdk:
        """The SDK's part, loaded when it is first needed: it takes a good part of a second."""
        if self._closed:
            raise Stopping()
        if self._loading is None or _has_failed(self._loading):
            self._loading = asyncio.create_task(self._load())
        return await asyncio.shield(self._loading)

    async def _load(self) -> Sdk:
        sdk_class = await asyncio.to_thread(_import_sdk)
        sdk = sdk_class(self._calls, self.listing)
        await sdk.start()
        return sdk


def _has_failed(loading: asyncio.Task[Sdk]) -> bool:
    return loading.done() and (loading.cancelled() or loading.exception() is not None)


async def _loaded(loading: asyncio.Task[Sdk]) -> Sdk | None:
    """What was loaded, as soon as that is over; nothing if it failed."""
    await asyncio.wait((loading,))
    return None if _has_failed(loading) else loading.result()


def _import_sdk() -> type[Sdk]:
    from steadmesh.service.mcp.sdk import Sdk

    return Sdk


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, and then what the client sends or that it hangs up."""
    waiting: list[AsgiMessage] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> AsgiMessage:
        return waiting.pop() if waiting else await receive()

    return replay
