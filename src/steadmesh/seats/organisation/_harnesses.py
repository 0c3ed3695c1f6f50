"""What each harness and the process backend offer. Pure tables; the runner has the programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from steadmesh.seats.organisation._adapters import APIS

Setting = tuple[str, ...] | Literal["text", "number", "flag"]

_ABILITIES = (
    "cli",  # calls platform tools by running steadmesh-tools
    "interruption",  # a turn can be stopped half-way
    "native_resume",  # takes its own session up again
    "portable_handoff",  # goes on from the handoff where it cannot
    "application_checkpoint",
)
_WITH_MODEL = (*_ABILITIES, "mcp", "model")


@dataclass(frozen=True, slots=True)
class Harness:
    """An agent program: the APIs it speaks (best first), its settings, what it is able to do."""

    name: str
    apis: tuple[str, ...]
    settings: Mapping[str, Setting]
    capabilities: tuple[str, ...]
    needs_model: bool = True


HARNESSES: Mapping[str, Harness] = MappingProxyType(
    {
        harness.name: harness
        for harness in (
            Harness(
                "claude-code",
                ("anthropic_messages",),
                {"effort": ("low", "medium", "high", "xhigh", "max")},
                _WITH_MODEL,
            ),
            Harness("codex", ("openai_responses",), {"reasoning_effort": "text"}, _WITH_MODEL),
            Harness(
                "pi",
                ("openai_responses", "openai_chat", "anthropic_messages"),
                {
                    "thinking": ("off", "minimal", "low", "medium", "high", "xhigh", "max"),
                    "context_window": "number",
                    "max_tokens": "number",
                    "reasoning": "flag",
                },
                _WITH_MODEL,
            ),
            # It calls no model, so any will do.
            Harness("fake", APIS, {}, _ABILITIES, needs_model=False),
        )
    }
)
AVAILABLE = frozenset({"fake"})
"""Those that the runner of this version has a program for; the others may stand in the file."""
ALIASES: Mapping[str, str] = MappingProxyType(
    {"claudecode": "claude-code", "claude": "claude-code"}
)

BACKENDS = ("process",)
BACKEND_FEATURES = (
    "warm_idle",
    "application_stop_restore",
    "persistent_workspace",
    "resource_limits",
)
ALWAYS_ENFORCED = ("network_policy", "non_root", "resource_limits")
ENFORCEMENT = (*ALWAYS_ENFORCED, "filesystem_policy")
NEEDS_RUNTIME_CLASS = ("gvisor", "microvm")


def speakers(apis: tuple[str, ...]) -> tuple[str, ...]:
    """The harnesses with a model of their own that speak one of the APIs."""
    return tuple(
        harness.name
        for harness in HARNESSES.values()
        if harness.needs_model and set(harness.apis) & set(apis)
    )
