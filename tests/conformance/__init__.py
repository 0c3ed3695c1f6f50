"""MCP as others judge it: the protocol's conformance suite and the Inspector, against what we serve.

`make conformance` runs `python -m tests.conformance`. It needs Node, so it is no part of `make test`;
the tests of this folder check its own parts and need none.
"""
