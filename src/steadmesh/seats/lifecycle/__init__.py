"""Seats coming and going: an organisation file put in force, and shown to work; suspension, retirement,
adoption, deletion."""

from steadmesh.seats.lifecycle import apply, delete, probe, retire, suspend
from steadmesh.seats.lifecycle.probe import Probe, SeatProbes, probes_of
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.lifecycle",
    endpoints=[
        apply.sync,
        suspend.suspend_seat,
        suspend.resume_seat,
        delete.delete_organisation,
        probe.start,
        probe.read,
    ],
    jobs=[retire.RETIREMENT, delete.PURGE, probe.KEEPING],
)

__all__ = ["FEATURE", "Probe", "SeatProbes", "probes_of"]
