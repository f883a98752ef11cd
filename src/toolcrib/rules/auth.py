"""Only the named tools may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.verdict import ALLOW, Verdict, deny

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


class AuthRule:
    """Denies every tool but these; `get_time` and `get-time` are the same name."""

    def __init__(
        self, allowed_tools: Iterable[str], name: str = "auth", *, where: str = "a rule of the host program"
    ) -> None:
        self.allowed = frozenset(_slug(tool) for tool in allowed_tools)
        self.name = name
        self.where = where

    def concerns(self, tool: Tool) -> bool:
        """Whether the tool is none of the named ones."""
        return tool.slug not in self.allowed

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge the name of the tool; an unknown one is judged by the name that was called."""
        slug = _slug(call.name) if tool is None else tool.slug
        if slug in self.allowed:
            return ALLOW
        return deny(
            f"rule {self.name!r} does not allow the tool {call.name[:80]!r}",
            rule=self.name,
            where=self.where,
            cure="add its name to allowed_tools",
        )


def _slug(name: str) -> str:
    return name.replace("_", "-")
