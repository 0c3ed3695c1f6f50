"""The records of an organisation file, as declared: typed, with the defaults of the file.

A required text that could not be read is empty. Empty also means "not given" for optional ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """Reusable material of teams; gone in the resolved file."""

    extends: str = ""
    instruction_refs: Texts = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    shared_memory: Mapping[str, Texts] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Team:
    """A team. `template_lineage` (base first) stands in resolved files in place of `template`."""

    template: str = ""
    template_lineage: Texts = ()
    instruction_refs: Texts = ()
    shared_memory: Mapping[str, Texts] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    access_profiles: Texts = ()


@dataclass(frozen=True, slots=True)
class Workspace:
    """A seat's own workspace, and the shared ones it mounts."""

    persistent: bool = True
    shared: Texts = ()


@dataclass(frozen=True, slots=True)
class SeatRecord:
    """A seat as it stands in the file."""

    role_ref: str
    harness_profile: str
    execution_profile: str
    sandbox_profile: str
    teams: Texts = ()
    personal_memory: str = ""
    workspace: Workspace = Workspace()
    display_name: str = ""
    instruction_refs: Texts = ()
    access_profiles: Texts = ()
    adopt_from: str = ""


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A memory store."""

    retention: str = "retain"
    backing_class: str = "default"
    capacity_mb: int | None = None


@dataclass(frozen=True, slots=True)
class SharedWorkspace:
    """A folder that several seats may mount."""

    access_mode: str
    size_gb: int = 5
    retention: str = "retain"
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class ModelUse:
    """The model of a harness profile. `api` is empty until resolved."""

    connection: str
    id: str
    api: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HarnessProfile:
    """Which agent program runs a seat's turns, and with which model."""

    adapter: str
    image_digest: str
    model: ModelUse | None = None
    required_capabilities: Texts = ()
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutionProfile:
    """How a seat's processes are run. `idle_timeout` is a duration in its shortest form."""

    backend: str
    service_class: str = "interactive"
    idle_policy: str = "warm_then_stop"
    idle_timeout: str = "15m"
    cpu_request: str = "250m"
    cpu_limit: str = "2"
    memory_request: str = "512Mi"
    memory_limit: str = "2Gi"
    workspace_size_gb: int = 5
    required_features: Texts = ()


@dataclass(frozen=True, slots=True)
class SandboxProfile:
    """What must be enforced around a seat's processes."""

    network_policy_ref: str = "deny_all_except_platform"
    filesystem_policy_ref: str = "workspace_only"
    runtime_class: str = ""
    required_enforcement: Texts = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs a seat may run."""

    binaries: Texts = ()


@dataclass(frozen=True, slots=True)
class Egress:
    """Hosts a seat may reach."""

    hosts: Texts = ()


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """Addresses and ports a seat may reach; no ports means all."""

    cidr: str
    ports: tuple[int, ...] = ()
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True)
class Network:
    """Network rules."""

    rules: tuple[NetworkRule, ...] = ()


@dataclass(frozen=True, slots=True)
class GithubAccess:
    """Repositories on one GitHub connection and what may be done there."""

    connection: str
    repos: Texts
    permissions: Mapping[str, str] = field(default_factory=dict)
    delivery: str = "platform"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """The connection that holds a signed-in browser state."""

    connection: str


@dataclass(frozen=True, slots=True)
class Browser:
    """Browser access."""

    session: BrowserSession | None = None


@dataclass(frozen=True, slots=True)
class AccessProfile:
    """What seats and teams may reach beside the platform."""

    tools: Tools = Tools()
    egress: Egress = Egress()
    network: Network = Network()
    github: GithubAccess | None = None
    browser: Browser = Browser()


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of a model connection; no apis means all of the connection's."""

    id: str
    apis: Texts = ()


@dataclass(frozen=True, slots=True)
class ModelService:
    """What a model connection serves. Empty fields take the adapter's defaults."""

    apis: Texts = ()
    auth: str = ""
    models: tuple[ServedModel, ...] = ()
    verify: str = "request"


@dataclass(frozen=True, slots=True)
class Connection:
    """An outside system. `required` None: decided by its use."""

    adapter: str
    secret_ref: str
    account_id: str = ""
    endpoint_ref: str = ""
    ownership: str = "external"
    required: bool | None = None
    model: ModelService | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grant:
    """Operations on one resource for a seat or a team. `targets` None: not restricted."""

    subject: str
    resource: str
    operations: Texts
    targets: Texts | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Permission to send messages. The fields `from` and `to` of the file."""

    from_: str
    to: str
    reply: bool = False
    bidirectional: bool = False


@dataclass(frozen=True, slots=True)
class ChannelBinding:
    """Ties one person on one communication connection to one seat."""

    connection: str
    external_user_id: str
    seat: str
    mode: str = "direct_message"
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class WorkPublication:
    """Where the work items of some stores are shown to people."""

    connection: str
    stores: Texts


@dataclass(frozen=True, slots=True)
class Declaration:
    """A whole file."""

    key: str
    display_name: str
    timezone: str = "UTC"
    data_retention: str = "retain"
    culture_refs: Texts = ()
    team_templates: Mapping[str, Template] = field(default_factory=dict)
    teams: Mapping[str, Team] = field(default_factory=dict)
    memory_stores: Mapping[str, MemoryStore] = field(default_factory=dict)
    shared_workspaces: Mapping[str, SharedWorkspace] = field(default_factory=dict)
    harness_profiles: Mapping[str, HarnessProfile] = field(default_factory=dict)
    execution_profiles: Mapping[str, ExecutionProfile] = field(default_factory=dict)
    sandbox_profiles: Mapping[str, SandboxProfile] = field(default_factory=dict)
    access_profiles: Mapping[str, AccessProfile] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    seats: Mapping[str, SeatRecord] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    message_routes: Mapping[str, Route] = field(default_factory=dict)
    channel_bindings: Mapping[str, ChannelBinding] = field(default_factory=dict)
    work_publication: WorkPublication | None = None


def as_data(record: Any) -> dict[str, Any]:
    """The record as it would stand in a file. What equals its default is left out."""
    data: dict[str, Any] = {}
    for spec in dataclasses.fields(record):
        value = getattr(record, spec.name)
        if value != _default(spec):
            data[spec.name.rstrip("_")] = _as_json(value)
    return data


def _default(spec: dataclasses.Field[Any]) -> object:
    if spec.default_factory is not dataclasses.MISSING:
        return spec.default_factory()
    return spec.default


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return as_data(value)
    if isinstance(value, tuple):
        return [_as_json(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _as_json(entry) for key, entry in value.items()}
    return value
