"""What a Crib does with its tool folders: load their registries, check them, build them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.folders.project_build import build_project, check_project, watch_project
from toolcrib.features.folders.registry import load_registry, unbuilt_folders

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
        return build_project(self._resources, strict=strict)

    def watch(self, say: Callable[[Built], None], stop: Event, *, strict: bool) -> None:
        """Build at every change until `stop` is set."""
        watch_project(self._resources, say, stop, strict=strict)

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and the warnings that a build would tell."""
        return check_project(self._resources)
