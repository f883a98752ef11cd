"""The registries of a Crib's tool folders: loaded at the start, and with `folders.watch` again after each build."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.core.sources import ListedSource, NameIndex
from toolcrib.features.folders.registry_folders import registry_folders
from toolcrib.lib.names import slug_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from threading import Event

    from toolcrib.core.resources import Resources
    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.facade import ToolFolders
    from toolcrib.features.folders.registry import Registry, Unbuilt
    from toolcrib.features.folders.registry_folders import RegistryFolder
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Broken, Tool

REGISTRY = "tool_registry.json"
# A folder with one of these files is meant as a tool.
SCHEMA = "schema.json"
HANDLERS = ("handler.js", "handler.py")
VERSIONS_KEPT = 16


class Versions:
    """Keeps the tools of the last few versions; `version` is the current one, empty if nothing was built."""

    def __init__(self) -> None:
        self.version = ""
        self._versions: OrderedDict[str, tuple[Tool, ...]] = OrderedDict()

    def put(self, version: str, tools: Iterable[Tool]) -> None:
        """Make this the current version."""
        self._versions[version] = tuple(tools)
        self._versions.move_to_end(version)
        self.version = version
        while len(self._versions) > VERSIONS_KEPT:
            self._versions.popitem(last=False)

    def tools(self, version: str | None = None) -> tuple[Tool, ...]:
        """The tools in force, or those of a version; raises ToolError for one that is no longer kept."""
        if version is None:
            return self._versions.get(self.version, ())
        if version not in self._versions:
            message = (
                f"the session was opened with the registry {version}, which is not loaded here; open a new session"
            )
            raise ToolError(Kind.CONFLICT, message)
        return self._versions[version]


class Registries:
    """The loaded registries of a project's tool folders, and methods to build them.

    They are loaded at the start, and with `folders.watch` again when one of the files has changed.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        # The settings table is loaded only if it is set, because every start runs this.
        self._watches = "folders.watch" in resources.settings.places and resources.settings["folders"].watch
        self._roots = {folder.path: folder for folder in registry_folders(resources) if not folder.problem}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._versions = Versions()
        self._generation = 0
        self._loading = threading.Lock()
        self.loaded: tuple[Registry, ...] = ()
        self._load()

    @property
    def version(self) -> str:
        """The version of the registries in force; empty where nothing was built."""
        return self._versions.version

    def generation(self) -> int:
        """How often they were loaded; where the operator watches, a new build counts at once."""
        if self._watches:
            self.refresh()
        return self._generation

    def tools(self, version: str | None = None) -> tuple[Tool, ...]:
        """The tools in force, or those of an earlier version."""
        return self._versions.tools(version)

    def refresh(self) -> None:
        """Load them again if one of the files is not the one that was loaded."""
        if self._look() == self._stamps:
            return
        with self._loading:
            if self._look() != self._stamps:
                self._load()

    def _load(self) -> None:
        """Load the registries; folders without one are not read."""
        self._stamps = self._look()
        self._generation += 1
        if not self._stamps:
            self.loaded = ()
            self._versions.put("", ())
            return
        found = [(self._roots[root].bundle, self._folders.load(root)) for root in self._stamps]
        self.loaded = tuple(registry for _, registry in found if registry is not None)
        tools = [
            replace(tool, bundle=bundle)
            for bundle, registry in found
            if registry is not None
            for tool in registry.tools
        ]
        version = "+".join(registry.version for registry in self.loaded if registry.version)
        self._versions.put(version, sorted(tools, key=lambda tool: tool.name))

    def build(self, *, strict: bool = False) -> list[Built]:
        """Check the tool folders and write their registries, which count from the next start."""
        return self._folders.build(strict=strict)

    def watch(self, say: Callable[[Built], None], stop: Event, *, strict: bool = False) -> None:
        """Build the tool folders at every change until `stop` is set; `say` is called with the result of each build."""
        self._folders.watch(say, stop, strict=strict)

    def check(self) -> tuple[list[str], list[str]]:
        """The problems and the warnings that a build would report."""
        return self._folders.check()

    def sources(self) -> list[RegistrySource]:
        """The registries as sources, each before the files of its folder."""
        return [RegistrySource(self, folder) for folder in self._roots.values()]

    def unbuilt(self) -> list[tuple[Path, Unbuilt]]:
        """The tool folders that are not built, or changed since, with the root of each."""
        known = {registry.path.parent: registry for registry in self.loaded}
        return [(root, folder) for root in self._roots for folder in self._folders.unbuilt(root, known.get(root))]

    @property
    def _folders(self) -> ToolFolders:
        """The part that reads and builds folders, loaded on first use."""
        return self._resources.get("tool_folders")  # type: ignore[no-any-return]  # so it is registered

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


class RegistrySource(ListedSource):
    """The tools of the registry of one tool folder; a session keeps to the registries that it began with."""

    def __init__(self, registries: Registries, folder: RegistryFolder) -> None:
        self.rank = folder.rank
        self.bundles = (folder.bundle,)
        self._registries = registries
        self._root = folder.path

    @property
    def homes(self) -> Mapping[str, str]:  # type: ignore[override]  # it changes with the registries
        """The folder, if the registry has tools."""
        return {str(self._root): bundle for bundle in self.bundles} if self.entries() else {}

    @property
    def version(self) -> str:  # type: ignore[override]  # it changes with the registries
        """The version of all registries of the project; where the operator watches, a new build counts at once."""
        self._registries.generation()
        return self._registries.version

    def generation(self) -> int:
        """How often the registries were loaded."""
        return self._registries.generation()

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """The tool as the session's version has it; raises ToolError for a version that is no longer kept."""
        index = self.index if session is None else NameIndex(self.entries(session))
        return index.find(name, bundle, version)

    def entries(self, session: Session | None = None) -> list[Entry]:
        """The tools in force, or those of the session's version."""
        tools = self._registries.tools(session.tools_version if session is not None else None)
        return [Entry(tool=tool) for tool in tools if tool.bundle in self.bundles]

    def problems(self) -> list[ToolError]:
        """Why the registry could not be loaded."""
        return [
            ToolError(Kind.VALIDATION, f"{registry.path}: {registry.problem}")
            for registry in self._registries.loaded
            if registry.problem and registry.path.parent == self._root
        ]

    def hint(self, slug: str) -> str:
        """Why the folder of that name is not a tool, with the cure; empty if there is no such folder."""
        loaded = self._registries.loaded
        if any(tool.slug == slug for registry in loaded for tool in registry.tools):
            return ""
        known = {slug_of(folder.name): folder.reason for registry in loaded for folder in registry.unbuilt}
        for folder in (slug, slug.replace("-", "_")):
            with suppress(OSError):  # no file has such a name: it is too long
                if any((self._root / folder / name).exists() for name in (SCHEMA, *HANDLERS)):
                    reason = known.get(slug, "not in a registry")
                    return f"{self._root.name}/{folder} is not built ({reason}); run: crib build"
        return ""
