"""plan, apply, status, token, config: against a running service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.operator.commands import Screen, steadmesh
from tests.operator.conftest import Lumen
from tests.support.service import RunningService

SEATS = ["builder_one", "builder_two", "lead", "rep_ada", "reviewer"]


def change(lumen: Lumen, old: str, new: str) -> None:
    file = Path(lumen.file)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def add_another(lumen: Lumen) -> None:
    """A second organisation on the same service."""
    change(lumen, "key: lumen\n", "key: lunar\n")
    assert lumen.run("apply", lumen.file).code == 0
    change(lumen, "key: lunar\n", "key: lumen\n")


def test_a_plan_shows_each_seat_and_writes_nothing(empty: RunningService, example: Path) -> None:
    words = [str(example / "organisation.yaml"), "--data", str(empty.data)]
    for _ in range(2):
        said = steadmesh("plan", *words)
        assert said.code == 0
        assert [line.split("\t")[:3] for line in said.out.splitlines()[1:]] == [
            ["+", seat, "new"] for seat in SEATS
        ]
        assert said.err == "5 of 5 seats would change; nothing is written\n"


def test_an_apply_prints_ids_and_a_second_one_changes_nothing(
    empty: RunningService, example: Path
) -> None:
    words = [str(example / "organisation.yaml"), "--data", str(empty.data)]
    first, second = steadmesh("apply", *words), steadmesh("apply", *words)
    assert (first.code, second.code) == (0, 0)
    assert first.err == "applied; the policy holds from now on\n"
    assert second.err == "nothing changed\n"
    assert first.out.replace("\tnew\t", "\tunchanged\t") == second.out


def test_an_applied_file_plans_no_change(lumen: Lumen) -> None:
    said = lumen.run("plan", lumen.file)
    assert said.err == "nothing would change\n"
    assert "new" not in said.out


def test_a_plan_names_the_revisions_that_would_move(lumen: Lumen) -> None:
    change(lumen, 'role_ref: "role:reviewer"', 'role_ref: "role:reviewer"\n    display_name: Rita')
    change(lumen, 'to: "seat:lead", reply: true', 'to: "seat:lead", bidirectional: true')
    changes = {row["seat"]: row for row in json.loads(lumen.run("plan", lumen.file, "--json").out)}
    assert changes["reviewer"] == {
        "seat": "reviewer",
        "kind": "changed",
        "revisions": ["configuration"],
    }
    assert changes["rep_ada"]["revisions"] == ["policy"]
    assert changes["builder_one"]["kind"] == "unchanged"


def test_a_broken_file_is_neither_planned_nor_applied(lumen: Lumen) -> None:
    change(lumen, "adapter: fake", "adapter: fakee")
    for command in ("plan", "apply"):
        said = lumen.run(command, lumen.file)
        assert said.code == 1
        assert "harness_profiles.scripted.adapter: " in said.out
    assert len(json.loads(lumen.run("apply", lumen.file, "--json").out)) == 1


def test_mistakes_are_told_before_a_service_is_looked_for(example: Path, tmp_path: Path) -> None:
    file = example / "organisation.yaml"
    file.write_text(file.read_text().replace("adapter: fake", "adapter: fakee"))
    for command in ("plan", "apply"):
        said = steadmesh(command, str(file), "--data", str(tmp_path / "nothing"))
        assert (said.code, said.err) == (1, "1 mistake\n")


def test_applied_json_has_the_ids(lumen: Lumen) -> None:
    applied = json.loads(lumen.run("apply", lumen.file, "--json").out)
    assert (applied["key"], applied["changed"], sorted(applied["seats"])) == ("lumen", False, SEATS)


def test_status_of_a_service_without_an_organisation_says_what_to_do(empty: RunningService) -> None:
    code, words = steadmesh("status", "--data", str(empty.data)).failure
    assert code == 1
    assert "steadmesh apply FILE" in words


def test_status_in_a_pipe_has_a_line_for_each_seat_and_tabs_between_cells(lumen: Lumen) -> None:
    said = lumen.run("status")
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [[seat, "Stopped"] for seat in SEATS]
    assert {len(row) for row in rows} == {9}


def test_status_as_json_is_the_service_s_own_view(lumen: Lumen) -> None:
    view = json.loads(lumen.run("status", "--json").out)
    assert [seat["seat"] for seat in view["seats"]] == SEATS
    assert view["bindings"][0]["external_user_id"] == "ada"


def test_status_on_a_narrow_terminal_keeps_names_whole_and_leaves_empty_columns_out(
    lumen: Lumen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    said = steadmesh("status", "--data", str(lumen.service.data), screen=screen)
    assert said.code == 0
    assert "Lumen Labs (lumen)" in screen.getvalue()
    assert "builder_one" in screen.getvalue()
    assert "dead" not in screen.getvalue()


def test_status_says_why_seats_are_blocked_once_for_all_below_the_table(lumen: Lumen) -> None:
    for key in ("lead", "reviewer"):
        path = f"/internal/v1/seats/{lumen.seat_id(key)}/state"
        body = {"state": "Blocked", "detail": "no sandbox here"}
        assert lumen.service.request("POST", path, body, local=True).status < 300
    screen = Screen()
    steadmesh("status", "--data", str(lumen.service.data), screen=screen)
    assert screen.getvalue().endswith("lead, reviewer: blocked: no sandbox here\n")
    assert lumen.run("status").out.count("no sandbox here") == 2


def test_status_says_that_no_supervisor_runs_and_which_mail_waits_for_one(lumen: Lumen) -> None:
    lumen.run("chat", "--user", "ada", "--token", lumen.token, "--wait", "0", stdin="hello\n")
    said = lumen.run("status")
    assert said.out.count("no supervisor is running: mail will wait") == 1
    assert said.err.startswith("no supervisor is running: mail will wait. Start one: ")
    assert f"steadmesh supervise lumen --data {lumen.service.data}" in said.err


@pytest.mark.parametrize("command", [("status",), ("token", "lead"), ("seat", "run", "lead", "ls")])
def test_several_organisations_are_listed_until_one_is_named(
    lumen: Lumen, command: tuple[str, ...]
) -> None:
    add_another(lumen)
    data = ["--data", str(lumen.service.data)]
    code, words = steadmesh(*command, *data).failure
    assert code == 1
    assert "--org: lumen, lunar" in words
    assert steadmesh("status", *data, "--org", "lunar").code == 0


@pytest.mark.parametrize(
    ("named", "words"), [("lumn", "Did you mean lumen?"), ("x", "are: lumen.")]
)
def test_an_unknown_organisation_gets_the_nearest_or_all(
    lumen: Lumen, named: str, words: str
) -> None:
    code, said = lumen.run("status", "--org", named).failure
    assert code == 1
    assert words in said


def test_an_unknown_seat_gets_the_nearest(lumen: Lumen) -> None:
    code, said = lumen.run("token", "bilder_one").failure
    assert code == 1
    assert "lumen has no seat bilder_one. Did you mean builder_one?" in said


def test_a_token_alone_goes_to_stdout_and_opens_the_seat(lumen: Lumen) -> None:
    said = lumen.run("token", "lead", "--instance", "a/b c")
    assert said.out.startswith("sms_")
    assert "for the instance a/b c, until " in said.err
    answer = lumen.service.call("self", said.out.strip())
    assert answer.json()["content"]["seat_key"] == "lead"


def test_a_token_as_json_says_when_it_ends(lumen: Lumen) -> None:
    issued = json.loads(lumen.run("token", "lead", "--json").out)
    assert (issued["seat"], issued["instance"]) == ("lead", "manual")
    assert issued["token"].startswith("sms_")
    assert issued["expires_at"].endswith("Z")


def test_a_revoked_token_opens_nothing_any_more(lumen: Lumen) -> None:
    token = lumen.run("token", "lead").out.strip()
    assert lumen.run("token", "lead", "--revoke").failure[0] == 0
    assert lumen.service.call("self", token).status == 401


def test_a_bad_lifetime_is_refused_with_what_it_may_be(lumen: Lumen) -> None:
    code, words = lumen.run("token", "lead", "--ttl", "5 days").failure
    assert code == 1
    assert "ttl: must be a duration such as 24h" in words


def test_over_tcp_the_operator_key_is_asked_for(
    lumen: Lumen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_URL", lumen.service.url)
    code, words = steadmesh("status").failure
    assert code == 1
    assert "STEADMESH_OPERATOR_KEY_FILE" in words
    monkeypatch.setenv("STEADMESH_OPERATOR_KEY_FILE", str(lumen.service.data / "operator.key"))
    assert steadmesh("status").code == 0


def test_a_service_that_does_not_answer_is_named_at_once_and_tried_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEADMESH_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("steadmesh.operator.api.RETRY_SECONDS", 0.1)
    code, words = steadmesh("status").failure
    assert code == 1
    first, last = words.splitlines()
    assert first.startswith("no answer from http://127.0.0.1:1")
    assert first.endswith("trying for 0 s")
    assert last.startswith("steadmesh: no answer from http://127.0.0.1:1 after trying")


def test_a_directory_that_only_the_named_file_of_settings_knows_is_found(
    lumen: Lumen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'data = "{lumen.service.data}"\n')
    monkeypatch.setenv("STEADMESH_CONFIG", str(settings))
    assert steadmesh("status").code == 0


def test_config_shows_where_a_setting_came_from_and_hides_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    monkeypatch.setenv("STEADMESH_HTTP_SECRET_FILE", str(secret))
    monkeypatch.setenv("STEADMESH_PROT", "4000")
    said = steadmesh("config", "--data", str(tmp_path / "data"))
    assert "http_secret\t***\tSTEADMESH_HTTP_SECRET_FILE\t" in said.out
    assert "s" * 40 not in said.out
    assert said.err == "steadmesh: unknown variable STEADMESH_PROT (did you mean STEADMESH_PORT?)\n"


def test_config_as_json_has_numbers_lists_and_nothing_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_SUPERVISOR_UNENFORCED", "non_root")
    shown = json.loads(steadmesh("config", "--json").out)
    assert shown["port"] == {"value": 3777, "source": "default"}
    assert shown["database"]["value"] is None
    assert shown["supervisor.unenforced"]["value"] == ["non_root"]
    assert shown["data"]["value"] == str(tmp_path / ".steadmesh")
