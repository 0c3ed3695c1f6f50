"""A seat's environment, and the service it talks to."""

from __future__ import annotations

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
def seat(tmp_path: Path, service: Double) -> SeatFiles:
    """The run folder and environment of a seat of that service."""
    return SeatFiles(tmp_path, service.url, token=TOKEN, generation=GENERATION)
