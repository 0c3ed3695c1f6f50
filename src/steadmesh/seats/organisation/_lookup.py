"""Looking up what a field refers to, and saying so when it is not there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from steadmesh.seats.organisation._declared import Declaration
from steadmesh.seats.organisation._problems import Report, listed, quoted

_SHOWN = 10

_NOUNS = {
    "team_templates": "team template",
    "teams": "team",
    "memory_stores": "memory store",
    "shared_workspaces": "shared workspace",
    "harness_profiles": "harness profile",
    "execution_profiles": "execution profile",
    "sandbox_profiles": "sandbox profile",
    "access_profiles": "access profile",
    "connections": "connection",
    "seats": "seat",
}
_MAP_OF_KIND = {
    "seat": "seats",
    "team": "teams",
    "memory": "memory_stores",
    "connection": "connections",
    "workspace": "shared_workspaces",
}


class Lookup:
    """The keys that the file declares, map by map."""

    def __init__(self, declaration: Declaration, data: Mapping[str, Any], report: Report) -> None:
        self.report = report
        self._keys: dict[str, Collection[str]] = {
            name: getattr(declaration, name) for name in _NOUNS
        }
        # A map that is no map is reported as that; everything that refers into it may be right.
        self._unreadable = {
            name for name in _NOUNS if not isinstance(data.get(name), Mapping | None)
        }

    def finds(self, path: str, name: str, key: str, *, at: str | None = None) -> bool:
        """Whether the map `name` declares `key`; reported at `path` when it does not."""
        if not key:
            return False
        keys = self._keys[name]
        if key in keys:
            return True
        if name not in self._unreadable:
            noun = _NOUNS[name]
            self.report.add(path, f"unknown {noun} {quoted(key)}.{self._advice(key, keys)}", at=at)
        return False

    def finds_pointer(self, path: str, pointer: str) -> bool:
        """The same for a subject or a resource, such as `seat:lead`."""
        kind, _, key = pointer.partition(":")
        return bool(pointer) and self.finds(path, _MAP_OF_KIND[kind], key)

    def _advice(self, key: str, keys: Collection[str]) -> str:
        near = self.report.hint(key, keys)
        if near:
            return near
        if not keys:
            return " None is declared."
        shown = sorted(keys)[:_SHOWN]
        return f" Declared are {listed(shown)}{', …' if len(keys) > _SHOWN else ''}."
