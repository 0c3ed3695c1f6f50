"""A seat's environment, and the service it talks to."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.double import Double
from tests.client.platform import GENERATION, TOKEN, Platform
from tests.client.programs import SeatFiles


@pytest.fixture
def platform() -> Iterator[Platform]:
    """The service's side; what waits in it is let go at the end of the test."""
    platform = Platform()
    yield platform
    platform.released.set()


@pytest.fixture
def service(platform: Platform) -> Iterator[Double]:
    """The service, listening on a port of its own."""
    with Double(platform) as double:
        yield double


@pytest.fixture
def local_service(platform: Platform) -> Iterator[Double]:
    """The service on a Unix socket, for tests that stop it and start another in its place.

    Its port could be somebody else's by then. The path is short, as the system limits it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="sm-", dir="/tmp") as folder,
        Double(platform, unix=Path(folder) / "s") as double,
    ):
        yield double


@pytest.fixture
def local_seat(tmp_path: Path, local_service: Double) -> SeatFiles:
    """The run folder and environment of a seat of that service."""
    return SeatFiles(tmp_path, local_service.url, token=TOKEN, generation=GENERATION)


@pytest.fixture
def seat(tmp_path: Path, service: Double) -> SeatFiles:
    """The run folder and environment of a seat of that service."""
    return SeatFiles(tmp_path, service.url, token=TOKEN, generation=GENERATION)


@pytest.fixture
def closed() -> Iterator[str]:
    """An address that refuses connections and that no other test can get meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
