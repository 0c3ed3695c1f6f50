"""`steadmesh-tools mcp`: a seat's tools over stdio, for clients that speak MCP."""

from __future__ import annotations

import signal
import sys
import threading

from steadmesh.client.address import NoService
from steadmesh.client.bridge import Bridge, Identity, NoIdentity
from steadmesh.client.http import BadAddress, Unreachable
from steadmesh.client.seat import Misconfigured, Seat
from steadmesh.client.stdio import Output, Wake, read_lines, take_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steadmesh.client.http import Service

CANNOT_START = 3
RETRY_FOR = 10.0


class SeatIdentity(Identity):
    """A seat: token, generation and execution as its files have them at that moment."""

    def __init__(self, seat: Seat) -> None:
        """Reads nothing yet."""
        self._seat = seat

    def headers(self) -> Mapping[str, str]:
        """As every call of the seat has them, and that a bridge carries this one."""
        try:
            return {**self._seat.headers(), "X-Steadmesh-Via": "stdio"}
        except Misconfigured as error:
            raise NoIdentity(str(error)) from None


def serve(environ: Mapping[str, str]) -> int:
    """Bridge standard input and output to the service until the input ends; the exit code.

    Nothing is answered before the service has accepted the seat's token. That is asked beside
    the first message, not before it, so it costs no time.
    """
    output = Output(take_stdout(), held=True)
    wake = Wake()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: wake.end(128 + received))
    seat = Seat(environ)
    try:
        seat.require_token()
        service = seat.service()
    except (Misconfigured, NoService, BadAddress) as error:
        return _cannot_start(str(error))
    bridge = Bridge(service, SeatIdentity(seat), output, settled=wake.poke, retry_for=RETRY_FOR)
    check = _Check(service, seat, passed=output.release, ended=wake)
    for line in read_lines(sys.stdin.fileno(), wake):
        bridge.receive(line)
    bridge.end_streams()
    while wake.code is None and (check.is_running or bridge.in_flight):
        wake.wait()
    bridge.abort()
    return wake.code or 0


class _Check:
    """Asks the service once whether it knows this seat; ends the program if not."""

    def __init__(
        self, service: Service, seat: Seat, *, passed: Callable[[], None], ended: Wake
    ) -> None:
        self.is_running = True
        self._service = service
        self._seat = seat
        self._passed = passed
        self._ended = ended
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        problem = self._problem()
        if problem is None:
            self._passed()
        else:
            self._ended.end(_cannot_start(problem))
        self.is_running = False
        self._ended.poke()

    def _problem(self) -> str | None:
        try:
            answer = self._service.request(
                "GET",
                "/v1/tools",
                headers={**self._seat.headers(), "X-Steadmesh-Via": "stdio"},
                retry_for=RETRY_FOR,
            )
        except (Misconfigured, Unreachable, ValueError) as error:
            return str(error)
        if answer.status == 200:
            return None
        try:
            message = answer.json()["message"]
        except (ValueError, KeyError, TypeError):
            message = "the service did not say why"
        return f"HTTP {answer.status}: {message}"


def _cannot_start(text: str) -> int:
    sys.stderr.write(f"steadmesh-tools mcp: {' '.join(text.split())}\n")
    sys.stderr.flush()
    return CANNOT_START
