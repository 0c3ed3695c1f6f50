"""The example organisation, as files of one's own."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path

from steadmesh.kernel.ids import new_secret
from steadmesh.operator.terminal import note, result
from steadmesh.operator.trouble import CommandFailed

PERSON = "ada"
INSTRUCTIONS = {
    "culture.md": "Say what you did and what you did not. Ask when you are not sure.\n",
    "representative.md": "You speak for one person. Hand her requests to the lead, and tell her what"
    " comes back.\n",
    "lead.md": "You plan the work, give each part to a builder, and report the result.\n",
    "builder.md": "You build what you are asked for, and have it reviewed.\n",
    "reviewer.md": "You look for what is missing or wrong, and say it plainly.\n",
}
SETTINGS = """\
# Settings of this service; `steadmesh config --data {data}` explains each of them.

[supervisor]
# Seats ask for a sandbox. The process backend of this version does not provide these parts of it:
# a seat's program runs as your user and can read your files. Take a line out, and seats that ask for
# the feature stay blocked instead.
unenforced = ["network_policy", "non_root", "filesystem_policy"]
"""
ORGANISATION = """\
# One person, her representative, a lead, two builders and a reviewer. All of them are played by the
# fake harness, which reads each message as a small script and calls no model.
key: lumen
display_name: Lumen Labs
timezone: Europe/Paris
culture_refs: ["{culture}"]

team_templates:
  build:
    roles:
      lead: "{lead}"
      builder: "{builder}"
      reviewer: "{reviewer}"
    shared_memory: {{build: [read, search, write, revise, archive, history]}}
teams:
  build: {{template: build}}

memory_stores: {{build: {{}}, rep_ada: {{}}, lead: {{}}, builder_one: {{}}, builder_two: {{}}, reviewer: {{}}}}
harness_profiles:
  scripted: {{adapter: fake, image_digest: local}}
execution_profiles:
  normal: {{backend: process, idle_policy: warm_then_stop, idle_timeout: 15m}}
sandbox_profiles: {{standard: {{}}}}

connections:
  chat: {{adapter: terminal, secret_ref: "file:secrets/chat.json"}}

seats:
  rep_ada:
    role_ref: "{representative}"
    harness_profile: scripted
    execution_profile: normal
    sandbox_profile: standard
    personal_memory: rep_ada
{team}
message_routes:
  ada_lead: {{from: "seat:rep_ada", to: "seat:lead", reply: true}}
  lead_one: {{from: "seat:lead", to: "seat:builder_one", bidirectional: true}}
  lead_two: {{from: "seat:lead", to: "seat:builder_two", bidirectional: true}}
  one_reviewer: {{from: "seat:builder_one", to: "seat:reviewer", reply: true}}
  two_reviewer: {{from: "seat:builder_two", to: "seat:reviewer", reply: true}}

channel_bindings:
  ada: {{connection: chat, external_user_id: ada, seat: rep_ada}}
"""
MEMBER = """\
  {key}:
    role_ref: "role:{role}"
    teams: [build]
    harness_profile: scripted
    execution_profile: normal
    sandbox_profile: standard
    personal_memory: {key}
"""
MEMBERS = {
    "lead": "lead",
    "builder_one": "builder",
    "builder_two": "builder",
    "reviewer": "reviewer",
}
README = """\
# Lumen Labs, an example organisation

    steadmesh up organisation.yaml --data data          in one terminal
    steadmesh chat --user ada --token-file secrets/chat.json --data data     in another

Then write, for instance:

    hello
    /delegate lead Please look at the plan

and, as one message of several lines (end each but the last with a backslash):

    /delegate lead /task\\
    /delegate builder_one /task\\
    /tool clock.now\\
    /file write notes/plan.md built\\
    /file read notes/plan.md

`organisation.yaml` is yours to edit. After a change: `steadmesh plan organisation.yaml --data data`,
then `steadmesh apply organisation.yaml --data data`. After editing an instruction, write what
`steadmesh bundle instructions/lead.md` prints into the file.
"""


def write(folder: str) -> int:
    """Write the example into an empty or new folder."""
    root = Path(folder)
    write_files(root)
    file, data, tokens = root / "organisation.yaml", root / "data", root / "secrets" / "chat.json"
    result(str(file))
    note(f"wrote the example organisation to {root}. Go on with:")
    note(f"  {shlex.join(['steadmesh', 'up', str(file), '--data', str(data)])}")
    note("and in another terminal:")
    words = ["steadmesh", "chat", "--user", PERSON, "--token-file", str(tokens)]
    note(f"  {shlex.join([*words, '--data', str(data)])}")
    return 0


def write_files(root: Path) -> None:
    """The files of the example. Raises `CommandFailed` for a folder that is not empty."""
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CommandFailed(f"{root} is not an empty folder; name another, nothing was written")
    references = {}
    for name, text in INSTRUCTIONS.items():
        file = root / "instructions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        references[name.removesuffix(".md")] = f"file:instructions/{name}#sha256:{digest}"
    team = "".join(MEMBER.format(key=key, role=role) for key, role in MEMBERS.items())
    organisation = ORGANISATION.format(team=team, **references)
    (root / "organisation.yaml").write_text(organisation, encoding="utf-8")
    (root / "README.md").write_text(README, encoding="utf-8")
    _write_private(root / "secrets" / "chat.json", json.dumps({PERSON: new_secret()}) + "\n")
    settings = SETTINGS.format(data=root / "data")
    _write_private(root / "data" / "steadmesh.toml", settings)


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
