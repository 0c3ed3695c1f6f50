"""Reading access profiles and connections: what lies outside the platform."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from steadmesh.seats.organisation import _declared as declared
from steadmesh.seats.organisation import _references as references
from steadmesh.seats.organisation._adapters import ADAPTERS, APIS, PERMISSIONS, Adapter
from steadmesh.seats.organisation._fields import Fields
from steadmesh.seats.organisation._problems import inside, item, listed, quoted

_BINARY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:\*\.{_LABEL}\.)?(?:{_LABEL}\.)*{_LABEL}(?::(?P<port>[0-9]{{1,5}}))?")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_HEADER_AUTH = re.compile(r"header:[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_USER_IN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@")
_LARGEST_PORT = 65_535


def access(fields: Fields) -> declared.AccessProfile:
    """An entry of `access_profiles`."""
    github = fields.inner("github")
    return declared.AccessProfile(
        tools=declared.Tools(_inner_list(fields, "tools", "binaries", wrong=_wrong_binary)),
        egress=declared.Egress(
            tuple(h.lower() for h in _inner_list(fields, "egress", "hosts", wrong=_wrong_host))
        ),
        network=_network(fields),
        github=None if github is None else _github(github),
        browser=_browser(fields),
    )


def _inner_list(
    fields: Fields, name: str, within: str, *, wrong: Callable[[str], str | None]
) -> tuple[str, ...]:
    inner = fields.inner(name)
    if inner is None:
        return ()
    values = inner.texts(within)
    _check(inner, within, values, wrong)
    inner.refuse_unknown()
    return values


def _check(
    fields: Fields, name: str, values: tuple[str, ...], wrong: Callable[[str], str | None]
) -> None:
    for index, value in enumerate(values):
        message = wrong(value) if value else None
        if message:
            fields.report.add(item(fields.place(name), index), message)


def _wrong_binary(name: str) -> str | None:
    if _BINARY.fullmatch(name):
        return None
    return f"{quoted(name)} is not the name of a program. Give the name alone, without a path"


def _wrong_host(host: str) -> str | None:
    found = _HOST.fullmatch(host)
    if found is None or not _is_port(int(found["port"] or 443)):
        return (
            f"{quoted(host)} is not a host. Write name, name:port or *.domain.tld (which means "
            "the subdomains of domain.tld), without https://"
        )
    return None


def _is_port(port: object) -> bool:
    return isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= _LARGEST_PORT


def _network(fields: Fields) -> declared.Network:
    inner = fields.inner("network")
    if inner is None:
        return declared.Network()
    rules = []
    for rule in inner.items("rules"):
        rules.append(
            declared.NetworkRule(
                cidr=_cidr(rule),
                ports=_ports(rule),
                protocol=rule.choice("protocol", ("tcp", "udp", "sctp"), "tcp"),
            )
        )
        rule.refuse_unknown()
    inner.refuse_unknown()
    return declared.Network(tuple(rules))


def _cidr(rule: Fields) -> str:
    text = rule.required("cidr", "10.0.0.0/8")
    if not text:
        return ""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        rule.wrong("cidr", f"{quoted(text)} is not a network such as 10.0.0.0/8 or 2001:db8::/32")
        return ""


def _ports(rule: Fields) -> tuple[int, ...]:
    given = rule.given("ports")
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        rule.wrong("ports", "must be a list of numbers, for example [443]")
        return ()
    for index, port in enumerate(given):
        if not _is_port(port):
            rule.report.add(
                item(rule.place("ports"), index), f"a port is a number from 1 to {_LARGEST_PORT}"
            )
    return tuple(port for port in given if _is_port(port))


def _github(fields: Fields) -> declared.GithubAccess:
    repos = fields.filled("repos", "owner/name")
    _check(fields, "repos", repos, _wrong_repository)
    permissions = fields.texts_by_key("permissions")
    for name, level in permissions.items():
        place = inside(fields.place("permissions"), name)
        if name not in PERMISSIONS:
            message = f"unknown permission {quoted(name)}. Known are {listed(PERMISSIONS)}."
            fields.report.add(place, message + fields.report.hint(name, PERMISSIONS))
        elif level and level not in ("read", "write"):
            fields.report.add(place, f"must be read or write, not {quoted(level)}")
    access = declared.GithubAccess(
        connection=fields.required("connection", "forge"),
        repos=repos,
        permissions=permissions,
        delivery=fields.choice("delivery", ("platform", "sandbox"), "platform"),
    )
    fields.refuse_unknown()
    return access


def _wrong_repository(name: str) -> str | None:
    if _REPOSITORY.fullmatch(name) and name.rpartition("/")[2] not in (".", ".."):
        return None
    return f"{quoted(name)} is not a repository. Write owner/name"


def _browser(fields: Fields) -> declared.Browser:
    browser = fields.inner("browser")
    if browser is None:
        return declared.Browser()
    session = browser.inner("session")
    found = None
    if session is not None:
        found = declared.BrowserSession(session.required("connection", "signed_in"))
        session.refuse_unknown()
    browser.refuse_unknown()
    return declared.Browser(found)


def connection(fields: Fields) -> declared.Connection:
    """An entry of `connections`."""
    name = fields.required("adapter", "terminal")
    adapter = ADAPTERS.get(name)
    if name and adapter is None:
        fields.wrong(
            "adapter",
            f"unknown adapter {quoted(name)}. Known are {listed(ADAPTERS)}.{fields.report.hint(name, ADAPTERS)}",
        )
    if fields.text("ownership", "external") == "managed":
        fields.wrong("ownership", "managed connections are not offered. Write external")
    else:
        fields.choice("ownership", ("external",), "external")
    return declared.Connection(
        adapter=name if adapter else "",
        secret_ref=_secret(fields),
        account_id=fields.text("account_id"),
        endpoint_ref=_endpoint(fields, adapter),
        required=fields.optional_flag("required"),
        model=_service(fields, adapter),
        config=fields.json_map("config"),
    )


def _secret(fields: Fields) -> str:
    """The secret's reference. Whatever else stands there may be a secret: it is never repeated."""
    value = fields.given("secret_ref")
    if value is None:
        fields.wrong("secret_ref", "is required, for example secret_ref: env:LINEAR")
        return ""
    try:
        return references.secret(value if isinstance(value, str) else "")
    except references.BadReference as error:
        fields.wrong("secret_ref", str(error))
        return ""


def _endpoint(fields: Fields, adapter: Adapter | None) -> str:
    if adapter and adapter.kind == "model" and not adapter.apis:
        endpoint = fields.required("endpoint_ref", "https://models.example.com/v1")
    else:
        endpoint = fields.text("endpoint_ref")
    if _USER_IN_URL.match(endpoint):
        fields.wrong(
            "endpoint_ref",
            "holds a user name or password. raw credentials are never accepted here; "
            "put them where secret_ref points",
        )
        return ""
    return endpoint


def _service(fields: Fields, adapter: Adapter | None) -> declared.ModelService | None:
    service = fields.inner("model")
    generic = adapter is not None and adapter.kind == "model" and not adapter.apis
    if service is None:
        if generic:
            fields.report.add(
                inside(fields.place("model"), "apis"), f"is required, a list out of {listed(APIS)}"
            )
        return None
    if adapter and adapter.kind != "model":
        fields.wrong("model", f"only a model connection has models; {adapter.name} is none")
    apis = service.filled("apis", APIS[0]) if generic else service.texts("apis")
    _check(service, "apis", apis, _wrong_api)
    offered = apis or (adapter.apis if adapter else ())
    found = declared.ModelService(
        apis=apis,
        auth=_auth(service),
        models=_served(service, offered),
        verify=service.choice("verify", ("request", "models", "none"), "request"),
    )
    service.refuse_unknown()
    return found


def _wrong_api(api: str) -> str | None:
    if api in APIS:
        return None
    return f"unknown API {quoted(api)}. Known are {listed(APIS)}."


def _auth(service: Fields) -> str:
    auth = service.text("auth")
    if auth in ("", "bearer", "x-api-key") or _HEADER_AUTH.fullmatch(auth):
        return auth
    service.wrong("auth", "must be bearer, x-api-key or header:<Name>")
    return ""


def _served(service: Fields, offered: tuple[str, ...]) -> tuple[declared.ServedModel, ...]:
    models: list[declared.ServedModel] = []
    for model in service.items("models"):
        served = declared.ServedModel(
            id=model.required("id", "the model's id at its provider"), apis=model.texts("apis")
        )
        model.refuse_unknown()
        if served.id and served.id in {other.id for other in models}:
            model.wrong("id", f"the model {quoted(served.id)} is listed twice. Keep one")
        for position, api in enumerate(served.apis):
            if api and offered and api not in offered:
                service.report.add(
                    item(model.place("apis"), position),
                    f"the connection does not serve {quoted(api)}, but {listed(offered)}",
                )
        models.append(served)
    return tuple(models)
