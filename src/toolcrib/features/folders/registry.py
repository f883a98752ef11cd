"""Load a registry: which folders are as they were built, and so are tools, and which are not.

The file says only which bytes were built, and any program may have written it. What a tool is comes from the bytes of its own
folder, once their hashes are those of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.folders.build_files import (
    ENTRY_DEPTH,
    REGISTRY,
    UNKNOWN,
    VERSION_LETTERS,
    VERSION_SERIES,
    hash_files,
    read_content,
    version_of,
)
from toolcrib.features.folders.format import read_tool
from toolcrib.infra.files import durable
from toolcrib.infra.files.durable import show_path
from toolcrib.lib.documents import read_json
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tool
from toolcrib.lib.icons import ICONS
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_CALLS_KEY, Handler

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.folders.build_files import Content, Hashes
    from toolcrib.model.tool import Tool

MAX_REGISTRY_BYTES = 64_000_000
SHOWN = 80
# That a provider shows fewer examples changes nothing about what a model may send.
SHOWN_ONLY = "examples"
SCHEMAS = {"openai": "openai", "gemini": "geminiNative"}
NOT_BUILT = "not built yet"
NOT_NAMED = "not in the registry"
CHANGED = "changed since the build"
REMOVED = "removed since the build"
UNUSABLE = "the registry cannot be used"
SHARED_CHANGED = "a shared folder changed since the build"

_VERSION = re.compile(rf"{re.escape(VERSION_SERIES)}\.[0-9a-f]{{{VERSION_LETTERS}}}")
_COMMIT = re.compile(rf"[0-9a-f]{{40}}|[0-9a-f]{{64}}|{UNKNOWN}")
_HASH = re.compile(r"[0-9a-f]{64}")
_FOLDER = re.compile(r"(?!_)[\w-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Unbuilt:
    """A tool folder that is not built or changed since, with the reason."""

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
        reason = problem.message.removeprefix(f"{show_path(str(path))} ")
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
    """The folders that are not built, or changed since."""
    try:
        content = read_content(root)
    except ToolError:
        return ()
    return tuple(_differences(content, registry))


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """The version and commit, and which bytes were built: those that tools share, and those of each folder."""

    version: str
    git_commit: str
    shared: Hashes
    folders: Mapping[str, Hashes]


def read_claims(data: bytes) -> Claims:
    """Read a registry; raises ToolError for one that no build wrote."""
    try:
        document = read_json(data, place="content", max_bytes=MAX_REGISTRY_BYTES, max_depth=ENTRY_DEPTH)
        claims = _read(_object(document, "the file"))
    except _OddError as odd:
        raise ToolError(Kind.VALIDATION, f"{odd}; no build wrote this") from None
    if claims.version != version_of(claims.folders.values(), claims.shared):
        raise ToolError(Kind.VALIDATION, f"registryVersion: {claims.version} is not that of the files it names")
    return claims


def entry_of(tool: Tool, warnings: tuple[str, ...]) -> dict[str, object]:
    """What the tool says of itself, how providers are offered it, and what its author should know.

    Places in warnings are paths from the root. Raises ToolError if a provider could not be offered the tool.
    """
    exports = {provider: export_tool(tool, Provider(provider)) for provider in SCHEMAS}
    losses = [(provider, loss) for provider, export in exports.items() for loss in export.losses]
    schema = f"{tool.run.folder}/schema.json" if isinstance(tool.run, Handler) else ""
    return {
        "version": tool.version,
        "description": tool.description,
        "category": tool.behaviour,
        "sideEffects": tool.side_effects,
        "idempotent": tool.idempotent,
        "requiresConfirmation": tool.requires_confirmation,
        "allowedModes": sorted(tool.modes or ()),
        "latencyBudgetMs": tool.limits.latency_budget_ms,
        "parameters": tool.parameters,
        **_options(tool),
        "summary": tool.summary,
        "providerSchemas": {SCHEMAS[provider]: export.definition for provider, export in exports.items()},
        "losses": [
            {"provider": provider, "path": loss.path, "keyword": loss.keyword, "text": loss.text}
            for provider, loss in losses
        ],
        "warnings": [
            *warnings,
            *(
                f"{schema}:1: for {provider}: parameters{loss}"
                for provider, loss in losses
                if loss.keyword != SHOWN_ONLY
            ),
        ],
    }


class _OddError(Exception):
    """The registry was not written by a build."""


def _read(document: Mapping[str, object]) -> Claims:
    folders = {}
    for name, entry in _object(document.get("tools"), "tools").items():
        folder, hashes = _tool(name, _object(entry, f"tools.{name[:SHOWN]}"))
        folders[folder] = hashes
    return Claims(
        version=_match(_VERSION, document.get("registryVersion"), "registryVersion"),
        git_commit=_match(_COMMIT, document.get("gitCommit"), "gitCommit"),
        shared=_hashes(document.get("shared"), "shared", "_"),
        folders=folders,
    )


def _tool(name: str, entry: Mapping[str, object]) -> tuple[str, Hashes]:
    """The folder of a tool and the hashes of its files; each path must lead into that folder."""
    place = f"tools.{name[:SHOWN]}"
    folder = _match(_FOLDER, entry.get("folder"), f"{place}.folder")
    if folder.replace("-", "_") != name:
        raise _OddError(f"{place}.folder: {folder[:SHOWN]!r} is the folder of another tool")
    hashes = _hashes(entry.get("files"), f"{place}.files", f"{folder}/")
    for field in ("handlerPath", "documentation"):
        path = entry.get(field)
        if not isinstance(path, str) or path not in hashes:
            raise _OddError(f"{place}.{field}: {path!r:.80} is none of its files")
    return folder, hashes


def _hashes(value: object, place: str, beginning: str) -> Hashes:
    hashes = {}
    for path, digest in _object(value, place).items():
        if not path.startswith(beginning) or not _is_inside(path):
            raise _OddError(f"{place}: the path {path[:SHOWN]!r} does not lead into {beginning!r}")
        hashes[path] = _match(_HASH, digest, f"{place}.{path[:SHOWN]}")
    return hashes


def _is_inside(path: str) -> bool:
    return "\0" not in path and not {"", ".", ".."} & {*path.split("/")}


def _object(value: object, place: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _OddError(f"{place}: is not an object")
    return value


def _match(pattern: re.Pattern[str], value: object, place: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _OddError(f"{place}: {value!r:.80} is not in order")
    return value


def _options(tool: Tool) -> dict[str, object]:
    """The fields that a tool may have, as far as it has them."""
    found = {
        "requires": sorted(tool.requires) or None,
        "hosts": list(tool.run.hosts) if isinstance(tool.run, Handler) and tool.run.hosts is not None else None,
        "outputSchema": tool.output_schema,
        "timeoutMs": tool.limits.timeout_ms,
        "limits": None if tool.limits.calls_per_minute is None else {MAX_CALLS_KEY: tool.limits.calls_per_minute},
        "tags": list(tool.tags) or None,
        "displayName": tool.display_name or None,
        ICONS: tool.metadata.get(ICONS),
    }
    return {name: value for name, value in found.items() if value is not None}


def _load(root: Path, claims: Claims, content: Content) -> Iterator[Tool | Unbuilt]:
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
