"""What a Crib does with depots: publish a tool of its project, pull one into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.depots.transfer import SCRIPTS, TOOLS, publish, pull

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.features.depots.transfer import Published, Pulled
    from toolcrib.model.tool import Tool


class Depots:
    """Transfers between the project of one Crib and depots."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def publish(self, tool: Tool, place: str, *, files: Iterable[str] = (), key: Path | None = None) -> Published:
        """Publish a tool of the project to the depot in a folder, signed if there is a key to sign with."""
        return publish(tool, place, self._resources, files=files, key=key)

    async def pull(self, name: str, place: str, *, version: str | None = None, replace: bool = False) -> Pulled:
        """Pull a tool into the project; on any failure the project is as it was."""
        formats = {
            SCRIPTS: lambda root: self._resources.make("script_format", root=root),
            TOOLS: lambda _: self._resources.make("plain_format"),
        }
        return await pull(name, place, self._resources, formats, version=version, replace=replace)
