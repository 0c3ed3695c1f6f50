"""What every request has to pass before a tool hears of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.conftest import SECRET
from tests.service.notes import ADA, DEAD, PERSON
from tests.support.service import RunningService

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
ROUTES = [
    ("GET", "/v1/tools"),
    ("POST", "/v1/tools/notes.count"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/v1/books/a"),
    ("POST", "/internal/v1/books/a:mend"),
    ("GET", "/nowhere"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "", "[::2]"]
)
def test_a_host_that_is_not_ours_is_misdirected_on_every_route(
    shared: RunningService, method: str, path: str, host: str
) -> None:
    response = shared.request(method, path, headers={"Host": host})
    assert response.error == (421, "invalid")
    assert "allowed_hosts" in response.json()["message"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:3777", "127.0.0.1:65535"]
)
def test_loopback_is_ours_under_any_port(shared: RunningService, host: str) -> None:
    assert shared.request("GET", "/v1/tools", headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["localhost:", "localhost:x", "localhost:1:2", "[::1", "[::1]x"])
def test_a_host_that_cannot_be_read_is_refused(shared: RunningService, host: str) -> None:
    assert shared.request("GET", "/v1/tools", headers={"Host": host}).status == 421


def test_a_missing_host_is_refused(shared: RunningService) -> None:
    answer = shared.raw(b"GET /v1/tools HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 421 ")


def test_two_hosts_are_refused(shared: RunningService) -> None:
    answer = shared.raw(
        b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_configured_host_is_ours(closed: RunningService) -> None:
    headers = {"Host": "mesh.example:80", "X-Relay-Secret": SECRET}
    assert closed.request("GET", "/v1/tools", headers=headers).status == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://localhost"]
)
def test_a_page_of_another_origin_is_refused_on_every_route(
    shared: RunningService, method: str, path: str, origin: str
) -> None:
    response = shared.request(method, path, headers={"Origin": origin} | SEAT)
    assert response.error == (403, "forbidden")


@pytest.mark.parametrize(
    "origin", ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:80"]
)
def test_a_page_of_this_machine_may_read_the_answer(shared: RunningService, origin: str) -> None:
    response = shared.request("GET", "/v1/tools", headers={"Origin": origin})
    assert response.status == 200
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["vary"] == "Origin"


def test_a_page_of_a_configured_origin_may_call(closed: RunningService) -> None:
    headers = {"Origin": "https://pages.example", "X-Relay-Secret": SECRET}
    assert closed.request("GET", "/v1/tools", headers=headers).status == 200


def test_a_refusal_can_be_read_by_an_allowed_page(shared: RunningService) -> None:
    headers = {"Origin": "http://localhost:5173"}
    response = shared.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert response.status == 401
    assert response.headers["access-control-allow-origin"] == "http://localhost:5173"


def test_over_the_socket_neither_host_nor_origin_matters(shared: RunningService) -> None:
    headers = {"Host": "anything.example", "Origin": "https://evil.example"}
    assert shared.request("GET", "/v1/tools", headers=headers, local=True).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_told_to_everybody(closed: RunningService, path: str) -> None:
    headers = {"Host": "evil.example", "Origin": "https://evil.example", "X-Relay-Secret": "no"}
    assert closed.request("GET", path, headers=headers).status == 200


@pytest.mark.parametrize("path", ["/v1/tools/notes.add", "/mcp", "/internal/v1/books/a:mend", "/x"])
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"]
)
def test_a_body_of_another_kind_is_refused(shared: RunningService, path: str, kind: str) -> None:
    response = shared.request("POST", path, b"{}", headers=SEAT | {"Content-Type": kind})
    assert response.error == (415, "invalid")


def test_a_compressed_body_is_refused(shared: RunningService) -> None:
    headers = SEAT | {"Content-Encoding": "gzip"}
    assert shared.request("POST", "/v1/tools/notes.count", b"x", headers=headers).status == 415


def test_json_may_name_its_character_set(shared: RunningService) -> None:
    headers = SEAT | {"Content-Type": "Application/JSON; charset=utf-8"}
    assert shared.request("POST", "/v1/tools/notes.count", b"{}", headers=headers).status == 200


# Credentials


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer sms_unknown"},
        {"Authorization": "Bearer smo_unknown"},
        {"Authorization": "Bearer something"},
        {"Authorization": "Basic c206c20="},
        {"Authorization": "Bearer "},
        {"X-Relay-Secret": "something"},
        {"X-Relay-Secret": ""},
        {"Authorization": f"Bearer {PERSON}"},
    ],
    ids=lambda headers: next(iter(headers.values())) or "empty",
)
def test_a_presented_credential_that_is_none_never_counts_as_none(
    shared: RunningService, method: str, path: str, local: bool, headers: dict[str, str]
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"} if path == "/mcp" else {}
    accept = {"Accept": "application/json, text/event-stream"}
    response = shared.request(
        method, path, body if method == "POST" else None, headers=headers | accept, local=local
    )
    assert response.error == (401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_seat_tool_without_a_credential_is_unauthenticated(shared: RunningService) -> None:
    assert shared.request("POST", "/v1/tools/notes.count", {}).error == (401, "unauthenticated")


@pytest.mark.parametrize("local", [False, True])
def test_a_seat_is_no_operator(shared: RunningService, local: bool) -> None:
    response = shared.request("POST", "/internal/v1/books/a:mend", {}, headers=SEAT, local=local)
    assert response.error == (401, "unauthenticated")


def test_an_operator_is_no_seat(shared: RunningService) -> None:
    headers = {"Authorization": f"Bearer {shared.operator_key}"}
    response = shared.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert response.error == (401, "unauthenticated")


def test_the_socket_proves_an_operator(shared: RunningService) -> None:
    assert shared.request("POST", "/internal/v1/books/a:mend", {}, local=True).status == 201
    response = shared.request("POST", "/internal/v1/books/a:mend", {})
    assert response.error == (401, "unauthenticated")
    assert "operator.key" in response.json()["message"]


def test_the_operator_key_is_in_the_data_directory_alone(shared: RunningService) -> None:
    key = shared.operator_key
    headers = {"Authorization": f"Bearer {key}"}
    assert shared.request("POST", "/internal/v1/books/a:mend", {}, headers=headers).status == 201
    assert (shared.data / "operator.key").stat().st_mode & 0o777 == 0o600
    rows = shared.service.database.read_blocking(lambda tx: tx.all("SELECT value FROM service"))
    assert not any(key in row["value"] for row in rows)


def test_a_seat_token_and_an_agent_token_together_are_refused(shared: RunningService) -> None:
    headers = SEAT | {"X-Agent-Token": "abc"}
    response = shared.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert response.error == (400, "invalid")


def test_names_of_the_other_family_are_unknown(shared: RunningService) -> None:
    agent = {"X-Agent-Token": "abc"}
    assert shared.request("POST", "/v1/tools/notes.count", {}, headers=agent).status == 404
    assert shared.request("POST", "/v1/tools/notes.other", {}, headers=SEAT).status == 404


def test_a_dead_seat_is_forbidden_everywhere(shared: RunningService) -> None:
    headers = {"Authorization": f"Bearer {DEAD}"}
    for method, path in [("GET", "/v1/tools"), ("POST", "/v1/tools/notes.count"), ("GET", "/x")]:
        response = shared.request(method, path, {} if method == "POST" else None, headers=headers)
        assert response.error == (403, "forbidden")


@pytest.mark.parametrize("generation", ["one", "", "1.0", "0x1", "9" * 19, "1 2", "+1"])
def test_a_generation_is_a_whole_number(shared: RunningService, generation: str) -> None:
    headers = SEAT | {"X-Steadmesh-Generation": generation}
    response = shared.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert response.error == (400, "invalid")
    assert "X-Steadmesh-Generation" in response.json()["message"]


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "caf\xe9", "a\tb"])
def test_an_idempotency_key_is_visible_ascii(shared: RunningService, key: str) -> None:
    headers = SEAT | {"Idempotency-Key": key}
    response = shared.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert response.error == (400, "invalid")
    assert "Idempotency-Key" in response.json()["message"]


def test_a_header_given_twice_is_refused(shared: RunningService) -> None:
    answer = shared.raw(
        b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sms_ada\r\n"
        b"Authorization: Bearer sms_bob\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"authorization is given twice" in answer


# The gate of the secret


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_without_any_credential_a_closed_service_says_nothing(
    closed: RunningService, method: str, path: str
) -> None:
    response = closed.request(method, path, {} if method == "POST" else None)
    if path == "/metrics":  # open on loopback
        assert response.status == 200
    else:
        assert response.error == (401, "unauthenticated")


@pytest.mark.parametrize(
    "headers", [{"X-Relay-Secret": SECRET}, {"Authorization": f"Bearer {SECRET}"}]
)
def test_the_secret_opens_the_gate_and_says_nothing_of_who_comes(
    closed: RunningService, headers: dict[str, str]
) -> None:
    assert closed.request("GET", "/v1/tools", headers=headers).status == 200
    seat = closed.request("POST", "/v1/tools/notes.count", {}, headers=headers)
    assert seat.error == (401, "unauthenticated")
    mend = closed.request("POST", "/internal/v1/books/a:mend", {}, headers=headers)
    assert mend.error == (401, "unauthenticated")


def test_any_valid_credential_opens_the_gate(closed: RunningService) -> None:
    assert closed.request("POST", "/v1/tools/notes.count", {}, headers=SEAT).status == 200
    operator = {"Authorization": f"Bearer {closed.operator_key}"}
    assert closed.request("POST", "/internal/v1/books/a:mend", {}, headers=operator).status == 201
    assert closed.request("GET", "/v1/tools", local=True).status == 200


def test_an_invalid_credential_does_not_open_the_gate(closed: RunningService) -> None:
    for headers in ({"Authorization": "Bearer sms_x"}, {"X-Agent-Token": "abc"}):
        assert closed.request("GET", "/openapi.json", headers=headers).status == 401


def test_secret_and_seat_may_come_together(closed: RunningService) -> None:
    headers = SEAT | {"X-Relay-Secret": SECRET}
    assert closed.request("POST", "/v1/tools/notes.count", {}, headers=headers).status == 200


def test_metrics_of_another_bind_need_a_credential() -> None:
    with RunningService(host="0.0.0.0", http_secret=SECRET) as running:
        assert running.request("GET", "/metrics").status == 401
        headers = {"X-Relay-Secret": SECRET}
        assert running.request("GET", "/metrics", headers=headers).status == 200


# Pages of other origins


PAGE = "https://pages.example"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}


@pytest.fixture(scope="module")
def paged() -> Iterator[RunningService]:
    """A service with a secret that lets one web page call."""
    with RunningService(http_secret=SECRET, allowed_origins=(PAGE,)) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/tools/self", "POST"),
        ("/mcp", "POST"),
        ("/v1/tools", "GET"),
        ("/v1/channels/f/chat/messages", "POST"),
    ],
)
def test_a_browser_that_asks_for_a_page_of_an_allowed_origin_is_told_what_it_may_send(
    paged: RunningService, path: str, methods: str
) -> None:
    answer = paged.request("OPTIONS", path, headers=PREFLIGHT)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == methods
    allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
    assert {"authorization", "content-type", "idempotency-key"} <= set(allowed)
    assert "origin" in answer.headers["vary"].lower()
    assert "access-control-allow-credentials" not in answer.headers


def test_what_the_page_then_sends_is_judged_as_ever_and_the_answer_can_be_read(
    paged: RunningService,
) -> None:
    answer = paged.request("POST", "/v1/tools/self", {}, headers={"Origin": PAGE})
    assert answer.error == (401, "unauthenticated")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]


def test_a_browser_that_asks_for_a_page_of_another_origin_is_refused(paged: RunningService) -> None:
    answer = paged.request(
        "OPTIONS", "/v1/tools/self", headers=PREFLIGHT | {"Origin": "https://evil.example"}
    )
    assert answer.error == (403, "forbidden")
    assert "access-control-allow-origin" not in answer.headers


def test_options_that_no_browser_asked_for_are_a_method_like_any(paged: RunningService) -> None:
    secret = {"X-Relay-Secret": SECRET}
    answer = paged.request("OPTIONS", "/v1/tools/self", headers=secret | {"Origin": PAGE})
    assert answer.status == 405
    assert paged.request("OPTIONS", "/v1/nothing", headers=PREFLIGHT).status == 401


def test_a_public_page_may_ask_for_a_service_in_a_private_network(paged: RunningService) -> None:
    asked = PREFLIGHT | {"Access-Control-Request-Private-Network": "true"}
    answer = paged.request("OPTIONS", "/mcp", headers=asked)
    assert answer.headers["access-control-allow-private-network"] == "true"
