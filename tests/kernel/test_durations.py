"""Durations as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadmesh.kernel import durations
from steadmesh.kernel.durations import HOUR, MILLISECOND, MINUTE, SECOND, parse, show


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("90m", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("10ms", 10 * MILLISECOND),
        ("0s", 0),
        ("1m1m", 2 * MINUTE),
        ("1ns1h", HOUR + 1),
        ("0.000001s", 1_000),
        ("1.5us", 1_500),
        ("0.4ns", 0),
        ("2562047h", 2_562_047 * HOUR),
    ],
)
def test_numbers_with_units_are_read(text: str, nanoseconds: int) -> None:
    assert parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "5", "m", "1d", "1w", "1 m", " 1m", "1m ", "-1m", "+1m", "1.m", ".5h", "1e3s"),
        *("1H", "1m,30s", "1h30", "\uff11m", "\u0661m", "1m\n", "1µs", "2562048h", "9" * 21 + "h"),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_anything_else_is_refused_in_plain_words(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("20m", "20m"), ("120m", "2h"), ("90m", "1h30m"), ("10ms", "10ms"), ("60s", "1m")),
        *(("3661s", "1h1m1s"), ("1.5ms", "1ms500us"), ("0h", "0s")),
    ],
)
def test_a_duration_is_shown_without_zero_units(text: str, shown: str) -> None:
    assert show(parse(text)) == shown


@given(st.integers(0, durations.LONGEST))
def test_what_is_shown_is_read_back_exactly(nanoseconds: int) -> None:
    assert parse(show(nanoseconds)) == nanoseconds


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_pieces_add_up(minutes: int, milliseconds: int) -> None:
    total = minutes * MINUTE + milliseconds * MILLISECOND
    assert parse(f"{minutes}m{milliseconds}ms") == total


@given(st.text(alphabet="0123456789.hmsnu- ", max_size=12))
def test_no_text_raises_anything_but_value_error(text: str) -> None:
    try:
        assert parse(text) >= 0
    except ValueError:
        assert text != "1s"


def test_a_negative_duration_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="negative"):
        show(-SECOND)
