"""The organisation that the specification of the file shows, whole, as tests write it to disk."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from steadmesh.seats.organisation import read_text

BUNDLES = {
    name: f"# {name}\n\nHow we work here: {name}.\n"
    for name in ("culture", "base", "member", "build", "lead", "builder", "checker", "rep")
}


def ref(name: str) -> str:
    """The reference to one of the bundles."""
    digest = hashlib.sha256(BUNDLES[name].encode()).hexdigest()
    return f"file:instructions/{name}.md#sha256:{digest}"


TEXT = f"""\
key: lumen
display_name: Lumen Labs
timezone: Europe/Paris            # default UTC
data_retention: retain            # retain | delete
culture_refs: ["{ref("culture")}"]

team_templates:
  base:    {{instruction_refs: ["{ref("base")}"], roles: {{member: "{ref("member")}"}}}}
  build:
    extends: base
    instruction_refs: ["{ref("build")}"]
    roles: {{lead: "{ref("lead")}", builder: "{ref("builder")}", checker: "{ref("checker")}"}}
    shared_memory: {{build: [read, search, write, revise, archive, history]}}
    parameters: {{cadence: daily}}
teams:
  build: {{template: build, access_profiles: [code]}}

memory_stores: {{company: {{}}, build: {{}}, ada: {{}}, lead: {{}}, builder: {{}}}}
harness_profiles:
  scripted: {{adapter: fake, image_digest: local}}
execution_profiles:
  normal: {{backend: process, idle_policy: warm_then_stop, idle_timeout: 15m}}
sandbox_profiles: {{standard: {{}}}}
access_profiles:
  code: {{github: {{connection: forge, repos: [lumen/app], permissions: {{pull_requests: write}}}}}}
connections:
  chat:    {{adapter: terminal, secret_ref: "file:secrets/chat.json"}}
  tracker: {{adapter: linear, secret_ref: "env:LINEAR", config: {{team_id: T1}}}}
  forge:   {{adapter: github, secret_ref: "env:FORGE"}}
seats:
  rep_ada: {{role_ref: "{ref("rep")}", harness_profile: scripted, execution_profile: normal,
            sandbox_profile: standard, personal_memory: ada}}
  lead:    {{role_ref: "role:lead", teams: [build], harness_profile: scripted, execution_profile: normal,
            sandbox_profile: standard, personal_memory: lead}}
  builder: {{role_ref: "role:builder", teams: [build], harness_profile: scripted, execution_profile: normal,
            sandbox_profile: standard, personal_memory: builder}}
grants:
  lead_tracker: {{subject: "seat:lead", resource: "connection:tracker", operations: [project.create, task.write]}}
  ada_reads:    {{subject: "seat:rep_ada", resource: "memory:build", operations: [read, search]}}
message_routes:
  ada_lead:  {{from: "seat:rep_ada", to: "seat:lead", reply: true}}
  lead_team: {{from: "seat:lead", to: "seat:builder", bidirectional: true}}
channel_bindings:
  ada: {{connection: chat, external_user_id: ada, seat: rep_ada, timezone: America/New_York}}
work_publication: {{connection: tracker, stores: [build]}}
"""

_DATA = read_text(TEXT).data


def data() -> dict[str, Any]:
    """A fresh copy of the sample's content, to be changed by a test."""
    return copy.deepcopy(_DATA)
