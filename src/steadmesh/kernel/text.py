"""Text: sizes in bytes, what may be stored, and what may reach a terminal."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCE = re.compile(
    "(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"  # system commands: titles, links
    "|(?:\x1b[P^_X]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\\\|\x9c)?"  # device control strings
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor movements
    "|\x1b[ -/]*[0-~]?"  # every other escape
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def size(text: str) -> int:
    """Bytes of UTF-8. The text holds no lone surrogate (see `flaw`)."""
    return len(text) if text.isascii() else len(text.encode())


def truncated(text: str, max_bytes: int) -> str:
    """The longest beginning of a text that fits in so many bytes, without splitting a character."""
    if len(text) <= max_bytes and size(text) <= max_bytes:
        return text
    # No character is shorter than a byte, so the rest need not be encoded.
    return text[:max_bytes].encode()[:max_bytes].decode(errors="ignore")


def flaw(text: str) -> str | None:
    """What a text holds that makes it unfit to be stored or sent; nothing if it is fit.

    PostgreSQL has no NUL in text, and half a surrogate pair has no UTF-8.
    """
    if "\0" in text:
        return "a NUL character (U+0000)"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            return f"a lone surrogate (U+{ord(text[problem.start]):04X}), which is no character"
    return None


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: white space, control and format characters only."""
    return not text.strip() or all(
        character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text
    )


def for_terminal(text: str) -> str:
    """A text without anything that would steer a terminal; new lines and tabs stay.

    Half a surrogate pair, which a terminal's encoding would refuse, becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", _SEQUENCE.sub("", text)))
