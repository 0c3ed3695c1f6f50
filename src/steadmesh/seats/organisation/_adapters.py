"""What each kind of connection offers: operations, and what each operation acts on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Kind = Literal["communication", "tracker", "code_host", "model", "credential"]

MEMORY_OPERATIONS = ("read", "search", "write", "revise", "archive", "publish", "history")
WORKSPACE_OPERATIONS = ("read", "write")

APIS = ("anthropic_messages", "openai_responses", "openai_chat")
PERMISSIONS = ("contents", "pull_requests", "issues", "metadata")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an adapter.

    `targets` are the params that say what it acts on; `defaults` maps a target param to the key
    of the connection's config that stands in for it, which counts only while no param of
    `replaces_default` is given.
    """

    targets: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    replaces_default: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adapter:
    """One kind of connection."""

    name: str
    kind: Kind
    operations: Mapping[str, Operation]
    secret_keys: tuple[str, ...]
    apis: tuple[str, ...] = ()
    auth: str = ""


_REPLY = {"channel.reply": Operation(targets=("external_user_id",))}
_INFER = {"model.infer": Operation()}
_LINEAR = {
    "project.read": Operation(targets=("id",)),
    "project.create": Operation(
        targets=("team_ids", "team_id"),
        defaults={"team_ids": "team_id"},
        replaces_default=("team_ids", "team_id"),
    ),
    "task.read": Operation(targets=("id", "project_id")),
    "task.write": Operation(
        targets=("id", "team_id", "project_id"),
        defaults={"team_id": "team_id"},
        # An update acts on the issue it names; the default team is for new ones.
        replaces_default=("id", "team_id"),
    ),
    "comment.read": Operation(targets=("issue_id",)),
    "comment.write": Operation(targets=("issue_id",)),
}
_GITHUB = {
    name: Operation(targets=("repo",))
    for name in (
        "repo.read",
        "pull_request.read",
        "pull_request.create",
        "issue.read",
        "issue.comment",
    )
}

ADAPTERS: Mapping[str, Adapter] = MappingProxyType(
    {
        adapter.name: adapter
        for adapter in (
            Adapter("slack", "communication", _REPLY, ("bot_token", "app_token")),
            Adapter("terminal", "communication", _REPLY, ()),
            Adapter("linear", "tracker", _LINEAR, ("api_key",)),
            Adapter("github", "code_host", _GITHUB, ("token",)),
            Adapter(
                "anthropic",
                "model",
                _INFER,
                ("api_key",),
                apis=("anthropic_messages",),
                auth="x-api-key",
            ),
            Adapter(
                "openai",
                "model",
                _INFER,
                ("api_key",),
                apis=("openai_responses", "openai_chat"),
                auth="bearer",
            ),
            Adapter("model", "model", _INFER, ("api_key",), auth="bearer"),
            Adapter("browser_session", "credential", {}, ("storage_state",)),
        )
    }
)


def of_kind(kind: Kind) -> tuple[str, ...]:
    """The adapters of a kind."""
    return tuple(name for name, adapter in ADAPTERS.items() if adapter.kind == kind)


def named_targets(
    adapter: str, operation: str, params: Mapping[str, Any], *, config: Mapping[str, Any]
) -> tuple[str, ...]:
    """What a call acts on, for `allowed`: every target param present, defaults included."""
    offered = ADAPTERS[adapter].operations[operation]
    values = [params[name] for name in offered.targets if params.get(name) is not None]
    if not any(params.get(name) is not None for name in offered.replaces_default):
        values += [config[key] for key in offered.defaults.values() if config.get(key) is not None]
    named = [
        entry
        for value in values
        for entry in (value if isinstance(value, list | tuple) else (value,))
    ]
    # Whatever is no text is named as its JSON, so that it can match no ordinary target.
    return tuple(
        entry if isinstance(entry, str) else json.dumps(entry, sort_keys=True) for entry in named
    )


def repository_operations(permissions: Mapping[str, str]) -> frozenset[str]:
    """The GitHub operations that the permissions of an access profile amount to."""
    operations: set[str] = set()
    if "contents" in permissions or "metadata" in permissions:
        operations.add("repo.read")
    for permission, read, write in (
        ("pull_requests", "pull_request.read", "pull_request.create"),
        ("issues", "issue.read", "issue.comment"),
    ):
        if permission in permissions:
            operations.add(read)
        if permissions.get(permission) == "write":
            operations.add(write)
    return frozenset(operations)
