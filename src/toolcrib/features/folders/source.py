"""The registries of a Crib's tool folders: loaded at start, and where the operator watches, again when one is built anew."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.lib.names import slug_of
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from toolcrib.core.catalog import Catalog
    from toolcrib.core.resources import Resources
    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.registry import Registry, Unbuilt

REGISTRY = "tool_registry.json"
# By these a folder is known to be meant as a tool.
SCHEMA = "schema.json"
HANDLERS = ("handler.js", "handler.py")


class Registries:
    """What the builds of a project's tool folders made, as it was when they were loaded, and the way to build them anew."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._roots = resources.tool_folders()
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self.loaded: tuple[Registry, ...] = ()

    def attach(self, catalog: Catalog) -> None:
        """Have the tools in this catalog."""
        self._catalog = catalog
        self.load()

    def load(self) -> None:
        """Read them and have their tools in the catalogue; of folders that nobody built nothing is read."""
        self._stamps = self._look()
        if not self._stamps:
            self.loaded = ()
            self._catalog.set_built("", (), self._hint)
            return
        from toolcrib.features.folders.registry import load_registry

        found = [(root.name, load_registry(root)) for root in self._stamps]
        self.loaded = tuple(registry for _, registry in found if registry is not None)
        tools = [
            replace(tool, bundle=bundle)
            for bundle, registry in found
            if registry is not None
            for tool in registry.tools
        ]
        version = "+".join(registry.version for registry in self.loaded if registry.version)
        # What is added last is listed first.
        self._catalog.set_built(version, sorted(tools, key=lambda tool: tool.name, reverse=True), self._hint)

    def refresh(self) -> None:
        """Load them again if one of the files is not the one that was loaded."""
        if self._look() != self._stamps:
            self.load()

    def build(self, *, strict: bool = False) -> list[Built]:
        """Check the tool folders and write their registries, which count from the next start."""
        from toolcrib.features.folders.project_build import build_project

        return build_project(self._resources, strict=strict)

    def watch(self, say: Callable[[Built], None], stop: Event, *, strict: bool = False) -> None:
        """Build the tool folders at every change until `stop` is set; `say` hears what each build came to."""
        from toolcrib.features.folders.project_build import watch_project

        watch_project(self._resources, say, stop, strict=strict)

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and the warnings of the tool folders, as a build would tell them."""
        from toolcrib.features.folders.project_build import check_project

        return check_project(self._resources)

    def unbuilt(self) -> list[tuple[Path, Unbuilt]]:
        """The folders that are tools on disk and not in force, or not as they are on disk now, with the root of each."""
        from toolcrib.features.folders.registry import unbuilt_folders

        known = {registry.path.parent: registry for registry in self.loaded}
        return [(root, folder) for root in self._roots for folder in unbuilt_folders(root, known.get(root))]

    @property
    def problems(self) -> list[ToolError]:
        """Why a registry could not be loaded."""
        return [
            ToolError(Kind.VALIDATION, f"{registry.path}: {registry.problem}")
            for registry in self.loaded
            if registry.problem
        ]

    def _hint(self, slug: str) -> str:
        """Why the folder of that name is no tool, and what to do about it; empty if there is no such folder."""
        known = {slug_of(folder.name): folder.reason for registry in self.loaded for folder in registry.unbuilt}
        if any(tool.slug == slug for registry in self.loaded for tool in registry.tools):
            return ""
        for root in self._roots:
            for folder in (slug, slug.replace("-", "_")):
                if any((root / folder / name).exists() for name in (SCHEMA, *HANDLERS)):
                    return (
                        f"{root.name}/{folder} is not built ({known.get(slug, 'not in a registry')}); run: crib build"
                    )
        return ""

    def _look(self) -> dict[Path, tuple[int, ...]]:
        """The registry files that are there, by their folders."""
        stamps: dict[Path, tuple[int, ...]] = {}
        for root in self._roots:
            try:
                facts = os.lstat(root / REGISTRY)
            except OSError:
                continue
            stamps[root] = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        return stamps
