"""Calls a tool: screen, find, allow, check, confirm, run, check again, record."""

from toolcrib.pipeline.pipeline import Pipeline
from toolcrib.pipeline.plan import Policy

__all__ = ["Pipeline", "Policy"]
