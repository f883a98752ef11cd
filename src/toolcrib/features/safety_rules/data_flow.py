"""Deny what sends data out in a session that has read private data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.result import ALLOW, deny
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from toolcrib.model.call import Call
    from toolcrib.model.result import Verdict
    from toolcrib.model.tool import Tool

# Capabilities that let a tool read private data, and those that let it send data out; a name with a dot at its end means all below it.
PRIVATE = ("fs.read", "shell.execute", "data.")
EGRESS = ("net.", "shell.execute")


class DataFlow:
    """Denies a tool that may send data out once a tool that may read private data was called in the same session.

    It goes by what tools declare and were granted, which the sandbox enforces for files of code. A function of the host
    program is judged by what it declares with `requires`. Without a session there is nothing to remember.
    """

    name = "data_flow"

    def __init__(self, where: str) -> None:
        self.where = where

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool may send data out."""
        return isinstance(tool.run, Http) or any(_is_among(each, EGRESS) for each in tool.requires)

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge by what the session has called before."""
        if tool is None or call.session is None:
            return ALLOW
        readers = {by for capability, by in call.session.capabilities.items() if _is_among(capability, PRIVATE)}
        if not readers:
            return ALLOW
        return deny(
            f"{tool.name} may send data out, and {min(readers)} may have read private data in this session",
            rule=self.name,
            where=self.where,
            cure="open a new session for it, or have a person do it",
            details={"readBy": sorted(readers)},
        )


def _is_among(capability: str, names: tuple[str, ...]) -> bool:
    return any(capability == name or (name.endswith(".") and capability.startswith(name)) for name in names)
