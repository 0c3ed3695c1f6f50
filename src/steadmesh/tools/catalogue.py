"""The two plain lists: features, and the tools in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Transaction
from steadmesh.kernel.errors import NotFound
from steadmesh.kernel.jobs import Job
from steadmesh.kernel.trimming import Trimming
from steadmesh.tools.call import Call, Caller, Credentials
from steadmesh.tools.tool import Tool


class UnknownTool(NotFound):
    """There is no tool named {name}. `GET /v1/tools` and `steadmesh-tools list` show those you can use."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is read from the database whenever metrics are asked for."""

    name: str
    help: str
    read: Callable[[Transaction, Instant], Iterable[tuple[Sequence[str], float]]]
    """Values of the labels, and the number; for each series."""
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Feature:
    """What a folder of a feature offers. `package` is where its migrations lie."""

    package: str
    tools: Sequence[Tool] = ()
    endpoints: Sequence[Tool] = ()
    jobs: Sequence[Job] = ()
    gauges: Sequence[Gauge] = ()
    trimmings: Sequence[Trimming] = ()
    """How its tables are kept small."""


@dataclass(frozen=True, slots=True)
class Family:
    """How one kind of caller comes in. All functions raise a `Failure` to refuse."""

    name: str
    authenticate: Callable[[Transaction, Credentials, Instant], Caller]
    """Who is this? One statement."""
    admit: Callable[[Any, Tool, Credentials], None]
    """What the credentials alone decide, before the arguments are read."""
    confirm: Callable[[Call[Any]], None]
    """Under the locks: is what was read of the caller before the transaction still so?"""
    locks: Callable[[Any, Tool], Locks]
    """What each writing call of the family holds, besides its own locks."""
    judge: Callable[[Call[Any]], None] = lambda call: None
    """Right before the handler: may this caller still do what the call says, as it stands now?"""
    cap: int = 16_384
    """Bytes of a result."""


class Catalogue:
    """Every tool of the product by name, and every family."""

    def __init__(self, families: Sequence[Family], features: Sequence[Feature]) -> None:
        self.families = {family.name: family for family in families}
        self.features = tuple(features)
        self.tools: dict[str, Tool] = {}
        self.endpoints: list[Tool] = []
        for feature in features:
            for declared in feature.tools:
                self._add(declared)
            self.endpoints.extend(feature.endpoints)
        self._by_any_name = dict(self.tools)
        for declared in self.tools.values():
            self._by_any_name.setdefault(declared.mcp_name, declared)

    def find(self, name: str, *, family: str | None = None) -> Tool:
        """A tool by its name, dotted or as MCP writes it; the other family's names are unknown."""
        found = self._by_any_name.get(name)
        if found is None or (family is not None and found.family != family):
            raise UnknownTool(name=name)
        return found

    def visible_to(self, caller: Caller, family: str) -> list[Tool]:
        """What a caller sees, in the order of declaration."""
        return [t for t in self.tools.values() if t.family == family and t.visible(caller)]

    @property
    def packages(self) -> list[str]:
        """Where migrations lie, in their order."""
        return ["steadmesh.kernel", "steadmesh.tools", *(f.package for f in self.features)]

    @property
    def gauges(self) -> list[Gauge]:
        return [gauge for feature in self.features for gauge in feature.gauges]

    @property
    def jobs(self) -> list[Job]:
        return [job for feature in self.features for job in feature.jobs]

    @property
    def trimmings(self) -> list[Trimming]:
        return [trimming for feature in self.features for trimming in feature.trimmings]

    def _add(self, declared: Tool) -> None:
        if declared.name in self.tools:
            raise ValueError(f"two tools are called {declared.name}")
        self.tools[declared.name] = declared
