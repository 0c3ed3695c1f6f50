"""Text: sizes in bytes, addresses in one form, and what may reach a terminal."""

from __future__ import annotations

import re
import unicodedata

_SEQUENCE = re.compile(
    "\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?"  # operating system commands: titles, links
    "|\x1b[P^_X][^\x1b]*(?:\x1b\\\\)?"  # device control and other strings
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor movements
    "|\x1b[ -/]*[0-~]?"  # every other escape
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def truncated(text: str, max_bytes: int) -> str:
    """The longest beginning of a text that fits in so many bytes, without splitting a character."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    return encoded[:max_bytes].decode(errors="ignore")


def address(text: str) -> str:
    """A name, path or key in the one form (NFC) in which it is stored and compared."""
    return unicodedata.normalize("NFC", text)


def for_terminal(text: str) -> str:
    """A text without anything that would steer a terminal; new lines and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))
