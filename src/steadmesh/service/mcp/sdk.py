"""The official SDK's low-level server over the same catalogue. Importing this loads the SDK."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from steadmesh.kernel.errors import Failure
from steadmesh.service.mcp import results
from steadmesh.service.mcp.calls import Called, Calls, UnknownName
from steadmesh.service.mcp.listing import Listing
from steadmesh.tools import Credentials

CREDENTIALS = "steadmesh.credentials"
"""Under this the ASGI scope carries the credentials to the handlers."""

Context = ServerRequestContext[dict[str, Any], Request]


class Sdk:
    """An ASGI application for `POST /mcp`, without sessions and with answers in JSON.

    Its session manager lives in a task of its own, from `start` to `close`: it may not be entered in
    one task and left in another, and requests come and go.
    """

    def __init__(self, calls: Calls, listing: Listing) -> None:
        self._calls = calls
        self._listing = listing
        server: Server[dict[str, Any]] = Server(
            results.NAME,
            version=results.VERSION,
            instructions=results.INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            # No argument of ours is mirrored in a header; without this each call would list all tools.
            get_tool_input_schema=lambda name: None,
        )
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when requests can be served."""
        started = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(started))
        await asyncio.wait((started, self._running), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            await self._running

    async def close(self) -> None:
        """Ends the manager's task, and cuts off what it still serves. Twice does no harm."""
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, credentials: Credentials
    ) -> None:
        await self._manager.handle_request({**scope, CREDENTIALS: credentials}, receive, send)

    async def _run(self, started: asyncio.Future[None]) -> None:
        async with self._manager.run():
            started.set_result(None)
            await self._stopping.wait()

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            tools = await self._calls.visible(_credentials(context))
        except Failure as failure:
            raise MCPError(types.INTERNAL_ERROR, failure.message) from None
        if params is not None and params.cursor:
            raise MCPError(types.INVALID_PARAMS, results.ONE_PAGE)
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(self._listing.descriptor(tool)) for tool in tools]
        )

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            called = await self._calls.call(params.name, params.arguments, _credentials(context))
        except UnknownName as unknown:
            raise MCPError(types.INVALID_PARAMS, str(unknown)) from None
        except Failure as failure:
            called = Called(failure.message, is_error=True)
        return _result(called)


def _credentials(context: Context) -> Credentials:
    credentials: Credentials = cast(Request, context.request).scope[CREDENTIALS]
    return credentials


def _result(called: Called) -> types.CallToolResult:
    text = called.text if isinstance(called.text, str) else called.text.decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(text) if called.has_object else None,
        is_error=called.is_error,
    )
