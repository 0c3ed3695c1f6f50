"""A seat's instruction texts, checked and laid out where its harness can read them.

`manifest.json` lists them, `instructions.md` holds the texts in order, each under a heading that
names its scope. The folder is not writable: what a harness was told to be, it cannot rewrite.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from steadmesh.runner.folder import make_private, write_atomically
from steadmesh.runner.platform import Instruction

_DIGEST = re.compile(r"#sha256:([0-9a-f]{64})\Z")
_READ_ONLY_FILE = 0o400
_READ_ONLY_FOLDER = 0o500
_OPEN_FOLDER = 0o700


class BundleMismatch(Exception):
    """An instruction text is not the one its reference names."""


def render(folder: Path, seat_key: str, instructions: Sequence[Instruction]) -> None:
    """Write both files. Raises BundleMismatch, writing nothing, and OSError."""
    ordered = sorted(instructions, key=lambda instruction: instruction.order)
    entries = [
        {
            "order": instruction.order,
            "scope": instruction.scope,
            "ref": instruction.ref,
            "sha256": _checked_digest(instruction),
        }
        for instruction in ordered
    ]
    manifest = {"seat": seat_key, "text": "instructions.md", "instructions": entries}
    make_private(folder)
    folder.chmod(_OPEN_FOLDER)
    write_atomically(
        folder / "manifest.json", json.dumps(manifest, indent=2) + "\n", mode=_READ_ONLY_FILE
    )
    write_atomically(folder / "instructions.md", _joined(ordered), mode=_READ_ONLY_FILE)
    folder.chmod(_READ_ONLY_FOLDER)


def _checked_digest(instruction: Instruction) -> str:
    named = _DIGEST.search(instruction.ref)
    found = hashlib.sha256(instruction.text.encode("utf-8")).hexdigest()
    if named is None or named[1] != found:
        raise BundleMismatch(
            f"the instruction text of {instruction.ref} has the digest sha256:{found}; "
            "update the reference in the organisation file (steadmesh bundle FILE prints it) "
            "and apply it again"
        )
    return found


def _joined(instructions: Sequence[Instruction]) -> str:
    return "".join(
        f"# Instructions: {instruction.scope}\n\n{instruction.text.rstrip()}\n\n"
        for instruction in instructions
    )
