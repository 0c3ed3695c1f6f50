"""Which process is which, and making sure that one is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from steadmesh.runner import processes
from steadmesh.runner.processes import ChildGroups, ChildrenKilled, ProcessId
from tests.runner.waiting import until

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def session(script: str) -> tuple[subprocess.Popen[bytes], ProcessId]:
    """A shell at the head of a session of its own."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE
    )
    return child, processes.identify_child(child.pid)


def test_a_process_is_known_by_pid_and_start_time() -> None:
    own = processes.own_process()
    assert own.pid == os.getpid()
    assert processes.is_alive(own)
    assert not processes.is_alive(ProcessId(own.pid, "another time"))


def test_the_remains_of_a_process_are_not_alive() -> None:
    child, leader = session("sleep 60")
    child.kill()
    until(lambda: not processes.is_alive(leader), "the process is a zombie")
    child.wait()
    assert not processes.is_alive(leader)


def test_a_session_is_gone_when_its_last_child_is() -> None:
    child, leader = session("sleep 60 & echo $!")
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    child.wait()
    assert not processes.is_alive(leader)
    assert [member.pid for member in processes.left_of_session(leader)] == [grandchild]
    assert processes.group_exists(leader)
    processes.kill_group(leader, signal.SIGKILL)
    until(lambda: not processes.left_of_session(leader), "the session is gone")
    assert not processes.group_exists(leader)
    child.stdout.close()


def test_a_signal_never_reaches_another_process_of_the_same_number() -> None:
    child, leader = session("sleep 60")
    stranger = ProcessId(leader.pid, "another time")
    processes.kill(stranger, signal.SIGKILL)
    processes.kill_group(stranger, signal.SIGKILL)
    assert processes.is_alive(leader)
    assert processes.left_of_session(stranger) == ()
    processes.kill(leader, signal.SIGKILL)
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


def test_a_child_is_recorded_while_it_lives(tmp_path: Path) -> None:
    children = ChildGroups(tmp_path)
    child = children.start(["/bin/cat"], environment=ENVIRONMENT, directory=tmp_path)
    (leader,) = processes.recorded_groups(tmp_path)
    assert leader.pid == child.pid == os.getpgid(child.pid)
    child.communicate(b"")
    children.finished(child)
    assert processes.recorded_groups(tmp_path) == ()


def test_after_the_kill_no_child_can_be_started(tmp_path: Path) -> None:
    children = ChildGroups(tmp_path)
    child = children.start(["/bin/cat"], environment=ENVIRONMENT, directory=tmp_path)
    children.kill_all()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    with pytest.raises(ChildrenKilled):
        children.start(["/bin/cat"], environment=ENVIRONMENT, directory=tmp_path)


def test_what_a_child_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    children = ChildGroups(tmp_path)
    child = children.start(
        ["/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"],
        environment=ENVIRONMENT,
        directory=tmp_path,
    )
    out, _ = child.communicate()
    children.finished(child)
    until(lambda: processes.identify(int(out)) is None, "the left-over process is gone")


def test_processes_are_read_from_ps_where_there_is_no_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_has_proc", lambda: False)
    if not Path("/bin/ps").exists():
        assert processes.identify(os.getpid()) is None
        return
    child, leader = session("sleep 60")
    assert processes.is_alive(leader)
    assert leader.pid in {member.pid for member in processes.left_of_session(leader)}
    processes.kill_group(leader, signal.SIGKILL)
    child.wait()
    assert not processes.is_alive(leader)
    assert child.stdout is not None
    child.stdout.close()
