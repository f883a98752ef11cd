"""What a Crib does with its tool folders: load their registries, check, build and watch them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.folders.build import build, check_folders, watch
from toolcrib.features.folders.registry import load_registry, unbuilt_folders
from toolcrib.features.folders.registry_folders import registry_folders
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from threading import Event

    from toolcrib.core.resources import Resources
    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.registry import Registry, Unbuilt


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
        return [build(root, **self._options(root), strict=strict) for root in self._roots()]

    def watch(self, say: Callable[[Built], None], stop: Event, *, strict: bool) -> None:
        """Build every root at every change, each in a thread of its own, until `stop` is set or the wait is interrupted."""
        from threading import Thread

        given = {"say": say, "stop": stop, "strict": strict}
        threads = [
            Thread(target=watch, args=(root,), kwargs={**given, **self._options(root)}) for root in self._roots()
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

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and warnings that a build would report; writes only the cache."""
        problems = [folder.problem for folder in registry_folders(self._resources) if folder.problem]
        warnings: list[str] = []
        for root in self._roots():
            try:
                checked = check_folders(root, cache=self._cache(root))
            except ToolError as problem:
                problems.append(problem.message)
                continue
            problems += checked.problems
            warnings += checked.warnings
        return problems, warnings

    def _roots(self) -> list[Path]:
        found = (folder.path for folder in registry_folders(self._resources) if not folder.problem)
        return [root for root in found if root.is_dir()]

    def _options(self, root: Path) -> dict[str, Path | None]:
        return {"cache": self._cache(root), "project": self._resources.settings.root}

    def _cache(self, root: Path) -> Path | None:
        """The build cache, one file per root of tool folders; None where nothing can be stored, so that everything is read again."""
        import hashlib

        if self._resources.settings.root is None:
            return None
        name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
        try:
            return self._resources.data.folder() / f"build-{name}.json"
        except OSError:
            return None
