"""A real service for tests: the product's server in a thread, on a free port and a Unix socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from steadmesh.kernel.clock import Clock, SystemClock
from steadmesh.kernel.config import Config
from steadmesh.kernel.database import open_database
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.datadir import DataDirectory
from steadmesh.service.assembly import FAMILIES, FEATURES, Service, build
from steadmesh.service.server import Running, listening
from steadmesh.tools import Catalogue, Family, Feature
from tests.support.postgres import clone_database, drop_database, make_template

START_SECONDS = 20.0
STOP_SECONDS = 40.0


@dataclass(frozen=True)
class Response:
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """Status and code of a refusal."""
        return self.status, self.json()["code"]


class RunningService:
    """Starts when entered, stops cleanly when left.

    `database` is a PostgreSQL URL; without one, SQLite in a folder of its own. Other keywords are
    settings, as `Config` has them.
    """

    service: Service
    url: str
    port: int
    socket: Path
    data: Path

    def __init__(
        self,
        database: str | None = None,
        *,
        data: Path | None = None,
        clock: Clock | None = None,
        families: Sequence[Family] = FAMILIES,
        features: Sequence[Feature] = FEATURES,
        **settings: Any,
    ) -> None:
        self._given = data
        self._database = database
        self._clock = clock or SystemClock()
        self._families = families
        self._features = features
        self._settings = {"port": 0} | settings
        self._listens = threading.Event()
        self._problem: BaseException | None = None
        self._stack = ExitStack()

    def __enter__(self) -> RunningService:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
        if self._problem is not None and problem is None:
            raise self._problem

    def stop(self) -> None:
        """End it, and wait until it has ended. Twice does no harm."""
        self.service.stop("the test is over")
        self.join()

    def join(self) -> None:
        """Wait until it has ended by itself."""
        self._thread.join(STOP_SECONDS)
        assert not self._thread.is_alive(), "the service did not stop"

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        local: bool = False,
        timeout: float = 40.0,
    ) -> Response:
        """One request on a connection of its own. A body that is not bytes is sent as JSON.

        `local`: over the Unix socket.
        """
        connection = self.connection(local=local, timeout=timeout)
        try:
            given = dict(headers or {})
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            if body is not None:
                given.setdefault("Content-Type", "application/json")
            # A refusal may come before the body was sent, which is then read by nobody.
            with contextlib.suppress(BrokenPipeError):
                connection.request(method, path, body=body, headers=given)
            return whole(connection.getresponse())
        finally:
            connection.close()

    def call(self, tool: str, token: str | None = None, /, **arguments: Any) -> Response:
        """Call a tool with a bearer token; the generation is set with `headers` of `request`."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.request("POST", f"/v1/tools/{tool}", {"arguments": arguments}, headers=headers)

    def connection(
        self, *, local: bool = False, timeout: float = 40.0
    ) -> http.client.HTTPConnection:
        """An open connection, for more than one request or part of one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if local:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.settimeout(timeout)
            opened.connect(str(self.socket))
            connection.sock = opened
        return connection

    def raw(self, data: bytes, *, timeout: float = 10.0) -> bytes:
        """What comes back for bytes of which nothing is added, until the service closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as opened:
            opened.sendall(data)
            received = bytearray()
            while piece := opened.recv(65_536):
                received += piece
            return bytes(received)

    @property
    def requests(self) -> int:
        """How many are being answered."""
        return self._running.requests

    @property
    def operator_key(self) -> str:
        return DataDirectory(self.data).operator_key()

    def _start(self, stack: ExitStack) -> None:
        folder = self._given
        if folder is None:  # short, so that the socket fits beside the database
            folder = Path(tempfile.mkdtemp(prefix="sm-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        data = DataDirectory.open(folder)
        config = Config(
            data=data.path,
            secrets_dir=data.path / "secrets",
            database=self._database,
            **self._settings,
        )
        stack.enter_context(data.hold())
        place = stack.enter_context(listening(config, data))
        self.service = build(
            config, self._clock, data=data, families=self._families, features=self._features
        )
        self._running = Running(self.service, data, place)
        self.url, self.socket, self.data = place.url, place.path, data.path
        self.port = int(place.url.rpartition(":")[2])
        self._thread = threading.Thread(target=self._run, name="service", daemon=True)
        self._thread.start()
        stack.callback(self.stop)
        assert self._listens.wait(START_SECONDS), "the service did not start"
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            self._running.run(announce=self._listens.set)
        except BaseException as problem:
            self._problem = problem
        finally:
            self._listens.set()


def whole(response: http.client.HTTPResponse) -> Response:
    """Read an answer to its end."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read())


@pytest.fixture
def service(engine: str, request: pytest.FixtureRequest) -> Iterator[RunningService]:
    """The whole product as a running service, on each engine in turn."""
    with ExitStack() as stack:
        url = None
        if engine == "postgresql":
            url = stack.enter_context(_migrated_database(request.getfixturevalue("postgres")))
        yield stack.enter_context(RunningService(url))


@contextmanager
def _migrated_database(server: str) -> Iterator[str]:
    """A database of the test's own on PostgreSQL, cloned with the product's tables in it."""

    def migrated(url: str) -> None:
        database = open_database(url)
        try:
            migrate(database, Catalogue(FAMILIES, FEATURES).packages, SystemClock())
        finally:
            database.close()

    make_template(server, "product", migrated)
    name = f"test_{uuid.uuid4().hex}"
    yield clone_database(server, "product", name)
    drop_database(server, name)
