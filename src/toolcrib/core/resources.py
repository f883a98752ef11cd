"""What the parts of one Crib share, each made when it is first asked for and closed when the Crib closes."""

from __future__ import annotations

import sys
import threading
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.core.plugins import Plugins
from toolcrib.core.project_data import Data
from toolcrib.infra.settings import FILE_NAME
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.core.plugins import Part
    from toolcrib.infra.settings import Settings
    from toolcrib.model.protocols import Bound, Format, Rule, Runner
    from toolcrib.model.tool import Entry, Tool

PROJECT_SCRIPTS = ".ai/tools"
USER_SCRIPTS = "~/.ai/tools"
# What Node and Python find from a project's scripts and handlers upwards, and run for them.
INSTALLED = ("node_modules", "package.json", ".venv", "venv")


class Resources:
    """Settings, data, and everything that a feature registered as a resource, for one Crib.

    `find_below` looks up the executors of a tool, in its own space or one further down. `observe` has files of code watched.
    `plugins` is a registry that has started already.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        find_below: Callable[[str, str], Entry | None] = lambda *_: None,
        *,
        observe: bool = False,
        plugins: Plugins | None = None,
    ) -> None:
        self.settings = settings
        self.environment = environment
        self.find_below = find_below
        self.observe = observe
        self.plugins = Plugins() if plugins is None else plugins
        if plugins is None:
            self.plugins.start()
        self.functions: dict[str, Callable[..., object]] = {
            part.name: part.load() for part in self.plugins.parts("functions")
        }
        self.data = Data(settings, self.get)
        self.runners = Runners(self)
        self._values: dict[str, Any] = {}
        self._made: list[Any] = []
        self._making = threading.RLock()

    def get(self, name: str) -> Any:
        """The resource of that name: one object for all threads, made now if nobody has asked for it before."""
        try:
            return self._values[name]
        except KeyError:
            with self._making:
                if name not in self._values:
                    self._values[name] = self.own(self._part("resources", name).make(self))
                return self._values[name]

    def make(self, name: str, **more: object) -> Any:
        """A new object of a registered resource, which belongs to the caller; `more` replaces what it is given."""
        return self._part("resources", name).make(self, **more)

    def lend(self, **resources: object) -> None:
        """Use these, which stay their owner's and are not closed here; before anything else asks for them."""
        self._values |= resources

    def own(self, part: Any) -> Any:
        """Close this part when the Crib closes, before everything that was made earlier."""
        self._made.append(part)
        return part

    def has_made(self, name: str) -> bool:
        """Whether the resource was asked for, or lent."""
        return name in self._values

    def make_store(self) -> Any:
        """The store of documents: files of the project, or memory where there is none."""
        return self._part("stores", "memory" if self.data.path is None else "files").make(self)

    def rules(self) -> list[Rule]:
        """The rules that features and packages bring, and then those of the operator's modules."""
        rules = [rule for part in self.plugins.parts("rules") for rule in part.load()(self)]
        return [*rules, *(self.get("host_modules").rules() if self.settings.rule_modules else ())]

    def formats(self, *, in_trees: bool = False) -> list[Format]:
        """The formats of single files, or those of them that trees of scripts are read in too."""
        parts = self.plugins.parts("formats")
        files = [part for part in parts if not part.options["folder"] and not part.options["stored"]]
        return [_format(part) for part in files if part.options["in_trees"] or not in_trees]

    def document_formats(self) -> list[tuple[str, Format]]:
        """The formats of documents in the store, each with the space that its documents lie in."""
        parts = self.plugins.parts("formats")
        return [(part.options["stored"], _format(part)) for part in parts if part.options["stored"]]

    def folder_formats(self) -> list[tuple[str, Format]]:
        """The formats of tools that are folders, each with the name of the file that describes such a tool."""
        parts = self.plugins.parts("formats")
        return [(part.options["folder"], _format(part)) for part in parts if part.options["folder"]]

    def tool_folders(self) -> list[Path]:
        """The folders of plain tools, in their order."""
        root = self.settings.root
        return [] if root is None else [root / folder for folder in self.settings.tools]

    def protected_paths(self) -> list[Path]:
        """What is obeyed, or run, at the next start, and what features protect besides: no tool may write it."""
        root = self.settings.root
        ours = [] if root is None else [root / name for name in (FILE_NAME, *self.settings.tools)]
        program = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
        theirs = [path for part in self.plugins.parts("protected_paths") for path in part.load()(self)]
        return [*ours, *theirs, *program]

    @property
    def runs_host_modules(self) -> bool:
        """Whether modules of the project run in this process."""
        return bool(self.settings.modules or self.settings.rule_modules)

    def variable(self, tool: Tool, name: str) -> str | None:
        """A variable of the host or a secret, if the operator lets the tool see it; empty if it is not set."""
        granted = {f"{tool.name}:{name}", f"{tool.slug}:{name}", f"*:{name}"} & self.settings.variables
        if not granted:
            return None
        if name in self.environment:
            return self.environment[name]
        secret = self.data.secrets.get(name)
        return "" if secret is None else str(secret.reveal())

    def check_settings(self) -> None:
        """Raise SettingsError for what would otherwise only show when a tool is called."""
        for part in self.plugins.parts("checks"):
            part.load()(self)

    async def close(self) -> None:
        """Close what was made, the newest first."""
        while self._made:
            await _close(self._made.pop())
        for part in self.plugins.parts("on_close"):
            part.load()()
        self.data.close()

    def _part(self, kind: str, name: str) -> Part:
        parts = self.plugins.parts(kind, name)
        if not parts:
            raise ToolError(Kind.INTERNAL, f"no part of {kind} is called {name!r}; install the package that brings it")
        return parts[-1]


class Runners(dict[str, "Runner"]):
    """The runners by the kind of tools that they run; each is made when the first tool of its kind is prepared."""

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._resources = resources
        # One runner may run several kinds.
        self._made: dict[object, Runner] = {}
        self._making = threading.RLock()

    def get(self, kind: str, default: Any = None) -> Any:
        """The runner of a kind."""
        if kind not in self:
            parts = self._resources.plugins.parts("runners", kind)
            if not parts:
                return default
            self[kind] = LazyRunner(kind, parts[::-1], self._make)
        return self[kind]

    def _make(self, part: Part) -> Runner:
        with self._making:
            key = part.value if isinstance(part.value, str) else id(part.value)
            if key not in self._made:
                self._made[key] = self._resources.own(part.make(self._resources))
            return self._made[key]


class LazyRunner:
    """Stands in for the runners of a kind, the one that is asked first first, until a tool needs one of them."""

    def __init__(self, kind: str, parts: list[Part], make: Callable[[Part], Runner]) -> None:
        self.kind = kind
        self._parts = parts
        self._make = make

    def bind(self, tool: Tool) -> Bound:
        """Have the first runner that runs such a tool prepare it."""
        fitting = (
            part for part in self._parts if part.options["runs"] is None or isinstance(tool.run, part.options["runs"])
        )
        part = next(fitting, None)
        if part is None:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no executor runs it")
        return self._make(part).bind(tool)

    async def close(self) -> None:
        """The runners themselves are closed by the Resources."""


class LazyFormat:
    """Stands in for a format that is registered by reference, until there is a file with one of its suffixes."""

    def __init__(self, part: Part) -> None:
        self.name = str(part.value)
        self._part = part
        self._suffixes: frozenset[str] = part.options["suffixes"]
        self._format: Format | None = None

    def reads(self, path: Path) -> bool:
        """Whether the file is written in the format."""
        return (not self._suffixes or path.suffix in self._suffixes) and self._made.reads(path)

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        """The tools of the file."""
        return self._made.read(path, code)

    @property
    def _made(self) -> Format:
        if self._format is None:
            self._format = made = self._part.load()()
            self.name = made.name
        return self._format


def _format(part: Part) -> Format:
    return LazyFormat(part) if isinstance(part.value, str) else part.make(None)


async def _close(part: Any) -> None:
    """Close one part, if it can be closed; what waits for child processes does so in a thread."""
    if hasattr(part, "settle"):
        import asyncio

        await part.settle()
        await asyncio.to_thread(part.close)
        return
    close = getattr(part, "close", None)
    ended = None if close is None else close()
    if isawaitable(ended):
        await ended
