"""Running the service: the data directory is held, port and socket are bound, and a clean end follows."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from steadmesh import __version__
from steadmesh.kernel import log as logs
from steadmesh.kernel.clock import SystemClock
from steadmesh.kernel.config import Config
from steadmesh.kernel.database import DatabaseProblem
from steadmesh.kernel.datadir import Address, DataDirectory, DataDirectoryError, process_start
from steadmesh.kernel.errors import Failure
from steadmesh.kernel.redaction import Secrets
from steadmesh.service.assembly import Service, build
from steadmesh.service.wire import BoundedHttp

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 61  # longer than proxies keep theirs
GRACE_SECONDS = 15
TICKS_PER_SECOND = 10  # as uvicorn counts
STREAM_GRACE_SECONDS = 1.0
BACKLOG = 1024


class CannotListen(Exception):
    """The port or the socket cannot be had; the text says what to do."""


class Listener(uvicorn.Server):
    """uvicorn on our sockets: it tells when it listens, and lets go of who waits when it ends."""

    def __init__(self, service: Service, *, ready: Callable[[], None]) -> None:
        self._service = service
        self._ready = ready
        self._ending = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                service.app,
                loop="none",
                http=BoundedHttp,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                backlog=BACKLOG,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def main_loop(self) -> None:
        """uvicorn's own looks ten times a second whether it should end; this one is told."""
        tick = 0
        while not await self.on_tick(tick):
            tick += TICKS_PER_SECOND
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1.0)

    def end(self) -> None:
        """Begin to end."""
        self.should_exit = True
        self._ending.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.signals.stir_all()
        cutting = asyncio.create_task(self._cut_streams())
        await super().shutdown(sockets)
        cutting.cancel()

    async def _cut_streams(self) -> None:
        """Streams of MCP end with what serves them; calls are given the time to come first."""
        await asyncio.sleep(STREAM_GRACE_SECONDS)
        await self._service.mcp.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours, see `serve`."""
        yield


def serve(config: Config) -> int:
    """Run the service in the foreground until it is told to stop; the exit status.

    Whatever keeps it from starting is said on stderr.
    """
    os.umask(0o077)  # whatever it makes is its user's alone
    try:
        data = DataDirectory.open(config.data)
        with data.hold():
            return _serve_held(config, data)
    except (DataDirectoryError, DatabaseProblem, CannotListen, Failure) as problem:
        print(f"steadmesh: {problem}", file=sys.stderr)
        return 1


def _serve_held(config: Config, data: DataDirectory) -> int:
    try:
        lines = logs.start(
            Secrets(config.secrets()),
            level=config.log_level,
            file=data.log_file,
            max_bytes=config.log_max_bytes,
        )
    except OSError as problem:
        raise DataDirectoryError(
            f"the log {data.log_file} cannot be written: {problem.strerror}"
        ) from None
    try:
        for warning in config.warnings:
            log.warning(warning)
            print(f"steadmesh: {warning}", file=sys.stderr)
        with listening(config, data) as place:
            running = Running(build(config, SystemClock(), data=data), data, place)
            _settle_in()
            print(f"the log is {data.log_file}", file=sys.stderr)
            running.run(announce=lambda: print(f"listening on {place.url}", file=sys.stderr))
        return 0
    finally:
        lines.close()


class Place:
    """The bound sockets of a service."""

    def __init__(self, tcp: socket.socket, unix: socket.socket, path: Path, url: str) -> None:
        self.sockets = [tcp, unix]
        self.path = path
        self.url = url


@contextlib.contextmanager
def listening(config: Config, data: DataDirectory) -> Iterator[Place]:
    """Bind the port and the Unix socket; the socket's file is removed at the end.

    The data directory is held: a socket file that is there is one that nobody listens on any more.
    Raises `CannotListen`.
    """
    tcp = _bound_port(config)
    path = data.socket()
    try:
        unix = _bound_socket(path)
    except OSError as problem:
        tcp.close()
        raise CannotListen(f"cannot listen on the socket {path}: {problem.strerror}") from None
    try:
        yield Place(tcp, unix, path, _url(config.host, tcp.getsockname()[1]))
    finally:
        tcp.close()
        unix.close()
        path.unlink(missing_ok=True)
        if path.parent != data.path:
            with contextlib.suppress(OSError):  # somebody put something there: it stays
                path.parent.rmdir()


class Running:
    """A service that listens, from the first request to the last."""

    def __init__(self, service: Service, data: DataDirectory, place: Place) -> None:
        self.service = service
        self._data = data
        self._place = place
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener | None = None

    @property
    def requests(self) -> int:
        """How many are being answered."""
        return len(self._listener.server_state.tasks) if self._listener is not None else 0

    def run(self, *, announce: Callable[[], None] = lambda: None) -> None:
        """Until `stop`; in the main thread until a signal, too. `announce` is called when it listens."""
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run(announce))

    def stop(self, reason: str) -> None:
        """Let it end: no new connections, who waits is answered, calls are finished. From any thread."""
        log.info("service stops", extra=logs.fields(reason=reason))
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._end)

    async def _run(self, announce: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.service.stopping = self.stop
        if threading.current_thread() is threading.main_thread():
            self._hear_signals(self._loop)

        def ready() -> None:
            self.service.jobs.start()
            self._say_where()
            log.info("service listens", extra=logs.fields(url=self._place.url))
            announce()

        self._listener = Listener(self.service, ready=ready)
        try:
            await self._listener.serve(sockets=self._place.sockets)
        finally:
            await self.service.close()
            self._data.remove_address(self.service.instance_id)
            log.info("service has stopped")

    def _hear_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: int) -> None:
        if self._listener is not None and self._listener.should_exit:
            os._exit(128 + number)  # the second time: whoever sends it does not want to wait
        log.info("service stops", extra=logs.fields(reason=signal.Signals(number).name))
        self._end()

    def _end(self) -> None:
        if self._listener is not None:
            self._listener.end()

    def _say_where(self) -> None:
        pid = os.getpid()
        address = Address(
            socket=str(self._place.path),
            url=self._place.url,
            pid=pid,
            started=process_start(pid),
            version=__version__,
            instance_id=self.service.instance_id,
        )
        try:
            self._data.write_address(address)
        except OSError as problem:
            file = self._data.address_file
            raise CannotListen(f"{file} cannot be written: {problem.strerror}") from None


def _bound_port(config: Config) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as problem:
        raise CannotListen(
            f"cannot listen on the host {config.host}: {problem.strerror}; name an address of this "
            "machine with --host, such as 127.0.0.1"
        ) from None
    family, _, _, _, address = found[0]
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as problem:
        bound.close()
        raise CannotListen(_why(config, problem)) from None
    return bound


def _why(config: Config, problem: OSError) -> str:
    import errno

    if problem.errno == errno.EADDRINUSE:
        return (
            f"port {config.port} on {config.host} is taken by another program; "
            "take a free one with `--port 0`, or name another"
        )
    if problem.errno in (errno.EACCES, errno.EPERM):
        return f"this user may not listen on port {config.port}; name one above 1023 with --port"
    return f"cannot listen on {config.host} port {config.port}: {problem.strerror}"


def _bound_socket(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(os.fspath(path))
        path.chmod(0o600)  # its folder is 0700: it was never open to others
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # noqa: S104 - compared with only
    return f"http://{shown or (f'[{host}]' if ':' in host else host)}:{port}"


def _settle_in() -> None:
    """What was made up to now stays for good: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    # A thread that comes back from the disk waits this long for a busy event loop, 5 ms by default:
    # as long as the commit itself took.
    sys.setswitchinterval(0.0005)
