"""Where the secrets of connections may lie: an organisation file must not make the service read others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from steadmesh.seats.organisation import Connection, Problem

_FILE = "file:"


def misplaced(
    connections: Mapping[str, Connection], *, folder: str | None, secrets_dir: Path | None
) -> list[Problem]:
    """A problem for each `file:` secret outside both folders, links followed.

    `folder` is that of the organisation file, if whoever applies it said so.
    """
    places = [place for place in (folder, secrets_dir) if place and os.path.isabs(place)]
    roots = [Path(os.path.realpath(place)) for place in places]
    return [
        Problem(f"connections.{key}.secret_ref", None, reason)
        for key, connection in sorted(connections.items())
        if connection.secret_ref.startswith(_FILE)
        and (reason := _wrong(connection.secret_ref.removeprefix(_FILE), roots, secrets_dir))
    ]


def _wrong(path: str, roots: Iterable[Path], secrets_dir: Path | None) -> str | None:
    if not os.path.isabs(path):
        return "the path of a secret has to be absolute here; `steadmesh apply` makes it so"
    real = Path(os.path.realpath(path))
    if any(real.is_relative_to(root) for root in roots):
        return None
    leads = "" if str(real) == path else f" (it leads to {real})"
    return (
        f"the secret {path}{leads} lies neither in the folder of the organisation file nor in "
        f"{secrets_dir or 'the secrets_dir of the service'}. Move it there, or let the service's "
        "setting secrets_dir name its folder"
    )
