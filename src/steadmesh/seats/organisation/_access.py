"""What a seat may reach beside the platform: several access profiles made one."""

from __future__ import annotations

from dataclasses import replace

from steadmesh.seats.organisation._declared import Declaration, GithubAccess
from steadmesh.seats.organisation._model import Access
from steadmesh.seats.organisation._resolve import unique


def access_profiles_of(resolved: Declaration, key: str) -> tuple[str, ...]:
    """The names of a seat's own access profiles and of its teams'."""
    seat = resolved.seats[key]
    names = set(seat.access_profiles)
    for team in seat.teams:
        names.update(resolved.teams[team].access_profiles)
    return unique(names)


def access_of(resolved: Declaration, names: tuple[str, ...]) -> Access:
    """The profiles united."""
    profiles = [resolved.access_profiles[name] for name in names]
    github: dict[str, GithubAccess] = {}
    for profile in profiles:
        if profile.github:
            key = profile.github.connection
            github[key] = _united(github[key], profile.github) if key in github else profile.github
    rules = {rule for profile in profiles for rule in profile.network.rules}
    return Access(
        profiles=names,
        binaries=unique(name for profile in profiles for name in profile.tools.binaries),
        hosts=unique(host for profile in profiles for host in profile.egress.hosts),
        rules=tuple(sorted(rules, key=lambda rule: (rule.cidr, rule.protocol, rule.ports))),
        github=github,
        browser_sessions=unique(
            profile.browser.session.connection for profile in profiles if profile.browser.session
        ),
    )


def _united(one: GithubAccess, other: GithubAccess) -> GithubAccess:
    """Both sets of repositories; the stronger permission and sandbox delivery win."""
    permissions = dict(one.permissions)
    for name, level in other.permissions.items():
        # "write" is the greater of the two words, as it is of the two permissions.
        permissions[name] = max(level, permissions.get(name, level))
    delivery = "sandbox" if "sandbox" in (one.delivery, other.delivery) else "platform"
    repos = unique((*one.repos, *other.repos))
    return replace(one, repos=repos, permissions=permissions, delivery=delivery)
