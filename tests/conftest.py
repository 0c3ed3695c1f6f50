"""What every test may ask for."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from steadmesh.kernel.clock import TurnedClock
from steadmesh.kernel.database import Database, open_database
from steadmesh.kernel.database.migrations import migrate
from steadmesh.service.assembly import FAMILIES, FEATURES
from steadmesh.tools import Catalogue
from tests.support.postgres import (
    TestRun,
    clone_database,
    drop_database,
    make_template,
    postgres_server,
)

# The machine that runs the tests is shared: how long one example takes says nothing.
hypothesis.settings.register_profile("steadmesh", deadline=None, database=None)
hypothesis.settings.load_profile("steadmesh")

_RUN_DIR = "steadmesh_run_dir"
_run_dir = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """One folder per run: the process that pytest was started as makes it and removes it."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        config.stash[_run_dir] = Path(worker[_RUN_DIR])
        return
    run = TestRun()
    config.stash[_run_dir] = run.folder
    config.add_cleanup(run.end)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist which run it belongs to."""
    node.workerinput[_RUN_DIR] = str(node.config.stash[_run_dir])


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> str:
    """URL of the run's PostgreSQL server (its `postgres` database)."""
    return postgres_server(pytestconfig.stash[_run_dir])


@pytest.fixture(scope="session")
def postgres_template(postgres: str) -> str:
    """Name of the database that `postgres_url` clones: an empty one."""
    make_template(postgres, "empty", lambda url: None)
    return "empty"


@pytest.fixture
def postgres_url(postgres: str, postgres_template: str) -> Iterator[str]:
    """URL of a database of the test's own on PostgreSQL."""
    name = f"test_{uuid.uuid4().hex}"
    yield clone_database(postgres, postgres_template, name)
    drop_database(postgres, name)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each database engine in turn."""
    return str(request.param)


@pytest.fixture
def place(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database of the engine is: a path, or a URL."""
    if engine == "sqlite":
        return str(tmp_path / "steadmesh.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    """An empty database, on each engine in turn."""
    opened = open_database(place)
    yield opened
    opened.close()


def _migrate(place: str | Path) -> None:
    """The whole product's schema, once for all the tests of a process."""
    packages = Catalogue(FAMILIES, FEATURES).packages
    database = open_database(place)
    migrate(database, packages, TurnedClock())
    database.close()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the product's schema, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "steadmesh.db"
    _migrate(file)
    return file


@pytest.fixture(scope="session")
def migrated_template(postgres: str) -> str:
    """A PostgreSQL database with the product's schema, to be cloned."""
    make_template(postgres, "migrated", _migrate)
    return "migrated"


@pytest.fixture
def migrated_url(postgres: str, migrated_template: str) -> Iterator[str]:
    """URL of a database of the test's own on PostgreSQL, with the product's schema."""
    name = f"test_{uuid.uuid4().hex}"
    yield clone_database(postgres, migrated_template, name)
    drop_database(postgres, name)


@pytest.fixture
def product(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the product's schema, on each engine in turn."""
    if engine == "sqlite":
        file = tmp_path / "steadmesh.db"
        shutil.copy(request.getfixturevalue("migrated_file"), file)
        opened = open_database(file)
    else:
        opened = open_database(request.getfixturevalue("migrated_url"))
    yield opened
    opened.close()
