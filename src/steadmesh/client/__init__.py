"""The thin clients: HTTP on plain sockets, `steadmesh-tools`, the stdio bridge.

Nothing here imports anything but the standard library, and little of that: agents start these
programs in loops, so every import is paid for thousands of times (`docs/imports.txt`).
"""
