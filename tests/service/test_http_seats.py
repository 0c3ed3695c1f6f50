"""The seats of organisation F over HTTP, as a runner, a person and an operator see them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.organisations import fixture_f
from tests.support.seats import Client, apply
from tests.support.service import RunningService

ALICE = "alice-has-this-token"
CHANNEL = "/v1/channels/f/chat"
HERS = {"Authorization": f"Bearer {ALICE}"}


@pytest.fixture
def seats(service: RunningService, tmp_path: Path) -> dict[str, str]:
    """Organisation F in force, its channel's tokens in a file."""
    tokens = tmp_path / "chat.json"
    descriptor = os.open(tokens, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"alice": ALICE}, file)
    return apply(service, fixture_f(f"file:{tokens}"))


@pytest.fixture
def lead(service: RunningService, seats: dict[str, str], tmp_path: Path) -> Client:
    return Client.of(service, seats["lead"], tmp_path / "lead")


@pytest.fixture
def rep(service: RunningService, seats: dict[str, str], tmp_path: Path) -> Client:
    return Client.of(service, seats["rep_a"], tmp_path / "rep")


def call(seat: Client, tool: str, **arguments: Any) -> Any:
    path = f"/v1/tools/{tool}"
    return seat.service.request("POST", path, {"arguments": arguments}, headers=seat.headers)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/tools/self"),
        ("POST", "/v1/tools/messages.send"),
        ("GET", "/v1/self"),
        ("GET", "/v1/bootstrap"),
        ("GET", "/v1/inbox/next"),
        ("POST", "/v1/lease/acquire"),
        ("PUT", "/v1/checkpoint"),
    ],
)
@pytest.mark.parametrize("token", [None, "sms_bad"])
def test_s1_without_a_token_or_with_a_bad_one_a_seat_s_part_is_closed(
    shared_product: RunningService, method: str, path: str, token: str | None
) -> None:
    """S-1: no token: a seat's tool or endpoint is 401; a bad token is 401 everywhere."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = shared_product.request(
        method, path, None if method == "GET" else {}, headers=headers
    )
    assert response.error == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/tools"), ("POST", "/mcp"), ("GET", "/metrics"), ("GET", "/nowhere")],
)
def test_s1_a_bad_token_is_refused_where_none_is_needed(
    shared_product: RunningService, method: str, path: str
) -> None:
    """S-1: `GET /v1/tools` and `/mcp` included."""
    body = None if method == "GET" else {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": "Bearer sms_bad"}
    assert shared_product.request(method, path, body, headers=headers).status == 401


def test_s1_a_seat_token_opens_nothing_of_the_operator(
    service: RunningService, lead: Client, seats: dict[str, str]
) -> None:
    """S-1: a seat token on /internal is 401."""
    path = f"/internal/v1/seats/{seats['lead']}/tokens"
    for local in (False, True):
        response = service.request("POST", path, {}, headers=lead.headers, local=local)
        assert response.error == (401, "unauthenticated")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_s1_health_readiness_and_metrics_answer_without_a_token(
    shared_product: RunningService, path: str
) -> None:
    """S-1: health, readiness and metrics answer without a token."""
    assert shared_product.request("GET", path).status == 200


def test_s3_an_old_generation_is_fenced_on_every_route(
    service: RunningService, lead: Client, seats: dict[str, str]
) -> None:
    """S-3: after a fence, write, poll, checkpoint and renew are 409; after re-acquiring they work."""
    path = f"/internal/v1/seats/{seats['lead']}/fence"
    body = {"expected_generation": lead.generation}
    assert service.request("POST", path, body, local=True).status == 200
    checkpoint = {
        "harness_adapter": "fake",
        "format_version": "1",
        "checkpoint_ref": "c1",
        "guarantee": "application_checkpoint",
    }
    attempts: list[tuple[str, str, object]] = [
        ("POST", "/v1/tools/handoff.update", {"arguments": {"objective": "x"}}),
        ("GET", "/v1/inbox/next?wait=20", None),
        ("PUT", "/v1/checkpoint", checkpoint),
        ("POST", "/v1/lease/renew", {"generation": lead.generation}),
    ]
    for method, route, content in attempts:
        response = service.request(method, route, content, headers=lead.headers)
        assert response.error == (409, "fenced"), route
    lead.acquire()
    assert service.request("PUT", "/v1/checkpoint", checkpoint, headers=lead.headers).status == 204


def test_s9_unknown_and_hidden_tools_are_told_apart(
    service: RunningService, seats: dict[str, str], tmp_path: Path
) -> None:
    """S-9: unknown tool name over HTTP is 404; a known but hidden tool is 200 with `forbidden`."""
    reviewer = Client.of(service, seats["reviewer"], tmp_path / "reviewer")
    assert call(reviewer, "messages.burn").error == (404, "not_found")
    hidden = call(reviewer, "messages.send", to="lead", body="x")
    assert hidden.status == 200
    assert hidden.json()["content"]["error"] == "forbidden"


def test_a_message_becomes_a_turn_of_its_recipient(
    service: RunningService, lead: Client, rep: Client
) -> None:
    sent = call(rep, "messages.send", to="lead", body="do it").json()["content"]
    poll = service.request("GET", "/v1/inbox/next?wait=5", headers=lead.headers)
    delivery = poll.json()
    assert delivery["message"]["message_id"] == sent["message_id"]
    assert delivery["message"]["body"] == "do it"
    path = f"/v1/executions/{delivery['execution_id']}/events"
    events = [{"kind": "started"}, {"kind": "progress", "data": {"step": 1}}]
    assert service.request("POST", path, events, headers=lead.headers).status == 204
    path = f"/v1/inbox/{delivery['delivery_id']}/ack"
    body = {"execution_id": delivery["execution_id"]}
    for _ in range(2):  # repeating an accepted one changes nothing
        assert service.request("POST", path, body, headers=lead.headers).status == 204
    assert service.request("GET", "/v1/inbox/next", headers=lead.headers).status == 204
    other = {"execution_id": "of-nobody"}
    assert service.request("POST", path, other, headers=lead.headers).error == (404, "not_found")


def test_s52_a_person_s_line_is_taken_once_and_answered_in_her_channel(
    service: RunningService, rep: Client
) -> None:
    """S-52: the same external event twice is one turn and one reply."""
    line = {"id": "line-1", "text": "hello"}
    for _ in range(2):
        answer = service.request("POST", f"{CHANNEL}/messages", line, headers=HERS)
        assert answer.status == 202
    poll = service.request("GET", "/v1/inbox/next?wait=5", headers=rep.headers).json()
    message = poll["message"]
    assert (message["origin"], message["body"]) == ("human", "hello")
    replied = call(rep, "messages.reply", message_id=message["message_id"], body="good day")
    assert "is_error" not in replied.json(), replied.body
    ack = {"execution_id": poll["execution_id"]}
    path = f"/v1/inbox/{poll['delivery_id']}/ack"
    assert service.request("POST", path, ack, headers=rep.headers).status == 204
    assert service.request("GET", "/v1/inbox/next", headers=rep.headers).status == 204
    connection = service.connection(timeout=20)
    connection.request("GET", f"{CHANNEL}/events", headers=HERS)
    response = connection.getresponse()
    assert response.status == 200
    lines = iter(lambda: response.readline().decode().rstrip("\n"), None)
    data = next(line for line in lines if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["text"] == "good day"
    connection.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"id": "1", "text": "  "}, 400),
        ({"text": "hello"}, 400),
        ({"id": "1", "text": "x" * 65_537}, 400),
        ({"id": "1", "text": "x" * 65_536}, 202),
    ],
)
def test_a_line_that_says_nothing_or_too_much_is_refused(
    service: RunningService, seats: dict[str, str], body: dict[str, str], status: int
) -> None:
    response = service.request("POST", f"{CHANNEL}/messages", body, headers=HERS)
    assert response.status == status


def test_a_person_s_token_counts_on_her_channel_only(
    service: RunningService, seats: dict[str, str]
) -> None:
    line = {"id": "1", "text": "hello"}
    for path in ("/v1/channels/f/tracker/messages", "/v1/channels/g/chat/messages"):
        assert service.request("POST", path, line, headers=HERS).status == 401
    assert service.request("GET", "/v1/tools", headers=HERS).status == 401
    assert service.request("POST", "/v1/tools/self", {}, headers=HERS).status == 401
    organizations = "/internal/v1/organizations:sync"
    assert service.request("POST", organizations, {}, headers=HERS, local=True).status == 401


def test_gauges_tell_of_seats_and_of_what_waits(
    service: RunningService, lead: Client, rep: Client
) -> None:
    call(rep, "messages.send", to="lead", body="do it")
    lines = service.request("GET", "/metrics").body.decode().splitlines()
    assert 'steadmesh_seats{organization="f",state="Stopped"} 3.0' in lines
    assert 'steadmesh_messages_accepted_total{origin="seat"} 1.0' in lines
    age = next(line for line in lines if line.startswith("steadmesh_inbox_oldest_pending_seconds "))
    assert float(age.split()[1]) >= 0


def test_an_operator_sees_how_much_the_database_holds_and_what_is_kept_how_long(
    service: RunningService, lead: Client
) -> None:
    call(lead, "messages.send", to="engineer", body="build it")
    answer = service.request("GET", "/internal/v1/sizes", local=True)
    assert answer.status == 200, answer.body
    sizes = answer.json()
    tables = {table["name"]: table for table in sizes["tables"]}
    assert sum(table["bytes"] for table in sizes["tables"]) <= sizes["bytes"]
    assert (tables["messages"]["kept"], tables["messages"]["setting"]) == (
        "730d",
        "retention.messages",
    )
    assert tables["messages"]["oldest"].startswith("20")
    assert "kept" not in tables["seats"]
    assert tables["tokens"]["kept"] == "1d"
    assert service.request("GET", "/internal/v1/sizes").status == 401
