"""Tools as model providers take them, and what each provider will not enforce of them."""

from __future__ import annotations

from toolcrib.pure.export.definitions import export_tool, export_tools, to_openai
from toolcrib.pure.export.model import Export, Loss, Provider

__all__ = ["Export", "Loss", "Provider", "export_tool", "export_tools", "to_openai"]
