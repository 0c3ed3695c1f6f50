"""Seats coming and going: what an organisation file declares is put in force."""

from steadmesh.seats.lifecycle import apply
from steadmesh.tools import Feature

FEATURE = Feature(package="steadmesh.seats.lifecycle", endpoints=[apply.sync])
