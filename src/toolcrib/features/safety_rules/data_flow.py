"""Deny tools that may send data out in a session that may have read private data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.result import ALLOW, deny
from toolcrib.model.tool import Function, Http, Sql

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.call import Call
    from toolcrib.model.result import Verdict
    from toolcrib.model.tool import Tool

# Capabilities to read private data, and to send data out; a name that ends with a dot includes all names below it.
DATABASE = "net.postgresql"
PRIVATE = ("fs.read", "shell.execute", "data.", DATABASE)
EGRESS = ("net.", "shell.execute")
# Those that open private data or the network for certain: a program that a tool starts has neither without them.
CERTAINLY_PRIVATE = ("fs.read", "data.")
NETWORK = ("net.",)


class DataFlow:
    """Denies a tool that may send data out once a tool that may read private data was called in the same session.

    A tool that may do both would need only one call, so it is denied in every session. What came from a database may go to one.
    It relies on declared and granted capabilities, which the sandbox enforces for file tools. A function of the host
    program is judged by what it declares with `requires`. A call without a session has no history and is allowed.
    """

    name = "data_flow"

    def __init__(self, where: str) -> None:
        self.where = where

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool may send data out."""
        return isinstance(tool.run, Http) or bool(_among(tool.requires, EGRESS))

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge by what the session has called before."""
        if tool is None or call.session is None:
            return ALLOW
        network = _among(tool.requires, NETWORK)
        if network and (_among(tool.requires, CERTAINLY_PRIVATE) or (DATABASE in network and network != {DATABASE})):
            reason = f"{tool.name} may read private data and send data out in the same call"
            return self._denied(reason, "have a person do it, outside of the session", tool.address)
        read = _among(call.session.capabilities, PRIVATE)
        # Any capability for the network opens all of it to files of code, so only these two reach nothing but a database.
        if isinstance(tool.run, Sql | Function) and _among(tool.requires, EGRESS) == {DATABASE}:
            read -= {DATABASE}
        if not read:
            return ALLOW
        readers = {call.session.capabilities[capability] for capability in read}
        reason = f"{tool.name} may send data out, and {min(readers)} may have read private data in this session"
        return self._denied(reason, "open a new session for it, or have a person do it", *readers)

    def _denied(self, reason: str, cure: str, *readers: str) -> Verdict:
        return deny(reason, rule=self.name, where=self.where, cure=cure, details={"readBy": sorted(readers)})


def _among(capabilities: Iterable[str], names: tuple[str, ...]) -> set[str]:
    """The capabilities that have one of the names, or begin with one that ends in a dot."""
    return {
        capability
        for capability in capabilities
        if any(capability == name or (name.endswith(".") and capability.startswith(name)) for name in names)
    }
