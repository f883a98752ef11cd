"""From the bytes of a folder to a tool, or to everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from toolcrib.model.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a folder came to: without problems a tool. Each line is `PATH:LINE: what; cure`."""

    tool: Tool | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_tool(
    root: Path,
    folder: str,
    files: Mapping[str, bytes],
    shared: Mapping[str, bytes],
    *,
    registry: str = "",
    unread: Collection[str] = (),
) -> Reading:
    """Read one folder from the bytes of its files; `registry` is the version of the registry that it is loaded from.

    `unread` are paths of the folder that lie there and could not be read: of these nothing is said, and there is no tool.
    """
    # A crib whose folders nobody asks for does not wait for the checks.
    from toolcrib.dialects.folder.building import build_tool

    tool, report = build_tool(root, folder, files, shared, registry, unread)
    return Reading(tool=tool, problems=report.problems, warnings=report.warnings)
