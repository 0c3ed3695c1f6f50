"""What machines read: health, metrics, and the OpenAPI document."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from schemathesis.core.result import Ok

from steadmesh import __version__
from steadmesh.client.address import for_operator
from steadmesh.kernel.crypto import proof
from steadmesh.kernel.database import DatabaseUnavailable, Transaction
from steadmesh.service.assembly import FEATURES
from steadmesh.service.replies import STATUS
from steadmesh.tools import Tool
from tests.service import notes
from tests.service.notes import ADA
from tests.support.service import RunningService

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}


def test_health_says_which_service_this_is(shared: RunningService) -> None:
    response = shared.request("GET", "/healthz")
    assert response.status == 200
    assert response.json() == {
        "status": "ok",
        "version": __version__,
        "instance_id": shared.service.instance_id,
    }
    assert shared.request("HEAD", "/healthz").body == b""


def test_two_services_are_two_instances(shared: RunningService, closed: RunningService) -> None:
    ids = {running.request("GET", "/healthz").json()["instance_id"] for running in (shared, closed)}
    assert len(ids) == 2


def test_a_service_whose_database_answers_is_ready(books: RunningService) -> None:
    assert books.request("GET", "/readyz").status == 200


def test_a_service_whose_database_is_away_is_not_ready(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(work: Any, *, brief: bool = False) -> Any:
        raise DatabaseUnavailable(reason="it is away")

    monkeypatch.setattr(shared.service.database, "read", away)
    response = shared.request("GET", "/readyz")
    assert response.error == (503, "unavailable")
    assert "it is away" in response.json()["message"]
    assert shared.request("GET", "/healthz").status == 200


def test_a_service_whose_database_does_not_answer_in_time_is_not_ready(
    shared: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr("steadmesh.service.health.READY_SECONDS", 0.05)

    def stuck(tx: Transaction) -> None:
        release.wait(10)

    monkeypatch.setattr("steadmesh.service._store.touch", stuck)
    try:
        response = shared.request("GET", "/readyz")
    finally:
        release.set()
    assert response.error == (503, "unavailable")


def test_a_full_disk_turns_readiness_red_until_a_write_succeeds(
    books: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(tx: Transaction, instance_id: str) -> None:
        raise DatabaseUnavailable(reason="the disk that holds /data is full")

    books.service.database.full = True
    with monkeypatch.context() as patch:
        patch.setattr("steadmesh.service._store.probe", full)
        response = books.request("GET", "/readyz")
        assert response.status == 503
        assert "full" in response.json()["message"]
    assert books.request("GET", "/readyz").status == 200
    assert books.service.database.full is False


def test_a_disk_that_was_full_is_ready_once_there_is_room() -> None:
    with RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running:
        database = running.service.database
        database.write_blocking(lambda tx: tx.all("PRAGMA max_page_count = 1"))  # as small as it is
        body = {"arguments": {"text": "x" * 500_000}}
        answer = running.request("POST", "/v1/tools/notes.add", body, headers=SEAT).json()
        assert answer["content"]["error"] == "unavailable"
        assert f"the disk that holds {running.data} is full" in answer["content"]["message"]
        assert running.request("GET", "/readyz").error == (503, "unavailable")
        database.write_blocking(lambda tx: tx.all("PRAGMA max_page_count = 1000000"))
        assert running.request("GET", "/readyz").status == 200


def test_requests_are_counted_by_route_and_status(books: RunningService) -> None:
    books.request("GET", "/v1/books/some-book-of-mine", headers=SEAT)
    books.request("GET", "/nowhere/at/all")
    books.request("POST", "/v1/tools/notes.count", {}, headers=SEAT)
    response = books.request("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = response.body.decode().splitlines()
    assert 'steadmesh_http_requests_total{route="/v1/books/{book}",status="200"} 1.0' in lines
    assert 'steadmesh_http_requests_total{route="other",status="404"} 1.0' in lines
    assert 'steadmesh_tool_calls_total{result="ok",tool="notes.count"} 1.0' in lines
    assert "steadmesh_http_request_duration_seconds_count 3.0" in lines
    assert not any("some-book" in line for line in lines)


@pytest.fixture(scope="module")
def document(shared: RunningService) -> Any:
    return shared.request("GET", "/openapi.json").json()


def test_the_document_names_every_tool_and_endpoint(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == __version__
    paths = document["paths"]
    for tool in notes.FEATURE.tools:
        operation = paths[f"/v1/tools/{tool.name}"]["post"]
        assert operation["description"] == tool.description
    for endpoint in notes.FEATURE.endpoints:
        assert endpoint.method.lower() in paths[endpoint.path]


def test_operation_ids_are_unique(document: Any) -> None:
    ids = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere(document: Any) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, list):
            return [found for item in part for found in references(item)]
        if not isinstance(part, dict):
            return []
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [found for item in part.values() for found in references(item)]

    assert references(document)
    for reference in references(document):
        target: Any = document
        for name in reference.removeprefix("#/").split("/"):
            target = target[name]
        assert target


def test_every_schema_of_the_document_is_a_schema(document: Any) -> None:
    def schemas(part: Any) -> list[Any]:
        if isinstance(part, list):
            return [found for item in part for found in schemas(item)]
        if not isinstance(part, dict):
            return []
        own = [part["schema"]] if isinstance(part.get("schema"), dict) else []
        return own + [found for item in part.values() for found in schemas(item)]

    assert len(schemas(document)) > 10
    for schema in schemas(document):
        jsonschema_rs.meta.validate(schema)


def test_a_client_made_from_the_document_can_read_it(document: Any) -> None:
    schema = schemathesis.openapi.from_dict(document)
    labels = {found.ok().label for found in schema.get_all_operations() if isinstance(found, Ok)}
    assert {"POST /v1/tools/notes.add", "GET /v1/books/{book}/next", "POST /mcp"} <= labels


def test_answers_are_as_the_document_says(shared: RunningService, document: Any) -> None:
    schema = document["paths"]["/v1/tools/notes.add"]["post"]["responses"]["200"]
    content = schema["content"]["application/json"]["schema"] | {
        "components": document["components"]
    }
    for text in ("milk", "taken"):
        body = {"arguments": {"text": text}}
        answer = shared.request("POST", "/v1/tools/notes.add", body, headers=SEAT).json()
        jsonschema_rs.validate(content, answer)


# The manual

MANUAL = Path(__file__).parents[2] / "docs" / "http-api.md"


@pytest.mark.parametrize(
    "endpoint", [e for feature in FEATURES for e in feature.endpoints], ids=lambda e: str(e.name)
)
def test_the_manual_names_every_endpoint(endpoint: Tool) -> None:
    assert f"`{endpoint.name}`" in MANUAL.read_text()


def test_the_manual_names_every_status_of_a_failure() -> None:
    text = MANUAL.read_text()
    for kind, status in STATUS.items():
        assert f"| {status} | `" in text, kind


def test_the_service_proves_to_know_its_key_without_saying_it(closed: RunningService) -> None:
    """Nobody has to present anything for it: it is asked before a secret is sent."""
    nonce = "n" * 32
    answer = closed.request("GET", f"/v1/hello?nonce={nonce}")
    assert answer.json() == {"proof": proof(closed.operator_key, nonce, closed.port)}
    assert closed.operator_key not in answer.body.decode()


@pytest.mark.parametrize("nonce", ["", "short", "n" * 129, "n" * 20 + "%20"])
def test_a_nonce_of_another_form_is_refused(shared: RunningService, nonce: str) -> None:
    assert shared.request("GET", f"/v1/hello?nonce={nonce}").error == (400, "invalid")


def test_commands_by_url_use_the_key_of_their_data_directory() -> None:
    with RunningService() as running:
        environ = {"STEADMESH_URL": running.url, "STEADMESH_DATA": str(running.data)}
        assert for_operator(environ).request("GET", "/internal/v1/organizations").status == 200
