"""Which API a harness profile uses to reach its model."""

from __future__ import annotations

import dataclasses
from typing import Any

from steadmesh.seats.organisation._adapters import ADAPTERS, APIS, of_kind
from steadmesh.seats.organisation._declared import Connection, Declaration, ModelUse
from steadmesh.seats.organisation._harnesses import HARNESSES, Harness, speakers
from steadmesh.seats.organisation._lookup import Lookup
from steadmesh.seats.organisation._problems import Report, inside, listed, quoted


def resolve_models(declaration: Declaration, lookup: Lookup) -> dict[str, ModelUse]:
    """For each harness profile with a model, the model with its API and settings settled."""
    resolved = {}
    for key, profile in declaration.harness_profiles.items():
        if profile.model and profile.adapter:
            path = inside(inside("harness_profiles", key), "model")
            harness = HARNESSES[profile.adapter]
            use = dataclasses.replace(
                profile.model,
                settings=_settings(harness, profile.model, path, lookup.report),
                api=_api(harness, profile.model, path, declaration=declaration, lookup=lookup),
            )
            resolved[key] = use
    return resolved


def _api(
    harness: Harness, use: ModelUse, path: str, *, declaration: Declaration, lookup: Lookup
) -> str:
    """The API to use; empty, and reported, when there is none."""
    report = lookup.report
    known = not use.api or _is_spoken(harness, use.api, path, report)
    place = inside(path, "connection")
    if not lookup.finds(place, "connections", use.connection):
        return ""
    connection = declaration.connections[use.connection]
    if not connection.adapter:
        return ""
    if ADAPTERS[connection.adapter].kind != "model":
        report.add(
            place,
            f"{quoted(use.connection)} is not a model connection but {connection.adapter}. "
            f"Model connections have the adapter {listed(of_kind('model'))}",
        )
        return ""
    served = _served(connection, use, path, report)
    if use.api:
        if known and served and use.api not in served:
            report.add(
                inside(path, "api"),
                f"the connection {use.connection} does not serve {use.api} for the model "
                f"{quoted(use.id)}, but {listed(served)}",
            )
        return use.api
    for api in harness.apis:
        if api in served:
            return api
    if served:
        others = speakers(served)
        report.add(
            inside(path, "api"),
            f"{harness.name} speaks {listed(harness.apis)}, the connection {use.connection} serves "
            f"{listed(served)}. Use another connection, or one of the harnesses {listed(others)}",
            at=path,
        )
    return ""


def _is_spoken(harness: Harness, api: str, path: str, report: Report) -> bool:
    if api not in APIS:
        message = f"unknown API {quoted(api)}. Known are {listed(APIS)}.{report.hint(api, APIS)}"
    elif api not in harness.apis:
        message = f"the harness {harness.name} does not speak {api}, but {listed(harness.apis)}"
    else:
        return True
    report.add(inside(path, "api"), message)
    return False


def _served(connection: Connection, use: ModelUse, path: str, report: Report) -> tuple[str, ...]:
    """The APIs the connection serves for this model; empty when they cannot be told."""
    service = connection.model
    apis = (service.apis if service else ()) or ADAPTERS[connection.adapter].apis
    models = {model.id: model for model in service.models if model.id} if service else {}
    if not models or not use.id:
        return apis
    if use.id not in models:
        report.add(
            inside(path, "id"),
            f"the connection {use.connection} does not list the model {quoted(use.id)}. "
            f"It lists {listed(sorted(models))}.{report.hint(use.id, models)}",
        )
        return ()
    return models[use.id].apis or apis


def _settings(harness: Harness, use: ModelUse, path: str, report: Report) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in use.settings.items():
        place = inside(inside(path, "settings"), name)
        if name not in harness.settings:
            known = f"It has {listed(harness.settings)}." if harness.settings else "It has none."
            report.add(
                place,
                f"unknown setting {quoted(name)} for the harness {harness.name}. {known}"
                f"{report.hint(name, harness.settings)}",
            )
            continue
        usable, wanted = _setting(harness, name, value)
        if usable is None:
            report.add(place, f"must be {wanted}")
        else:
            settings[name] = usable
    return settings


def _setting(harness: Harness, name: str, value: Any) -> tuple[Any, str]:
    """(the value in its own type or None, what would be right)."""
    kind = harness.settings[name]
    text = value.strip() if isinstance(value, str) else ""
    if isinstance(kind, tuple):
        return (text if text in kind else None), f"one of {listed(kind)}"
    if kind == "number":
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else value
        good = isinstance(number, int) and not isinstance(number, bool) and number > 0
        return (number if good else None), "a whole number of at least 1"
    if kind == "flag":
        flag = {"true": True, "false": False}.get(text, value)
        return (flag if isinstance(flag, bool) else None), "true or false"
    return text or None, "text that is not empty"
