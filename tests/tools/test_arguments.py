"""Arguments are read as models really send them, and refused by the name of the field."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from steadmesh.tools import Args, Clamped, Doc, NotBlank, Size
from steadmesh.tools.arguments import BadArguments, input_schema


class Example(Args):
    to: Annotated[str, Doc("Who gets it."), NotBlank()]
    body: Annotated[str, Doc("What to say."), Size(12_288)] = ""
    tags: Annotated[list[str] | None, Field(max_length=3)] = None
    wake: bool = True
    count: int = 0
    ratio: float = 0.5
    params: dict[str, Any] = Field(default_factory=dict)
    order: Literal["up", "down"] = "up"
    limit: Annotated[int, Clamped(maximum=50, default=20)] = 20


def read(**arguments: Any) -> Example:
    return Example.read({"to": "lead"} | arguments)


def refusal(**arguments: Any) -> str:
    with pytest.raises(BadArguments) as refused:
        read(**arguments)
    return refused.value.message


def test_null_means_absent() -> None:
    assert read(body=None, tags=None, wake=None, count=None) == read()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tags", '["a", "b"]', ["a", "b"]),
        ("wake", "false", False),
        ("count", "3", 3),
        ("count", "3.0", 3),
        ("ratio", "0.25", 0.25),
        ("params", '{"a": 1}', {"a": 1}),
    ],
)
def test_json_in_a_string_is_read_as_what_is_declared(name: str, text: str, value: Any) -> None:
    assert getattr(read(**{name: text}), name) == value


def test_a_text_that_looks_like_json_stays_a_text() -> None:
    assert read(body="[1, 2]").body == "[1, 2]"
    assert read(body="null").body == "null"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"count": float("nan")}, "count: is not a number that JSON knows"),
        ({"params": {"deep": [float("inf")]}}, "params: is not a number that JSON knows"),
        ({"body": "a\0b"}, "body: holds a NUL character"),
        ({"tags": ["ok", "\ud800"]}, "tags: holds a lone surrogate (U+D800)"),
        ({"params": {"\udfff": 1}}, "params: holds a lone surrogate (U+DFFF)"),
        ({"\ud800": 1, "body": 1}, "the name of an argument holds a lone surrogate (U+D800)"),
        ({"a\0": 1}, "the name of an argument holds a NUL character"),
        ({"count": 10**30}, "count: is an integer of more than 64 bits"),
        ({"to": 7}, "to: must be a text"),
        ({"to": "  "}, "to: is blank"),
        ({"to": "\u200b\u2060"}, "to: is blank"),
        ({"wake": "perhaps"}, "wake: must be true or false"),
        ({"tags": "a, b"}, "tags: must be a list"),
        ({"tags": ["a", "b", "c", "d"]}, "tags: has 4 entries; at most 3"),
        ({"tags": [1]}, "tags.0: must be a text"),
        ({"count": 1.5}, "count: must be a whole number"),
        ({"count": True}, "count: must be a whole number"),
        ({"order": "sideways"}, "order: must be one of 'up' or 'down'"),
        ({"wak": True}, "wak: is not an argument of this tool; did you mean wake?"),
    ],
)
def test_what_is_wrong_is_said_by_the_name_of_its_field(
    arguments: dict[str, Any], words: str
) -> None:
    assert words in refusal(**arguments)


def test_a_size_is_counted_in_bytes() -> None:
    """S-50: 12 289 bytes of emoji are too many, though they are 3 073 characters."""
    assert read(body="🙂" * 3_072).body == "🙂" * 3_072
    assert "body: is 12289 bytes long; at most 12288" in refusal(body="🙂" * 3_072 + "a")


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(BadArguments) as refused:
        Example.read({"count": "many", "order": 1})
    for name in ("to: is required", "count: ", "order: "):
        assert name in refused.value.message


def test_a_refusal_stays_short_however_much_is_wrong() -> None:
    """Names and number of mistakes are the caller's to choose; the length of the answer is not."""
    message = refusal(**{f"unknown_{n}": n for n in range(5_000)})
    assert "unknown_0: is not an argument" in message
    assert message.endswith("and 4990 more mistakes")
    assert len(message) < 2_000
    assert len(refusal(**{"x" * 500_000: 1})) < 500


def test_paging_limits_are_clamped() -> None:
    assert [read(limit=n).limit for n in (-1, 0, 1, 50, 51, 10**9)] == [20, 20, 1, 50, 50, 50]


def test_the_schema_is_flat_and_typed() -> None:
    schema = input_schema(Example)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["to"]
    assert all("type" in part for part in schema["properties"].values())
    text = json.dumps(schema)
    for word in ("$ref", "anyOf", "maxLength", "title"):
        assert word not in text
    assert "At most 12288 bytes." in schema["properties"]["body"]["description"]
    limit = schema["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 50, 20)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(Example.model_fields)) | st.text(), JSON))
def test_no_arguments_raise_anything_but_a_failure(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(BadArguments):
        assert isinstance(Example.read(arguments), Example)
