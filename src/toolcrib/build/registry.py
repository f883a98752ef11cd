"""The registry at start: which folders are as they were built, and so are tools, and which are not.

The file says only which bytes were built. What a tool is comes from the bytes of its own folder, once they are those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.build.claims import MAX_REGISTRY_BYTES, read_claims
from toolcrib.build.content import hash_files, read_content
from toolcrib.build.surroundings import REGISTRY
from toolcrib.ground.files import durable
from toolcrib.ground.files.faults import show
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import Handler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.build.claims import Claims
    from toolcrib.build.content import Content
    from toolcrib.model.tool import Tool

NOT_BUILT = "not built yet"
NOT_NAMED = "not in the registry"
CHANGED = "changed since the build"
REMOVED = "removed since the build"
UNUSABLE = "the registry cannot be used"
SHARED_CHANGED = "a shared folder changed since the build"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unbuilt:
    """A tool folder that is not in force as it lies there, and why."""

    name: str
    folder: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    """A registry as it was loaded; `problem` says why nothing of it could be."""

    path: Path
    version: str = ""
    git_commit: str = ""
    tools: tuple[Tool, ...] = ()
    unbuilt: tuple[Unbuilt, ...] = ()
    problem: str = ""


def load_registry(root: Path) -> Registry | None:
    """The tools that were built and are still as they were then; None if nothing was built."""
    path = root / REGISTRY
    try:
        data = durable.read(path, MAX_REGISTRY_BYTES)
        if data is None:
            return None
        claims = read_claims(data)
        content = read_content(root)
    except ToolError as problem:
        reason = problem.message.removeprefix(f"{show(str(path))} ")
        unbuilt = tuple(replace(each, reason=UNUSABLE) for each in unbuilt_folders(root))
        return Registry(path=path, problem=f"{reason}; run: crib build", unbuilt=unbuilt)
    found = [*_load(root, claims, content)]
    return Registry(
        path=path,
        version=claims.version,
        git_commit=claims.git_commit,
        tools=tuple(each for each in found if not isinstance(each, Unbuilt)),
        unbuilt=tuple(each for each in found if isinstance(each, Unbuilt)),
    )


def unbuilt_folders(root: Path, registry: Registry | None = None) -> tuple[Unbuilt, ...]:
    """The folders that are not in force as they lie there now: all that a build and a new start would change."""
    try:
        content = read_content(root)
    except ToolError:
        return ()
    return tuple(_differences(content, registry))


def _load(root: Path, claims: Claims, content: Content) -> Iterator[Tool | Unbuilt]:
    from toolcrib.dialects.folder import read_tool

    is_shared_alike = hash_files(content.shared) == claims.shared
    for folder in sorted({*claims.folders, *content.names}):
        reason = _reason(folder, claims, content) or ("" if is_shared_alike else SHARED_CHANGED)
        if reason:
            yield _unbuilt(folder, reason)
            continue
        reading = read_tool(root, folder, content.folders[folder], content.shared, registry=claims.version)
        yield reading.tool or _unbuilt(folder, "; ".join(reading.problems))


def _reason(folder: str, claims: Claims, content: Content) -> str:
    """Why the folder is not what was built; empty if it is."""
    if folder not in claims.folders:
        return NOT_NAMED
    if folder in content.problems:
        return "; ".join(content.problems[folder])
    if folder not in content.folders:
        return REMOVED
    return "" if hash_files(content.folders[folder]) == claims.folders[folder] else CHANGED


def _differences(content: Content, registry: Registry | None) -> Iterator[Unbuilt]:
    loaded = {} if registry is None else _handlers(registry)
    known = {} if registry is None else {each.folder: each for each in registry.unbuilt}
    for folder in sorted({*loaded, *content.names}):
        handler, files = loaded.get(folder), content.folders.get(folder)
        if handler is None:
            yield known.get(folder) or _unbuilt(folder, NOT_BUILT if registry is None else NOT_NAMED)
        elif folder in content.problems:
            yield _unbuilt(folder, "; ".join(content.problems[folder]))
        elif files is None:
            yield _unbuilt(folder, REMOVED)
        elif files != handler.files:
            yield _unbuilt(folder, CHANGED)
        elif content.shared != handler.shared:
            yield _unbuilt(folder, SHARED_CHANGED)


def _handlers(registry: Registry) -> dict[str, Handler]:
    runs = (tool.run for tool in registry.tools)
    return {run.folder: run for run in runs if isinstance(run, Handler)}


def _unbuilt(folder: str, reason: str) -> Unbuilt:
    return Unbuilt(name=folder.replace("-", "_"), folder=folder, reason=reason)
