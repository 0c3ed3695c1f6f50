"""Where a service listens, and the connection to it: TCP, TLS, or a Unix socket."""

from __future__ import annotations

import socket

# `typing` takes as long to import as everything else here together. Type checkers read the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORMS = "http://HOST:PORT, https://HOST:PORT or unix:/ABSOLUTE/PATH"


class BadAddress(ValueError):
    """A service address that cannot be used. The message never repeats a password in it."""


class Endpoint:
    """One parsed address of a service.

    `text` is the address for messages, `host_header` the value of the Host header, `prefix` the
    path before every request's own.
    """

    __slots__ = ("_host", "_path", "_port", "_tls", "host_header", "prefix", "text")

    def __init__(self, address: str) -> None:
        """Parse `http://…`, `https://…` or `unix:/path`. Raises BadAddress."""
        self.text = address.rstrip("/")
        self._host, self._port, self._path, self.prefix = "", 0, "", ""
        self._tls = False
        if address.startswith("unix:"):
            self._parse_socket(address.removeprefix("unix:"))
        else:
            self._parse_url(address)

    @property
    def is_local_socket(self) -> bool:
        """Whether it is a Unix socket: who can open it is the same user."""
        return bool(self._path)

    @property
    def port(self) -> int | None:
        """The TCP port; none for a Unix socket."""
        return self._port or None

    def connect(self, timeout: float) -> socket.socket:
        """A connected socket. `timeout` in seconds holds for each address the name stands for.

        Raises OSError.
        """
        if self._path:
            return _open(socket.AF_UNIX, self._path, timeout)
        plain = self._connect_tcp(timeout)
        if not self._tls:
            return plain
        try:
            return _tls_context().wrap_socket(plain, server_hostname=self._host)
        except BaseException:
            plain.close()
            raise

    def _parse_socket(self, path: str) -> None:
        if not path.startswith("/"):
            raise BadAddress(f"unix:{path} is not an absolute path; write {_FORMS}")
        self._path = path
        self.host_header = "localhost"

    def _parse_url(self, address: str) -> None:
        scheme, separator, rest = address.partition("://")
        authority, slash, path = rest.partition("/")
        if "@" in authority:
            raise BadAddress("a service address must not contain a user name or password")
        if not separator or scheme not in _DEFAULT_PORTS or not authority:
            raise BadAddress(f"{address!r} is not a service address; write {_FORMS}")
        if not address.isprintable() or any(sign in address for sign in " ?#\\"):
            raise BadAddress(f"{address!r} contains a character that an address cannot have")
        self._host, port = _split_port(authority, address)
        self._port = port or _DEFAULT_PORTS[scheme]
        self._tls = scheme == "https"
        self.host_header = _ascii_host(authority)
        self.prefix = (slash + path).rstrip("/")

    def _connect_tcp(self, timeout: float) -> socket.socket:
        # Bytes, as for text the resolver's wrapper first imports the whole of IDNA.
        host = _ascii_host(self._host).encode("ascii")
        found = socket.getaddrinfo(host, self._port, type=socket.SOCK_STREAM)
        failure = OSError(f"{self._host} has no address")
        for family, _type, _protocol, _name, address in found:
            try:
                connection = _open(family, address, timeout)
            except OSError as error:
                failure = error
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A stream may be silent for hours; only this tells a silent peer from a vanished one.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection
        raise failure


def hang_up(connection: socket.socket) -> None:
    """End both directions, which wakes a thread that is blocked in a read; closing would not."""
    # The base class's method, as that of a TLS socket takes the session away under the reader.
    try:
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return  # it was never connected or is gone already


def _split_port(authority: str, address: str) -> tuple[str, int]:
    """Host without brackets, and the port or 0."""
    if authority.startswith("["):
        host, bracket, tail = authority[1:].partition("]")
        if not bracket or ":" not in host or (tail and not tail.startswith(":")):
            raise BadAddress(f"{address!r} has a malformed IPv6 host; write http://[::1]:3777")
        port = tail[1:]
    else:
        host, _colon, port = authority.partition(":")
    if not host:
        raise BadAddress(f"{address!r} names no host")
    if not port:
        return host, 0
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise BadAddress(f"{address!r} has no usable port; it is a number from 1 to 65535")
    return host, int(port)


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise BadAddress(f"{host!r} is not a host name") from None


def _open(family: int, address: object, timeout: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(address)  # type: ignore[arg-type]  # a path or a pair, as the family says
    except BaseException:
        connection.close()
        raise
    return connection


def _tls_context() -> ssl.SSLContext:
    import ssl  # 25 ms, so only for those who need it

    return ssl.create_default_context()
