"""Which path leads where."""

from __future__ import annotations

import pytest

from steadmesh.service.routes import Routes

ROUTES = Routes(
    [
        ("GET", "/v1/self", "self"),
        ("GET", "/v1/seats/{seat}", "seat"),
        ("DELETE", "/v1/seats/{seat}", "end"),
        ("POST", "/v1/seats/{seat}:suspend", "suspend"),
        ("POST", "/v1/seats/{seat}/tokens/{instance}", "token"),
        ("POST", "/v1/organizations:sync", "sync"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "target", "values"),
    [
        ("GET", "/v1/self", "self", {}),
        ("GET", "/v1/seats/abc", "seat", {"seat": "abc"}),
        ("DELETE", "/v1/seats/abc", "end", {"seat": "abc"}),
        ("POST", "/v1/seats/abc:suspend", "suspend", {"seat": "abc"}),
        ("GET", "/v1/seats/abc:other", "seat", {"seat": "abc:other"}),
        ("GET", "/v1/seats/a%2Fb%3Asuspend", "seat", {"seat": "a/b:suspend"}),
        ("GET", "/v1/seats/%C3%A9%20x", "seat", {"seat": "\u00e9 x"}),
        ("POST", "/v1/seats/a/tokens/b", "token", {"seat": "a", "instance": "b"}),
        ("POST", "/v1/organizations:sync", "sync", {}),
    ],
)
def test_a_path_leads_to_what_was_declared(
    method: str, path: str, target: str, values: dict[str, str]
) -> None:
    match = ROUTES.find(path.encode())
    assert match is not None
    assert match.targets[method] == target
    assert match.values == values


@pytest.mark.parametrize(
    "path",
    ["/v1/self/", "/v1/seats/", "/v1/seats", "/v1//seats/a", "/V1/self", "/v1/seats/a/b", ""],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    assert ROUTES.find(path.encode()) is None


def test_what_is_not_utf_8_is_no_name_that_anybody_has() -> None:
    match = ROUTES.find(b"/v1/seats/%FF")
    assert match is not None
    assert match.values == {"seat": "\ufffd"}


def test_the_allowed_methods_are_named_in_order() -> None:
    match = ROUTES.find(b"/v1/seats/abc")
    assert match is not None
    assert match.allowed == "DELETE, GET"


def test_two_endpoints_on_one_route_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two endpoints are GET /a"):
        Routes([("GET", "/a", 1), ("GET", "/a", 2)])
