"""The main job, shown: a person asks, the work goes down a chain of seats, the answer comes back.

Everything is real: a service and a supervisor in processes of their own, seats as processes, tools
called over the network. Only the agents are played, by the fake harness. Nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadmesh.client.http import Unreachable
from steadmesh.operator import quickstart, service
from steadmesh.operator.api import Api, Organisation
from steadmesh.operator.chat import Conversation
from steadmesh.operator.organisation import put_in_force
from steadmesh.operator.terminal import never_fail_on_characters
from steadmesh.operator.trouble import CommandFailed, explained
from steadmesh.runner.starts import found_again

Process = subprocess.Popen[bytes]

ANSWER_SECONDS = 60.0
END_SECONDS = 30.0
REPRESENTATIVE = "rep_ada"
GREETING = "hello"
WORK = """\
/delegate lead /task
/delegate builder_one /task
/tool clock.now {"timezone": "Europe/Paris"}
/file write notes/plan.md built by builder_one
/file read notes/plan.md"""

IDLE_SECONDS = 2
"""So short only here; the organisation file says 15 minutes."""
AFTER_SLEEP = "are you still there?"
LONG_WORK = """\
/sleep 2s
/reply done, although I was killed in the middle of it"""

GO_ON = (
    "export PATH=$PWD/.venv/bin:$PATH",
    "steadmesh quickstart lumen",
    "steadmesh up lumen/organisation.yaml --data lumen/data",
    "steadmesh chat --user ada --token-file lumen/secrets/chat.json --data lumen/data"
    "     # in another terminal",
    "steadmesh status --data lumen/data",
)

_COLOURS = {"dim": "2", "bold": "1", "green": "32", "cyan": "36"}


def main() -> None:
    """`make demo`."""
    never_fail_on_characters()
    sys.exit(explained(_demo))


def _demo() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _forget_settings()
    started = time.monotonic()
    with _folder() as folder:
        _step(1, "an organisation: Ada, her representative, a lead, two builders and a reviewer")
        quickstart.write_files(folder)
        _detail("the files that `steadmesh quickstart DIR` writes")
        with _service(folder) as api:
            synced = put_in_force(api, str(folder / "organisation.yaml"))
            organisation = api.organisation(synced["key"])
            _detail(f"applied {organisation.key}: {', '.join(sorted(synced['seats']))}")
            with _supervisor(folder) as supervisor:
                _step(3, "a supervisor that starts a seat when mail waits for it")
                _talk(api, organisation, folder, supervisor)
                _show_turns(api, organisation)
    _goodbye(time.monotonic() - started)


def _talk(api: Api, organisation: Organisation, folder: Path, supervisor: Process) -> None:
    token = json.loads((folder / "secrets" / "chat.json").read_text())[quickstart.PERSON]
    talk = Conversation(api.operator.service, organisation.key, "chat", token, show=_answer)
    talk.connect()
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(api, organisation, done), daemon=True)
    watcher.start()
    _step(4, "Ada writes to her representative, as in `steadmesh chat`")
    try:
        for text in (GREETING, WORK):
            _ask(talk, text, supervisor)
        _step(
            5,
            f"seats that have nothing to do for {IDLE_SECONDS} s are stopped; a message wakes one",
        )
        _wait_for(api, organisation, "Stopped", supervisor)
        _ask(talk, AFTER_SLEEP, supervisor)
        _step(6, "her representative is killed in the middle of a turn; the message is not lost")
        _said(LONG_WORK)
        talk.send(LONG_WORK)
        _wait_for(api, organisation, "Executing", supervisor)
        _kill_runner(folder / "data", api.seat(organisation, REPRESENTATIVE)["seat_id"])
        _wait_for_answer(talk, supervisor)
    finally:  # before the service goes, which both would miss
        done.set()
        watcher.join(5)
        talk.close()


def _ask(talk: Conversation, text: str, supervisor: Process) -> None:
    _said(text)
    talk.send(text)
    _wait_for_answer(talk, supervisor)


def _wait_for(api: Api, organisation: Organisation, state: str, supervisor: Process) -> None:
    """Until her representative is in a state."""
    until = time.monotonic() + ANSWER_SECONDS
    while api.seat(organisation, REPRESENTATIVE)["state"] != state:
        if supervisor.poll() is not None or time.monotonic() > until:
            raise CommandFailed(f"{REPRESENTATIVE} did not come to be {state}")
        time.sleep(0.05)


def _kill_runner(data: Path, seat_id: str) -> None:
    for runs in data.glob(f"seats/*/{seat_id}/runner/run"):
        for start in found_again(runs):
            pid = start.kill_runner()
            _detail(f"kill -9 {pid}, the process of {REPRESENTATIVE}")


def _wait_for_answer(talk: Conversation, supervisor: Process) -> None:
    until = time.monotonic() + ANSWER_SECONDS
    while talk.wait_for_answers(1):
        if supervisor.poll() is not None:
            raise CommandFailed("the supervisor has ended")
        if time.monotonic() > until:
            raise CommandFailed(f"no answer within {ANSWER_SECONDS:.0f} s")


def _watch(api: Api, organisation: Organisation, done: threading.Event) -> None:
    """Print what seats do, as the supervisor sees it: one long poll, no polling of seats."""
    path = f"/internal/v1/organizations/{organisation.id}/runtime"
    states: dict[str, str] = {}
    cursor = ""
    while not done.is_set():
        try:
            view = api.get(path, wait=1, after=cursor)
        except (CommandFailed, Unreachable):
            return
        if view is None:
            continue
        cursor = view["cursor"]
        for key, seat in view["seats"].items():
            if states.get(key, "Stopped") != seat["state"]:
                _detail(f"{key:12} {_WORDS.get(seat['state'], seat['state'])}")
            states[key] = seat["state"]


_WORDS = {
    "Provisioning": "starts: a process of its own, with its lease",
    "Warm": "is ready",
    "Executing": "works on a message",
    "Quiescing": "finishes",
    "Stopped": "has stopped",
    "Recovering": "its process is gone: nobody can act as it any more",
}


def _show_turns(api: Api, organisation: Organisation) -> None:
    _step(7, "what happened, as the service recorded it")
    for turn in _ended_turns(api, organisation):
        about = f"{turn['state']}, attempt {turn['attempt']}, generation {turn['generation']}"
        _detail(f"{turn['started_at'][11:23]}  {turn['key']:12} {about}")


def _ended_turns(api: Api, organisation: Organisation) -> list[dict[str, Any]]:
    """All turns, oldest first; the last seats may still be ending theirs, and are waited for."""
    until = time.monotonic() + ANSWER_SECONDS
    while True:
        turns = [
            {"key": key, **turn}
            for key, seat in api.seats(organisation).items()
            for turn in api.get(f"/internal/v1/seats/{seat['seat_id']}/executions")["executions"]
        ]
        if time.monotonic() > until or all(turn["state"] != "running" for turn in turns):
            return sorted(turns, key=lambda turn: str(turn["started_at"]))
        time.sleep(0.02)


def _goodbye(seconds: float) -> None:
    print()
    print(_paint(f"done in {seconds:.0f} s; nothing is left behind but .venv", "bold"))
    print("Go on by hand:")
    for line in GO_ON:
        print(f"  {line}")


# What is set up, and taken down again


def _forget_settings() -> None:
    """Somebody's own service, or her database, must not become the stage of a demonstration."""
    for name in [name for name in os.environ if name.startswith(("STEADMESH_", "RELAY_"))]:
        del os.environ[name]


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="steadmesh-demo-"))
    try:
        yield folder / "lumen"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _service(folder: Path) -> Iterator[Api]:
    data = folder / "data"
    address = service.start(data, {"port": 0})
    _step(2, f"a service: {address.url}, SQLite in a temporary folder")
    try:
        yield Api.find(str(data))
    except Exception:
        _show_log(data / "steadmesh.log")
        raise
    finally:
        service.end(address, str(data))


@contextmanager
def _supervisor(folder: Path) -> Iterator[Process]:
    data = folder / "data"
    command = [
        sys.executable,
        "-P",
        "-m",
        "steadmesh.operator.main",
        "supervise",
        "--data",
        str(data),
    ]
    process = subprocess.Popen(  # noqa: S603 - our own program, by absolute path
        command,
        env=os.environ | {"STEADMESH_SUPERVISOR_IDLE_TIMEOUT": f"{IDLE_SECONDS}s"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    except Exception:
        _show_log(data / "supervisor.log")
        raise
    finally:
        _end(process)
        for runs in data.glob("seats/*/*/runner/run"):  # of a supervisor that did not end in order
            for start in found_again(runs):
                start.kill_everything()


def _end(process: Process) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _show_log(file: Path) -> None:
    if file.exists():
        print(f"the last lines of {file.name}:", file=sys.stderr)
        print("\n".join(file.read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)


# What is printed


def _step(number: int, text: str) -> None:
    print(f"\n{_paint(f'{number}. {text}', 'bold')}", flush=True)


def _detail(text: str) -> None:
    print(f"   {_paint(text, 'dim')}", flush=True)


def _said(text: str) -> None:
    for line in text.splitlines():
        print(f"   {_paint('ada>', 'cyan')} {line}", flush=True)


def _answer(text: str) -> None:
    for line in text.splitlines():
        print(f"   {_paint('representative>', 'green')} {line}", flush=True)


def _paint(text: str, colour: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


if __name__ == "__main__":
    main()
