"""What every request has to pass: Host, Origin, the kind of its body, and the credentials it presents.

Nothing here asks the database. A presented credential of the right form is judged where it is used;
one that cannot be anything is refused at once, and never taken for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from steadmesh.kernel.crypto import digest, same
from steadmesh.kernel.datadir import OPERATOR_KEY_PREFIX
from steadmesh.service.replies import CHALLENGE, Headers, Refusal
from steadmesh.service.requests import Request
from steadmesh.tools import Credentials

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SEAT_PREFIX = "sms_"
PEOPLE = b"/v1/channels/"
"""Below this a Bearer without prefix may be a person's token."""

PAGE_HEADERS = (
    b"Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Method, Mcp-Name,"
    b" Mcp-Protocol-Version, Mcp-Session-Id, X-Agent-Token, X-Relay-Secret, X-Steadmesh-Execution,"
    b" X-Steadmesh-Generation"
)
"""What pages of an allowed origin may send besides what every page may."""
EXPOSED_HEADERS = b"Allow, Retry-After, WWW-Authenticate"
PREFLIGHT_SECONDS = 600
KEY_LENGTH = 200
_VISIBLE = re.compile(r"[!-~]+")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_PORT = re.compile(rb"(?::[0-9]{1,5})?")
_HOST = re.compile(rb"(\[[0-9a-f:.]+\]|[^:\[\]]*)(.*)", re.DOTALL)


class Wall:
    """The checks, as this service is configured."""

    def __init__(
        self, *, hosts: Iterable[str] = (), origins: Iterable[str] = (), secret: str | None = None
    ) -> None:
        """`hosts` and `origins` are allowed besides those of loopback; `secret` closes every route."""
        self._hosts = frozenset(host.lower().encode() for host in (*LOOPBACK, *hosts))
        self._loopback = frozenset(host.encode() for host in LOOPBACK)
        self._origins = frozenset(origin.lower().encode() for origin in origins)
        self._secret = digest(secret) if secret else None

    def check_source(self, request: Request) -> Headers:
        """Host and Origin: a web page may neither reach us under a name of its own nor call blindly.

        Returns the headers by which a page of an allowed origin may read the answer.
        """
        if request.local:
            return ()
        host = request.headers.get(b"host", b"")
        if not _names_one_of(host, self._hosts):
            shown = host[:100].decode("ascii", "replace")
            raise Refusal(
                421,
                f"this service does not answer to the host name {shown!r}. "
                "Use 127.0.0.1 or localhost, or add the name to allowed_hosts.",
            )
        origin = request.headers.get(b"origin")
        if origin is None:
            return ()
        if not self._allows_origin(origin.lower()):
            shown = origin[:100].decode("ascii", "replace")
            raise Refusal(
                403,
                f"pages of the origin {shown!r} may not call this service. "
                "Add it to allowed_origins if they should.",
                code="forbidden",
            )
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        )

    def check_kind(self, request: Request) -> None:
        """A body is application/json: a form of a web page cannot send that."""
        headers = request.headers
        kind = headers.get(b"content-type")
        if kind == b"application/json":
            pass
        elif kind is None:
            if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
                raise _wrong_kind("no type")
        elif kind.partition(b";")[0].strip().lower() != b"application/json":
            raise _wrong_kind(repr(kind[:100].decode("ascii", "replace")))
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Refusal(415, "send the body without a content encoding")

    def credentials(self, request: Request) -> Credentials:
        """What the request presents, or a refusal.

        A missing secret is not refused here: see `admits`.
        """
        headers = request.headers
        bearer = None
        secret = headers.get(b"x-relay-secret")
        if secret is not None and not self._is_secret(secret):
            raise _unknown("the X-Relay-Secret of this request is not the one of this service")
        authorization = headers.get(b"authorization")
        if authorization is not None:
            bearer = self._bearer(authorization, request.path)
        agent_token = request.header(b"x-agent-token")
        if agent_token and bearer and bearer.startswith(SEAT_PREFIX):
            raise Refusal(
                400, "a seat's token and an agent's token came together; send the one that you are"
            )
        return Credentials(
            bearer=bearer,
            agent_token=agent_token or None,
            local=request.local,
            generation=_generation(request) if b"x-steadmesh-generation" in headers else None,
            execution=_execution(request) if b"x-steadmesh-execution" in headers else None,
            idempotency_key=_key(request) if b"idempotency-key" in headers else None,
        )

    def admits(self, request: Request, credentials: Credentials) -> bool:
        """Whether the request may pass the secret's gate, its Bearer still to be verified."""
        if self._secret is None or request.local or credentials.bearer is not None:
            return True
        # The bearer was the secret itself, or it came in its own header; both were compared above.
        return b"authorization" in request.headers or b"x-relay-secret" in request.headers

    def _bearer(self, authorization: bytes, path: bytes) -> str | None:
        """A token of somebody; nothing for the secret, which says who may come in but not who it is."""
        scheme, _, value = authorization.partition(b" ")
        value = value.strip()
        if scheme.lower() != b"bearer" or not value or not value.isascii():
            raise _unknown("the Authorization of this request is not `Bearer` and a token")
        token = value.decode()
        if token.startswith((SEAT_PREFIX, OPERATOR_KEY_PREFIX)):
            return token
        if self._is_secret(value):
            return None
        if path.startswith(PEOPLE):
            return token
        raise _unknown(
            "the Bearer token of this request is no token of a seat (sms_…), no operator key (smo_…) "
            "and not the secret of this service"
        )

    def _is_secret(self, value: bytes) -> bool:
        if self._secret is None:
            return False
        return same(digest(value.decode("latin-1")).encode(), self._secret.encode())

    def _allows_origin(self, origin: bytes) -> bool:
        if origin in self._origins:
            return True
        scheme, separator, host = origin.partition(b"://")
        known = scheme in (b"http", b"https") and bool(separator)
        return known and _names_one_of(host, self._loopback)


def is_preflight(request: Request) -> bool:
    """Whether a browser asks what a page may send. Its origin was checked as that of every request."""
    headers = request.headers
    return (
        request.method == "OPTIONS"
        and b"origin" in headers
        and b"access-control-request-method" in headers
        and not request.local
    )


def preflight_headers(request: Request, methods: str) -> Headers:
    """The answer to a browser: these methods, and every header that we know."""
    private = request.headers.get(b"access-control-request-private-network") == b"true"
    return (
        (b"access-control-allow-methods", methods.encode()),
        (b"access-control-allow-headers", PAGE_HEADERS),
        (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
        *(((b"access-control-allow-private-network", b"true"),) if private else ()),
    )


def needs_secret() -> Refusal:
    """The refusal of a request without any credential, where a secret is configured."""
    return _unknown(
        "this service needs a credential: a token of your own, or its secret in X-Relay-Secret"
    )


def _names_one_of(authority: bytes, names: frozenset[bytes]) -> bool:
    match = _HOST.fullmatch(authority.lower())
    return match is not None and match[1] in names and _PORT.fullmatch(match[2]) is not None


def _unknown(message: str) -> Refusal:
    return Refusal(401, message, code="unauthenticated", headers=CHALLENGE)


def _wrong_kind(found: str) -> Refusal:
    return Refusal(415, f"the body must be sent as `Content-Type: application/json`, not {found}")


def _generation(request: Request) -> int:
    text = (request.header(b"x-steadmesh-generation") or "").strip()
    if not _INTEGER.fullmatch(text):
        raise Refusal(400, "X-Steadmesh-Generation must be a whole number")
    return int(text)


def _execution(request: Request) -> str | None:
    text = request.header(b"x-steadmesh-execution") or ""
    if len(text) > KEY_LENGTH:
        raise Refusal(400, f"X-Steadmesh-Execution is longer than {KEY_LENGTH} characters")
    return text or None


def _key(request: Request) -> str:
    text = request.headers[b"idempotency-key"].decode("latin-1")
    if not _VISIBLE.fullmatch(text) or len(text) > KEY_LENGTH:
        raise Refusal(
            400,
            f"Idempotency-Key must be 1 to {KEY_LENGTH} visible ASCII characters without spaces",
        )
    return text
