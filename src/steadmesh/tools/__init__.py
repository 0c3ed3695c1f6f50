"""What a tool is, and the one way in.

A tool is declared once: arguments, result and a handler that is one synchronous function in one
transaction. Everything else (transports, schemas, permissions, audit) is made from the declaration.
"""

from steadmesh.tools.arguments import DEPTH_LIMIT, Args, Clamped, Doc, NoArgs, NotBlank, Size
from steadmesh.tools.call import Call, Caller, Credentials, Services
from steadmesh.tools.catalogue import Catalogue, Family, Feature, Gauge
from steadmesh.tools.result import Result, fit_page
from steadmesh.tools.stream import Entry, Follow, Followed, stream
from steadmesh.tools.tool import Tool, endpoint, tool

__all__ = [
    "DEPTH_LIMIT",
    "Args",
    "Call",
    "Caller",
    "Catalogue",
    "Clamped",
    "Credentials",
    "Doc",
    "Entry",
    "Family",
    "Feature",
    "Follow",
    "Followed",
    "Gauge",
    "NoArgs",
    "NotBlank",
    "Result",
    "Services",
    "Size",
    "Tool",
    "endpoint",
    "fit_page",
    "stream",
    "tool",
]
