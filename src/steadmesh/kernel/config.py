"""Settings: each with a default, a type and a sentence, from four sources.

In order, later ones winning: defaults, one TOML file (`steadmesh.toml` in the data directory, or
the one that STEADMESH_CONFIG names), environment variables `STEADMESH_<NAME>`, flags. A secret can
be given as `<name>_file`, the path of a file that holds it; then a line break at its end is dropped.
Empty variables count as absent. Whatever is wrong is told at once, and stops the start.

    config = load({"port": 4000}, os.environ)
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from steadmesh.kernel import config_values as values
from steadmesh.kernel import durations
from steadmesh.kernel.config_tables import Retention, Supervisor, setting
from steadmesh.kernel.config_values import Place, Reader

PREFIX = "STEADMESH_"
FILE_NAME = "steadmesh.toml"

_OF_OTHERS = frozenset(
    {
        "AUTOSTART", "CONFIG", "CONFIG_REVISION", "DEBUG", "EXECUTION", "EXECUTION_FILE", "GENERATION",
        "GENERATION_FILE", "HARNESS", "HEALTH_ADDR", "HOME_DIR", "MANIFEST_DIR", "OPERATOR_KEY",
        "OPERATOR_KEY_FILE", "ORG_ID", "PLATFORM_URL", "SEAT_ID", "SEAT_KEY", "TERMINAL_TOKEN",
        "TOKEN_FILE", "TOOLS_BIN", "URL", "WORKSPACE_DIR",
    }
)  # fmt: skip
"""Variables that other programs of ours read; `RUNNER_...` besides."""


class ConfigError(Exception):
    """The configuration is wrong; each line names a setting, where it was given, and what to do."""


_TABLES: Mapping[str, type] = {"supervisor": Supervisor, "retention": Retention}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective settings of one program."""

    data: Path = setting(  # noqa: RUF009 - it returns a dataclass field
        "Data directory: database, operator key, socket, log and address file.", values.path
    )
    host: str = setting(
        "Address to listen on; anything but loopback needs http_secret.",
        values.host,
        default="127.0.0.1",
    )
    port: int = setting(
        "Port to listen on; 0 takes any free one.", values.whole_number(0, 65_535), default=3777
    )
    database: str | None = setting(
        "PostgreSQL URL; without one, SQLite in the data directory.",
        values.database_url,
        secret=True,
    )
    http_secret: str | None = setting(
        "What every caller without a credential of its own must present.",
        values.shared_secret,
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        "Host names that requests may name, besides those of loopback.",
        values.host_names,
        default=(),
    )
    allowed_origins: tuple[str, ...] = setting(
        "Web origins whose pages may call, besides those of loopback.", values.origins, default=()
    )
    secrets_dir: Path = setting(  # noqa: RUF009 - it returns a dataclass field
        "Folder of the secrets that connections name; default: secrets in the data directory.",
        values.path,
    )
    log_level: str = setting(
        "Least severity that is logged.",
        values.one_of("debug", "info", "warning", "error"),
        default="info",
    )
    log_max_bytes: int = setting(
        "Size at which the log file starts anew; one older file is kept.",
        values.whole_number(65_536, 2**40),
        default=10 * 1024 * 1024,
    )
    supervisor: Supervisor = field(default_factory=Supervisor)
    retention: Retention = field(default_factory=Retention)

    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each setting came from; what is missing here is a default."""
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Variables that look like settings and are none."""

    def secrets(self) -> list[str]:
        """The secret values, for the log to know."""
        passwords = values.passwords_of(self.database) if self.database else []
        return [*passwords, *([self.http_secret] if self.http_secret else [])]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `steadmesh config`."""

    name: str
    value: str
    source: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Known:
    """A setting by its full name, such as `supervisor.unenforced`."""

    name: str
    sentence: str
    reader: Reader
    secret: bool

    def of(self, config: Config) -> Any:
        value: Any = config
        for part in self.name.split("."):
            value = getattr(value, part)
        return value


def _known_settings() -> list[_Known]:
    return [
        _Known(prefix + item.name, **item.metadata)
        for prefix, owner in (
            ("", Config),
            *((f"{name}.", owner) for name, owner in _TABLES.items()),
        )
        for item in fields(owner)
        if item.metadata
    ]


_BY_NAME = {known.name: known for known in _known_settings()}
_BY_WORD = {name.replace(".", "_"): known for name, known in _BY_NAME.items()}
"""As variables and flags spell them."""

_Layer = Literal["file", "environment", "flags"]


def load(flags: Mapping[str, object], environment: Mapping[str, str]) -> Config:
    """The effective configuration. Flags are named as in Python; one that is None was not given.

    Raises `ConfigError` with everything that is wrong, a line each.
    """
    return _Loading(flags, environment).result()


def explain(config: Config) -> list[Row]:
    """Every setting with its value (secrets masked), its source and its sentence."""
    return [
        Row(
            name,
            _shown(known, known.of(config)),
            config.sources.get(name, "default"),
            known.sentence,
        )
        for name, known in _BY_NAME.items()
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    import ipaddress  # rarely needed, and every command reads the configuration

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Loading:
    """Sources are added in rising order of precedence; problems are collected."""

    def __init__(self, flags: Mapping[str, object], environment: Mapping[str, str]) -> None:
        self._flags = {name: value for name, value in flags.items() if value is not None}
        self._environment = {name: value for name, value in environment.items() if value.strip()}
        self._here = Place(Path.cwd(), Path(environment.get("HOME") or Path.home()))
        self._values: dict[str, Any] = {}
        self._sources: dict[str, str] = {}
        self._given: set[tuple[_Layer, str]] = set()
        self._problems: list[str] = []
        self._warnings: list[str] = []

    def result(self) -> Config:
        self._read_file()
        self._read_environment()
        self._read_flags()
        self._check_bind()
        if self._problems:
            raise ConfigError("\n".join(self._problems))
        data = self._values.setdefault("data", self._here.home / ".steadmesh")
        self._values.setdefault("secrets_dir", data / "secrets")
        top = {name: value for name, value in self._values.items() if "." not in name}
        return Config(
            **top,
            **{name: owner(**self._table(name)) for name, owner in _TABLES.items()},
            sources=self._sources,
            warnings=tuple(self._warnings),
        )

    def _table(self, table: str) -> dict[str, Any]:
        start = f"{table}."
        given = self._values.items()
        return {name.removeprefix(start): v for name, v in given if name.startswith(start)}

    def _read_file(self) -> None:
        file, named = self._file()
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if named:
                self._problems.append(f"{file}: there is no such file (STEADMESH_CONFIG names it)")
            return
        except OSError as problem:
            self._problems.append(f"{file}: cannot be read: {problem.strerror}")
            return
        except ValueError as problem:  # not TOML, or not UTF-8
            self._problems.append(f"{file}: is not valid TOML: {problem}")
            return
        place = Place(file.absolute().parent, self._here.home)
        for name, value in self._flat(file, content):
            where = f"{file}: {name}"
            if name == "data" and not named:
                self._problems.append(
                    f"{where}: cannot be set in the data directory's own file; "
                    "use STEADMESH_DATA or --data"
                )
            elif found := _find(_BY_NAME, name):
                self._take(found, value, "file", source=str(file), where=where, place=place)
            else:
                self._problems.append(f"{file}: unknown setting {name}{_nearest(name, _BY_NAME)}")

    def _file(self) -> tuple[Path, bool]:
        """The file, and whether somebody asked for this one."""
        if named := self._environment.get(f"{PREFIX}CONFIG"):
            return values.path(named, self._here), True
        data = self._flags.get("data") or self._environment.get(f"{PREFIX}DATA") or "~/.steadmesh"
        try:
            return values.path(data, self._here) / FILE_NAME, False
        except ValueError:  # is told when the setting itself is read
            return self._here.home / ".steadmesh" / FILE_NAME, False

    def _flat(self, file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        for name, value in content.items():
            if name not in _TABLES:
                yield name, value
            elif isinstance(value, dict):
                yield from ((f"{name}.{inner}", item) for inner, item in value.items())
            else:
                self._problems.append(f"{file}: {name}: must be a table: [{name}]")

    def _read_environment(self) -> None:
        for variable, value in sorted(self._environment.items()):
            short = variable.removeprefix(PREFIX)
            if short == variable or short in _OF_OTHERS or short.startswith("RUNNER_"):
                continue
            if found := _find(_BY_WORD, short.lower()):
                self._take(
                    found, value, "environment", source=variable, where=variable, place=self._here
                )
            else:
                hint = _nearest(short.lower(), _BY_WORD, lambda word: PREFIX + word.upper())
                self._warnings.append(f"unknown variable {variable}{hint}")

    def _read_flags(self) -> None:
        for name, value in self._flags.items():
            flag = _flag(name)
            found = _find(_BY_WORD, name)
            if found is None:
                hint = _nearest(name, _BY_WORD, _flag)
                self._problems.append(f"unknown flag {flag}{hint}")
            elif name == "http_secret":
                self._problems.append(
                    f"{flag}: a secret on the command line can be read by every user of the "
                    "machine; put it into a file that STEADMESH_HTTP_SECRET_FILE names"
                )
            else:
                self._take(found, value, "flags", source=flag, where=flag, place=self._here)

    def _take(
        self,
        found: _Found,
        value: object,
        layer: _Layer,
        *,
        source: str,
        where: str,
        place: Place,
    ) -> None:
        name = found.known.name
        if (layer, name) in self._given:
            self._problems.append(f"{where}: give either {name} or {name}_file, not both")
            return
        self._given.add((layer, name))
        try:
            if found.in_file:
                value = _content_of(values.path(value, place))
                place = replace(place, private=True)
            self._values[name] = found.known.reader(value, place)
            self._sources[name] = source
        except ValueError as problem:
            self._problems.append(f"{where}: {problem}")

    def _check_bind(self) -> None:
        host = self._values.get("host", "127.0.0.1")
        if not is_loopback(host) and ("http_secret" not in self._values):
            self._problems.append(
                f"host: {host} can be reached from other machines, which needs http_secret; put at "
                "least 32 random characters into a file and let STEADMESH_HTTP_SECRET_FILE name it"
            )


@dataclass(frozen=True, slots=True)
class _Found:
    known: _Known
    in_file: bool
    """The value is the path of a file that holds it."""


def _find(names: Mapping[str, _Known], name: str) -> _Found | None:
    if known := names.get(name):
        return _Found(known, in_file=False)
    known = names.get(name.removesuffix("_file"))
    return _Found(known, in_file=True) if known is not None and known.secret else None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _nearest(name: str, known: Iterable[str], spelt: Callable[[str], str] = str) -> str:
    import difflib  # only after a mistake

    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {spelt(near[0])}?)" if near else ""


def _content_of(path: Path) -> str:
    try:
        content = path.read_bytes()[:65_536].decode()
    except OSError as problem:
        raise ValueError(f"the file {path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the file {path} is not UTF-8 text") from None
    if not content.strip():
        raise ValueError(f"the file {path} is empty")
    return content


def _shown(known: _Known, value: Any) -> str:
    if known.reader is values.period:
        return values.shown_period(value)
    if value is None or value == ():
        return "-"
    if known.name == "database":
        return values.masked_url(value)
    if known.secret:
        return values.MASK
    if known.reader is values.duration:
        return durations.show(value)
    return ", ".join(value) if isinstance(value, tuple) else str(value)
