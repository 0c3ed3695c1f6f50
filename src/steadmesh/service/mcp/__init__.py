"""MCP over HTTP: `POST /mcp`, without sessions, in every protocol era.

What nearly every request asks for is answered here directly; the rest, and every request that is not
plainly valid, goes to the official SDK, whose answers the direct ones equal.
"""

from steadmesh.service.mcp.service import McpService

__all__ = ["McpService"]
