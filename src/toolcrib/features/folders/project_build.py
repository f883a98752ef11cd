"""Check, build and watch the tool folders of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.folders.build import build, check_folders, watch
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from toolcrib.core.resources import Resources
    from toolcrib.features.folders.build import Built


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
    """The problems and the warnings of every tool folder, as a build would tell them; nothing is written but the cache."""
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
    """Where it is remembered which folders were right, one file for each folder of tools."""
    import hashlib

    name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
    return None if parts.settings.root is None else parts.data.folder() / f"build-{name}.json"
