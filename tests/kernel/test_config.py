"""Configuration: four sources, one answer, and every mistake named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steadmesh.kernel.config import Config, ConfigError, Row, explain, load

SECRET = "4a1mVRjzdfT2yTCBcnSIh6ZKoQ0gXWQnqSYmmrXkiH8"
WITH_PASSWORD = "postgresql://steadmesh:hunter%2B2@db.example/mesh"


class Machine:
    """A home folder with a data directory in it, and an environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / ".steadmesh"
        self.data.mkdir()

    def write(self, text: str, *, name: str = "steadmesh.toml") -> Path:
        path = self.data / name
        path.write_text(text)
        return path

    def load(self, flags: dict[str, object] | None = None, **environment: str) -> Config:
        variables = {f"STEADMESH_{name}": value for name, value in environment.items()}
        return load(flags or {}, {"HOME": str(self.home), **variables})

    def problems(self, flags: dict[str, object] | None = None, **environment: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(flags, **environment)
        return str(caught.value).splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _row(config: Config, name: str) -> Row:
    return next(row for row in explain(config) if row.name == name)


def test_without_any_source_the_defaults_hold(machine: Machine) -> None:
    config = machine.load()
    assert (config.data, config.host, config.port) == (machine.data, "127.0.0.1", 3777)
    assert config.database is None
    assert config.secrets_dir == machine.data / "secrets"


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(machine: Machine) -> None:
    machine.write("port = 1001\nlog_level = 'debug'\nhost = '127.0.0.2'")
    config = machine.load({"port": 1003}, PORT="1002", LOG_LEVEL="error")
    assert (config.port, config.log_level, config.host) == (1003, "error", "127.0.0.2")


def test_each_value_knows_where_it_came_from(machine: Machine) -> None:
    file = machine.write("log_level = 'debug'")
    config = machine.load({"port": 1003}, HOST="127.0.0.2")
    assert [_row(config, name).source for name in ("port", "host", "log_level", "data")] == [
        "--port",
        "STEADMESH_HOST",
        str(file),
        "default",
    ]


def test_a_flag_that_was_not_given_changes_nothing(machine: Machine) -> None:
    assert machine.load({"port": None}, PORT="1002").port == 1002


def test_an_empty_variable_counts_as_absent(machine: Machine) -> None:
    assert machine.load(PORT="").port == 3777


def test_the_file_of_another_data_directory_is_read(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "steadmesh.toml").write_text("port = 1004")
    config = machine.load({"data": str(other)})
    assert (config.data, config.port) == (other, 1004)


def test_a_file_named_by_variable_may_set_the_data_directory(machine: Machine) -> None:
    file = machine.write("data = 'store'", name="elsewhere.toml")
    assert machine.load(CONFIG=str(file)).data == machine.data / "store"


def test_a_named_file_has_to_exist(machine: Machine) -> None:
    assert machine.problems(CONFIG="/nowhere/steadmesh.toml") == [
        "/nowhere/steadmesh.toml: there is no such file (STEADMESH_CONFIG names it)"
    ]


def test_the_data_directory_cannot_be_moved_from_within(machine: Machine) -> None:
    machine.write("data = '/srv/steadmesh'")
    assert "use STEADMESH_DATA or --data" in machine.problems()[0]


def test_paths_in_the_file_are_relative_to_it(machine: Machine) -> None:
    machine.write("secrets_dir = 'vault'")
    assert machine.load().secrets_dir == machine.data / "vault"


def test_a_tilde_stands_for_home(machine: Machine) -> None:
    assert machine.load(SECRETS_DIR="~/vault").secrets_dir == machine.home / "vault"


def test_lists_come_as_arrays_or_with_commas(machine: Machine) -> None:
    machine.write("allowed_hosts = ['Mesh.example', '[::2]']")
    config = machine.load(ALLOWED_ORIGINS="https://a.example, http://b.example:8080/")
    assert config.allowed_hosts == ("mesh.example", "[::2]")
    assert config.allowed_origins == ("https://a.example", "http://b.example:8080")


def test_the_supervisor_has_a_table(machine: Machine) -> None:
    machine.write('[supervisor]\nunenforced = ["non_root"]\nidle_timeout = "90s"')
    config = machine.load()
    assert config.supervisor.unenforced == ("non_root",)
    assert config.supervisor.idle_timeout == 90_000_000_000
    assert _row(config, "supervisor.idle_timeout").value == "1m30s"


def test_a_table_s_setting_can_come_from_a_variable(machine: Machine) -> None:
    config = machine.load(SUPERVISOR_UNENFORCED="non_root,network_policy")
    assert config.supervisor.unenforced == ("non_root", "network_policy")


def test_an_unknown_key_is_refused_with_the_nearest_known_one(machine: Machine) -> None:
    file = machine.write("prot = 1\n[supervisor]\nunenforce = []\n[quux]\n")
    assert machine.problems() == [
        f"{file}: unknown setting prot (did you mean port?)",
        f"{file}: unknown setting supervisor.unenforce (did you mean supervisor.unenforced?)",
        f"{file}: unknown setting quux",
    ]


def test_an_unknown_flag_is_refused_with_the_nearest_known_one(machine: Machine) -> None:
    assert machine.problems({"prot": 1}) == ["unknown flag --prot (did you mean --port?)"]


def test_unknown_variables_are_collected_as_warnings(machine: Machine) -> None:
    config = machine.load(PROT="1", LOG_LEVLE="debug", COLOUR="red")
    assert config.warnings == (
        "unknown variable STEADMESH_COLOUR",
        "unknown variable STEADMESH_LOG_LEVLE (did you mean STEADMESH_LOG_LEVEL?)",
        "unknown variable STEADMESH_PROT (did you mean STEADMESH_PORT?)",
    )


def test_variables_of_clients_and_runners_are_nobody_s_mistake(machine: Machine) -> None:
    names = "URL PLATFORM_URL TOKEN_FILE ORG_ID SEAT_ID SEAT_KEY CONFIG_REVISION HARNESS"
    names += " MANIFEST_DIR WORKSPACE_DIR HOME_DIR RUNNER_DIR TOOLS_BIN HEALTH_ADDR GENERATION"
    names += " GENERATION_FILE EXECUTION EXECUTION_FILE RUNNER_ANYTHING AUTOSTART TERMINAL_TOKEN"
    names += " OPERATOR_KEY OPERATOR_KEY_FILE"
    assert machine.load(None, **dict.fromkeys(names.split(), "x")).warnings == ()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "66000", "must be a whole number from 0 to 65535, not '66000'"),
        ("PORT", "٣", "must be a whole number from 0 to 65535, not '٣'"),
        ("LOG_LEVEL", "loud", "must be one of debug, info, warning, error, not 'loud'"),
        ("HOST", "http://x", "must be an address or host name, not 'http://x'"),
        ("ALLOWED_HOSTS", "a.example:80", "without scheme, port or *, not 'a.example:80'"),
        ("ALLOWED_ORIGINS", "a.example", "such as https://example.org, not 'a.example'"),
        ("SUPERVISOR_UNENFORCED", "seatbelt", "may hold network_policy, non_root, filesystem"),
        ("SUPERVISOR_IDLE_TIMEOUT", "1d", "a duration is numbers with units"),
        ("DATABASE", "mysql://x", "must be a URL such as postgresql://"),
        ("LOG_MAX_BYTES", "10", "must be a whole number from 65536"),
        ("HTTP_SECRET", "short", "must be at least 32 visible ASCII characters"),
        ("HTTP_SECRET", "smo_" + SECRET, "must not begin with sms_ or smo_"),
    ],
)
def test_a_bad_value_is_refused_by_name(machine: Machine, name: str, value: str, says: str) -> None:
    [problem] = machine.problems(None, **{name: value})
    assert problem.startswith(f"STEADMESH_{name}: ")
    assert says in problem


def test_a_truth_value_is_no_port(machine: Machine) -> None:
    file = machine.write("port = true")
    [problem] = machine.problems()
    assert problem.startswith(f"{file}: port: must be a whole number")


def test_all_mistakes_are_told_at_once(machine: Machine) -> None:
    machine.write("prot = 1\nlog_level = 'loud'")
    assert len(machine.problems({"port": -1}, HOST="a b")) == 4


def test_a_file_that_is_not_toml_is_refused_with_the_place(machine: Machine) -> None:
    file = machine.write("port = 1\nhost = =")
    [problem] = machine.problems()
    assert problem.startswith(f"{file}: is not valid TOML: ")
    assert "line 2" in problem


def test_a_secret_is_read_from_its_file_without_the_line_break(machine: Machine) -> None:
    file = machine.write(f"{SECRET}\n", name="secret")
    config = machine.load(HTTP_SECRET_FILE=str(file))
    assert config.http_secret == SECRET
    assert _row(config, "http_secret").source == "STEADMESH_HTTP_SECRET_FILE"


def test_a_secret_s_file_can_be_named_in_the_configuration_file(machine: Machine) -> None:
    machine.write(SECRET, name="secret")
    machine.write("http_secret_file = 'secret'")
    assert machine.load().http_secret == SECRET


def test_only_secrets_have_files(machine: Machine) -> None:
    assert machine.load(PORT_FILE="/x").warnings == (
        "unknown variable STEADMESH_PORT_FILE (did you mean STEADMESH_PORT?)",
    )


def test_a_secret_and_its_file_together_are_refused(machine: Machine) -> None:
    file = machine.write(SECRET, name="secret")
    assert machine.problems(HTTP_SECRET=SECRET, HTTP_SECRET_FILE=str(file)) == [
        "STEADMESH_HTTP_SECRET_FILE: give either http_secret or http_secret_file, not both"
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_an_unusable_secret_file_is_named(
    machine: Machine, content: bytes | None, says: str
) -> None:
    file = machine.data / "secret"
    if content is not None:
        file.write_bytes(content)
    [problem] = machine.problems(HTTP_SECRET_FILE=str(file))
    assert problem.endswith(says)
    assert str(file) in problem


@pytest.mark.parametrize(
    "url",
    [
        WITH_PASSWORD,
        "postgresql://db/mesh?user=x&password=hunter%2B2",
        "postgresql://db/mesh?sslpassword=hunter%2B2",
        "postgresql://x:hunter%2B2@[db/mesh",
    ],
)
def test_a_password_in_the_database_url_is_refused_and_not_repeated(
    machine: Machine, url: str
) -> None:
    machine.write(f"database = '{url}'")
    problems = machine.problems({"database": url}, DATABASE=url)
    assert len(problems) == 3
    for problem in problems:
        assert "STEADMESH_DATABASE_FILE" in problem
        assert "PGPASSFILE" in problem
        assert "hunter" not in problem


def test_a_database_url_with_a_password_may_stand_in_a_file_of_its_own(machine: Machine) -> None:
    file = machine.write(WITH_PASSWORD + "\n", name="database")
    assert machine.load(DATABASE_FILE=str(file)).database == WITH_PASSWORD


@pytest.mark.parametrize("url", ["postgresql://x:hunter%2B2@[::1/mesh", "postgresql://[db]/mesh"])
def test_a_database_url_that_cannot_be_read_is_told_without_its_password(
    machine: Machine, url: str
) -> None:
    file = machine.write(url, name="database")
    machine.write(f"database_file = '{file}'")
    [problem] = machine.problems()
    assert "database_file: is no URL that can be read" in problem
    assert "hunter" not in problem


def test_how_long_things_are_kept_is_given_in_days(machine: Machine) -> None:
    machine.write("[retention]\nexecutions = '7d'\naudit = 'forever'\nevents = 0")
    config = machine.load(RETENTION_MESSAGES="36h")
    kept = config.retention
    assert (kept.period("executions"), kept.period("audit")) == (7 * 86_400_000_000, None)
    shown = {name: _row(config, f"retention.{name}").value for name in ("messages", "audit")}
    assert shown == {"messages": "36h", "audit": "forever"}
    assert _row(config, "retention.events").value == "forever"
    assert _row(config, "retention.executions").value == "7d"
    assert _row(config, "retention.deliveries") == Row(
        "retention.deliveries",
        "30d",
        "default",
        "Messages' way through an inbox, once it is at its end.",
    )


@pytest.mark.parametrize("value", ["1h", "-1d", "0d", "soon", "", "99999999d", True, [1]])
def test_less_than_a_day_is_not_enough_to_repeat_what_went_wrong(
    machine: Machine, value: object
) -> None:
    machine.write(f"[retention]\nexecutions = {json.dumps(value)}")
    [problem] = machine.problems()
    assert "retention.executions: must be a number of days such as 90d" in problem


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(machine: Machine) -> None:
    [problem] = machine.problems({"http_secret": SECRET})
    assert "STEADMESH_HTTP_SECRET_FILE" in problem
    assert SECRET not in problem


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "mesh.example"])
def test_other_machines_are_let_in_only_with_a_secret(machine: Machine, host: str) -> None:
    assert "needs http_secret" in machine.problems(HOST=host)[0]
    assert machine.load(HOST=host, HTTP_SECRET=SECRET).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_secret(machine: Machine, host: str) -> None:
    assert machine.load(HOST=host).http_secret is None


def test_secrets_are_shown_masked_and_known_to_the_log(machine: Machine) -> None:
    file = machine.write(WITH_PASSWORD, name="database")
    config = machine.load(DATABASE_FILE=str(file), HTTP_SECRET=SECRET)
    shown = repr(config) + repr(explain(config))
    assert _row(config, "database").value == "postgresql://steadmesh:***@db.example/mesh"
    assert _row(config, "http_secret").value == "***"
    assert SECRET not in shown
    assert "hunter" not in shown
    assert set(config.secrets()) == {SECRET, "hunter%2B2", "hunter+2"}


def test_every_setting_has_a_sentence(machine: Machine) -> None:
    rows = explain(machine.load())
    assert all(row.sentence.endswith(".") for row in rows)
    assert len(rows) == 21


def test_reading_the_configuration_needs_the_standard_library_only() -> None:
    program = (
        "import sys; import steadmesh.kernel.config;"
        "print([n for n in sys.modules if n.split('.')[0] not in sys.stdlib_module_names"
        " and not n.startswith(('steadmesh', '_', 'sitecustomize'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
