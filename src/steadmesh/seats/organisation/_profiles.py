"""Reading stores, workspaces, harness, execution and sandbox profiles. Each field by itself."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from steadmesh.kernel import durations
from steadmesh.seats.organisation import _declared as declared
from steadmesh.seats.organisation import _harnesses as harnesses
from steadmesh.seats.organisation import _quantities as quantities
from steadmesh.seats.organisation._fields import Fields
from steadmesh.seats.organisation._problems import item, listed, quoted

RETENTION = ("retain", "delete")
_NO_NUMBER = 5  # gigabytes: the file's default for both kinds of workspace


def memory_store(fields: Fields) -> declared.MemoryStore:
    """An entry of `memory_stores`."""
    return declared.MemoryStore(
        retention=fields.choice("retention", RETENTION, "retain"),
        backing_class=fields.choice("backing_class", ("default",), "default"),
        capacity_mb=fields.whole("capacity_mb"),
    )


def shared_workspace(fields: Fields) -> declared.SharedWorkspace:
    """An entry of `shared_workspaces`."""
    return declared.SharedWorkspace(
        access_mode=fields.choice("access_mode", ("ReadWriteMany", "ReadOnlyMany")),
        size_gb=fields.whole("size_gb") or _NO_NUMBER,
        retention=fields.choice("retention", RETENTION, "retain"),
        storage_class=fields.text("storage_class"),
    )


def harness(fields: Fields) -> declared.HarnessProfile:
    """An entry of `harness_profiles`. What the model refers to is checked later."""
    adapter = fields.required("adapter", "fake")
    adapter = harnesses.ALIASES.get(adapter, adapter)
    if adapter and adapter not in harnesses.HARNESSES:
        known = harnesses.HARNESSES
        fields.wrong(
            "adapter",
            f"unknown harness adapter {quoted(adapter)}. Known are {listed(known)}."
            f"{fields.report.hint(adapter, known)}",
        )
        adapter = ""
    given = fields.inner("model")
    if given is None and adapter and harnesses.HARNESSES[adapter].needs_model:
        fields.wrong("model", f"is required for {adapter}: name a connection and a model id")
    profile = declared.HarnessProfile(
        adapter=adapter,
        image_digest=fields.required("image_digest", "local"),
        model=None if given is None else _model_use(given),
        required_capabilities=fields.texts("required_capabilities"),
        config=fields.json_map("config"),
    )
    if adapter:
        offered = harnesses.HARNESSES[adapter].capabilities
        _refuse(fields, "required_capabilities", offered, f"the harness {adapter}")
    return profile


def _model_use(fields: Fields) -> declared.ModelUse:
    use = declared.ModelUse(
        connection=fields.required("connection", "claude"),
        id=fields.required("id", "the model's id at its provider"),
        api=fields.text("api"),
        settings=fields.json_map("settings"),
    )
    fields.refuse_unknown()
    return use


def _refuse(fields: Fields, name: str, offered: tuple[str, ...], what: str) -> None:
    """Report each entry of a list that is not offered, at the list, in the line of the entry."""
    for index, value in enumerate(fields.texts(name)):
        if value and value not in offered:
            fields.report.add(
                fields.place(name),
                f"{what} does not support {quoted(value)}. It offers {listed(offered)}",
                at=item(fields.place(name), index),
            )


def execution(fields: Fields) -> declared.ExecutionProfile:
    """An entry of `execution_profiles`."""
    idle_policy = fields.text("idle_policy", "warm_then_stop")
    if idle_policy == "suspend":
        fields.wrong(
            "idle_policy",
            "the process backend does not support suspend: it cannot suspend a process. "
            "Use warm_then_stop or warm",
        )
        idle_policy = "warm_then_stop"
    else:
        idle_policy = fields.choice("idle_policy", ("warm", "warm_then_stop"), "warm_then_stop")
    profile = declared.ExecutionProfile(
        backend=fields.choice("backend", harnesses.BACKENDS),
        service_class=fields.choice("service_class", ("interactive", "background"), "interactive"),
        idle_policy=idle_policy,
        idle_timeout=_idle_timeout(fields),
        cpu_request=_quantity(fields, "cpu_request", "250m", quantities.cpu),
        cpu_limit=_quantity(fields, "cpu_limit", "2", quantities.cpu),
        memory_request=_quantity(fields, "memory_request", "512Mi", quantities.memory),
        memory_limit=_quantity(fields, "memory_limit", "2Gi", quantities.memory),
        workspace_size_gb=fields.whole("workspace_size_gb") or _NO_NUMBER,
        required_features=fields.texts("required_features"),
    )
    _refuse(fields, "required_features", harnesses.BACKEND_FEATURES, "the process backend")
    _within(fields, "cpu_request", profile.cpu_request, profile.cpu_limit, quantities.cpu)
    _within(
        fields, "memory_request", profile.memory_request, profile.memory_limit, quantities.memory
    )
    return profile


def _idle_timeout(fields: Fields) -> str:
    default = "15m"
    text = fields.text("idle_timeout", default)
    try:
        timeout = durations.parse(text)
    except ValueError as error:
        fields.wrong("idle_timeout", f"{quoted(text)} cannot be read: {error}")
        return default
    if timeout < durations.MINUTE:
        fields.wrong("idle_timeout", f"{quoted(text)} is too short. It must be at least 1m")
        return default
    return durations.show(timeout)


def _quantity(fields: Fields, name: str, default: str, amount: Callable[[str], Fraction]) -> str:
    value = fields.given(name)
    # A bare 2 is a number in YAML and means what it says.
    bare = isinstance(value, int | float) and not isinstance(value, bool)
    text = str(value) if bare else fields.text(name, default)
    try:
        amount(text)
    except ValueError as error:
        fields.wrong(name, f"{quoted(text)} cannot be read: it {error}")
        return default
    return text


def _within(
    fields: Fields, name: str, request: str, limit: str, amount: Callable[[str], Fraction]
) -> None:
    if amount(request) > amount(limit):
        fields.wrong(name, f"{request} is more than the limit of {limit}. Lower it or raise that")


def sandbox(fields: Fields) -> declared.SandboxProfile:
    """An entry of `sandbox_profiles`."""
    runtime_class = fields.text("runtime_class")
    wanted = fields.texts("required_enforcement")
    place = fields.place("required_enforcement")
    for index, feature in enumerate(wanted):
        if feature in harnesses.NEEDS_RUNTIME_CLASS and not runtime_class:
            fields.report.add(
                place,
                f"{feature} requires runtime_class. Name the one that provides it",
                at=item(place, index),
            )
    offered = (*harnesses.ENFORCEMENT, *harnesses.NEEDS_RUNTIME_CLASS)
    _refuse(fields, "required_enforcement", offered, "the sandbox")
    return declared.SandboxProfile(
        network_policy_ref=fields.choice(
            "network_policy_ref", ("deny_all_except_platform",), "deny_all_except_platform"
        ),
        filesystem_policy_ref=fields.choice(
            "filesystem_policy_ref", ("workspace_only",), "workspace_only"
        ),
        runtime_class=runtime_class,
        required_enforcement=wanted,
    )
