"""Requests made up from the OpenAPI document: whatever comes, the answer is one that it describes."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.notes import ADA
from tests.support.service import RunningService

HEADERS = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
"""Not that all is accepted which the schemas allow: limits in bytes and NUL stand in words there."""
LEFT_OUT = ("/internal/v1/service:stop", "/v1/channels/{organization}/{connection}/events")
"""One ends the service, the other does not end."""


@pytest.mark.parametrize("local", [False, True], ids=["seat", "operator"])
def test_whatever_is_sent_the_answer_is_one_that_the_document_describes(
    shared: RunningService, local: bool
) -> None:
    schema = schemathesis.openapi.from_dict(shared.request("GET", "/openapi.json").json())
    key = {"Authorization": f"Bearer {shared.operator_key}"}
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path in LEFT_OUT or operation.path.startswith("/internal") is not local:
            continue
        _try(operation, shared.url, key if local else HEADERS)
        tried += 1
    assert tried >= (1 if local else 8)


def _try(operation: Any, url: str, headers: dict[str, str]) -> None:
    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def attempt(case: Any) -> None:
        if case.query and "wait" in case.query:
            case.query["wait"] = 0
        case.headers.update(headers)
        case.call_and_validate(base_url=url, checks=CHECKS)

    attempt()
