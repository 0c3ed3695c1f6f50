"""Text: bytes, one form for addresses, and nothing that steers a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadmesh.kernel.text import flaw, for_terminal, is_blank, size, truncated

any_text = st.text(st.characters(exclude_categories=["Cs"]))


def test_sizes_are_bytes_of_utf8() -> None:
    assert size("né🐝") == 7


def test_a_text_that_fits_is_left_alone() -> None:
    assert truncated("né", 3) == "né"


def test_a_character_is_never_split() -> None:
    assert truncated("a🐝b", 4) == "a"
    assert truncated("a🐝b", 5) == "a🐝"


@given(any_text, st.integers(0, 40))
def test_truncation_gives_the_longest_beginning_that_fits(text: str, max_bytes: int) -> None:
    short = truncated(text, max_bytes)
    assert text.startswith(short)
    assert size(short) <= max_bytes
    assert short == text or size(text[: len(short) + 1]) > max_bytes


def test_nul_is_a_flaw_and_named() -> None:
    assert flaw("a\0b") == "a NUL character (U+0000)"


def test_half_a_character_is_a_flaw_and_named() -> None:
    assert flaw("é\udc80") == "a lone surrogate (U+DC80), which is no character"


@given(any_text.filter(lambda text: "\0" not in text))
def test_what_has_no_flaw_can_be_encoded(text: str) -> None:
    assert flaw(text) is None
    text.encode()


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0\u2003", "\u200b\ufeff", "\x00"])
def test_what_cannot_be_seen_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [" a ", "\u200b.", "🐝", "\u0301"])
def test_what_can_be_seen_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("plain, né 🐝\n\tnext", "plain, né 🐝\n\tnext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("\x9b2Jgone?", "gone?"),
        ("\x9d0;title\x9cafter", "after"),
        ("a\rb\x08c\x7f\x00", "abc"),
        ("\x1bcreset", "reset"),
        ("\x1b\x1b[2J", ""),
        ("\x1b]never ended\nnext line", "\nnext line"),
        ("half \udc80", "half \ufffd"),
    ],
)
def test_nothing_steers_a_terminal(sent: str, seen: str) -> None:
    assert for_terminal(sent) == seen


@given(st.text())
def test_no_control_character_but_newline_and_tab_gets_through(text: str) -> None:
    shown = for_terminal(text)
    assert not [c for c in shown if (ord(c) < 32 or 127 <= ord(c) < 160) and c not in "\n\t"]
    shown.encode()
