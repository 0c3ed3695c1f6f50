"""The forms of the references that the file is made of."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_DIGEST = re.compile(r"(?P<where>.+)#sha256:(?P<digest>[0-9a-fA-F]{64})")
_CONFIGMAP = re.compile(r"configmap:[a-z0-9][a-z0-9.-]{0,252}/[A-Za-z0-9._-]{1,253}")
_HTTPS = re.compile(r"https://[^\s/@#?]+(/[^\s#]*)?")
_ENVIRONMENT = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE_SECRET = re.compile(r"file:\S(.*\S)?")
_VAULT = re.compile(r"vault:[A-Za-z0-9][^\s#?]*")
_K8S = re.compile(r"k8s:[a-z0-9][a-z0-9./-]*")
ROLE_PREFIX = "role:"

SUBJECT_KINDS = ("seat", "team")
RESOURCE_KINDS = ("memory", "connection", "workspace")

_INSTRUCTION_FORMS = (
    "file:<path>#sha256:<64 hex>, configmap:<name>/<key>#sha256:<64 hex> or "
    "https://…#sha256:<64 hex>"
)
_ONLY_REFERENCES = (
    "must be a reference: env:<NAME>, file:<path>, vault:<path> or k8s:<name>. "
    "raw credentials are never accepted here; put them where the reference points"
)


class BadReference(ValueError):
    """A reference has none of the accepted forms; the text says which those are."""


def instruction(ref: str) -> str:
    """An instruction reference with its digest in lower case. Raises BadReference."""
    found = _DIGEST.fullmatch(ref)
    if found is None:
        raise BadReference(
            "has no sha256 digest, or not one of 64 hexadecimal digits at its end. "
            "Write what `steadmesh bundle FILE` prints, in one of the forms " + _INSTRUCTION_FORMS
        )
    where, digest = found["where"], found["digest"].lower()
    if where.startswith("file:"):
        check_relative(where.removeprefix("file:"))
    elif not (_CONFIGMAP.fullmatch(where) or _HTTPS.fullmatch(where)):
        raise BadReference("must have one of the forms " + _INSTRUCTION_FORMS)
    return f"{where}#sha256:{digest}"


def check_relative(path: str) -> None:
    """Raises BadReference unless `path` is a plain path below the folder of the file."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\\" in path or path != path.strip():
        raise BadReference("the path after file: must be relative to the organisation file")
    if ".." in parts or any(not character.isprintable() for character in path):
        raise BadReference("the path after file: must stay in the folder of the organisation file")


def split_instruction(ref: str) -> tuple[str, str]:
    """(location, SHA-256 in hex) of a valid instruction reference."""
    where, _, digest = ref.rpartition("#sha256:")
    return where, digest


def secret(ref: str) -> str:
    """A secret reference as it stands. Raises BadReference, and never repeats the text."""
    for form in (_ENVIRONMENT, _FILE_SECRET, _VAULT, _K8S):
        if form.fullmatch(ref):
            return ref
    raise BadReference(_ONLY_REFERENCES)


def pointer(ref: str, kinds: tuple[str, ...]) -> tuple[str, str]:
    """(kind, key) of a subject or resource such as `seat:lead`. Raises BadReference."""
    kind, colon, key = ref.partition(":")
    if not colon or kind not in kinds or not key:
        forms = " or ".join(f"{name}:<key>" for name in kinds)
        raise BadReference(f"must be {forms}")
    return kind, key
