"""Harness profiles, their models, and the API between them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.organisation.changes import GONE, compiled, said

PROFILE = "harness_profiles.smart"
MODEL = f"{PROFILE}.model"


def with_model(adapter: str = "claude-code", **changes: Any) -> dict[str, Any]:
    """The sample with a lead on a model. `changes`: dotted paths, with __ for the dot."""
    declared: dict[str, Any] = {
        "connections.claude": {"adapter": "anthropic", "secret_ref": "env:CLAUDE"},
        "connections.gpt": {"adapter": "openai", "secret_ref": "env:GPT"},
        "connections.own": {
            "adapter": "model",
            "secret_ref": "env:OWN",
            "endpoint_ref": "https://models.example.com/v1",
            "model": {
                "apis": ["openai_chat", "anthropic_messages"],
                "models": [{"id": "m-1"}, {"id": "m-2", "apis": ["openai_chat"]}],
            },
        },
        PROFILE: {"adapter": adapter, "image_digest": "1.0"},
        MODEL: {"connection": "claude", "id": "some-model"},
        "seats.lead.harness_profile": "smart",
    }
    return declared | {name.replace("__", "."): value for name, value in changes.items()}


def test_the_api_is_the_first_that_both_sides_know() -> None:
    claude = compiled(with_model()).seats["lead"].harness.model
    assert claude is not None
    assert claude.api == "anthropic_messages"
    own = with_model("pi", harness_profiles__smart__model={"connection": "own", "id": "m-1"})
    pi = compiled(own).seats["lead"].harness.model
    assert pi is not None
    assert pi.api == "openai_chat"


def test_a_model_may_serve_fewer_apis_than_its_connection() -> None:
    use = {"connection": "own", "id": "m-2"}
    found = said(with_model(harness_profiles__smart__model=use))
    assert "claude-code speaks anthropic_messages" in found[f"{MODEL}.api"]
    assert "serves openai_chat" in found[f"{MODEL}.api"]
    assert "one of the harnesses pi" in found[f"{MODEL}.api"]


def test_a_seat_with_a_model_may_use_it_and_its_connection_is_required() -> None:
    organisation = compiled(with_model())
    manifest = organisation.seats["lead"].manifest
    claude = next(entry for entry in manifest if entry.resource == "connection:claude")
    assert (claude.operations, claude.sources) == (("model.infer",), ("implicit:harness_model",))
    assert organisation.connections["claude"].required
    assert not organisation.connections["gpt"].required


def test_model_connections_get_their_adapters_defaults() -> None:
    connections = compiled(with_model()).connections
    services = {key: connections[key].model for key in ("claude", "gpt", "own")}
    assert {key: (s.apis, s.auth, s.verify) for key, s in services.items() if s} == {
        "claude": (("anthropic_messages",), "x-api-key", "request"),
        "gpt": (("openai_responses", "openai_chat"), "bearer", "request"),
        "own": (("openai_chat", "anthropic_messages"), "bearer", "request"),
    }


@pytest.mark.parametrize("alias", ["claude", "claudecode"])
def test_a_harness_has_aliases(alias: str) -> None:
    assert compiled(with_model(alias)).seats["lead"].harness.adapter == "claude-code"


def test_the_fake_harness_needs_no_model_and_takes_any() -> None:
    use = {"connection": "own", "id": "m-2"}
    model = compiled(with_model("fake", harness_profiles__smart__model=use)).seats["lead"].harness
    assert model.model is not None
    assert model.model.api == "openai_chat"


@pytest.mark.parametrize(
    ("adapter", "changes", "path", "words"),
    [
        ("codex", {"model": GONE}, "model", "is required for codex"),
        ("claude-code", {"model.id": GONE}, "model.id", "is required"),
        ("claude-code", {"model.connection": "x"}, "model.connection", "unknown connection"),
        ("claude-code", {"model.connection": "chat"}, "model.connection", "not a model connection"),
        ("pi", {"model": {"connection": "own", "id": "m-3"}}, "model.id", "It lists m-1, m-2"),
        ("claude-code", {"model.api": "anthropic"}, "model.api", "unknown API"),
        ("claude-code", {"model.api": "openai_chat"}, "model.api", "does not speak openai_chat"),
        (
            "pi",
            {"model": {"connection": "own", "id": "m-2", "api": "anthropic_messages"}},
            "model.api",
            "does not serve anthropic_messages for the model",
        ),
        ("codex", {}, "model.api", "codex speaks openai_responses, the connection claude serves"),
        ("claude-code", {"model.settings": {"efort": "low"}}, "model.settings.efort", '"effort"'),
        ("claude-code", {"model.settings": {"effort": "huge"}}, "model.settings.effort", "xhigh"),
        ("claude-code", {"model.settings": {"effort": ""}}, "model.settings.effort", "one of"),
        ("pi", {"model.settings": {"max_tokens": 0}}, "model.settings.max_tokens", "at least 1"),
        ("pi", {"model.settings": {"reasoning": "maybe"}}, "model.settings.reasoning", "true or"),
        (
            "codex",
            {"model.settings": {"reasoning_effort": " "}, "model.connection": "gpt"},
            "model.settings.reasoning_effort",
            "not empty",
        ),
        ("claude-code", {"model.temperature": 1}, "model.temperature", "unknown field"),
        (
            "claude-code",
            {"required_capabilities": ["suspend"]},
            "required_capabilities",
            "does not",
        ),
    ],
)
def test_a_wrong_model_is_told_at_its_path(
    adapter: str, changes: dict[str, Any], path: str, words: str
) -> None:
    below = {f"{PROFILE}.{name}": value for name, value in changes.items()}
    found = said(with_model(adapter) | below)
    assert words in found.get(f"{PROFILE}.{path}", f"nothing there, but {found}")


@pytest.mark.parametrize(
    ("connection", "path", "words"),
    [
        ({"endpoint_ref": GONE}, "endpoint_ref", "is required"),
        ({"model": GONE}, "model.apis", "is required"),
        ({"model": {"apis": []}}, "model.apis", "at least one"),
        ({"model": {"apis": ["soap"]}}, "model.apis[0]", "unknown API"),
        ({"model": {"apis": ["openai_chat"], "auth": "basic"}}, "model.auth", "header:<Name>"),
        ({"model": {"apis": ["openai_chat"], "verify": "no"}}, "model.verify", "request"),
        (
            {"model": {"apis": ["openai_chat"], "models": [{"id": "a"}, {"id": "a"}]}},
            "model.models[1].id",
            "listed twice",
        ),
        (
            {"model": {"apis": ["openai_chat"], "models": [{"id": "a", "apis": ["x"]}]}},
            "model.models[0].apis[0]",
            "does not serve",
        ),
        ({"model": {"apis": ["openai_chat"], "models": [{}]}}, "model.models[0].id", "required"),
    ],
)
def test_a_wrong_model_connection_is_told_at_its_path(
    connection: dict[str, Any], path: str, words: str
) -> None:
    below = {f"connections.own.{name}": value for name, value in connection.items()}
    found = said(with_model() | below)
    assert words in found.get(f"connections.own.{path}", f"nothing there, but {found}")


@pytest.mark.parametrize(
    ("adapter", "connection", "settings", "taken"),
    [
        ("claude-code", "claude", {"effort": "max"}, {"effort": "max"}),
        ("codex", "gpt", {"reasoning_effort": "medium"}, {"reasoning_effort": "medium"}),
        (
            "pi",
            "gpt",
            {"thinking": "off", "max_tokens": "4096", "context_window": 9, "reasoning": "true"},
            {"thinking": "off", "max_tokens": 4096, "context_window": 9, "reasoning": True},
        ),
    ],
)
def test_settings_are_taken_in_their_own_type(
    adapter: str, connection: str, settings: dict[str, Any], taken: dict[str, Any]
) -> None:
    use = {"connection": connection, "id": "m", "settings": settings}
    model = compiled(with_model(adapter, harness_profiles__smart__model=use)).seats["lead"].harness
    assert model.model is not None
    assert model.model.settings == taken
