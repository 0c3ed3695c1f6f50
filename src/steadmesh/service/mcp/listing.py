"""The list of tools, as clients read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic_core import to_json

from steadmesh.tools import Catalogue, Tool

KEPT_LISTS = 256
"""Seats with the same grants share a list; so many different ones are kept encoded."""


class Listing:
    """Descriptors of tools. The schema of results is in them where the family's whole list stays
    within its budget in bytes: an agent pays for each word."""

    def __init__(self, catalogue: Catalogue, budgets: Mapping[str, int]) -> None:
        self._catalogue = catalogue
        self._budgets = budgets
        self.descriptor = lru_cache(maxsize=None)(self._descriptor)
        self.encoded = lru_cache(maxsize=KEPT_LISTS)(self._encoded)
        self._shows_results = lru_cache(maxsize=None)(self._has_room)

    def size(self, family: str) -> int:
        """Bytes of a family's whole list with the schemas of results."""
        declared = [tool for tool in self._catalogue.tools.values() if tool.family == family]
        return len(to_json([_described(tool, results=True) for tool in declared]))

    def _encoded(self, tools: tuple[Tool, ...]) -> bytes:
        return to_json([self.descriptor(tool) for tool in tools])

    def _descriptor(self, tool: Tool) -> dict[str, Any]:
        return _described(tool, results=self._shows_results(tool.family))

    def _has_room(self, family: str) -> bool:
        return self.size(family) <= self._budgets.get(family, 0)


def _described(tool: Tool, *, results: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": tool.mcp_name,
        "description": tool.description,
        "inputSchema": tool.input_schema(),
        "annotations": tool.annotations(),
    }
    if results and _always_answers(tool):
        described["outputSchema"] = tool.output_schema()
    return described


def _always_answers(tool: Tool) -> bool:
    """Clients insist on a structured result where a schema is published, so one must always come."""
    return get_type_hints(tool.handler).get("return") is tool.result and tool.result is not None
