"""An organisation as it is in force: templates written out, teams expanded, rights computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadmesh.seats.organisation._adapters import Kind

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One entry of a seat's instruction list. `scope`: organisation, team:<key>, role or seat."""

    ref: str
    scope: str
    order: int


@dataclass(frozen=True, slots=True)
class Harness:
    """The agent program of a seat."""

    profile: str
    adapter: str
    image_digest: str
    model: Mapping[str, Any] | None
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Execution:
    """How a seat's processes are run. `idle_timeout` is in seconds."""

    profile: str
    backend: str
    service_class: str
    idle_policy: str
    idle_timeout: float
    cpu_request: str
    cpu_limit: str
    memory_request: str
    memory_limit: str
    workspace_size_gb: int
    required_features: Texts


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What must be enforced around a seat; `required_enforcement` holds what is always asked for."""

    profile: str
    network_policy_ref: str
    filesystem_policy_ref: str
    runtime_class: str
    required_enforcement: Texts


@dataclass(frozen=True, slots=True)
class Capability:
    """The operations on one resource, the targets that some are limited to, and why they are there."""

    resource: str
    operations: Texts
    targets: Mapping[str, Texts]
    sources: Texts


@dataclass(frozen=True, slots=True)
class Recipient:
    """The other end of a route, whether a reply may come back, and the routes that say so."""

    seat: str
    can_reply: bool
    routes: Texts


@dataclass(frozen=True, slots=True)
class Access:
    """The united access profiles of a seat and its teams."""

    binaries: Texts = ()
    hosts: Texts = ()
    network: tuple[Mapping[str, Any], ...] = ()
    github: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    browser_sessions: Texts = ()


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat with everything that follows from the file."""

    key: str
    display_name: str
    teams: Texts
    team_lineage: Mapping[str, Texts]
    role_ref: str
    instructions: tuple[Instruction, ...]
    harness: Harness
    execution: Execution
    sandbox: Sandbox
    workspace_persistent: bool
    shared_workspaces: Texts
    personal_memory: str | None
    access: Access
    timezone: str
    bindings: Texts
    manifest: tuple[Capability, ...]
    recipients: tuple[Recipient, ...]
    senders: tuple[Recipient, ...]
    adopt_from: str | None
    config_revision: str
    policy_digest: str


@dataclass(frozen=True, slots=True)
class Store:
    """A memory store."""

    key: str
    retention: str
    personal_of: str | None


@dataclass(frozen=True, slots=True)
class Connection:
    """An outside system."""

    key: str
    adapter: str
    kind: Kind
    account_id: str
    endpoint_ref: str
    secret_ref: str
    required: bool
    config: Mapping[str, Any]
    model: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Binding:
    """A person on a communication connection, and the seat that represents her."""

    key: str
    connection: str
    external_user_id: str
    seat: str
    mode: str
    timezone: str | None


@dataclass(frozen=True, slots=True)
class Organisation:
    """A valid file, resolved. `resolved` is itself a valid file, which compiles to the same."""

    key: str
    display_name: str
    timezone: str
    data_retention: str
    digest: str
    resolved: dict[str, Any]
    stores: Mapping[str, Store]
    connections: Mapping[str, Connection]
    bindings: Mapping[str, Binding]
    seats: Mapping[str, Seat]
    work_publication: Mapping[str, Any] | None
