"""The cast of the tests: organisation F, as a document and as files."""

from __future__ import annotations

import hashlib
import os
from typing import Any

INSTRUCTION = "Do your part and say what you did.\n"
REF = f"file:instruction.md#sha256:{hashlib.sha256(INSTRUCTION.encode()).hexdigest()}"
BUNDLES = {REF: INSTRUCTION}

MEMORY = ["read", "search", "write", "revise", "history"]


def folder_of(document: dict[str, Any]) -> str | None:
    """Where the secrets of an organisation lie, as if its file lay there too."""
    connections: dict[str, dict[str, str]] = document.get("connections", {})
    references = [connection.get("secret_ref", "") for connection in connections.values()]
    files = [ref.removeprefix("file:") for ref in references if ref.startswith("file:/")]
    return os.path.dirname(files[0]) if files else None


def fixture_f(secrets: str = "env:CHAT") -> dict[str, Any]:
    """Five seats, two people, one team. `secrets` is where the terminal channel's tokens are."""

    def seat(key: str, teams: list[str], role: str = REF) -> dict[str, Any]:
        return {
            "role_ref": role,
            "teams": teams,
            "harness_profile": "scripted",
            "execution_profile": "normal",
            "sandbox_profile": "standard",
            "personal_memory": key,
        }

    team = ("lead", "engineer", "reviewer")
    seats = {key: seat(key, []) for key in ("rep_a", "rep_b")}
    seats |= {key: seat(key, ["delivery"]) for key in team}
    return {
        "key": "f",
        "display_name": "Organisation F",
        "team_templates": {"plain": {"shared_memory": {"engineering": MEMORY}}},
        "teams": {"delivery": {"template": "plain"}},
        "memory_stores": {key: {} for key in [*seats, "engineering", "organisation"]},
        "harness_profiles": {"scripted": {"adapter": "fake", "image_digest": "local"}},
        "execution_profiles": {"normal": {"backend": "process"}},
        "sandbox_profiles": {"standard": {}},
        "connections": {
            "chat": {"adapter": "terminal", "secret_ref": secrets},
            "tracker": {"adapter": "linear", "secret_ref": "env:LINEAR"},
        },
        "seats": seats,
        "grants": {
            "a_reads": {
                "subject": "seat:rep_a",
                "resource": "memory:organisation",
                "operations": ["read", "search"],
            },
            "lead_writes": {
                "subject": "seat:lead",
                "resource": "memory:organisation",
                "operations": ["read", "search", "write"],
            },
            "lead_tracker": {
                "subject": "seat:lead",
                "resource": "connection:tracker",
                "operations": ["project.read", "project.create", "task.write"],
            },
        },
        "message_routes": {
            "a_lead": {"from": "seat:rep_a", "to": "seat:lead", "reply": True},
            "b_lead": {"from": "seat:rep_b", "to": "seat:lead", "reply": True},
            "lead_engineer": {"from": "seat:lead", "to": "seat:engineer", "bidirectional": True},
            "engineer_reviewer": {"from": "seat:engineer", "to": "seat:reviewer"},
        },
        "channel_bindings": {
            "alice": {"connection": "chat", "external_user_id": "alice", "seat": "rep_a"},
            "bob": {"connection": "chat", "external_user_id": "bob", "seat": "rep_b"},
        },
    }
