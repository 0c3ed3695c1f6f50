"""The organisation file: read, checked, resolved (all pure), and the resolved rows in force."""

import json

from steadmesh.kernel.database import Transaction
from steadmesh.seats.organisation._bundles import (
    Document,
    absolute_secrets,
    bundle_reference,
    read_bundles,
    read_file,
    verify_bundle,
)
from steadmesh.seats.organisation._manifest import allowed
from steadmesh.seats.organisation._model import (
    Access,
    Binding,
    Capability,
    Connection,
    Execution,
    Harness,
    Instruction,
    Organisation,
    Recipient,
    Sandbox,
    Seat,
    Store,
)
from steadmesh.seats.organisation._problems import InvalidOrganisation, Problem, render
from steadmesh.seats.organisation._references import BadReference
from steadmesh.seats.organisation._resolve import compile
from steadmesh.seats.organisation._revisions import Change, SeatRevisions, differences
from steadmesh.seats.organisation._store import (
    add_organisation,
    binding,
    binding_of_user,
    bundle,
    change_organisation,
    organisation,
    organisation_by_key,
    organisations,
    replace_bindings,
    replace_bundles,
)
from steadmesh.tools import Feature

FEATURE = Feature(package="steadmesh.seats.organisation")


def bundle_text(tx: Transaction, organisation_id: str, ref: str) -> str | None:
    """The text of an instruction reference that is in force."""
    return bundle(tx, organisation_id, ref)


def connection_adapters(tx: Transaction, organisation_id: str) -> dict[str, str]:
    """The adapter of each connection, by its key."""
    row = organisation(tx, organisation_id)
    declared = json.loads(row["document"]).get("connections", {}) if row else {}
    return {key: connection["adapter"] for key, connection in declared.items()}


__all__ = [
    "FEATURE",
    "Access",
    "BadReference",
    "Binding",
    "Capability",
    "Change",
    "Connection",
    "Document",
    "Execution",
    "Harness",
    "Instruction",
    "InvalidOrganisation",
    "Organisation",
    "Problem",
    "Recipient",
    "Sandbox",
    "Seat",
    "SeatRevisions",
    "Store",
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
    "differences",
    "organisation",
    "organisation_by_key",
    "organisations",
    "read_bundles",
    "read_file",
    "render",
    "replace_bindings",
    "replace_bundles",
    "verify_bundle",
]
