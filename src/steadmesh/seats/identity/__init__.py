"""Who a seat is: rows, tokens, leases and generations, and what its policy lets it do."""

from steadmesh.seats.identity import supervision, tokens
from steadmesh.seats.identity._store import (
    add_seat,
    adopter,
    all_seats,
    change_policy,
    change_seat,
    display_names,
    forget_seat,
    forget_supervisor,
    forget_tokens,
    live_lease,
    live_seats,
    note_activity,
    resume,
    retire,
    seat,
    seat_called,
    seat_id,
    seats_to_retire,
    start_retiring,
    suspend,
)
from steadmesh.seats.identity.caller import (
    SEATS,
    SeatCall,
    SeatCaller,
    require_current,
)
from steadmesh.seats.identity.leases import is_live
from steadmesh.seats.identity.policy import (
    Capability,
    Policy,
    parse_policy,
    stored_policy,
    without_leaving,
)
from steadmesh.seats.identity.states import (
    REPORTABLE,
    SEATS_BY_STATE,
    named_seat,
    seat_state,
    state_detail,
)
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
    gauges=[SEATS_BY_STATE],
    trimmings=[tokens.TRIMMING],
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
    "adopter",
    "all_seats",
    "change_policy",
    "change_seat",
    "display_names",
    "forget_seat",
    "forget_supervisor",
    "forget_tokens",
    "is_live",
    "live_lease",
    "live_seats",
    "live_supervisor",
    "named_organisation",
    "named_seat",
    "note_activity",
    "parse_policy",
    "require_current",
    "resume",
    "retire",
    "seat",
    "seat_called",
    "seat_id",
    "seat_state",
    "seats_to_retire",
    "start_retiring",
    "state_detail",
    "stored_policy",
    "suspend",
    "without_leaving",
]
