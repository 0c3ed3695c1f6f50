"""What a seat's programs send with every request, from its environment and run folder."""

from __future__ import annotations

from steadmesh.client.address import from_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from steadmesh.client.http import Service

TOKEN_FILE = "STEADMESH_TOKEN_FILE"  # noqa: S105 - the name of a variable, not a secret
_SMALL_FILE = 4_096


class Misconfigured(Exception):
    """A variable, or the file that it names, is missing or unusable."""


class Seat:
    """The seat of an environment.

    Files are read again for each request: the token rotates and the generation changes under a
    running agent. No value from them is ever part of a message.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Reads nothing yet."""
        self._environ = environ

    def service(self) -> Service:
        """Where its service is. Raises NoService, BadAddress."""
        return from_environment(self._environ)

    def require_token(self) -> None:
        """Raises Misconfigured if no token file is named."""
        if not self._environ.get(TOKEN_FILE):
            raise Misconfigured(
                f"{TOKEN_FILE} is not set. It names the file with the seat's identity token."
            )

    def headers(self) -> dict[str, str]:
        """Token, generation and execution as they are now. Raises Misconfigured.

        Without a token file nobody in particular asks; without a generation only what reads
        will be answered.
        """
        headers = {}
        if name := self._environ.get(TOKEN_FILE):
            headers["Authorization"] = f"Bearer {self._token(name)}"
        if generation := self._value("STEADMESH_GENERATION"):
            headers["X-Steadmesh-Generation"] = generation
        if execution := self._value("STEADMESH_EXECUTION"):
            headers["X-Steadmesh-Execution"] = execution
        return headers

    def _token(self, name: str) -> str:
        token = _read(TOKEN_FILE, name)
        if token is None:
            raise Misconfigured(f"{TOKEN_FILE}: {name} does not exist")
        if not token:
            raise Misconfigured(f"{TOKEN_FILE}: {name} is empty; it should hold the token")
        return _one_word(token, f"{TOKEN_FILE}: {name}")

    def _value(self, variable: str) -> str:
        """The variable's own value, else what is in the file that `<variable>_FILE` names."""
        if value := self._environ.get(variable, "").strip():
            return _one_word(value, variable)
        file_variable = f"{variable}_FILE"
        name = self._environ.get(file_variable)
        value = (_read(file_variable, name) or "") if name else ""
        return _one_word(value, f"{file_variable}: {name}") if value else ""


def _read(variable: str, name: str) -> str | None:
    """The file's text without the white space around it, None if there is no such file."""
    try:
        with open(name, "rb") as file:
            return file.read(_SMALL_FILE).decode("latin-1").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misconfigured(f"{variable}: cannot read {name}: {error.strerror}") from None


def _one_word(value: str, source: str) -> str:
    if not all("!" <= sign <= "~" for sign in value):
        raise Misconfigured(f"{source} does not hold one word of plain ASCII")
    return value
