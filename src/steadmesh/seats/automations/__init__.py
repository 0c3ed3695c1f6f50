"""Time: what the clock says."""

from steadmesh.seats.automations import clock
from steadmesh.tools import Feature

FEATURE = Feature(package="steadmesh.seats.automations", tools=[clock.now])
