"""Cursors belong to one caller and one query."""

from __future__ import annotations

import pytest

from steadmesh.kernel.paging import BadCursor, Cursors

CURSORS = Cursors(b"k" * 32)
QUERY = {"tool": "list", "prefix": "a"}


def test_a_cursor_gives_back_its_position_exactly() -> None:
    position = (1_790_000_000_123_457, "notes/é.md")
    cursor = CURSORS.write(position, caller="ada", query=QUERY)
    assert CURSORS.read(cursor, caller="ada", query=QUERY) == position


def test_the_empty_cursor_is_the_beginning() -> None:
    assert CURSORS.read("", caller="ada", query=QUERY) is None


@pytest.mark.parametrize("forged", ["x", "🙂", "AAAA", "a" * 200, " ", "null"])
def test_a_made_up_cursor_is_refused(forged: str) -> None:
    with pytest.raises(BadCursor, match="Start again"):
        CURSORS.read(forged, caller="ada", query=QUERY)


def test_a_cursor_of_another_caller_query_or_service_is_refused() -> None:
    cursor = CURSORS.write((1,), caller="ada", query=QUERY)
    for cursors, caller, query in (
        (CURSORS, "bob", QUERY),
        (CURSORS, "ada", QUERY | {"prefix": "b"}),
        (Cursors(b"o" * 32), "ada", QUERY),
    ):
        with pytest.raises(BadCursor):
            cursors.read(cursor, caller=caller, query=query)


def test_a_changed_cursor_is_refused() -> None:
    cursor = CURSORS.write((12, "a"), caller="ada", query=QUERY)
    for index in range(len(cursor)):
        changed = cursor[:index] + ("A" if cursor[index] != "A" else "B") + cursor[index + 1 :]
        with pytest.raises(BadCursor):
            CURSORS.read(changed, caller="ada", query=QUERY)
