"""The product's own list, as the pickiest clients and linters read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from steadmesh.service.assembly import FAMILIES, FEATURES
from steadmesh.service.mcp.listing import Listing
from steadmesh.service.mcp.service import BUDGETS
from steadmesh.tools import Catalogue, Tool

CATALOGUE = Catalogue(FAMILIES, FEATURES)
LISTING = Listing(CATALOGUE, dict.fromkeys(CATALOGUE.families, 10**9))
TOOLS = list(CATALOGUE.tools.values())
HOLDS_SCHEMAS = ("properties", "patternProperties", "$defs")


def schemas(schema: Any, at: str) -> Iterator[tuple[str, Any]]:
    """A schema and every schema in it, each with its place."""
    yield at, schema
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in HOLDS_SCHEMAS:
            for name, part in value.items():
                yield from schemas(part, f"{at}.{name}")
        elif key == "items" or (key == "additionalProperties" and not isinstance(value, bool)):
            yield from schemas(value, f"{at}.{key}")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_c2_a_name_is_short_enough_behind_the_prefix_of_a_client(tool: Tool) -> None:
    """C2: clients allow 64 letters, digits, dashes and underscores, their prefix included."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", f"mcp__steadmesh__{tool.mcp_name}")


def test_no_two_tools_share_a_name_of_mcp() -> None:
    assert len({tool.mcp_name for tool in TOOLS}) == len(TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_c10_every_schema_in_a_descriptor_says_one_type(tool: Tool) -> None:
    """C4, C5, C7, C10: no reference, no choice, no list of types, and nothing that allows anything."""
    described = LISTING.descriptor(tool)
    for part in ("inputSchema", "outputSchema"):
        if part not in described:
            continue
        assert described[part]["type"] == "object"
        for at, schema in schemas(described[part], part):
            assert isinstance(schema, dict), f"{at} is a bare {schema!r}"
            assert isinstance(schema.get("type"), str), f"{at} has no single type: {schema}"
            assert not {"$ref", "anyOf", "oneOf", "allOf", "$defs"} & schema.keys(), at


def test_the_seats_list_has_room_for_the_schemas_of_results() -> None:
    assert LISTING.size("seats") <= BUDGETS["seats"]
