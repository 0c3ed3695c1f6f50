"""The data directory: ours alone, held by one, found by clients."""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from steadmesh.kernel.datadir import (
    Address,
    AlreadyRunning,
    DataDirectory,
    DataDirectoryError,
    process_start,
    write_private,
)

HOLDING = (
    "import sys; from pathlib import Path; from steadmesh.kernel.datadir import DataDirectory;"
    "held = DataDirectory(Path(sys.argv[1])).hold(); print('held', flush=True); sys.stdin.read()"
)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _refusal(path: Path) -> str:
    with pytest.raises(DataDirectoryError) as caught:
        DataDirectory.open(path)
    return str(caught.value)


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory.open(tmp_path / "data")


@pytest.fixture
def address() -> Address:
    return Address("/x.sock", "http://127.0.0.1:3777", os.getpid(), 12, "0.1.0", "i-1")


class TestOpening:
    def test_the_folder_is_made_for_this_user_alone(self, tmp_path: Path) -> None:
        assert _mode(DataDirectory.open(tmp_path / "a" / "b").path) == 0o700

    def test_an_open_folder_is_closed_if_it_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir(mode=0o755)
        assert _mode(DataDirectory.open(tmp_path / "data").path) == 0o700

    def test_an_open_folder_that_was_ours_is_closed(self, data: DataDirectory) -> None:
        data.hold().release()
        data.path.chmod(0o755)
        assert _mode(DataDirectory.open(data.path).path) == 0o700

    def test_an_open_folder_with_other_things_is_refused_and_left_alone(
        self, tmp_path: Path
    ) -> None:
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        (shared / "thesis.tex").touch()
        assert "is open to other users (mode 0777) and holds other things" in _refusal(shared)
        assert _mode(shared) == 0o777

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "data").touch()
        for path in (tmp_path / "data", tmp_path / "data" / "below"):
            assert f"the data directory {path} is a file, or lies below one" in _refusal(path)

    def test_a_folder_that_cannot_be_written_is_refused(self) -> None:
        assert "name another with --data or STEADMESH_DATA" in _refusal(Path("/proc/steadmesh"))

    def test_the_folder_of_another_user_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        assert f"belongs to another user (uid {tmp_path.stat().st_uid})" in _refusal(tmp_path)


class TestHolding:
    def test_a_second_holder_is_told_the_pid_of_the_first(self, data: DataDirectory) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(data.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == b"held\n"
            with pytest.raises(AlreadyRunning) as caught:
                data.hold()
            first.kill()
        assert caught.value.pid == first.pid
        assert str(caught.value) == (
            f"a steadmesh service (pid {first.pid}) already uses {data.path}; "
            f"stop it with `steadmesh stop --data {data.path}`, or use another --data"
        )

    def test_a_killed_holder_holds_no_more(self, data: DataDirectory) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(data.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as first:
            assert first.stdout is not None
            first.stdout.readline()
            first.kill()
        data.hold().release()

    def test_the_purpose_of_the_holder_is_told(self, data: DataDirectory) -> None:
        with data.hold("restore"), pytest.raises(AlreadyRunning, match="wait until it is done"):
            data.hold()

    def test_a_released_folder_can_be_held_again(self, data: DataDirectory) -> None:
        for _ in range(2):
            held = data.hold()
            held.release()
            held.release()

    def test_a_holder_that_died_before_it_wrote_its_pid_does_not_mislead(
        self, data: DataDirectory
    ) -> None:
        with data.hold():
            gone = subprocess.Popen(["/bin/true"])
            gone.wait()
            (data.path / "service.lock").write_text(f"{gone.pid} service\n")
            with pytest.raises(AlreadyRunning, match="its pid is not known yet"):
                data.hold()

    def test_a_child_that_survives_the_holder_holds_nothing(self, data: DataDirectory) -> None:
        program = HOLDING.replace(
            "print('held', flush=True)",
            "import subprocess; subprocess.Popen(['sh', '-c', 'echo held; cat'], close_fds=False)",
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(data.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == b"held\n"
            first.kill()
            first.wait()
            data.hold().release()


class TestOperatorKey:
    def test_it_is_made_once_and_private(self, data: DataDirectory) -> None:
        key = data.operator_key()
        assert key.startswith("smo_")
        assert len(key) == 47
        assert data.operator_key() == key
        assert _mode(data.operator_key_file) == 0o600

    def test_those_who_ask_at_once_get_the_same(self, data: DataDirectory) -> None:
        keys: list[str] = []
        threads = [
            threading.Thread(target=lambda: keys.append(data.operator_key())) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 8
        assert len(set(keys)) == 1
        assert os.listdir(data.path) == ["operator.key"]

    def test_a_key_that_others_can_read_is_refused(self, data: DataDirectory) -> None:
        key = data.operator_key()
        data.operator_key_file.chmod(0o644)
        with pytest.raises(DataDirectoryError, match=r"mode 0644.*delete the file") as caught:
            data.operator_key()
        assert key not in str(caught.value)

    @pytest.mark.parametrize("content", ["", "smo_short\n", "x" * 47])
    def test_a_file_that_holds_no_key_is_refused(self, data: DataDirectory, content: str) -> None:
        write_private(data.operator_key_file, content)
        with pytest.raises(DataDirectoryError, match="does not hold an operator key"):
            data.operator_key()


class TestSocket:
    def test_it_lies_in_the_data_directory(self, data: DataDirectory) -> None:
        short = DataDirectory(Path("/home/ada/.steadmesh"))
        assert short.socket() == Path("/home/ada/.steadmesh/steadmesh.sock")

    def test_a_long_path_moves_to_a_private_folder_below_the_temporary_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="sm-", dir="/tmp") as temporary:
            monkeypatch.setattr(tempfile, "tempdir", temporary)
            data = DataDirectory(tmp_path / ("x" * 100))
            path = data.socket()
            assert path.parent.parent == Path(temporary)
            assert _mode(path.parent) == 0o700
            assert len(os.fsencode(path)) <= 100
            assert data.socket() == path

    def test_a_folder_that_is_not_private_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="sm-", dir="/tmp") as temporary:
            monkeypatch.setattr(tempfile, "tempdir", temporary)
            data = DataDirectory(tmp_path / ("x" * 100))
            usual = data.socket().parent
            usual.chmod(0o755)
            other = data.socket().parent
            assert other != usual
            assert _mode(other) == 0o700


class TestAddress:
    def test_what_is_written_can_be_read(self, data: DataDirectory, address: Address) -> None:
        data.write_address(address)
        assert data.read_address() == address
        assert _mode(data.address_file) == 0o600

    @pytest.mark.parametrize("content", [None, "", "[]", '{"socket": "x"}', "\0"])
    def test_a_missing_or_broken_file_is_no_address(
        self, data: DataDirectory, content: str | None
    ) -> None:
        if content is not None:
            write_private(data.address_file, content)
        assert data.read_address() is None

    def test_a_service_removes_its_own_address(self, data: DataDirectory, address: Address) -> None:
        data.write_address(address)
        data.remove_address("i-1")
        assert os.listdir(data.path) == []

    def test_a_service_leaves_its_successor_s_address_alone(
        self, data: DataDirectory, address: Address
    ) -> None:
        data.write_address(dataclasses.replace(address, instance_id="i-2"))
        data.remove_address("i-1")
        assert data.read_address() is not None


class TestProcessStart:
    def test_it_is_the_same_each_time_and_another_for_another_process(self) -> None:
        mine = process_start(os.getpid())
        assert mine is not None
        assert mine == process_start(os.getpid())
        assert mine >= (process_start(os.getppid()) or 0)

    def test_a_program_s_name_may_hold_anything(self, tmp_path: Path) -> None:
        program = tmp_path / ") S 1 2 (x"
        program.symlink_to("/bin/cat")
        with subprocess.Popen([str(program)], stdin=subprocess.PIPE) as child:
            started = process_start(child.pid)
            child.kill()
        assert started is not None
        assert started >= (process_start(os.getpid()) or 0)

    def test_nobody_has_no_start(self) -> None:
        gone = subprocess.Popen(["/bin/true"])
        gone.wait()
        assert process_start(gone.pid) is None
