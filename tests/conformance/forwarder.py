"""A loopback address at which every request is a seat's.

The suite takes a URL and nothing else, so it cannot send a token. This is run as a seat's command,
`steadmesh seat run lead -- python -m tests.conformance.forwarder URL`, puts the seat's two headers
into each request, and passes on everything else as it came, byte for byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

HEAD_END = b"\r\n\r\n"
TOKEN_FILE = "STEADMESH_TOKEN_FILE"
GENERATION_FILE = "STEADMESH_GENERATION_FILE"


class Forwarder:
    """Listens on a free port of loopback once started."""

    def __init__(self, host: str, port: int, *, headers: Callable[[], bytes]) -> None:
        """`headers` gives whole lines, asked for at each request: the token may be renewed."""
        self._to = (host, port)
        self._headers = headers

    async def start(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            answers, requests = await asyncio.open_connection(*self._to)
            ways = (
                asyncio.create_task(self._pass_requests(reader, requests)),
                asyncio.create_task(_pass_answers(answers, writer)),
            )
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                requests.close()
        writer.close()

    async def _pass_requests(
        self, reader: asyncio.StreamReader, requests: asyncio.StreamWriter
    ) -> None:
        while True:
            head = await reader.readuntil(HEAD_END)
            first, separator, rest = head.partition(b"\r\n")
            requests.write(first + separator + self._headers() + rest)
            requests.write(await reader.readexactly(body_length(head)))
            await requests.drain()


async def _pass_answers(answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await answers.read(65_536):
        writer.write(piece)
        await writer.drain()


def body_length(head: bytes) -> int:
    """Bytes that follow the head of a request. A body in chunks, which nobody sends us, is an error."""
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"transfer-encoding":
            raise ConnectionError("requests with a body in chunks are not forwarded")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return length


def seat_headers() -> bytes:
    """The lines that make a request the seat's, from the files that its environment names."""
    token = Path(os.environ[TOKEN_FILE]).read_text().strip()
    generation = Path(os.environ[GENERATION_FILE]).read_text().strip()
    return f"Authorization: Bearer {token}\r\nX-Steadmesh-Generation: {generation}\r\n".encode()


async def serve(url: str) -> None:
    """Forward until standard input ends. First says where, and the environment of the seat's programs."""
    to = urlsplit(url)
    server = await Forwarder(to.hostname or "", to.port or 0, headers=seat_headers).start()
    port = server.sockets[0].getsockname()[1]
    of_seat = {name: value for name, value in os.environ.items() if name.startswith("STEADMESH_")}
    print(json.dumps({"url": f"http://127.0.0.1:{port}", "environment": of_seat}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1]))
