"""What a seat may do: the capability manifest, and how a call is judged by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steadmesh.seats.organisation._adapters import MEMORY_OPERATIONS, repository_operations
from steadmesh.seats.organisation._declared import Declaration, Grant
from steadmesh.seats.organisation._model import Capability, Manifest
from steadmesh.seats.organisation._resolve import unique


class _Collector:
    """Unites what several sources add, resource by resource."""

    def __init__(self) -> None:
        self._operations: dict[str, set[str]] = {}
        self._targets: dict[str, dict[str, set[str]]] = {}
        self._sources: dict[str, set[str]] = {}

    def add(
        self,
        resource: str,
        operations: Iterable[str],
        source: str,
        *,
        targets: Iterable[str] | None = None,
    ) -> None:
        added = set(operations)
        if not added:
            return
        self._operations.setdefault(resource, set()).update(added)
        self._sources.setdefault(resource, set()).add(source)
        # Granted once with and once without targets, an operation stays restricted.
        for operation in added if targets is not None else ():
            kept = self._targets.setdefault(resource, {}).setdefault(operation, set())
            kept.update(targets or ())

    def manifest(self) -> Manifest:
        return tuple(
            Capability(
                resource=resource,
                operations=unique(self._operations[resource]),
                targets={
                    operation: unique(targets)
                    for operation, targets in sorted(self._targets.get(resource, {}).items())
                },
                sources=unique(self._sources[resource]),
            )
            for resource in sorted(self._operations)
        )


def manifest_of(
    declaration: Declaration, key: str, grants: Mapping[str, Grant], profiles: tuple[str, ...]
) -> Manifest:
    """The manifest of a seat of a resolved declaration.

    `grants` are those whose subject includes the seat, `profiles` its access profiles and its
    teams'.
    """
    seat = declaration.seats[key]
    found = _Collector()
    if seat.personal_memory:
        store = f"memory:{seat.personal_memory}"
        found.add(store, MEMORY_OPERATIONS, "implicit:personal_memory")
    model = declaration.harness_profiles[seat.harness_profile].model
    if model:
        found.add(f"connection:{model.connection}", ("model.infer",), "implicit:harness_model")
    for name, binding in declaration.channel_bindings.items():
        if binding.seat == key:
            source = f"implicit:channel_binding/{name}"
            targets = (binding.external_user_id,)
            found.add(
                f"connection:{binding.connection}", ("channel.reply",), source, targets=targets
            )
    for name in profiles:
        github = declaration.access_profiles[name].github
        if github:
            operations = repository_operations(github.permissions)
            source = f"implicit:access_profile:{name}"
            found.add(f"connection:{github.connection}", operations, source, targets=github.repos)
    for team in seat.teams:
        for shared, operations_there in declaration.teams[team].shared_memory.items():
            found.add(f"memory:{shared}", operations_there, f"team:{team}/shared_memory")
    for name, grant in grants.items():
        found.add(grant.resource, grant.operations, f"grant:{name}", targets=grant.targets)
    return found.manifest()


def allowed(
    manifest: Iterable[Capability],
    resource: str,
    operation: str,
    targets_named: Iterable[str] = (),
) -> bool:
    """Whether a seat with this manifest may do that.

    `targets_named` is all that the call acts on. For an operation granted with targets every one
    must match, and a call that names none is refused.
    """
    for capability in manifest:
        if capability.resource == resource and operation in capability.operations:
            patterns = capability.targets.get(operation)
            if patterns is None:
                return True
            named = tuple(targets_named)
            return bool(named) and all(_matches(patterns, target) for target in named)
    return False


def _matches(patterns: Iterable[str], target: str) -> bool:
    """Exact, `*`, or a prefix that ends in `*`."""
    return any(
        target.startswith(pattern[:-1]) if pattern.endswith("*") else target == pattern
        for pattern in patterns
    )


def manifest_as_data(manifest: Iterable[Capability]) -> list[dict[str, Any]]:
    """The manifest as JSON values."""
    return [
        {
            "resource": capability.resource,
            "operations": list(capability.operations),
            "targets": {name: list(targets) for name, targets in capability.targets.items()},
            "sources": list(capability.sources),
        }
        for capability in manifest
    ]
