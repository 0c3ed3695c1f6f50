"""Seats coming and going: an organisation file put in force, suspension, retirement, adoption, deletion."""

from steadmesh.seats.lifecycle import apply, delete, retire, suspend
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.lifecycle",
    endpoints=[apply.sync, suspend.suspend_seat, suspend.resume_seat, delete.delete_organisation],
    jobs=[retire.RETIREMENT, delete.PURGE],
)
