"""Who a seat is: rows, tokens, leases and generations, and what its policy lets it do."""

from steadmesh.seats.identity import supervision, tokens
from steadmesh.seats.identity._store import (
    add_seat,
    change_seat,
    display_names,
    live_lease,
    live_seats,
    note_activity,
    seat,
    seat_id,
    start_retiring,
)
from steadmesh.seats.identity.caller import (
    SEATS,
    SeatCall,
    SeatCaller,
    require_current,
)
from steadmesh.seats.identity.leases import is_live
from steadmesh.seats.identity.policy import Capability, Policy, policy_text
from steadmesh.seats.identity.states import REPORTABLE, SEATS_BY_STATE, named_seat, seat_state
from steadmesh.seats.identity.supervision import (
    NOBODY,
    NoSuchOrganisation,
    Supervisor,
    live_supervisor,
    named_organisation,
)
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.identity",
    endpoints=[tokens.issue, tokens.end, supervision.claim, supervision.end_claim],
    jobs=[tokens.FORGETTING],
    gauges=[SEATS_BY_STATE],
)

__all__ = [
    "FEATURE",
    "NOBODY",
    "REPORTABLE",
    "SEATS",
    "Capability",
    "NoSuchOrganisation",
    "Policy",
    "SeatCall",
    "SeatCaller",
    "Supervisor",
    "add_seat",
    "change_seat",
    "display_names",
    "is_live",
    "live_lease",
    "live_seats",
    "live_supervisor",
    "named_organisation",
    "named_seat",
    "note_activity",
    "policy_text",
    "require_current",
    "seat",
    "seat_id",
    "seat_state",
    "start_retiring",
]
