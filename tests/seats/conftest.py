"""Organisation F on each engine."""

from __future__ import annotations

import pytest

from steadmesh.kernel.database import Database
from tests.seats.world import World


@pytest.fixture
def world(product: Database) -> World:
    """Organisation F in force, on SQLite and on PostgreSQL."""
    return World(product)
