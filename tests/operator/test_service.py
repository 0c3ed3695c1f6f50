"""serve, stop, restart: services as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.commands import Program, nothing_runs_about, run, started, steadmesh
from tests.support.service import RunningService


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def served(data: Path, tmp_path: Path) -> Iterator[Program]:
    """A service that listens."""
    with started("serve", "--data", str(data), "--port", "0", home=tmp_path) as program:
        program.until_says("listening on http://127.0.0.1:")
        yield program


def pid_of(data: Path) -> int:
    """Of the service that the data directory names."""
    return int(json.loads((data / "address.json").read_text())["pid"])


def test_serve_says_on_stderr_where_it_listens_and_where_the_log_is(
    served: Program, data: Path
) -> None:
    said = served.end()
    assert (said.code, said.out) == (0, "")
    assert f"the log is {data}/steadmesh.log" in said.err
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_stop_waits_until_the_service_has_ended(served: Program, data: Path) -> None:
    said = steadmesh("stop", "--data", str(data))
    assert (said.code, said.out) == (0, f"stopped (pid {served.pid})\n")
    assert served.wait(limit=0.5).code == 0


def test_stop_without_a_service_has_nothing_to_do(data: Path) -> None:
    code, words = steadmesh("stop", "--data", str(data)).failure
    assert code == 0
    assert "no service runs on" in words
    assert not data.exists()


def test_stop_means_the_service_of_the_data_directory_not_of_the_url(
    served: Program, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunningService() as other:
        monkeypatch.setenv("STEADMESH_URL", other.url)
        monkeypatch.setenv("STEADMESH_DATA", str(data))
        assert steadmesh("stop").out == f"stopped (pid {served.pid})\n"
        assert other.request("GET", "/healthz").status == 200


def test_stop_works_although_the_settings_are_broken_by_now(served: Program, data: Path) -> None:
    (data / "steadmesh.toml").write_text("prot = 4000\n")
    code, words = steadmesh("restart", "--data", str(data)).failure
    assert code == 1
    assert "unknown setting prot (did you mean port?)" in words
    assert steadmesh("stop", "--data", str(data)).code == 0
    assert served.wait().code == 0


def test_restart_keeps_the_port_and_what_was_stored(
    served: Program, data: Path, example: Path
) -> None:
    words = ["--data", str(data)]
    steadmesh("apply", str(example / "organisation.yaml"), *words)
    url = json.loads((data / "address.json").read_text())["url"]
    said = steadmesh("restart", *words)
    try:
        assert said.code == 0
        assert said.out == f"running (pid {pid_of(data)}) on {url}\n"
        assert pid_of(data) != served.pid
        assert steadmesh("status", *words).out.count("\n") == 6
    finally:
        assert steadmesh("stop", *words).code == 0
    nothing_runs_about(data)


def test_restart_starts_a_service_where_none_runs(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_PORT", "0")
    assert steadmesh("restart", "--data", str(data)).code == 0
    assert steadmesh("stop", "--data", str(data)).code == 0
    nothing_runs_about(data)


def test_restart_refuses_to_lose_the_variables_that_the_service_has(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    variables = {"STEADMESH_HTTP_SECRET_FILE": str(secret)}
    words = ["--data", str(data)]
    with started("serve", *words, "--port", "0", home=tmp_path, variables=variables) as program:
        program.until_says("listening on")
        code, said = steadmesh("restart", *words).failure
        assert code == 1
        assert "runs with STEADMESH_HTTP_SECRET_FILE, which this terminal does not have" in said
        assert pid_of(data) == program.pid
        monkeypatch.setenv("STEADMESH_HTTP_SECRET_FILE", str(secret))
        try:
            assert steadmesh("restart", *words).code == 0
        finally:
            steadmesh("stop", *words)


def test_a_second_service_on_the_same_data_names_the_pid_of_the_first(
    served: Program, data: Path, tmp_path: Path
) -> None:
    code, words = run("serve", "--data", str(data), "--port", "0", home=tmp_path).failure
    assert code == 1
    assert f"a steadmesh service (pid {served.pid}) already uses {data}" in words
    assert steadmesh("stop", "--data", str(data)).code == 0


def test_a_service_that_was_killed_leaves_the_way_free(
    served: Program, data: Path, tmp_path: Path
) -> None:
    served.end(signal.SIGKILL)
    with started("serve", "--data", str(data), "--port", "0", home=tmp_path) as program:
        program.until_says("listening on")
        assert program.end().code == 0


def test_a_port_that_is_taken_is_named_with_a_way_out(data: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, words = run("serve", "--data", str(data), "--port", port, home=tmp_path).failure
    assert code == 1
    assert f"port {port} on 127.0.0.1 is taken" in words
    assert "--port 0" in words


def test_a_data_directory_that_is_a_file_is_explained(data: Path, tmp_path: Path) -> None:
    data.write_text("")
    code, words = run("serve", "--data", str(data), home=tmp_path).failure
    assert code == 1
    assert f"the data directory {data} is a file" in words


def test_a_data_directory_open_to_others_is_not_taken_over(data: Path, tmp_path: Path) -> None:
    data.mkdir(mode=0o755)
    (data / "file").write_text("somebody's")
    code, words = run("serve", "--data", str(data), home=tmp_path).failure
    assert code == 1
    assert f"chmod 700 {data}" in words
    assert [file.name for file in data.iterdir()] == ["file"]


def test_a_database_that_cannot_be_reached_is_named(data: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"postgresql://ada@127.0.0.1:{port}/lumen"
    words = ["serve", "--data", str(data), "--port", "0", "--database", url]
    code, said = run(*words, home=tmp_path).failure
    assert code == 1
    assert f"cannot reach PostgreSQL at {url}" in said
    assert said.count("\n") <= 2


@pytest.mark.parametrize("how", ["--database", "STEADMESH_DATABASE"])
def test_a_password_that_others_could_read_is_refused_with_two_ways_out(
    data: Path, tmp_path: Path, how: str
) -> None:
    url = "postgresql://ada:hunter2@127.0.0.1/lumen"
    flag, variables = (("--database", url), {}) if how[0] == "-" else ((), {how: url})
    code, words = run(
        "serve", "--data", str(data), *flag, home=tmp_path, variables=variables
    ).failure
    assert code == 1
    assert words.startswith(f"steadmesh: {how}: holds a password")
    assert "STEADMESH_DATABASE_FILE" in words
    assert "PGPASSFILE" in words
    assert "hunter2" not in words
    assert not data.exists()


def test_the_url_in_a_file_opens_the_database_of_the_whole_service(
    data: Path, tmp_path: Path, migrated_url: str, example: Path
) -> None:
    file = tmp_path / "database.url"
    file.write_text(migrated_url + "\n")
    variables = {"STEADMESH_DATABASE_FILE": str(file)}
    words = ["--data", str(data)]
    with started("serve", *words, "--port", "0", home=tmp_path, variables=variables) as program:
        program.until_says("listening on", limit=40)
        assert steadmesh("apply", str(example / "organisation.yaml"), *words).code == 0
        assert not (data / "steadmesh.db").exists()
        shown = run("config", *words, home=tmp_path, variables=variables).out
        assert "STEADMESH_DATABASE_FILE" in shown
        assert program.end().code == 0


def test_listening_to_the_world_needs_a_secret(data: Path, tmp_path: Path) -> None:
    code, words = run("serve", "--data", str(data), "--host", "0.0.0.0", home=tmp_path).failure
    assert code == 1
    assert "STEADMESH_HTTP_SECRET_FILE" in words


def test_a_file_beside_us_does_not_pass_for_a_module_of_ours(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEADMESH_PORT", "0")
    assert steadmesh("restart", "--data", str(data)).code == 0
    assert steadmesh("stop", "--data", str(data)).code == 0


def test_a_background_service_that_cannot_start_says_why_in_one_message(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("STEADMESH_PORT", str(taken.getsockname()[1]))
        code, words = steadmesh("restart", "--data", str(data)).failure
    assert code == 1
    assert words.startswith("steadmesh: the service did not start: port ")
    assert words.count("\n") == 1
    nothing_runs_about(data)


def test_a_service_closes_in_order_when_its_terminal_is_closed(served: Program) -> None:
    assert served.end(signal.SIGHUP).code == 0


def test_variables_of_the_terminal_do_not_reach_a_directory_named_by_a_flag(
    served: Program, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_DATA", os.devnull)
    assert steadmesh("stop", "--data", str(data)).out == f"stopped (pid {served.pid})\n"
