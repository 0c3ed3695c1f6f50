"""Which path leads where. Paths are matched as they were sent, so an escaped slash stays in its part."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")

_NAME = re.compile(r"\{([a-z_]+)\}")


@dataclass(slots=True)
class _Route(Generic[T]):
    template: str
    pattern: re.Pattern[bytes]
    targets: dict[str, T] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """What a path leads to: by method, the values of the names in braces, the path as declared."""

    template: str
    targets: dict[str, T]
    values: dict[str, str]

    @property
    def allowed(self) -> str:
        """The methods, as the header `Allow` has them."""
        return ", ".join(sorted(self.targets))


class Routes(Generic[T]):
    """Paths such as `/v1/inbox/{delivery}/ack`, each with a target per method."""

    def __init__(self, declared: Iterable[tuple[str, str, T]]) -> None:
        """Takes (method, path, target). Raises ValueError for a route that is declared twice."""
        self._exact: dict[bytes, Match[T]] = {}
        self._patterns: dict[int, list[_Route[T]]] = {}
        by_path: dict[str, dict[str, T]] = {}
        for method, path, target in declared:
            targets = by_path.setdefault(path, {})
            if method in targets:
                raise ValueError(f"two endpoints are {method} {path}")
            targets[method] = target
        for path, targets in by_path.items():
            if "{" not in path:
                self._exact[path.encode()] = Match(path, targets, {})
                continue
            route = _Route(path, _compiled(path), targets)
            self._patterns.setdefault(path.count("/"), []).append(route)
        for routes in self._patterns.values():
            # `/seats/{seat}:suspend` before `/seats/{seat}`: the one that says more.
            routes.sort(key=lambda route: -len(_NAME.sub("", route.template)))

    def find(self, path: bytes) -> Match[T] | None:
        """Where a path leads, if it leads anywhere."""
        found = self._exact.get(path)
        if found is not None:
            return found
        for route in self._patterns.get(path.count(b"/"), ()):
            match = route.pattern.fullmatch(path)
            if match is not None:
                values = {name: unescaped(value) for name, value in match.groupdict().items()}
                return Match(route.template, route.targets, values)
        return None


def unescaped(part: bytes) -> str:
    """One part of a path as text; what is not UTF-8 names nothing, and is marked as such."""
    return (unquote_to_bytes(part) if b"%" in part else part).decode(errors="replace")


def _compiled(template: str) -> re.Pattern[bytes]:
    parts = _NAME.split(template)
    literals = [re.escape(part) for part in parts[::2]]
    pattern = literals[0]
    for name, literal in zip(parts[1::2], literals[1:], strict=True):
        pattern += rf"(?P<{name}>[^/]+){literal}"
    return re.compile(pattern.encode())
