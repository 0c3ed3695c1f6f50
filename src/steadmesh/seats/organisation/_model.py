"""The resolved organisation: what the platform stores and works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadmesh.seats.organisation._declared import (
    GithubAccess,
    ModelService,
    ModelUse,
    NetworkRule,
    SharedWorkspace,
    WorkPublication,
)

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction bundle of a seat.

    `scope` says where it comes from: `organisation`, `team:<key>`, `role` or `seat`; `order`
    counts from 1.
    """

    ref: str
    scope: str
    order: int


@dataclass(frozen=True, slots=True)
class Capability:
    """What a seat may do with one resource.

    An operation without an entry in `targets` is not restricted. `sources` say where it comes
    from, such as `grant:<key>`.
    """

    resource: str
    operations: Texts
    targets: Mapping[str, Texts]
    sources: Texts


Manifest = tuple[Capability, ...]


@dataclass(frozen=True, slots=True)
class Recipient:
    """The other end of a seat's routes.

    `can_reply` is whether the one that is written to may answer in the conversation that the
    other opened; `routes` are the names of the routes that say so.
    """

    seat: str
    can_reply: bool
    routes: Texts


@dataclass(frozen=True, slots=True)
class Harness:
    """The agent program of a seat, from its harness profile. The model's API is settled."""

    profile: str
    adapter: str
    image_digest: str
    model: ModelUse | None
    required_capabilities: Texts
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Execution:
    """How a seat's processes run. `idle_timeout` in seconds; amounts as they were written."""

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
    """What must be enforced around a seat's processes, what is always enforced included."""

    profile: str
    network_policy_ref: str
    filesystem_policy_ref: str
    runtime_class: str
    required_enforcement: Texts


@dataclass(frozen=True, slots=True)
class SeatWorkspace:
    """A seat's workspace and the shared ones it mounts, by name."""

    persistent: bool
    shared: Mapping[str, SharedWorkspace]


@dataclass(frozen=True, slots=True)
class Access:
    """What a seat may reach beside the platform: its own and its teams' profiles united."""

    profiles: Texts
    binaries: Texts
    hosts: Texts
    rules: tuple[NetworkRule, ...]
    github: Mapping[str, GithubAccess]
    browser_sessions: Texts


@dataclass(frozen=True, slots=True)
class Store:
    """A memory store. `personal_of` is the key of the seat that owns it, None when shared."""

    key: str
    retention: str
    personal_of: str | None
    backing_class: str
    capacity_mb: int | None


@dataclass(frozen=True, slots=True)
class Team:
    """A team, its templates written out; `lineage` names them, base first, for display."""

    key: str
    lineage: Texts
    instruction_refs: Texts
    shared_memory: Mapping[str, Texts]
    parameters: Mapping[str, Any]
    access_profiles: Texts
    members: Texts


@dataclass(frozen=True, slots=True)
class Connection:
    """An outside system. `model` is set for model connections, with its defaults filled in."""

    key: str
    adapter: str
    kind: str
    account_id: str
    endpoint_ref: str
    secret_ref: str
    required: bool
    config: Mapping[str, Any]
    model: ModelService | None


@dataclass(frozen=True, slots=True)
class Binding:
    """One person on one communication connection, represented by one seat."""

    key: str
    connection: str
    external_user_id: str
    seat: str
    timezone: str | None
    mode: str


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat with everything resolved. Which fields make which revision: see `_revisions`."""

    key: str
    display_name: str
    teams: Texts
    lineage: Mapping[str, Texts]
    role_ref: str
    instructions: tuple[Instruction, ...]
    harness: Harness
    execution: Execution
    sandbox: Sandbox
    workspace: SeatWorkspace
    personal_memory: str | None
    access: Access
    timezone: str
    bindings: Texts
    manifest: Manifest
    recipients: tuple[Recipient, ...]
    senders: tuple[Recipient, ...]
    adopt_from: str | None
    config_revision: str
    policy_digest: str

    @property
    def is_representative(self) -> bool:
        """Whether the seat represents a person."""
        return bool(self.bindings)


@dataclass(frozen=True, slots=True)
class Organisation:
    """A valid organisation file, resolved.

    `resolved` is a file itself, its templates written out and what equals its default left out;
    compiling it gives the same digest and revisions. `references` maps each instruction
    reference to the path where the file names it.
    """

    key: str
    display_name: str
    timezone: str
    data_retention: str
    digest: str
    resolved: dict[str, Any]
    teams: Mapping[str, Team]
    stores: Mapping[str, Store]
    connections: Mapping[str, Connection]
    bindings: Mapping[str, Binding]
    shared_workspaces: Mapping[str, SharedWorkspace]
    harness_profiles: Mapping[str, Harness]
    execution_profiles: Mapping[str, Execution]
    sandbox_profiles: Mapping[str, Sandbox]
    work_publication: WorkPublication | None
    references: Mapping[str, str]
    seats: Mapping[str, Seat]
