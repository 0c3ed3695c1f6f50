"""The program `steadmesh-runner`: what it says of itself, its settings, its health."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from steadmesh import __version__
from steadmesh.runner.health import HealthEndpoint
from steadmesh.runner.settings import Limits, SettingsError, find_tools, read_settings

PROGRAM = Path(sys.executable).with_name("steadmesh-runner")

ENVIRONMENT = {
    "STEADMESH_PLATFORM_URL": "http://127.0.0.1:1, unix:/tmp/x.sock",
    "STEADMESH_TOKEN_FILE": "/runs/i-1/token",
    "STEADMESH_SEAT_ID": "s-1",
    "STEADMESH_SEAT_KEY": "builder",
    "STEADMESH_MANIFEST_DIR": "/m",
    "STEADMESH_WORKSPACE_DIR": "/w",
    "STEADMESH_HOME_DIR": "/h",
    "STEADMESH_RUNNER_DIR": "/r",
}


def program(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *arguments],
        env=dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_it_says_its_version_and_how_it_is_used() -> None:
    assert program("--version").stdout == f"steadmesh-runner {__version__}\n"
    usage = program("--help")
    assert usage.returncode == 0
    for name in ENVIRONMENT:
        assert name in usage.stdout
    for name in Limits.__dataclass_fields__:
        assert f"_{name.upper()}" in usage.stdout


def test_arguments_are_refused() -> None:
    answer = program("--fast")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "takes no arguments, but got: --fast" in answer.stderr


def test_everything_that_is_missing_is_named_at_once() -> None:
    answer = program()
    assert answer.returncode == 1
    for name in ENVIRONMENT:
        assert f"{name} is not set" in answer.stderr


def test_an_unknown_adapter_is_a_start_failure(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    environment = {
        **ENVIRONMENT,
        "STEADMESH_RUNNER_DIR": str(tmp_path),
        "STEADMESH_TOKEN_FILE": str(run / "token"),
        "STEADMESH_HARNESS": "codex",
    }
    answer = program(environment=environment)
    assert answer.returncode == 1
    assert answer.stderr == "steadmesh-runner: adapter codex is not available in this version\n"


def test_settings_are_read_from_the_environment() -> None:
    settings = read_settings({**ENVIRONMENT, "STEADMESH_RUNNER_QUIESCE_LIMIT": "1m30s"})
    assert settings.addresses == ("http://127.0.0.1:1", "unix:/tmp/x.sock")
    assert settings.run_dir == Path("/runs/i-1")
    assert settings.harness == "fake"
    assert settings.limits == Limits(quiesce_limit=90.0)


def test_the_operators_name_for_the_address_is_good_enough() -> None:
    environment = dict(ENVIRONMENT)
    environment["STEADMESH_URL"] = environment.pop("STEADMESH_PLATFORM_URL")
    assert read_settings(environment).addresses[0] == "http://127.0.0.1:1"


def test_a_bad_duration_is_named() -> None:
    with pytest.raises(SettingsError, match="STEADMESH_RUNNER_TURN_LIMIT: a duration is"):
        read_settings({**ENVIRONMENT, "STEADMESH_RUNNER_TURN_LIMIT": "soon"})


def test_the_tool_client_is_the_one_installed_with_us() -> None:
    assert find_tools({}) == str(Path(sys.executable).with_name("steadmesh-tools"))
    assert find_tools({"STEADMESH_TOOLS_BIN": "/opt/tools"}) == "/opt/tools"


def _status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_health_is_yes_and_readiness_when_the_seat_is_up() -> None:
    ready = False
    health = HealthEndpoint("127.0.0.1:0", is_ready=lambda: ready)
    try:
        assert _status(health.port, "/healthz") == 200
        assert _status(health.port, "/readyz") == 503
        assert _status(health.port, "/other") == 404
        ready = True
        assert _status(health.port, "/readyz") == 200
    finally:
        health.close()


def test_the_runner_imports_little() -> None:
    """It starts for every message to a stopped seat, so nothing heavy may creep in."""
    script = (
        "import sys, steadmesh.runner.main, steadmesh.runner.harness.fake\n"
        "heavy = {'pydantic', 'httpx2', 'mcp', 'starlette', 'psycopg', 'apsw', 'http', 'ssl',"
        " 'asyncio', 'typer', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True
    )
    assert answer.stdout == "[]\n"
