"""The tools of registries: which are in force, and which were for the sessions that began before."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Handler
from toolcrib.pure.names import slug_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.catalog.wanted import Wanted
    from toolcrib.model.tool import Entry, Tool

VERSIONS_KEPT = 16


class Built:
    """Keeps the tools of the last few versions; `version` is the one in force, empty where nothing was built."""

    def __init__(self) -> None:
        self.version = ""
        self._versions: OrderedDict[str, tuple[Tool, ...]] = OrderedDict()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those in force."""
        return self._versions.get(self.version, ())

    def put(self, version: str, tools: Iterable[Tool]) -> None:
        """Have these in force from now on."""
        self.version = version
        self._versions[version] = tuple(tools)
        self._versions.move_to_end(version)
        while len(self._versions) > VERSIONS_KEPT:
            self._versions.popitem(last=False)

    def tools_of(self, version: str) -> tuple[Tool, ...]:
        """Those of a version; raises ToolError if nobody remembers it."""
        if version not in self._versions:
            message = (
                f"the session was opened with the registry {version}, which is not loaded here; open a new session"
            )
            raise ToolError(Kind.CONFLICT, message)
        return self._versions[version]

    def find(self, wanted: Wanted, version: str) -> Tool | None:
        """The tool as it was in a version; raises ToolError if nobody remembers that version."""
        slug = slug_of(wanted.name)
        tools = self.tools_of(version)
        return next((tool for tool in tools if tool.slug == slug and _is_wanted(tool, wanted)), None)


def is_built(entry: Entry) -> bool:
    """Whether the tool is there because a registry names it."""
    return isinstance(entry.tool.run, Handler)


def _is_wanted(tool: Tool, wanted: Wanted) -> bool:
    return wanted.bundle in (None, tool.bundle) and wanted.version in (None, tool.version)
