"""What a seat may do: its capabilities, and the routes between seats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steadmesh.seats.organisation._adapters import (
    MEMORY_OPERATIONS,
    repository_operations,
)
from steadmesh.seats.organisation._declared import Declaration, GithubAccess
from steadmesh.seats.organisation._model import Capability, Recipient


class _Collected:
    """What the grants and implicit rights say of one resource."""

    def __init__(self) -> None:
        self.operations: set[str] = set()
        self.targets: dict[str, set[str]] = {}
        self.sources: set[str] = set()


class Manifest:
    """Collects capabilities; one entry for each resource, sorted, without duplicates."""

    def __init__(self) -> None:
        self._by_resource: dict[str, _Collected] = {}

    def add(
        self,
        resource: str,
        operations: Iterable[str],
        *,
        source: str,
        targets: Iterable[str] | None = None,
    ) -> None:
        """Allow operations. A target given once restricts the operation for good: targets only
        add up, and there is no marker for "any"."""
        entry = self._by_resource.setdefault(resource, _Collected())
        entry.sources.add(source)
        for operation in operations:
            entry.operations.add(operation)
            if targets is not None:
                entry.targets.setdefault(operation, set()).update(targets)

    def capabilities(self) -> tuple[Capability, ...]:
        return tuple(
            Capability(
                resource=resource,
                operations=tuple(sorted(entry.operations)),
                targets={op: tuple(sorted(t)) for op, t in sorted(entry.targets.items())},
                sources=tuple(sorted(entry.sources)),
            )
            for resource, entry in sorted(self._by_resource.items())
        )


def manifest_of(
    declaration: Declaration, key: str, shared_memory: Mapping[str, Mapping[str, Iterable[str]]]
) -> tuple[Capability, ...]:
    """The capability manifest of a seat. `shared_memory`: team → store → operations, resolved."""
    seat = declaration.seats[key]
    manifest = Manifest()
    if seat.personal_memory:
        resource = f"memory:{seat.personal_memory}"
        manifest.add(resource, MEMORY_OPERATIONS, source="implicit:personal_memory")
    model = declaration.harness_profiles[seat.harness_profile].model
    if model is not None:
        resource = f"connection:{model.connection}"
        manifest.add(resource, ["model.infer"], source="implicit:harness_model")
    for name, binding in declaration.channel_bindings.items():
        if binding.seat == key:
            manifest.add(
                f"connection:{binding.connection}",
                ["channel.reply"],
                source=f"implicit:channel_binding/{name}",
                targets=[binding.external_user_id],
            )
    for team in seat.teams:
        for store, operations in shared_memory[team].items():
            manifest.add(f"memory:{store}", operations, source=f"team:{team}/shared_memory")
    for name, github in _github_access(declaration, key).items():
        operations = repository_operations(github.permissions)
        manifest.add(
            f"connection:{github.connection}",
            operations,
            source=f"implicit:access_profile:{name}",
            targets=github.repos,
        )
    subjects = {f"seat:{key}", *(f"team:{team}" for team in seat.teams)}
    for name, grant in declaration.grants.items():
        if grant.subject in subjects:
            manifest.add(
                grant.resource, grant.operations, source=f"grant:{name}", targets=grant.targets
            )
    return manifest.capabilities()


def access_names(declaration: Declaration, key: str) -> tuple[str, ...]:
    """The access profiles of a seat: its own and its teams', sorted."""
    seat = declaration.seats[key]
    names = set(seat.access_profiles)
    for team in seat.teams:
        names |= set(declaration.teams[team].access_profiles)
    return tuple(sorted(names))


def _github_access(declaration: Declaration, key: str) -> dict[str, GithubAccess]:
    profiles = declaration.access_profiles
    return {
        name: github
        for name in access_names(declaration, key)
        if (github := profiles[name].github) is not None
    }


Routes = dict[tuple[str, str], tuple[bool, set[str]]]


def routes(declaration: Declaration) -> Routes:
    """From and to → whether a reply is allowed, and the names of the routes that merged."""
    members: dict[str, list[str]] = {f"seat:{key}": [key] for key in declaration.seats}
    for key, seat in declaration.seats.items():
        for team in seat.teams:
            members.setdefault(f"team:{team}", []).append(key)
    merged: Routes = {}

    def add(source: str, target: str, name: str, *, reply: bool) -> None:
        if source != target:
            known, names = merged.get((source, target), (False, set()))
            merged[source, target] = (known or reply, names | {name})

    for name, route in declaration.message_routes.items():
        for source in members.get(route.from_, ()):
            for target in members.get(route.to, ()):
                add(source, target, name, reply=route.reply or route.bidirectional)
                if route.bidirectional:
                    add(target, source, name, reply=True)
    return merged


def ends_of(merged: Routes, key: str) -> tuple[tuple[Recipient, ...], tuple[Recipient, ...]]:
    """The seats that a seat may write to, and those that may write to it."""
    recipients = []
    senders = []
    for (source, target), (reply, names) in sorted(merged.items()):
        if source == key:
            recipients.append(Recipient(target, reply, tuple(sorted(names))))
        if target == key:
            senders.append(Recipient(source, reply, tuple(sorted(names))))
    return tuple(recipients), tuple(senders)


def allowed(
    manifest: Iterable[Capability], resource: str, operation: str, targets_named: Iterable[str] = ()
) -> bool:
    """Whether an operation on a resource is allowed, acting on what was named.

    Without targets it is unrestricted. Otherwise everything named must match an entry (exact, `*`,
    or a prefix that ends in `*`), and naming nothing never matches.
    """
    for capability in manifest:
        if capability.resource == resource and operation in capability.operations:
            limits = capability.targets.get(operation)
            named = list(targets_named)
            if limits is None:
                return True
            return bool(named) and all(any(_matches(n, limit) for limit in limits) for n in named)
    return False


def _matches(name: str, limit: str) -> bool:
    return name.startswith(limit[:-1]) if limit.endswith("*") else name == limit
