"""One turn of the fake agent: which rule applies to a message, and running a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from steadmesh.kernel import durations
from steadmesh.runner.harness.contract import Claim, Delivery
from steadmesh.runner.harness.fake import _files, _script
from steadmesh.runner.harness.fake._state import Delegations, ReplyTo
from steadmesh.runner.toolclient import (
    FENCED,
    OK,
    TOOL_ERROR,
    Interruption,
    ToolAnswer,
    ToolClient,
)

LONGEST_REPLY = 8_000
LONGEST_LINE = 4_096
LONGEST_ECHO = 200
LONGEST_QUEUED = 500
"""All in bytes."""

_RETIREMENT = "Retirement notice"
_NO_RESPONSE = "received reply; no response needed"

Emit = Callable[[Literal["tool_request", "tool_result", "output"], Mapping[str, Any]], None]


class TurnFailed(Exception):
    """The script asked to fail, or the seat has been fenced; the text is the turn's error."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Whose turn it is and what it works with."""

    key: str
    bindings: tuple[str, ...]
    workspace: Path
    tools: ToolClient
    delegations: Delegations


class Turn:
    """Runs one delivery to its end; `outputs` and `claim` hold what came of it."""

    def __init__(
        self, seat: Seat, delivery: Delivery, *, interruption: Interruption, emit: Emit
    ) -> None:
        self._seat = seat
        self._passive = delivery.passive
        self._message = delivery.message
        self._interruption = interruption
        self._emit = emit
        self._delegated = False
        self.outputs: list[str] = []
        self.claim: Claim | None = None

    def run(self) -> None:
        """Apply the first rule that fits. Raises TurnFailed, Interrupted."""
        for queued in self._passive:
            body = _script.cut(queued.body, LONGEST_QUEUED)
            self._say(f"queued message from {queued.sender_seat or queued.origin}: {body}")
        message = self._message
        from_seat = message.origin == "seat"
        task = _script.task_in(message.body) if from_seat else None
        answered = self._seat.delegations.answered_by(message) if from_seat else None
        if message.origin == "system":
            self._notice(message.body)
        elif task is not None:
            self._task(task)
        elif answered is not None:
            self._pass_on(answered)
        else:
            self._talk()

    def _notice(self, body: str) -> None:
        # The text of a notice quotes what others wrote, so nothing in it is ever executed.
        if not body.startswith(_RETIREMENT):
            first_line = _script.lines_of(body)[0]
            self._say(f"platform notice: {_script.cut(first_line, LONGEST_ECHO)}")
            return
        answer = self._call(
            "handoff.update",
            {
                "objective": f"Retirement of {self._seat.key}",
                "notes": f"{self._seat.key} is the fake harness; it has no unfinished thoughts.",
            },
        )
        self._say(f"handoff saved for retirement: {answer.content}")

    def _task(self, lines: tuple[str, ...]) -> None:
        self._run(_script.commands_in(lines))
        if not self._delegated:
            result = "\n".join(self.outputs) or "task done (no output)"
            self._reply(f"task result from {self._seat.key}:\n{result}")

    def _pass_on(self, reply_to: ReplyTo) -> None:
        news = f"Update from {self._message.sender_seat}: {self._message.body}"
        if self._reply(news, to=reply_to):
            self._seat.delegations.forget(self._message)

    def _talk(self) -> None:
        message = self._message
        commands = _script.commands_in(_script.lines_of(message.body))
        is_answer = message.parent_id is not None or message.body.startswith("ack: ")
        if commands:
            self._run(commands)
        elif message.origin == "seat" and is_answer:
            # Answering an answer would go on for ever.
            self._say(_NO_RESPONSE)
        else:
            self._reply(f"ack: {_script.cut(message.body, LONGEST_ECHO)}")

    # Commands

    def _run(self, commands: tuple[_script.Command, ...]) -> None:
        for command in commands:
            self._interruption.check()
            self._perform(command)
            if command.word == "delegate":
                # All that follows is the text of the message, also when it was refused.
                return

    def _perform(self, command: _script.Command) -> None:
        match command.word:
            case "tool":
                self._tool(command.argument)
            case "reply":
                self._reply(command.argument)
            case "report":
                self._reply("\n".join(self.outputs) or "(no output)")
            case "file":
                self._file(command.argument)
            case "delegate":
                self._delegate(command)
            case "sleep":
                self._sleep(command.argument)
            case "claim":
                self.claim = Claim("task_done", command.argument)
                self._say(f"claimed: {command.argument}")
            case "fail":
                raise TurnFailed(f"scripted failure: {command.argument}")
            case unknown:
                self._error(f"unknown command /{unknown}")

    def _tool(self, argument: str) -> None:
        name, arguments = _script.first_word(argument)
        if not name:
            self._error("/tool needs the name of a tool")
            return
        answer = self._call_with(name, arguments or "{}")
        if answer.exit_code == OK:
            self._say(f"tool {name}: {answer.content}")
        elif answer.exit_code == TOOL_ERROR:
            self._say(f"tool {name} error: {answer.content}")
        else:
            self._error(f"tool {name} {_failure(answer)}")

    def _file(self, argument: str) -> None:
        verb, rest = _script.first_word(argument)
        path, text = _script.first_word(rest)
        if verb not in ("read", "write") or not path:
            self._error("/file is used as: /file write <path> <text>, or /file read <path>")
            return
        try:
            place = _script.confined(self._seat.workspace, path)
            if verb == "write":
                self._say(f"wrote {path} ({_files.write(place, text)} bytes)")
            else:
                self._say(f"file {path}: {_files.read(place, limit=LONGEST_LINE)}")
        except OSError as error:
            self._error(f"/file {verb}: {error.strerror or error}")

    def _delegate(self, command: _script.Command) -> None:
        to, rest = _script.first_word(command.argument)
        text = _script.delegation_text(rest, command.following)
        trigger = self._message.message_id
        if not to or not text:
            self._error("/delegate is used as: /delegate <seat> <text>, the text over many lines")
            return
        answer = self._call("messages.send", {"to": to, "body": text, "correlation_id": trigger})
        if answer.exit_code != OK:
            self._rejected("messages.send", answer)
            return
        self._delegated = True
        sent = _field(answer.content, "message_id")
        target = self._reply_target()
        if sent is not None and target is not None:
            self._seat.delegations.record(trigger, sent, target)
        self._say(f"delegated to {to}: {answer.content}")

    def _reply_target(self) -> ReplyTo | None:
        """To whom the delegate's answer will be passed on."""
        message = self._message
        if message.origin == "seat":
            earlier = self._seat.delegations.answered_by(message)
            return earlier or ReplyTo(message_id=message.message_id)
        if message.origin == "human":
            return ReplyTo(message_id=message.message_id)
        # A scheduled run has nobody to answer to; a representative then tells its person.
        return ReplyTo(binding=self._seat.bindings[0]) if self._seat.bindings else None

    def _sleep(self, argument: str) -> None:
        try:
            length = _script.sleep_length(argument)
        except ValueError as error:
            self._error(f"/sleep {argument}: {error}")
            return
        self._interruption.sleep(length / durations.SECOND)
        self._say(f"slept {durations.show(length)}")

    # Tools

    def _reply(self, body: str, *, to: ReplyTo | None = None) -> bool:
        target = to or ReplyTo(message_id=self._message.message_id)
        answer = self._call("messages.reply", target.arguments(_script.cut(body, LONGEST_REPLY)))
        if answer.exit_code != OK:
            self._rejected("messages.reply", answer)
            return False
        self._say(f"replied: {answer.content}")
        return True

    def _rejected(self, name: str, answer: ToolAnswer) -> None:
        if answer.exit_code == TOOL_ERROR:
            self._error(f"{name} rejected: {answer.content}")
        else:
            self._error(f"{name} {_failure(answer)}")

    def _call(self, name: str, arguments: Mapping[str, str]) -> ToolAnswer:
        return self._call_with(name, json.dumps(arguments, ensure_ascii=False))

    def _call_with(self, name: str, arguments: str) -> ToolAnswer:
        self._emit(
            "tool_request", {"tool": name, "arguments": _script.cut(arguments, LONGEST_LINE)}
        )
        answer = self._seat.tools.call(name, arguments, self._interruption)
        result = _script.cut(answer.content or answer.message, LONGEST_LINE)
        self._emit("tool_result", {"tool": name, "exit_code": answer.exit_code, "content": result})
        if answer.exit_code == FENCED:
            raise TurnFailed(f"tool {name}: a newer execution holds this seat")
        return answer

    # Output

    def _say(self, text: str) -> None:
        line = _script.cut(text, LONGEST_LINE)
        self.outputs.append(line)
        self._emit("output", {"text": line})

    def _error(self, text: str) -> None:
        self._say(f"error: {text}")


def _failure(answer: ToolAnswer) -> str:
    return f"failed (exit {answer.exit_code}): {answer.message or answer.content}"


def _field(content: str, name: str) -> str | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None
