"""Where the service is, and what a client may send there.

Agents find it by `STEADMESH_PLATFORM_URL`. People and their programs find it by the address file
in the data directory: by a Unix socket first, which needs no secret, as only the same user can
open it. Over TCP found that way, nothing secret is sent before the listener has shown that it is
the service the file means: any process may hold a port once the service is down.
"""

from __future__ import annotations

import json
import os

from steadmesh.client.http import Answer, BadAddress, Service, Stream, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ADDRESS_FILE = "address.json"
OPERATOR_KEY_FILE = "operator.key"
DEFAULT_DATA_DIRECTORY = "~/.steadmesh"


class NoService(Exception):
    """It is not known where the service is, or what answers there is not it."""


class Address:
    """What the address file says about the service that wrote it last.

    `started` is its process's start time in clock ticks after boot (field 22 of
    `/proc/PID/stat`), None where there is no `/proc`.
    """

    __slots__ = ("instance_id", "pid", "socket", "started", "url", "version")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for a file of another form."""
        self.socket: str | None = _text_or_none(fields["socket"])
        self.url: str | None = _text_or_none(fields["url"])
        self.pid = int(fields["pid"])
        self.started: int | None = None if fields["started"] is None else int(fields["started"])
        self.version = str(fields["version"])
        self.instance_id = str(fields["instance_id"])

    def is_alive(self) -> bool:
        """Whether the process that wrote it still runs (and its pid is not another's by now)."""
        if self.pid <= 0:
            return False
        status = _process_status(self.pid)
        if status is not None:
            state, started = status
            return state not in _REMAINS and self.started in (None, started)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class Operator:
    """A client of the service's operator endpoints: a `Service` with the right to use them.

    Over a Unix socket nothing is sent: being able to open it is the proof. Over TCP the operator
    key goes along as a Bearer.
    """

    def __init__(
        self, service: Service, *, key: str | None = None, data: str | None = None
    ) -> None:
        """`data`: the data directory whose address file led here, if one did.

        With it, and over TCP, each request first asks who listens.
        """
        self.service = service
        self._key = key
        self._data = data

    def __str__(self) -> str:
        """The address, for messages."""
        return str(self.service)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        idempotent_key: bool = True,
    ) -> Answer:
        """As `Service.request`. Raises NoService too."""
        return self.service.request(
            method,
            path,
            body=body,
            headers={**self._credentials(retry_for), **(headers or {})},
            timeout=timeout,
            retry_for=retry_for,
            idempotent_key=idempotent_key,
        )

    def stream(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry_for: float = 0.0,
    ) -> Stream:
        """As `Service.stream`. Raises NoService too."""
        return self.service.stream(
            path,
            headers={**self._credentials(retry_for), **(headers or {})},
            timeout=timeout,
            retry_for=retry_for,
        )

    def _credentials(self, retry_for: float) -> dict[str, str]:
        if self.service.is_local or self._key is None:
            return {}
        if self._data is not None:
            _check_listener(self.service, self._key, self._data, retry_for)
        return {"Authorization": f"Bearer {self._key}"}


def from_environment(environ: Mapping[str, str]) -> Service:
    """The service of a seat: `STEADMESH_PLATFORM_URL`, else `STEADMESH_URL`.

    Raises NoService if neither is set and BadAddress if one is wrong.
    """
    addresses = _addresses(environ, "STEADMESH_PLATFORM_URL", "STEADMESH_URL")
    if not addresses:
        raise NoService(
            "STEADMESH_PLATFORM_URL is not set. It says where the service is, for instance "
            "http://127.0.0.1:3777; a runner sets it for its seat."
        )
    return Service(addresses)


def from_data_directory(path: str | os.PathLike[str]) -> Address | None:
    """What the address file in a data directory says, None if there is none.

    Whether that service still runs is another question (`Address.is_alive`). Raises NoService
    for a file that cannot be read, or that somebody else put there.
    """
    name = os.path.join(path, ADDRESS_FILE)
    try:
        with open(name, "rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            content = file.read(65_536)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NoService(f"cannot read {name}: {error.strerror}") from None
    if os.geteuid() not in (0, owner):
        raise NoService(f"{name} belongs to another user; use a data directory of your own")
    try:
        return Address(json.loads(content))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise NoService(f"{name} is damaged. Restart the service, which writes it anew.") from None


def data_directory(environ: Mapping[str, str], data: str | None = None) -> str:
    """The one that is meant: the option, else `STEADMESH_DATA`, else `~/.steadmesh`."""
    path = data or environ.get("STEADMESH_DATA") or DEFAULT_DATA_DIRECTORY
    return os.path.abspath(os.path.expanduser(path))


def for_operator(environ: Mapping[str, str], data: str | None = None) -> Operator:
    """The service as `steadmesh` commands find it.

    `data` is the `--data` option, which beats everything; then come `STEADMESH_URL` (or
    `STEADMESH_PLATFORM_URL`), `STEADMESH_DATA`, `~/.steadmesh`. Raises NoService, BadAddress.
    """
    directory = data_directory(environ, data)
    addresses = _addresses(environ, "STEADMESH_URL", "STEADMESH_PLATFORM_URL")
    if addresses and data is None:
        return _by_url(Service(addresses), environ, directory)
    address = from_data_directory(directory)
    if address is None or not address.is_alive():
        gone = "" if address is None else f" (its last one, pid {address.pid}, is gone)"
        raise NoService(
            f"no service runs on the data directory {directory}{gone}. Start one with "
            f"`steadmesh serve --data {directory}`, or set STEADMESH_URL to where it is."
        )
    if address.socket:
        return Operator(Service([f"unix:{address.socket}"]), data=directory)
    if address.url:
        key = _key_from(environ) or _key_in(directory)
        return Operator(Service([address.url]), key=key, data=directory)
    raise NoService(f"{os.path.join(directory, ADDRESS_FILE)} names neither a socket nor a URL")


_REMAINS = ("Z", "X")
"""States of a process that has ended, and waits for its parent to take note."""


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks after boot; None if that cannot be known."""
    status = _process_status(pid)
    return None if status is None else status[1]


def _process_status(pid: int) -> tuple[str, int] | None:
    """State and start of a process; None if there is none, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            status = file.read(4096)
    except OSError:
        return None
    # The second field is the program's name in parentheses and may contain anything.
    fields = status.rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[19])) if len(fields) > 19 else None


def _by_url(service: Service, environ: Mapping[str, str], directory: str) -> Operator:
    key = _key_from(environ)
    if key is not None or service.is_local:
        return Operator(service, key=key)
    # The key in the data directory belongs to that directory's service and goes nowhere else: not
    # to several addresses, as a request may go to another one than was asked for the proof.
    if service.port is None or not os.path.exists(os.path.join(directory, OPERATOR_KEY_FILE)):
        return Operator(service)
    key = _key_in(directory)
    if not _proves_itself(service, key, 0.0):
        return Operator(service)
    return Operator(service, key=key, data=directory)


def _check_listener(service: Service, key: str, directory: str, retry_for: float) -> None:
    """Raises NoService unless what listens there knows the key already."""
    if not _proves_itself(service, key, retry_for):
        raise NoService(
            f"what listens at {service} is not the service of {directory}, so the operator key "
            "was not sent. Look what holds that port, and restart the service."
        )


def _proves_itself(service: Service, key: str, retry_for: float) -> bool:
    """Whether the one listener answers a fresh nonce with what only the key's holder can say."""
    import hmac  # few commands need it, and every client imports this file

    nonce = os.urandom(24).hex()
    path = f"/v1/hello?nonce={nonce}"
    try:
        fields = service.request("GET", path, timeout=5.0, retry_for=retry_for).json()
    except (Unreachable, ValueError):
        return False
    said = fields.get("proof") if isinstance(fields, dict) else None
    # As the service makes it; with the port, so that nobody elsewhere can pass the question on.
    message = f"steadmesh hello {service.port} {nonce}".encode()
    expected = hmac.new(key.encode(), message, "sha256").hexdigest()
    return isinstance(said, str) and said.isascii() and hmac.compare_digest(said, expected)


def _addresses(environ: Mapping[str, str], *names: str) -> list[str]:
    for name in names:
        found = [part.strip() for part in environ.get(name, "").split(",") if part.strip()]
        if found:
            try:
                Service(found)
            except BadAddress as error:
                raise BadAddress(f"{name}: {error}") from None
            return found
    return []


def _key_from(environ: Mapping[str, str]) -> str | None:
    key = environ.get("STEADMESH_OPERATOR_KEY", "").strip()
    if key:
        return key
    name = environ.get("STEADMESH_OPERATOR_KEY_FILE")
    return _key_file(name, "STEADMESH_OPERATOR_KEY_FILE: ") if name else None


def _key_in(directory: str) -> str:
    return _key_file(os.path.join(directory, OPERATOR_KEY_FILE), "")


def _key_file(name: str, prefix: str) -> str:
    try:
        with open(name, encoding="ascii") as file:
            return file.read(4096).strip()
    except UnicodeDecodeError:
        raise NoService(f"{prefix}{name} does not hold an operator key") from None
    except OSError as error:
        raise NoService(f"{prefix}cannot read the operator key {name}: {error.strerror}") from None


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None
