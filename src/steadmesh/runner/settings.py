"""How a runner is told what to run: its environment, read once and checked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steadmesh.kernel import durations

DEFAULT_HARNESS = "fake"

MACHINE_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""All that a seat's programs get of the machine's environment. By name, never by pattern."""


class SettingsError(Exception):
    """The environment does not say what to run; the text names every variable at fault."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Every duration of a runner, in seconds; each can be set by `STEADMESH_RUNNER_<NAME>`."""

    acquire_timeout: float = 180.0
    """Give up when the lease is held elsewhere for this long."""
    acquire_retry: float = 2.0
    bootstrap_timeout: float = 120.0
    renew_interval: float = 10.0
    """Never more than a third of the lease's life."""
    poll_wait: float = 25.0
    turn_limit: float = 1_200.0
    quiesce_limit: float = 240.0
    """How long a running turn may go on after the runner was told to stop."""
    stop_grace: float = 10.0
    """How long a harness may take to end before it is killed."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """One seat on one machine."""

    addresses: tuple[str, ...]
    token_file: Path
    organization_id: str
    seat_id: str
    seat_key: str
    config_revision: str
    harness: str
    manifest_dir: Path
    workspace_dir: Path
    home_dir: Path
    runner_dir: Path
    tools_bin: str
    health_address: str | None
    limits: Limits

    @property
    def run_dir(self) -> Path:
        """This start's own folder; the token file was laid there by who started us."""
        return self.token_file.parent


def read_settings(environment: Mapping[str, str]) -> RunnerSettings:
    """The settings in an environment. Raises SettingsError, naming all that is wrong."""
    problems: list[str] = []

    def needed(name: str) -> str:
        value = environment.get(name, "")
        if not value:
            problems.append(f"{name} is not set")
        return value

    url = environment.get("STEADMESH_PLATFORM_URL") or environment.get("STEADMESH_URL") or ""
    addresses = tuple(part.strip() for part in url.split(",") if part.strip())
    if not addresses:
        problems.append("STEADMESH_PLATFORM_URL is not set")
    settings = RunnerSettings(
        addresses=addresses,
        token_file=Path(needed("STEADMESH_TOKEN_FILE")),
        organization_id=environment.get("STEADMESH_ORG_ID", ""),
        seat_id=needed("STEADMESH_SEAT_ID"),
        seat_key=needed("STEADMESH_SEAT_KEY"),
        config_revision=environment.get("STEADMESH_CONFIG_REVISION", ""),
        harness=environment.get("STEADMESH_HARNESS") or DEFAULT_HARNESS,
        manifest_dir=Path(needed("STEADMESH_MANIFEST_DIR")),
        workspace_dir=Path(needed("STEADMESH_WORKSPACE_DIR")),
        home_dir=Path(needed("STEADMESH_HOME_DIR")),
        runner_dir=Path(needed("STEADMESH_RUNNER_DIR")),
        tools_bin=find_tools(environment),
        health_address=environment.get("STEADMESH_HEALTH_ADDR") or None,
        limits=_limits(environment, problems),
    )
    if problems:
        raise SettingsError("; ".join(problems))
    return settings


def find_tools(environment: Mapping[str, str]) -> str:
    """The tool client: `STEADMESH_TOOLS_BIN`, or the one installed with this program."""
    named = environment.get("STEADMESH_TOOLS_BIN")
    if named:
        return named
    beside = Path(sys.executable).with_name("steadmesh-tools")
    if beside.exists():
        return str(beside)
    return shutil.which("steadmesh-tools", path=environment.get("PATH")) or str(beside)


def machine_environment(
    environment: Mapping[str, str], *, also: Iterable[str] = ()
) -> dict[str, str]:
    """What of this process's environment a seat's programs may have."""
    names = (*MACHINE_VARIABLES, *also)
    return {name: environment[name] for name in names if name in environment}


def seat_environment(
    settings: RunnerSettings, machine: Mapping[str, str], *, also: Iterable[str] = ()
) -> dict[str, str]:
    """The whole environment of a seat's programs: the seat's files by name, no secret itself."""
    return {
        **machine_environment(machine, also=also),
        "HOME": str(settings.home_dir),
        "STEADMESH_PLATFORM_URL": ",".join(settings.addresses),
        "STEADMESH_TOKEN_FILE": str(settings.token_file),
        "STEADMESH_GENERATION_FILE": str(settings.run_dir / "generation"),
        "STEADMESH_EXECUTION_FILE": str(settings.run_dir / "execution"),
        "STEADMESH_ORG_ID": settings.organization_id,
        "STEADMESH_SEAT_ID": settings.seat_id,
        "STEADMESH_SEAT_KEY": settings.seat_key,
        "STEADMESH_CONFIG_REVISION": settings.config_revision,
        "STEADMESH_HARNESS": settings.harness,
        "STEADMESH_MANIFEST_DIR": str(settings.manifest_dir),
        "STEADMESH_WORKSPACE_DIR": str(settings.workspace_dir),
        "STEADMESH_HOME_DIR": str(settings.home_dir),
        "STEADMESH_RUNNER_DIR": str(settings.runner_dir),
        "STEADMESH_TOOLS_BIN": settings.tools_bin,
    }


def limit_variables() -> tuple[str, ...]:
    """The names by which the durations of a runner can be set."""
    return tuple(f"STEADMESH_RUNNER_{name.upper()}" for name in Limits.__dataclass_fields__)


def _limits(environment: Mapping[str, str], problems: list[str]) -> Limits:
    given: dict[str, float] = {}
    for name in Limits.__dataclass_fields__:
        variable = f"STEADMESH_RUNNER_{name.upper()}"
        text = environment.get(variable)
        if text:
            try:
                given[name] = durations.parse(text) / durations.SECOND
            except ValueError as error:
                problems.append(f"{variable}: {error}")
    return Limits(**given)


def is_program(path: str) -> bool:
    """Whether `path` names a file that can be run."""
    return os.path.isfile(path) and os.access(path, os.X_OK)
