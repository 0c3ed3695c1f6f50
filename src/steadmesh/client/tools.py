"""`steadmesh-tools`: what a seat's agent and its scripts call.

Standard output carries JSON alone (or the MCP protocol), everything else goes to standard error,
and the exit code says how it went (`USAGE`).
"""

from __future__ import annotations

import json
import os
import sys

from steadmesh import __version__
from steadmesh.client.address import NoService
from steadmesh.client.http import BadAddress, Unreachable, percent_encoded
from steadmesh.client.seat import TOKEN_FILE, Misconfigured, Seat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from steadmesh.client.http import Answer

OK, TOOL_ERROR, USAGE_ERROR, NO_ANSWER, FENCED = range(5)
# As shells count programs that a signal ended.
INTERRUPTED, BROKEN_PIPE = 130, 141
STDIN_LIMIT = 4 * 1_048_576
# A tool that works on an outside system tries several times before it answers.
CALL_TIMEOUT = 120.0

USAGE = """\
usage: steadmesh-tools call NAME ['JSON' | -]   call a tool; its result is printed as JSON
       steadmesh-tools list                     the tools of this seat, as JSON
       steadmesh-tools mcp                      serve the same tools over stdio to an MCP client
       steadmesh-tools help | --version

NAME is a tool's name with dots or underscores. The arguments are one JSON object: the third
word, or standard input for `-`; none means {}.

  steadmesh-tools call clock.now '{"timezone": "Europe/Paris"}'
  steadmesh-tools call messages.send '{"to": "lead", "body": "The build is green."}'
  steadmesh-tools call memory.write - < note.json

environment:
  STEADMESH_PLATFORM_URL     where the service is; several addresses with commas between
  STEADMESH_TOKEN_FILE       file with the seat's identity token
  STEADMESH_GENERATION_FILE  file with the lease generation, or STEADMESH_GENERATION itself
  STEADMESH_EXECUTION_FILE   file with the execution id, or STEADMESH_EXECUTION itself

exit codes:
  0  the tool did it            3  no answer, or an HTTP error (see standard error)
  1  the tool said no (JSON)    4  fenced: a newer start holds the seat; stop, do not retry
  2  wrong usage or environment
"""


class UsageError(Exception):
    """The command line or the arguments are wrong; the text says what and where."""


class _OutputError(Exception):
    """The result was there and could not be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; the result is its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(words, os.environ)
    except (UsageError, NoService, BadAddress, Misconfigured) as error:
        return _complain(str(error), USAGE_ERROR)
    except Unreachable as error:
        hint = "Check that the service runs and that STEADMESH_PLATFORM_URL is right."
        return _complain(f"{error}. {hint}", NO_ANSWER)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except _OutputError as error:
        return _complain(f"cannot write the result: {error}", NO_ANSWER)


def _run(words: list[str], environ: Mapping[str, str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command in ("help", "-h", "--help") or any(word in ("-h", "--help") for word in rest):
        return _print(USAGE.encode())
    if command == "--version":
        return _print(f"steadmesh-tools {__version__}\n".encode())
    if command == "call" and 1 <= len(rest) <= 2 and rest[0]:
        arguments = _arguments(rest[1] if len(rest) == 2 else "{}")
        return _call(Seat(environ), rest[0], arguments)
    if command == "list" and not rest:
        return _list(Seat(environ))
    if command == "mcp" and not rest:
        from steadmesh.client.mcp import serve  # the bridge needs threads, a call does not

        return serve(environ)
    raise UsageError(_misuse(command, rest))


def _misuse(command: str, rest: list[str]) -> str:
    if not command:
        text = "no command was given"
    elif command == "call":
        text = "call needs a tool's name" if not rest or not rest[0] else "call has too many words"
    elif command in ("list", "mcp"):
        text = f"{command} takes no further words"
    else:
        text = f"there is no command {command!r}; there are call, list, mcp and help"
    return f"{text}\n\n{USAGE}"


def _call(seat: Seat, name: str, arguments: bytes) -> int:
    answer = seat.service().request(
        "POST",
        f"/v1/tools/{percent_encoded(name)}",
        body=b'{"arguments":%b}' % arguments,
        headers=seat.headers(),
        timeout=CALL_TIMEOUT,
    )
    if answer.status != 200:
        return _http_error(answer)
    result = _json(answer)
    if not isinstance(result, dict) or "content" not in result:
        return _complain("the service answered something that is no tool result", NO_ANSWER)
    _print_json(result["content"])
    return TOOL_ERROR if result.get("is_error") else OK


def _list(seat: Seat) -> int:
    answer = seat.service().request("GET", "/v1/tools", headers=seat.headers())
    if answer.status != 200:
        return _http_error(answer)
    found = _json(answer)
    tools = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(tools, list):
        return _complain("the service answered something that is no list of tools", NO_ANSWER)
    return _print_json(tools, indent=2)


def _arguments(text: str) -> bytes:
    """The arguments as they will be sent: the caller's own text, once it is known to be JSON."""
    if text == "-":
        raw = sys.stdin.buffer.read(STDIN_LIMIT + 1)
        if len(raw) > STDIN_LIMIT:
            raise UsageError(f"standard input holds more than {STDIN_LIMIT} bytes of arguments")
    else:
        raw = os.fsencode(text)
    try:
        source = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(f"the arguments are not UTF-8: see byte {error.start + 1}") from None
    arguments = _parsed(source)
    if arguments is None:
        return b"{}"
    if not isinstance(arguments, dict):
        kind = _kind(arguments)
        raise UsageError(f"the arguments are {kind}, at line 1 column 1; they must be an object")
    return source.encode()


def _parsed(source: str) -> Any:
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        text = (
            f"the arguments are not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        )
    except _ConstantError as error:
        line, column = _place(source, error.name)
        text = f"the arguments are not JSON: {error.name} at line {line} column {column}"
    except RecursionError:
        text = "the arguments are nested too deeply"
    except ValueError:
        text = "the arguments contain a number with too many digits"
    raise UsageError(text)


class _ConstantError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _refuse_constant(name: str) -> Any:
    raise _ConstantError(name)


def _place(source: str, constant: str) -> tuple[int, int]:
    """Line and column of the first NaN or Infinity that is not inside a string."""
    import re  # imported by json already

    for match in re.finditer(r'"(?:\\.|[^"\\])*"|' + re.escape(constant), source):
        if match[0] == constant:
            before = source[: match.start()]
            return before.count("\n") + 1, match.start() - before.rfind("\n")
    raise AssertionError(f"the parser found {constant} where there is none")


def _kind(value: object) -> str:
    names: dict[type, str] = {list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")


def _json(answer: Answer) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _http_error(answer: Answer) -> int:
    """Say what an answer other than 200 means, on standard error."""
    fields = _json(answer)
    fields = fields if isinstance(fields, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    text = f"HTTP {answer.status}"
    if isinstance(code, str):
        text += f" {code}"
    if isinstance(message, str):
        text += f": {message}"
    if answer.status == 409 and code == "fenced":
        return _complain(text, FENCED)
    if answer.status == 401 and not os.environ.get(TOKEN_FILE):
        text += f" ({TOKEN_FILE} is not set)"
    return _complain(text, NO_ANSWER)


def _print_json(value: object, *, indent: int | None = None) -> int:
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        data = json.dumps(value, indent=indent, separators=separators).encode()
    return _print(data + b"\n")


def _print(data: bytes) -> int:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise _OutputError(error.strerror) from None
    return OK


def _complain(text: str, code: int) -> int:
    # What a service says may hold control sequences, and this may be a terminal.
    shown = "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in text.rstrip())
    sys.stderr.write(f"steadmesh-tools: {shown}\n")
    return code


def _discard_output() -> None:
    # Or the interpreter tries to flush it once more at exit, and complains.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
