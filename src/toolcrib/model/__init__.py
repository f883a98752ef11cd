"""Frozen types of the domain, and the protocols of parts."""
