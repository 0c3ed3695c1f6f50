"""The forwarder adds a seat's headers to each request and changes nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from tests.conformance.forwarder import Forwarder

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]

LIMIT = 10.0
FIRST = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nMcp-Name:   a  \r\nContent-Length: 4\r\n\r\n{}\r\n"
SECOND = b"GET /mcp HTTP/1.1\r\nHOST: x\r\n\r\n"


def talked(talk: Talk, *, requests: int) -> tuple[bytes, bytes]:
    """What a server of so many requests got through the forwarder, and what `talk` heard."""
    received = bytearray()
    numbers = count(1)

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(requests):
            received.extend(await reader.readuntil(b"\r\n\r\n"))
            if b"Content-Length: 4" in received and number == 0:
                received.extend(await reader.readexactly(4))
            writer.write(b"answer %d;" % (number + 1))
        writer.close()

    async def everything() -> bytes:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        forwarder = Forwarder("127.0.0.1", port, headers=lambda: b"X-Seat: %d\r\n" % next(numbers))
        forwarding = await forwarder.start()
        try:
            own = forwarding.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", own)
            heard = await talk(reader, writer)
            writer.close()
            return heard
        finally:
            forwarding.close()
            listening.close()

    heard = asyncio.run(asyncio.wait_for(everything(), LIMIT))
    return bytes(received), heard


def test_each_request_of_a_connection_gets_the_headers_of_the_moment() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(FIRST)
        answer = await reader.readuntil(b";")
        writer.write(SECOND)
        return answer + await reader.read()

    received, heard = talked(talk, requests=2)
    assert received == (
        FIRST.replace(b"1.1\r\n", b"1.1\r\nX-Seat: 1\r\n")
        + SECOND.replace(b"1.1\r\n", b"1.1\r\nX-Seat: 2\r\n")
    )
    assert heard == b"answer 1;answer 2;"


def test_a_body_in_chunks_is_hung_up_on() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        return await reader.read()

    _, heard = talked(talk, requests=1)
    assert heard == b""
