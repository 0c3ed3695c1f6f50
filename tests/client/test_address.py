"""Where the service is, and that nothing secret goes anywhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steadmesh.client.address import (
    NoService,
    data_directory,
    for_operator,
    from_data_directory,
    from_environment,
    process_start,
)
from steadmesh.client.http import BadAddress
from steadmesh.kernel.crypto import proof
from tests.client.double import Asked, Double, answer

KEY = "smo_secret"


def service_of(key: str | None, port: int | None = None) -> Double:
    """A service that proves to know the key, or guesses, and answers anything else."""

    def reply(asked: Asked) -> bytes:
        path, _, nonce = asked.path.partition("?nonce=")
        if path == "/healthz":
            return answer(200, {"version": "0.1.0", "instance_id": "i1"})
        if path != "/v1/hello":
            return answer(200, {"ok": True})
        own = int(double.url.rpartition(":")[2])
        return answer(200, {"proof": proof(key or "smo_guess", nonce, port or own)})

    double = Double(reply)
    return double


def write_address(folder: Path, **fields: object) -> None:
    known = {
        "socket": None,
        "url": None,
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
        "version": "0.1.0",
        "instance_id": "i1",
    }
    (folder / "address.json").write_text(json.dumps({**known, **fields}))
    (folder / "operator.key").write_text(KEY + "\n")


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", "pass"])
    process.wait()
    return process.pid


def test_several_addresses_are_separated_by_commas() -> None:
    environ = {"STEADMESH_PLATFORM_URL": "http://a:1, http://b:2,", "STEADMESH_URL": "http://c:3"}
    assert str(from_environment(environ)) == "http://a:1, http://b:2"


def test_a_wrong_address_names_its_variable() -> None:
    with pytest.raises(BadAddress, match="STEADMESH_URL: "):
        from_environment({"STEADMESH_URL": "nonsense"})


def test_a_folder_without_an_address_file_names_no_service(tmp_path: Path) -> None:
    assert from_data_directory(tmp_path) is None
    assert from_data_directory(tmp_path / "none") is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"socket": 1}', "\x00"])
def test_a_damaged_address_file_is_said_to_be_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "address.json").write_text(content)
    with pytest.raises(NoService, match="damaged"):
        from_data_directory(tmp_path)


def test_an_address_is_alive_while_its_process_is(tmp_path: Path) -> None:
    write_address(tmp_path)
    address = from_data_directory(tmp_path)
    assert address is not None
    assert address.is_alive()


def test_an_address_whose_pid_was_given_to_another_process_is_dead(tmp_path: Path) -> None:
    write_address(tmp_path, started=1 + (process_start(os.getpid()) or 0))
    address = from_data_directory(tmp_path)
    assert address is not None
    assert not address.is_alive() or process_start(os.getpid()) is None


@pytest.mark.skipif(process_start(os.getpid()) is None, reason="this system has no /proc")
@pytest.mark.parametrize("with_start", [True, False])
def test_an_address_whose_process_ended_is_dead_though_nobody_took_note(
    tmp_path: Path, *, with_start: bool
) -> None:
    """A parent that does not wait for its children, as in many containers, leaves their remains."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_address(tmp_path, pid=child.pid, started=process_start(child.pid) if with_start else None)
    address = from_data_directory(tmp_path)
    assert address is not None
    assert address.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not address.is_alive()
    child.communicate()


def test_an_address_without_a_start_time_goes_by_the_pid(tmp_path: Path) -> None:
    write_address(tmp_path, started=None)
    alive = from_data_directory(tmp_path)
    write_address(tmp_path, started=None, pid=dead_pid())
    dead = from_data_directory(tmp_path)
    assert alive is not None
    assert dead is not None
    assert (alive.is_alive(), dead.is_alive()) == (True, False)


def test_the_data_directory_is_the_option_the_variable_or_the_default(tmp_path: Path) -> None:
    environ = {"STEADMESH_DATA": "/srv/data"}
    assert data_directory(environ, str(tmp_path)) == str(tmp_path)
    assert data_directory(environ) == "/srv/data"
    assert data_directory({}) == os.path.expanduser("~/.steadmesh")


def test_the_socket_comes_first_and_needs_no_key(tmp_path: Path) -> None:
    with Double(lambda asked: answer(200), unix=tmp_path / "s") as double:
        write_address(tmp_path, socket=str(double.unix), url="http://127.0.0.1:1")
        found = for_operator({"STEADMESH_DATA": str(tmp_path)})
        assert found.request("GET", "/internal/v1/dead-letters").status == 200
    assert "authorization" not in double.asked[0].headers


def test_without_a_socket_the_key_goes_to_who_proves_to_know_it(tmp_path: Path) -> None:
    with service_of(KEY) as double:
        write_address(tmp_path, url=double.url)
        for_operator({}, str(tmp_path)).request("GET", "/internal/v1/dead-letters")
    hello, call = double.asked
    assert hello.path.startswith("/v1/hello?nonce=")
    assert "authorization" not in hello.headers
    assert call.headers["authorization"] == f"Bearer {KEY}"


def test_every_proof_is_of_a_fresh_nonce(tmp_path: Path) -> None:
    with service_of(KEY) as double:
        write_address(tmp_path, url=double.url)
        found = for_operator({}, str(tmp_path))
        for _ in range(3):
            found.request("GET", "/x")
    assert len({asked.path for asked in double.asked if "nonce" in asked.path}) == 3


def test_another_listener_on_the_port_gets_no_key(tmp_path: Path) -> None:
    """N7: whoever holds the port while the service is down, and repeats what anybody may read."""
    with service_of(None) as double:
        write_address(tmp_path, url=double.url)
        found = for_operator({}, str(tmp_path))
        with pytest.raises(NoService, match="the operator key was not sent"):
            found.request("GET", "/internal/v1/dead-letters", retry_for=0)
    assert not any("authorization" in asked.headers for asked in double.asked)


def test_a_proof_made_for_another_port_is_none(tmp_path: Path) -> None:
    """A listener that passes the question on to the real service elsewhere."""
    with service_of(KEY, port=1) as double:
        write_address(tmp_path, url=double.url)
        found = for_operator({}, str(tmp_path))
        with pytest.raises(NoService, match="the operator key was not sent"):
            found.request("GET", "/x", retry_for=0)


def test_a_service_that_is_gone_is_named_with_the_command_to_run(tmp_path: Path) -> None:
    pid = dead_pid()
    write_address(tmp_path, pid=pid)
    with pytest.raises(NoService) as caught:
        for_operator({}, str(tmp_path))
    assert f"pid {pid}, is gone" in str(caught.value)
    assert f"steadmesh serve --data {tmp_path}" in str(caught.value)


def test_a_folder_no_service_ever_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoService, match="no service runs on the data directory"):
        for_operator({"STEADMESH_DATA": str(tmp_path)})


def test_an_explicit_url_gets_the_key_of_the_environment(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(KEY + "\n")
    with service_of(None) as double:
        environ = {"STEADMESH_URL": double.url, "STEADMESH_DATA": str(tmp_path)}
        for_operator({**environ, "STEADMESH_OPERATOR_KEY": "smo_1"}).request("GET", "/x")
        for_operator({**environ, "STEADMESH_OPERATOR_KEY_FILE": str(key_file)}).request("GET", "/x")
    sent = [asked.headers["authorization"] for asked in double.asked]
    assert sent == ["Bearer smo_1", f"Bearer {KEY}"]


def test_the_key_of_the_data_directory_goes_to_its_own_service_by_url(tmp_path: Path) -> None:
    with service_of(KEY) as double:
        write_address(tmp_path)
        environ = {"STEADMESH_URL": double.url, "STEADMESH_DATA": str(tmp_path)}
        for_operator(environ).request("GET", "/x")
    assert double.asked[-1].headers["authorization"] == f"Bearer {KEY}"


def test_the_key_of_the_data_directory_does_not_go_to_another_url(tmp_path: Path) -> None:
    with service_of(None) as double:
        write_address(tmp_path)
        environ = {"STEADMESH_URL": double.url, "STEADMESH_DATA": str(tmp_path)}
        for_operator(environ).request("GET", "/x")
    assert not any("authorization" in asked.headers for asked in double.asked)


def test_the_key_of_the_data_directory_does_not_go_to_several_addresses(tmp_path: Path) -> None:
    """A request may go to another one of them than gave the proof."""
    with service_of(KEY) as double:
        write_address(tmp_path)
        urls = f"{double.url},{double.url}"
        environ = {"STEADMESH_URL": urls, "STEADMESH_DATA": str(tmp_path)}
        for_operator(environ).request("GET", "/x")
    assert not any("authorization" in asked.headers for asked in double.asked)


def test_the_option_beats_the_url_of_the_environment(tmp_path: Path) -> None:
    with Double(lambda asked: answer(200), unix=tmp_path / "s") as double:
        write_address(tmp_path, socket=str(double.unix))
        found = for_operator({"STEADMESH_URL": "http://127.0.0.1:1"}, str(tmp_path))
        assert str(found) == double.url


def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    environ = {"STEADMESH_URL": "http://a:1", "STEADMESH_OPERATOR_KEY_FILE": str(tmp_path / "no")}
    with pytest.raises(NoService, match="STEADMESH_OPERATOR_KEY_FILE: cannot read"):
        for_operator(environ)


def test_a_start_time_is_read_despite_a_strange_program_name() -> None:
    if process_start(os.getpid()) is None:
        assert sys.platform != "linux"
        return
    assert process_start(dead_pid()) is None
