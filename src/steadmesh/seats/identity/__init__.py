"""Who a seat is: rows, tokens, leases and generations, and what its policy lets it do."""

from steadmesh.seats.identity import tokens
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
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.identity",
    endpoints=[tokens.issue, tokens.end],
    jobs=[tokens.FORGETTING],
    gauges=[SEATS_BY_STATE],
)

__all__ = [
    "FEATURE",
    "REPORTABLE",
    "SEATS",
    "Capability",
    "Policy",
    "SeatCall",
    "SeatCaller",
    "add_seat",
    "change_seat",
    "display_names",
    "is_live",
    "live_lease",
    "live_seats",
    "named_seat",
    "note_activity",
    "policy_text",
    "require_current",
    "seat",
    "seat_id",
    "seat_state",
    "start_retiring",
]
