"""A call of a tool or an endpoint over HTTP: arguments out of the request, the answer in HTTP's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steadmesh.kernel.errors import Failure
from steadmesh.service import operator
from steadmesh.service.polls import long_poll
from steadmesh.service.replies import JSON, Flow, Refusal, Reply, refused
from steadmesh.service.requests import BODY_LIMIT, OPERATOR_BODY_LIMIT, Request
from steadmesh.service.streams import follow
from steadmesh.tools import Credentials, Tool
from steadmesh.tools.run import NOTHING, Answer, Runner


async def call_tool(
    runner: Runner, tool: Tool, arguments: Mapping[str, Any], credentials: Credentials
) -> Reply:
    """What a tool answers is 200, failures included; only what is about the caller has a status."""
    answer = await runner.run(tool, arguments, credentials)
    failure = answer.failure
    if failure is None:
        return Reply(200, b'{"content":%b}' % answer.content)
    if (status := _status_of_caller(failure, answer)) is not None:
        return refused(failure, status)
    return Reply(200, b'{"content":%b,"is_error":true}' % answer.content)


def _status_of_caller(failure: Failure, answer: Answer) -> int | None:
    if failure.kind == "fenced":
        return 409
    if failure.kind == "unauthenticated":
        return 401
    if failure.ends_access:
        return 403
    if failure.kind == "rate_limited" or not answer.authenticated:
        return refused(failure).status
    return None


def tool_arguments(body: Any) -> Mapping[str, Any]:
    """The arguments in `{"arguments": {...}}`; absent and null are none."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise Refusal(400, 'the body must be an object: {"arguments": {...}}')
    if "arguments" not in body:
        if body:
            stray = json.dumps(next(iter(body)))[:100]
            raise Refusal(400, f'put {stray} and what else there is into "arguments": {{...}}')
        return {}
    arguments = body["arguments"]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = ...
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise Refusal(400, '"arguments" must be an object')
    return arguments


class Endpoints:
    """Calls of endpoints: their own routes, their own statuses."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def call(
        self,
        tool: Tool,
        values: Mapping[str, str],
        *,
        request: Request,
        credentials: Credentials,
    ) -> Reply | Flow:
        """`values` are those of the path."""
        credentials = replace(credentials, path=values)
        if tool.family == operator.NAME:  # before a body of its size is read
            await self._runner.caller(operator.NAME, credentials)
        arguments = await _arguments(tool, values, request)
        if tool.streams:
            return await follow(self._runner, tool, arguments, credentials, request)
        if tool.waits is not None:
            answer = await long_poll(self._runner, tool, arguments, credentials, request)
        else:
            answer = await self._runner.run(tool, arguments, credentials)
        if answer.failure is not None:
            return refused(answer.failure)
        if answer.content == NOTHING:
            return Reply(204, headers=())
        return Reply(tool.status, answer.content, JSON)


async def _arguments(tool: Tool, values: Mapping[str, str], request: Request) -> dict[str, Any]:
    """What stands in the path, behind the question mark and in the body, each name once."""
    arguments: dict[str, Any] = dict(values)
    _merge(arguments, request.query_values(), "the query")
    if request.method in ("GET", "HEAD"):
        return arguments
    limit = OPERATOR_BODY_LIMIT if tool.family == operator.NAME else BODY_LIMIT
    body = await request.json(limit)
    if body is None:
        return arguments
    if isinstance(body, list) and "events" in tool.args.model_fields:
        body = {"events": body}
    if not isinstance(body, dict):
        raise Refusal(400, "the body must be a JSON object")
    _merge(arguments, body, "the body")
    return arguments


def _merge(arguments: dict[str, Any], more: Mapping[str, Any], place: str) -> None:
    if twice := arguments.keys() & more.keys():
        name = min(twice)
        raise Refusal(400, f"{name} stands in {place} although it was given before; leave it out")
    arguments.update(more)
