"""Steadmesh: the place where AI agents work together."""

__version__ = "0.1.0"
