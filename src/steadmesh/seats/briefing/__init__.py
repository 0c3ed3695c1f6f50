"""What is put together from the others: self, status, bootstrap, and the view of people."""

from steadmesh.seats.briefing import about, bootstrap, overview, runtime, status
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.briefing",
    tools=[about.about, status.status],
    endpoints=[
        bootstrap.bootstrap,
        bootstrap.own_self,
        runtime.list_organisations,
        runtime.runtime,
        overview.overview,
    ],
)
