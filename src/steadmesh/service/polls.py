"""Long polls: a call that finds nothing is made again when something happens, or after a while.

Between two rounds nothing is held: no transaction, no connection to the database. Every round judges
the caller anew, and only looks until there is something to take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from steadmesh.kernel.errors import Failure
from steadmesh.service.requests import Request
from steadmesh.service.waiting import Waiting
from steadmesh.tools import Credentials, Tool
from steadmesh.tools.run import NOTHING, Answer, Runner

LONGEST_WAIT = 30.0
SETTLING_SECONDS = 0.02


async def long_poll(
    runner: Runner,
    tool: Tool,
    arguments: Mapping[str, Any],
    credentials: Credentials,
    request: Request,
) -> Answer:
    """The answer of the call that found something; `NOTHING` once the caller's `wait` is over."""
    try:
        glance = await runner.glance(tool, arguments, credentials)
        if glance.ready:
            answer = await runner.run(tool, arguments, credentials)
            if answer.content != NOTHING:
                return answer
        wait = min(max(glance.wait, 0.0), LONGEST_WAIT)
        if wait == 0:
            return Answer(NOTHING)
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        async with Waiting(runner.signals, glance.topics, request) as waiting:
            while True:
                # First look, then wait: no hint falls between, as the watch has begun.
                glance = await runner.glance(tool, arguments, credentials)
                if glance.ready and not waiting.over:
                    answer = await runner.run(tool, arguments, credentials)
                    if answer.content != NOTHING:
                        return answer
                left = deadline - clock()
                if left <= 0 or waiting.over:
                    return Answer(NOTHING)
                await waiting.hint(min(left, tool.looks_every))
                if tool.reads:
                    # It shows how things are, so it may wait until they have settled a little: a
                    # look for each of a thousand messages a second would be most of the work.
                    await asyncio.sleep(min(left, SETTLING_SECONDS))
    except Failure as failure:
        return Answer(b"", failure)
