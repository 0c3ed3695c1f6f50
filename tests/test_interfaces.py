"""The interface of each tool stands in a file of its own, so that a change of it is seen in a diff.

python -m tests.test_interfaces      write the files anew
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steadmesh.service.assembly import FAMILIES, FEATURES
from steadmesh.tools import Catalogue, Tool

FOLDER = Path(__file__).parent / "interfaces"
CATALOGUE = Catalogue(FAMILIES, FEATURES)
TOOLS = sorted(CATALOGUE.tools.values(), key=lambda tool: tool.name)
LIST_BUDGET = {"seats": 20_000}
"""Bytes of compact JSON that the whole list of a family may cost an agent."""


def interface(tool: Tool) -> dict[str, Any]:
    """Everything about a tool that somebody outside may rely on."""
    return {
        "name": tool.name,
        "mcp_name": tool.mcp_name,
        "family": tool.family,
        "description": tool.description,
        "annotations": tool.annotations(),
        "input_schema": tool.input_schema(),
        "output_schema": tool.output_schema(),
    }


def file_of(tool: Tool) -> Path:
    return FOLDER / f"{tool.name}.json"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_interface_of_a_tool_is_as_it_was_written_down(tool: Tool) -> None:
    assert file_of(tool).exists(), "new tool: run python -m tests.test_interfaces"
    assert json.loads(file_of(tool).read_text()) == interface(tool)


def test_no_interface_is_left_of_a_tool_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {tool.name for tool in TOOLS}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_flat_objects_with_every_property_typed(tool: Tool) -> None:
    """C2, C4, C5, C7, C10: what clients and linters stumble over."""
    assert len(f"mcp__steadmesh__{tool.mcp_name}") <= 64
    given = tool.input_schema()
    assert given["type"] == "object"
    assert given["additionalProperties"] is False
    assert all("type" in part for part in given["properties"].values())
    assert tool.output_schema()["type"] == "object"
    text = json.dumps([given, tool.output_schema()])
    for word in ('"$ref"', '"$defs"', '"anyOf"', '"maxLength"'):
        assert word not in text


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_and_each_of_its_arguments_is_described(tool: Tool) -> None:
    assert 10 <= len(tool.description) <= 300
    for name, part in tool.input_schema()["properties"].items():
        assert part.get("description"), f"{tool.name}: {name} has no description"


@pytest.mark.parametrize("family", sorted(LIST_BUDGET))
def test_the_list_of_a_family_stays_within_its_budget(family: str) -> None:
    listed = [
        {"name": t.mcp_name, "description": t.description, "inputSchema": t.input_schema()}
        for t in TOOLS
        if t.family == family
    ]
    size = len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= LIST_BUDGET[family]


def write() -> None:
    """Write every interface down."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for tool in TOOLS:
        file_of(tool).write_text(json.dumps(interface(tool), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write()
