"""The fixtures are served as the suite will call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.fixtures import FAMILY, FEATURE
from tests.support.service import RunningService


@pytest.fixture(scope="module")
def running() -> Iterator[RunningService]:
    with RunningService(families=[FAMILY], features=[FEATURE]) as service:
        yield service


def asked(running: RunningService, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return running.request("POST", "/mcp", body, headers={"Accept": "*/*"}).json()["result"]


def test_each_fixture_is_listed_to_callers_without_a_credential(running: RunningService) -> None:
    names = {tool["name"] for tool in asked(running, "tools/list")["tools"]}
    assert names == {tool.name for tool in FEATURE.tools}


@pytest.mark.parametrize("name", [tool.name for tool in FEATURE.tools])
def test_each_fixture_answers(running: RunningService, name: str) -> None:
    result = asked(running, "tools/call", name=name, arguments={})
    assert result["content"][0]["text"]
    assert result["isError"] is (name == "test_error_handling")
