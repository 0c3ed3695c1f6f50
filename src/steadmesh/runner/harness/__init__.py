"""Agent programs that a seat can run, found by the adapter name of the organisation file."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from steadmesh.runner.harness.contract import (
    Bootstrap,
    Busy,
    Checkpoint,
    Claim,
    Delivery,
    Envelope,
    Event,
    Harness,
    HarnessCapabilities,
    HarnessError,
    Quiescing,
    Recovery,
    SeatEnvironment,
    Start,
    Stopped,
    TurnRefused,
    TurnResult,
)

__all__ = [
    "ADAPTERS",
    "Bootstrap",
    "Busy",
    "Checkpoint",
    "Claim",
    "Delivery",
    "Envelope",
    "Event",
    "Harness",
    "HarnessCapabilities",
    "HarnessError",
    "Quiescing",
    "Recovery",
    "SeatEnvironment",
    "Start",
    "Stopped",
    "TurnRefused",
    "TurnResult",
    "create",
    "unavailable",
]

# Each is imported when a seat needs it, so that a runner carries one adapter only.
ADAPTERS: Mapping[str, str] = {"fake": "steadmesh.runner.harness.fake:FakeHarness"}
"""Adapter name to `module:factory`; the factory takes no argument."""


def unavailable(adapter: str) -> str | None:
    """Why this program cannot run `adapter`, or None when it can."""
    if adapter in ADAPTERS:
        return None
    return f"adapter {adapter} is not available in this version"


def create(adapter: str) -> Harness:
    """A harness of that adapter, not yet prepared. Raises HarnessError for one we do not have."""
    reason = unavailable(adapter)
    if reason is not None:
        raise HarnessError(reason)
    module, _, factory = ADAPTERS[adapter].partition(":")
    make = cast(Callable[[], Harness], getattr(importlib.import_module(module), factory))
    return make()
