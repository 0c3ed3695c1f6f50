"""The tools that the suite calls by fixed names, in a catalogue of their own behind our transport.

Only what our tools can be is here: a result is a JSON object, a failure a text. What a tool of ours
cannot do (`exceptions.toml`) is not imitated by going around the product.
"""

from __future__ import annotations

from typing import Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.kernel.errors import Conflict
from steadmesh.tools import (
    Args,
    Call,
    Caller,
    Credentials,
    Family,
    Feature,
    Result,
    Tool,
    tool,
)


class Intended(Conflict):
    """This tool intentionally returns an error for testing."""


class Nothing(Args):
    pass


class Said(Result):
    text: str


@tool("test_simple_text", family="relay", reads=True)
def simple_text(call: Call[Caller], args: Nothing) -> Said:
    """Answer a text."""
    return Said(text="This is a simple text response for testing.")


@tool("test_error_handling", family="relay", reads=True)
def error_handling(call: Call[Caller], args: Nothing) -> Said:
    """Fail."""
    raise Intended()


@tool("test_streaming_elicitation", family="relay", reads=True)
def streaming_elicitation(call: Call[Caller], args: Nothing) -> Said:
    """Answer to a client that could be asked something, without asking it."""
    return Said(text="nothing was asked of the client")


@tool("test_logging_tool", family="relay")
def logging_tool(call: Call[Caller], args: Nothing) -> Said:
    """Write, as tools do whose work is logged; the client did not ask to hear of it."""
    return Said(text="no log was sent to the client")


def _anybody(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    return Caller(name="the suite", scope="conformance", credential="")


def _let_in(caller: Caller, called: Tool, credentials: Credentials) -> None:
    """Nobody is refused."""


def _still_so(call: Call[Any]) -> None:
    """Nothing is known of a caller that could have changed."""


FAMILY = Family("relay", _anybody, _let_in, _still_so, lambda caller, called: [])
"""Callers without a credential are shown this family."""
FEATURE = Feature(
    "steadmesh.testing",
    tools=(simple_text, error_handling, streaming_elicitation, logging_tool),
)
