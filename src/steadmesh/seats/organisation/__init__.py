"""The organisation file: read, checked, resolved (all pure), and the resolved rows in force."""

import json
from functools import lru_cache

from steadmesh.kernel.database import Transaction
from steadmesh.seats.organisation._adapters import ADAPTERS, named_targets
from steadmesh.seats.organisation._bundles import (
    absolute_secrets,
    bundle_reference,
    read_bundles,
    verify_bundle,
)
from steadmesh.seats.organisation._compile import compile
from steadmesh.seats.organisation._harnesses import AVAILABLE, HARNESSES
from steadmesh.seats.organisation._manifest import allowed
from steadmesh.seats.organisation._model import (
    Access,
    Binding,
    Capability,
    Connection,
    Execution,
    Harness,
    Instruction,
    Manifest,
    Organisation,
    Recipient,
    Sandbox,
    Seat,
    SeatWorkspace,
    Store,
    Team,
)
from steadmesh.seats.organisation._problems import InvalidOrganisation, Problem, render
from steadmesh.seats.organisation._quantities import memory as memory_bytes
from steadmesh.seats.organisation._reading import Document, load, read_text
from steadmesh.seats.organisation._revisions import Change, SeatRevisions, differences
from steadmesh.seats.organisation._store import (
    add_organisation,
    binding,
    binding_of_user,
    bundle_text,
    change_organisation,
    delete_organisation,
    forget_organisation,
    organisation,
    organisation_by_key,
    organisations,
    organisations_to_purge,
    replace_bindings,
    replace_bundles,
    representatives,
)
from steadmesh.tools import Feature

FEATURE = Feature(package="steadmesh.seats.organisation")


@lru_cache(maxsize=16)
def in_force(document: str) -> Organisation:
    """The organisation behind a stored document. Kept by the text, so no change is missed.

    Raises InvalidOrganisation for one that an older version took and this one would refuse.
    """
    return compile(json.loads(document))


def connection_adapters(tx: Transaction, organisation_id: str) -> dict[str, str]:
    """The adapter of each connection, by its key."""
    row = organisation(tx, organisation_id)
    declared = json.loads(row["document"]).get("connections", {}) if row else {}
    return {key: connection["adapter"] for key, connection in declared.items()}


__all__ = [
    "ADAPTERS",
    "AVAILABLE",
    "FEATURE",
    "HARNESSES",
    "Access",
    "Binding",
    "Capability",
    "Change",
    "Connection",
    "Document",
    "Execution",
    "Harness",
    "Instruction",
    "InvalidOrganisation",
    "Manifest",
    "Organisation",
    "Problem",
    "Recipient",
    "Sandbox",
    "Seat",
    "SeatRevisions",
    "SeatWorkspace",
    "Store",
    "Team",
    "absolute_secrets",
    "add_organisation",
    "allowed",
    "binding",
    "binding_of_user",
    "bundle_reference",
    "bundle_text",
    "change_organisation",
    "compile",
    "connection_adapters",
    "delete_organisation",
    "differences",
    "forget_organisation",
    "in_force",
    "load",
    "memory_bytes",
    "named_targets",
    "organisation",
    "organisation_by_key",
    "organisations",
    "organisations_to_purge",
    "read_bundles",
    "read_text",
    "render",
    "replace_bindings",
    "replace_bundles",
    "representatives",
    "verify_bundle",
]
