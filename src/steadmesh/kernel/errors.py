"""What can go wrong, as a small closed set of kinds.

A feature subclasses a kind; the subclass's docstring is its message (a format string over the
keywords it is raised with), `code` is the word that callers act on, and `details` names the
keywords that are part of the contract:

    class InboxFull(Full):
        \"\"\"{seat} already has {limit} messages waiting. Try again later.\"\"\"
        code = "inbox_full"

    raise InboxFull(seat="lead", limit=1000)

A text longer than `REPEATED_BYTES` is cut in the message, so that no caller can make it long by what
it sends; in the details it stays whole.

Each transport has one table from kind to its own language.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Literal

from steadmesh.kernel.text import truncated

REPEATED_BYTES = 2_048

Kind = Literal[
    "invalid",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "full",
    "fenced",
    "too_large",
    "rate_limited",
    "unavailable",
    "internal",
]


class Failure(Exception):
    """Something the caller can be told about."""

    kind: ClassVar[Kind] = "internal"
    code: ClassVar[str] = "internal"
    details: ClassVar[tuple[str, ...]] = ()
    template: ClassVar[str] = ""
    ends_access: ClassVar[bool] = False
    """The caller is nobody any more, whatever it calls: not an answer of one tool."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.template = inspect.cleandoc(cls.__doc__)

    def __init__(self, message: str | None = None, **fields: Any) -> None:
        self.fields = fields
        self.counted: list[tuple[str, ...]] = []
        """Metrics that count it, each with its labels, once a call has come to this."""
        self.message = message if message is not None else self.template.format(**_shown(fields))
        super().__init__(self.message)

    def detail(self) -> dict[str, Any]:
        """The fields that are part of the contract, as they go on the wire."""
        return {name: self.fields[name] for name in self.details if name in self.fields}

    def as_content(self) -> dict[str, Any]:
        """The tool error `{error, message, details?}`."""
        content: dict[str, Any] = {"error": self.code, "message": self.message}
        if detail := self.detail():
            content["details"] = detail
        return content


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: truncated(value, REPEATED_BYTES) if isinstance(value, str) else value
        for name, value in fields.items()
    }


class Invalid(Failure):
    """{reason}"""

    kind = "invalid"
    code = "invalid"


class Unauthenticated(Failure):
    """{reason}"""

    kind = "unauthenticated"
    code = "unauthenticated"


class Forbidden(Failure):
    """{reason}"""

    kind = "forbidden"
    code = "forbidden"


class NotFound(Failure):
    """{reason}"""

    kind = "not_found"
    code = "not_found"


class Conflict(Failure):
    """{reason}"""

    kind = "conflict"
    code = "conflict"


class Full(Failure):
    """{reason}"""

    kind = "full"
    code = "full"


class Fenced(Failure):
    """{reason}"""

    kind = "fenced"
    code = "fenced"


class TooLarge(Failure):
    """{reason}"""

    kind = "too_large"
    code = "result_too_large"


class RateLimited(Failure):
    """{reason}"""

    kind = "rate_limited"
    code = "rate_limited"


class Unavailable(Failure):
    """{reason}"""

    kind = "unavailable"
    code = "unavailable"


class Internal(Failure):
    """The service made a mistake; it is in the service's log under call id {call_id}."""

    kind = "internal"
    code = "internal"
    details = ("call_id",)
