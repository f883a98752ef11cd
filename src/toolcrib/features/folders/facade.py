"""What a Crib does with its tool folders: load their registries, check, build and watch them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.folders.build import build, check_folders, watch
from toolcrib.features.folders.registry import load_registry, unbuilt_folders
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from threading import Event

    from toolcrib.core.resources import Resources
    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.registry import Registry, Unbuilt


def build_project(parts: Resources, *, strict: bool) -> list[Built]:
    """Build every folder of tools that is there."""
    return [build(root, **_options(parts, root), strict=strict) for root in _roots(parts)]


def watch_project(parts: Resources, say: Callable[[Built], None], stop: Event, *, strict: bool) -> None:
    """Build every folder of tools at every change, each in a thread of its own, until `stop` is set or the wait interrupted."""
    from threading import Thread

    threads = [
        Thread(target=watch, args=(root,), kwargs={"say": say, "stop": stop, **_options(parts, root), "strict": strict})
        for root in _roots(parts)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def check_project(parts: Resources) -> tuple[list[str], list[str]]:
    """The problems and the warnings of every tool folder, as a build reports them; writes only the cache."""
    problems: list[str] = []
    warnings: list[str] = []
    for root in _roots(parts):
        try:
            checked = check_folders(root, cache=_cache(parts, root))
        except ToolError as problem:
            problems.append(problem.message)
            continue
        problems += checked.problems
        warnings += checked.warnings
    return problems, warnings


def _roots(parts: Resources) -> list[Path]:
    return [root for root in parts.tool_folders() if root.is_dir()]


def _options(parts: Resources, root: Path) -> dict[str, Path | None]:
    return {"cache": _cache(parts, root), "project": parts.settings.root}


def _cache(parts: Resources, root: Path) -> Path | None:
    """The build cache, one file per root of tool folders."""
    import hashlib

    name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return None if parts.settings.root is None else parts.data.folder() / f"build-{name}.json"


class ToolFolders:
    """The tool folders of one Crib."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def load(self, root: Path) -> Registry | None:
        """Read the registry of a folder."""
        return load_registry(root)

    def unbuilt(self, root: Path, registry: Registry | None) -> Iterable[Unbuilt]:
        """The folders that are tools on disk and not in the registry as they are now."""
        return unbuilt_folders(root, registry)

    def build(self, *, strict: bool) -> list[Built]:
        """Check the folders and write their registries."""
        return build_project(self._resources, strict=strict)

    def watch(self, say: Callable[[Built], None], stop: Event, *, strict: bool) -> None:
        """Build at every change until `stop` is set."""
        watch_project(self._resources, say, stop, strict=strict)

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and warnings that a build would report."""
        return check_project(self._resources)
