"""What must never be written down: secrets, known by value, by form, or by the name they go under.

Value is the strongest: a secret that the process knows is found in any text, however it got there.
The other two catch secrets of somebody else.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from urllib.parse import quote

MASK = "***"
SHORTEST_SECRET = 4
"""Characters. A shorter value would mask every other word, and is no secret."""
_LONGEST_FORM = 128
_DEEPEST = 8
_MOST_ITEMS = 200

_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(sm[so]_)[A-Za-z0-9_-]{8,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}"), rf"\1\2{MASK}"),
    (
        re.compile(r"(?i)((?:set-)?cookie|(?:proxy-)?authorization)([\"']?\s*[:=]\s*)[^\r\n]+"),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"), rf"\1{MASK}"),
    (
        re.compile(
            r"(?i)(token|secret|password|passphrase|api[_-]?key|credentials?|private[_-]?key)"
            r"([\"']?\s?[:=]\s?)(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,;&)}\]\"']+)"
        ),
        rf"\1\2{MASK}",
    ),
)
_NAMES = frozenset(
    {
        "apikey", "authorization", "cookie", "cookies", "credential", "credentials", "passphrase",
        "passwd", "password", "passwords", "secret", "secrets", "token", "tokens",
    }
)  # fmt: skip
_PAIRS = frozenset({("api", "key"), ("api", "keys"), ("private", "key"), ("private", "keys")})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Secrets:
    """The secret values that this process knows. Safe to share between threads."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._pattern: re.Pattern[str] | None = None
        self.longest = _LONGEST_FORM
        """Characters of the longest thing that `masked` looks for."""
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Know a secret. Adding it twice takes two calls of `discard` to forget it."""
        self._change(value, 1)

    def discard(self, value: str) -> None:
        """Forget a secret that is no longer one."""
        self._change(value, -1)

    def masked(self, text: str) -> str:
        """The text with every secret in it replaced by `***`."""
        pattern = self._pattern
        if pattern is not None:
            text = pattern.sub(MASK, text)
        for form, shown in _FORMS:
            text = form.sub(shown, text)
        return text

    def _change(self, value: str, by: int) -> None:
        if len(value) < SHORTEST_SECRET:
            return
        with self._lock:
            count = self._counts.get(value, 0) + by
            if count > 0:
                self._counts[value] = count
            else:
                self._counts.pop(value, None)
            spellings = {spelt for known in self._counts for spelt in _spellings(known)}
            longest_first = sorted(spellings, key=len, reverse=True)
            self.longest = max([_LONGEST_FORM, *map(len, longest_first[:1])])
            self._pattern = (
                re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
            )


def _spellings(value: str) -> set[str]:
    """How a secret may stand in a text: as it is, in JSON, in an address; line by line."""
    lines = [line.strip() for line in value.splitlines() if len(line.strip()) >= 16]
    return {
        spelt
        for part in (value, value.strip(), *lines)
        for spelt in (part, json.dumps(part)[1:-1], quote(part, safe=""))
        if len(spelt) >= SHORTEST_SECRET
    }


@lru_cache(maxsize=1024)
def names_a_secret(key: str) -> bool:
    """Whether what goes under this name is a secret: `api_key`, `X-Agent-Token`, `clientSecret`."""
    words = [word.lower() for word in _WORD.findall(key[:200])]
    return not _NAMES.isdisjoint(words) or not _PAIRS.isdisjoint(pairwise(words))


class Redaction:
    """Makes any value fit to be written as JSON: no secrets, no cycles, bounded in size."""

    def __init__(self, secrets: Secrets, *, longest_text: int = 4_096) -> None:
        self._secrets = secrets
        self._longest_text = longest_text

    def fields(self, fields: Mapping[str, object]) -> dict[str, object]:
        return {str(key): self._under(str(key), value, 0) for key, value in fields.items()}

    def text(self, text: str) -> str:
        """The beginning, masked. Cut after masking: half a secret would not be recognised."""
        longest, margin = self._longest_text, self._secrets.longest
        if len(text) <= longest + margin:
            masked = self._secrets.masked(text)
            return masked if len(masked) <= longest else masked[:longest] + "..."
        masked = self._secrets.masked(text[: longest + margin])
        # The cut may have gone through a secret; what is left of that lies in the last part.
        return masked[: max(0, min(longest, len(masked) - margin))] + "..."

    def end_of(self, text: str, longest: int) -> str:
        """As `text`, for a text whose end says more than its beginning."""
        margin = self._secrets.longest
        if len(text) <= longest:
            return self._secrets.masked(text)
        masked = self._secrets.masked(text[-(longest + margin) :])
        return "..." + masked[min(margin, len(masked)) :][-longest:]

    def value(self, value: object, depth: int = 0) -> object:
        match value:
            case None | bool():
                return value
            case int():
                return int(value) if abs(value) < 2**63 else self.text(hex(value))
            case float():
                return float(value) if abs(value) < float("inf") else str(value)
            case str():
                return self.text(value)
            case bytes() | bytearray() | memoryview():
                return f"<{len(value)} bytes>"
            case Mapping() | list() | tuple() | set() | frozenset() if depth >= _DEEPEST:
                return "..."
            case Mapping():
                items = list(value.items())[:_MOST_ITEMS]
                return {
                    self.text(_said(key)): self._under(_said(key), item, depth)
                    for key, item in items
                }
            case list() | tuple() | set() | frozenset():
                return [self.value(item, depth + 1) for item in list(value)[:_MOST_ITEMS]]
            case BaseException():
                return f"{type(value).__name__}: {self.text(_said(value))}"
            case _:
                return self.text(_said(value))

    def _under(self, key: str, value: object, depth: int) -> object:
        # A number under such a name counts them (`max_tokens`), unless it is a password.
        if names_a_secret(key) and not (
            value is None or isinstance(value, bool) or _is_count(key, value)
        ):
            return MASK
        return self.value(value, depth + 1)


def _is_count(key: str, value: object) -> bool:
    return isinstance(value, int | float) and key.lower().endswith(("tokens", "count", "seconds"))


def _said(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
