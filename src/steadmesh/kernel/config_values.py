"""How one configured value is read: from the text of a variable or flag, or as TOML has it.

A reader raises ValueError in words that follow the name of the setting: "must be ...". It never
repeats a value that may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from steadmesh.kernel import durations


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written, as far as that matters for its meaning."""

    folder: Path
    """What a relative path is relative to."""
    home: Path
    """What `~` stands for."""
    private: bool = False
    """A file of its own, which may hold a secret."""


Reader = Callable[[object, Place], object]


def whole_number(least: int, most: int) -> Reader:
    def read(value: object, _: Place) -> int:
        text = str(value).strip()
        digits = text.removeprefix("-")
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
        if isinstance(value, bool) or number is None or not least <= number <= most:
            raise ValueError(f"must be a whole number from {least} to {most}, not {_shown(value)}")
        return number

    return read


def one_of(*words: str) -> Reader:
    def read(value: object, _: Place) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {_shown(value)}")
        return word

    return read


def path(value: object, place: Place) -> Path:
    text = _text(value, "a path")
    if text == "~" or text.startswith("~/"):
        return place.home / text[2:]
    return place.folder / text


def host(value: object, _: Place) -> str:
    text = _text(value, "an address or host name").strip("[]")
    if any(mark in text for mark in " /@"):
        raise ValueError(f"must be an address or host name, not {_shown(value)}")
    return text


def host_names(value: object, _: Place) -> tuple[str, ...]:
    names = tuple(name.lower() for name in _texts(value))
    for name in names:
        if any(mark in name for mark in " /@*") or (":" in name and not name.startswith("[")):
            raise ValueError(f"holds host names without scheme, port or *, not {_shown(name)}")
    return names


def origins(value: object, _: Place) -> tuple[str, ...]:
    found = tuple(origin.lower().removesuffix("/") for origin in _texts(value))
    for origin in found:
        scheme, separator, rest = origin.partition("://")
        if scheme not in ("http", "https") or not separator or not rest or "/" in rest:
            raise ValueError(f"holds origins such as https://example.org, not {_shown(origin)}")
    return found


def words_from(*known: str) -> Reader:
    def read(value: object, _: Place) -> tuple[str, ...]:
        found = _texts(value)
        for word in found:
            if word not in known:
                raise ValueError(f"may hold {', '.join(known)}; not {_shown(word)}")
        return found

    return read


def duration(value: object, _: Place) -> int:
    """Nanoseconds."""
    return durations.parse(_text(value, "a duration such as 90s or 1h30m"))


def period(value: object, _: Place) -> int | None:
    """How long something is kept: nanoseconds; nothing for ever. A day here is 24 hours."""
    text = str(value).strip().lower()
    if text in ("0", FOR_EVER):
        return None
    days = re.fullmatch(r"([0-9]{1,5})d", text)
    try:
        length = int(days[1]) * DAY if days else durations.parse(_text(value, "a time"))
    except ValueError:
        length = 0
    if isinstance(value, bool) or not DAY <= length <= durations.LONGEST:
        raise ValueError(
            f"must be a number of days such as 90d (at least 1d), or {FOR_EVER}; not {_shown(value)}"
        )
    return length


def shown_period(value: int | None) -> str:
    """`90d`, `36h`, `forever`."""
    if value is None:
        return FOR_EVER
    days, rest = divmod(value, DAY)
    return durations.show(value) if rest or not days else f"{days}d"


def shared_secret(value: object, _: Place) -> str:
    """A secret that travels in a header, and is told from other credentials by having no prefix."""
    text = _text(value, "a text")
    if len(text) < 32 or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            "must be at least 32 visible ASCII characters without spaces; "
            'make one with: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    if text.startswith(("sms_", "smo_")):
        raise ValueError(
            "must not begin with sms_ or smo_, which mark tokens of seats and operators"
        )
    return text


def database_url(value: object, place: Place) -> str:
    url = _text(value, "a URL")
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(
            "must be a URL such as postgresql://user@host:5432/name (leave it out for SQLite)"
        )
    if holds_password(url) and not place.private:
        raise ValueError(
            "holds a password, which others could read there; put the whole URL into a file that "
            "STEADMESH_DATABASE_FILE names, or only the password into one that PGPASSFILE names"
        )
    try:
        urlsplit(url)
    except ValueError:  # its text would quote the URL, password and all
        raise ValueError(
            "is no URL that can be read. Write it as postgresql://user@host:5432/name, an IPv6 address "
            "in [ ], and special characters in it percent-encoded"
        ) from None
    return url


def holds_password(url: str) -> bool:
    """Whether a database URL carries a secret; one that cannot be read is taken for such."""
    try:
        return bool(passwords_of(url))
    except ValueError:
        return True


def passwords_of(url: str) -> list[str]:
    """The secrets in a database URL, as written and as meant. Raises ValueError if it is none."""
    parts = urlsplit(url)
    found = [value for name, value in parse_qsl(parts.query) if "password" in name.lower()]
    if parts.password:
        found += [parts.password, unquote(parts.password)]
    return sorted(set(found))


def masked_url(url: str) -> str:
    """The URL without its secrets, for people."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if not holds_password(url):
        return url
    user, _, address = parts.netloc.rpartition("@")
    account = f"{user.partition(':')[0]}:{MASK}@" if ":" in user else (user and f"{user}@")
    return urlunsplit(parts._replace(netloc=account + address, query=MASK if parts.query else ""))


MASK = "***"
DAY = 24 * durations.HOUR
FOR_EVER = "forever"


def _text(value: object, what: str) -> str:
    text = (
        value.strip() if isinstance(value, str) else str(value) if isinstance(value, Path) else ""
    )
    if not text or not text.isprintable():
        raise ValueError(f"must be {what}")
    return text


def _texts(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a list of texts, or one text with commas between them")
    return tuple(text for part in parts if (text := part.strip()))


def _shown(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
