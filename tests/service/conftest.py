"""Running services with the feature of notes, on both engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service import notes
from tests.support.service import RunningService, service

__all__ = ["books", "closed", "service", "shared", "shared_product"]

SECRET = "a-secret-of-at-least-32-characters"


@pytest.fixture(scope="package")
def shared() -> Iterator[RunningService]:
    """One for tests that leave nothing behind which another could see."""
    with RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running:
        yield running


@pytest.fixture(scope="package")
def closed() -> Iterator[RunningService]:
    """One that needs a secret, and is known under another name and to another page."""
    with RunningService(
        families=notes.FAMILIES,
        features=[notes.FEATURE],
        http_secret=SECRET,
        allowed_hosts=("mesh.example",),
        allowed_origins=("https://pages.example",),
    ) as running:
        yield running


@pytest.fixture
def books(engine: str, request: pytest.FixtureRequest) -> Iterator[RunningService]:
    """One of the test's own, on each engine in turn."""
    url = request.getfixturevalue("postgres_url") if engine == "postgresql" else None
    with RunningService(url, families=notes.FAMILIES, features=[notes.FEATURE]) as running:
        yield running


@pytest.fixture(scope="package")
def shared_product() -> Iterator[RunningService]:
    """The whole product with nothing in it."""
    with RunningService() as running:
        yield running
