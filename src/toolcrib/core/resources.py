"""The resources of one Crib: created on first use, shared by its parts, and closed with it."""

from __future__ import annotations

import re
import sys
import threading
from contextlib import nullcontext
from functools import cached_property, partial
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolcrib.core.catalog import CatalogSettings
from toolcrib.core.execution import SecretsMask
from toolcrib.core.file_source import DocumentSource, FileSource, PackageSource
from toolcrib.core.grants import Grants, GrantsSettings, ToolWords
from toolcrib.core.journal import FileJournal, MemoryJournal, read_lines
from toolcrib.core.sources import LateSource, Rank, ToolList, folder_rank
from toolcrib.infra.call_counts import Metrics
from toolcrib.infra.files import PACKAGE_MARKS, make_folder
from toolcrib.infra.settings import FILE_NAME, PROJECT_SCRIPTS, Table, read_words, setting
from toolcrib.lib.names import BUILTIN_BUNDLE, SYSTEM_BUNDLE
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolcrib.core.plugins import Part, Plugins
    from toolcrib.infra.secrets.grants import GrantedVariables
    from toolcrib.infra.secrets.lookup import Secrets
    from toolcrib.infra.settings import Settings
    from toolcrib.model.protocols import Bound, Format, Journal, Line, Rule, Runner, Source, Store
    from toolcrib.model.tool import Entry


SECRETS_FILE = "secrets.json"
# Files in parent folders that Node and Python find from a program or handler, and load code from.
INSTALLED = ("node_modules", "package.json", ".venv", "venv")
# The sources that rank after all files: rank, bundles, and whether they are listed. A call of a file tool never loads them.
LATE: Mapping[str, tuple[float, tuple[str, ...], bool]] = {
    "bundles": (Rank.BUNDLES, (), False),
    "builtins": (Rank.BUILTINS, (BUILTIN_BUNDLE,), True),
    "system": (Rank.SYSTEM, (SYSTEM_BUNDLE,), True),
}


def code_around(folders: Collection[Path], root: Path) -> list[Path]:
    """What programs in these folders find in the folders around them, up to the project: it counts as their runtime."""
    home = root / PROJECT_SCRIPTS.partition("/")[0]
    around = {place for folder in folders for place in folder.parents if place.is_relative_to(root)}
    free = sorted(place for place in around if not any(map(place.is_relative_to, (home, *folders))))
    return [*([home] if home in around else []), *(place / name for place in free for name in INSTALLED)]


class ModulesSettings(Table, name="modules"):
    """Python modules of the host program; they run in its process."""

    tools: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="Python modules of the host program that hold tools; one that fails to load is reported",
    )
    rules: tuple[str, ...] = setting(
        default=(),
        read=read_words,
        summary="Python modules that hold rules; one that fails to load keeps the crib from starting",
    )


@runtime_checkable
class BufferedJournal(Protocol):
    """A journal that buffers lines."""

    def flush(self) -> None:
        """Write the buffered lines."""


class Data:
    """The data of a Crib: store, journal, counts, secrets and keys, each opened on first use. `get` makes a registered resource."""

    def __init__(self, settings: Settings, get: Callable[[str], Any]) -> None:
        self._settings = settings
        self._get = get
        # Guarded by a lock, because all threads must share one Metrics.
        self._metrics: Metrics | None = None
        self._making = threading.Lock()

    @property
    def path(self) -> Path | None:
        """The data folder, which may not exist yet; None without a project."""
        return self._settings.data

    def folder(self) -> Path:
        """The data folder, created if need be."""
        if self.path is None:
            raise ToolError(
                Kind.VALIDATION, "there is no project to keep anything in", cure=Cure("make one with: crib init")
            )
        make_folder(self.path)
        return self.path

    def file(self, name: str) -> Path | None:
        """The path of a file in the data folder, which may not exist; None without a project."""
        return None if self.path is None else self.path / name

    @cached_property
    def store(self) -> Store:
        """The store of documents."""
        return self._get("store")  # type: ignore[no-any-return]  # registered with this type

    @cached_property
    def journal(self) -> Journal:
        """The journal of calls and audit events."""
        if self.path is None:
            return MemoryJournal(on_lines=self._count)
        return FileJournal(self.path / "journal", on_lines=self._count)

    @property
    def metrics(self) -> Metrics:
        """Counts of calls by tool, each with the time of the last call."""
        with self._making:
            if self._metrics is None:
                self._metrics = Metrics(self.file("counts.sqlite3"), gather=self._gather, history=self._read_history)
            return self._metrics

    @property
    def key(self) -> bytes:
        """The secret key of the project; without a project it lives as long as the Crib."""
        return self._get("key")  # type: ignore[no-any-return]  # registered with this type

    def derive_key(self, purpose: str) -> bytes:
        """Derive a key for signing texts of one purpose from the key of the project."""
        import hmac

        return hmac.digest(self.key, purpose.encode(), "sha256")

    @property
    def secrets(self) -> Secrets:
        """The secrets of HTTP tools."""
        secrets: Secrets = self._get("secrets")
        secrets.masking.when_known(self.mask.activate)
        return secrets

    @cached_property
    def mask(self) -> SecretsMask:
        """Masks stored secrets in results."""
        exists = partial(self._may_have_secrets, "secrets.file", "secrets.keyring", "secrets.environment")
        return SecretsMask(lambda: self.secrets.masking, exists)

    def _may_have_secrets(self, *settings: str) -> bool:
        kept = self.file(SECRETS_FILE)
        return any(name in self._settings.places for name in settings) or (kept is not None and kept.exists())

    def problems(self) -> list[ToolError]:
        """The errors of reading the stored secrets, if there are any."""
        if not self._may_have_secrets("secrets.file", "secrets.keyring"):
            return []
        try:
            self.secrets.check()
        except ToolError as problem:
            return [problem]
        return []

    def _count(self, lines: Sequence[Line]) -> None:
        # A method and not `metrics.note` itself, so that metrics are only created by the first call.
        self.metrics.note(lines)

    def _read_history(self) -> Iterator[dict[str, object]]:
        return iter(()) if self.path is None else read_lines(self.path / "journal")

    def _gather(self) -> None:
        journal = self.journal
        if isinstance(journal, BufferedJournal):
            journal.flush()

    def close(self) -> None:
        """Close the journal and the counts."""
        self.journal.close()
        if self._metrics is not None:
            self._metrics.close()


class Resources:
    """Settings, data, and everything that features register as resources, for one Crib.

    `find_below` looks up the executors of a tool, among its own source and those of higher rank. `means` says whether a name
    without a bundle, in a grant, means a tool. `observe` traces file tools. `plugins` is a registry after its `start`.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        find_below: Callable[[str, str], Entry | None] = lambda *_: None,
        means: Callable[[str, Tool], bool] = lambda *_: False,
        *,
        observe: bool = False,
        plugins: Plugins,
    ) -> None:
        self.settings = settings
        self.environment = environment
        self.find_below = find_below
        self.observe = observe
        self.plugins = plugins
        self.functions: dict[str, Callable[..., object]] = {
            part.name: part.load() for part in self.plugins.parts("functions")
        }
        self.data = Data(settings, self.get)
        self.grants = Grants(settings.table(GrantsSettings).lines, settings.where, means)
        self._variables: dict[str, set[str]] = {}
        for word in settings.explicit("access").get("variables", ()):
            owner, _, name = word.partition(":")
            self._variables.setdefault(owner, set()).add(name)
        # Matches words with which the settings name tools.
        self.tool_words = partial(ToolWords, means=means)
        self._variable_owners = self.tool_words(self._variables)
        self.runners = Runners(self)
        self._values: dict[str, Any] = {}
        self._lent: set[str] = set()
        self._made: list[Any] = []
        self._making = threading.RLock()

    def get(self, name: str) -> Any:
        """The resource of that name: one object for all threads, created on first use."""
        try:
            return self._values[name]
        except KeyError:
            with self._making:
                if name not in self._values:
                    self._values[name] = self.own(self._part("resources", name).make(self))
                return self._values[name]

    def make(self, name: str, **more: object) -> Any:
        """A new object of a registered resource, owned by the caller; `more` overrides its keyword arguments."""
        return self._part("resources", name).make(self, **more)

    def lend(self, **resources: object) -> None:
        """Use these resources, which are owned and closed elsewhere; call it before they are first used."""
        self._values |= resources
        self._lent |= resources.keys()

    def is_lent(self, name: str) -> bool:
        """Whether the resource is owned elsewhere."""
        return name in self._lent

    def own(self, part: Any) -> Any:
        """Close this part when the Crib closes, before the parts created earlier."""
        self._made.append(part)
        return part

    def stored_bundles(self, space: str) -> Any:
        """The resource `bundles`; None while it is unused and the space holds no documents."""
        if not self.has_made("bundles"):
            folder = self.data.file(space)
            if folder is None or not folder.is_dir():
                return None
        return self.get("bundles")

    def record(self, what: str, about: str, **more: Any) -> AbstractContextManager[None]:
        """Record a decision or a change in the audit trail, before it is made in the `with` block; a `Recorder`."""
        # Without a project nothing outlasts the process.
        return nullcontext() if self.data.path is None else self.get("audit").record(what, about, **more)

    def has_made(self, name: str) -> bool:
        """Whether the resource was created or lent."""
        return name in self._values

    def make_store(self) -> Any:
        """Make the store of documents: files of the project, or memory without a project."""
        return self._part("stores", "memory" if self.data.path is None else "files").make(self)

    def rules(self) -> list[Rule]:
        """The rules of features and packages, and then those of the operator's modules."""
        rules = [rule for part in self.plugins.parts("rules") for rule in part.make(self)]
        return [*rules, *(self.get("host_modules").rules() if self.settings.table(ModulesSettings).rules else ())]

    def formats(self, *, in_trees: bool = False) -> list[Format]:
        """The formats of single files; with `in_trees` only those that are also used for trees of scripts."""
        files = [part for part in self.plugins.parts("formats", "") if not part.options["stored"]]
        return [_format(part) for part in files if part.options["in_trees"] or not in_trees]

    def document_formats(self) -> list[tuple[str, Format]]:
        """The formats of documents in the store, each with the space of its documents."""
        parts = self.plugins.parts("formats", "")
        return [(part.options["stored"], _format(part)) for part in parts if part.options["stored"]]

    def folder_formats(self) -> list[tuple[str, Format]]:
        """The formats of tools that are folders, each with the name of the file that describes such a tool."""
        names = [name for name in self.plugins.names("formats") if name]
        return [(name, LazyFormat(partial(self._make_format, name))) for name in names]

    def sources(self) -> Iterator[Source]:
        """Every source of tools except the host program; those that rank after all files are created on first use."""
        for name in self.plugins.names("sources"):
            if name not in LATE:
                yield from self._make_sources(name)
        settings, data = self.settings, self.data
        for position, path in enumerate(self.tool_folders()):
            if "catalog.folders" in settings.places and not path.is_dir():
                message = f"{path} is not a folder; make it, or change {settings.where('catalog.folders')}"
                self.plugins.problems.append(ToolError(Kind.NOT_FOUND, message))
            rank, root = folder_rank(position), settings.root
            yield FileSource(path, path.name, self.formats(), rank=rank, marks=self.package_marks, root=root)
            for description, reader in self.folder_formats():
                marks = self.package_marks
                yield PackageSource(path, path.name, [reader], description, rank=rank, marks=marks, root=root)
        for space, reader in self.document_formats():
            yield DocumentSource(lambda: data.store, space, reader)
        if (packages := self._tools_of_packages()).bundles:
            yield packages
        for name, (rank, bundles, listed) in LATE.items():
            yield LateSource(rank, partial(self._make_sources, name), bundles=bundles, listed=listed)

    def as_tool(self, value: object) -> Tool:
        """Convert a value into a Tool; a Tool is only checked."""
        if isinstance(value, Tool):
            check_parameters(value.parameters, f"{value.name}: parameters")
            if value.output_schema is not None:
                check_schema(value.output_schema, f"{value.name}: output schema")
            return value
        for converter in self.plugins.converters():
            if converter.converts(value):
                return converter.convert(value)
        raise ToolError(
            Kind.VALIDATION, f"{value!r:.80} is not a tool; hand over a function, a Tool, or an instance of BaseTool"
        )

    def tool_folders(self) -> list[Path]:
        """The tool folders of the project, in their order; those below them are bundles too."""
        root = self.settings.root
        return [] if root is None else [root / folder for folder in self.settings.table(CatalogSettings).folders]

    @property
    def package_marks(self) -> frozenset[str]:
        """The files that make a folder a package: one tool, a skill, or helpers, and no bundle."""
        return PACKAGE_MARKS.union(name for name in self.plugins.names("formats") if name)

    def protected_paths(self) -> list[Path]:
        """Paths that no tool may write: settings and code that the next start reads, and those that features protect."""
        root = self.settings.root
        ours = [] if root is None else [root / FILE_NAME, *self.tool_folders()]
        program = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
        theirs = [path for part in self.plugins.parts("protected_paths") for path in part.load()(self)]
        return [*ours, *theirs, *program]

    @property
    def runs_host_modules(self) -> bool:
        """Whether modules of the project run in this process."""
        modules = self.settings.table(ModulesSettings)
        return bool(modules.tools or modules.rules)

    def variable(self, tool: Tool, name: str) -> str | None:
        """A variable of the host or a secret, if it is granted to the tool; None if not, empty if it is not set."""
        if name not in self.granted_variables(tool):
            return None
        if name in self.environment:
            return self.environment[name]
        secret = self.data.secrets.get(name)
        return "" if secret is None else str(secret.reveal())

    def granted_names(self, tool: Tool, code: bytes) -> tuple[str, ...]:
        """The variables and secrets that are granted to the tool and mentioned in its file."""
        names = self.granted_variables(tool)
        return tuple(sorted(name for name in names if re.search(rf"\b{name}\b".encode(), code)))

    def variable_word(self, tool: Tool, name: str) -> str:
        """The item of `access.variables` that grants a variable to this tool only."""
        return f"{self._variable_owners.own_word(tool)}:{name}"

    def granted_variables(self, tool: Tool) -> set[str]:
        """The names of the variables and secrets that the settings grant to the tool."""
        return {name for owner in self._variable_owners.of(tool) for name in self._variables[owner]}

    def lend_variables(self) -> Callable[[], GrantedVariables] | None:
        """A factory of the variables that are granted to file tools; None if the settings grant none."""
        return partial(self.get, "granted_variables") if self.settings.explicit("access").get("variables") else None

    def check_settings(self) -> None:
        """Raise SettingsError now for features that fail and settings that are otherwise only read by a call."""
        self.plugins.register_all()
        for part in self.plugins.parts("checks"):
            part.load()(self)

    async def close(self) -> None:
        """Close everything that was created, the newest first."""
        while self._made:
            await _close(self._made.pop())
        for part in self.plugins.parts("on_close"):
            part.load()()
        self.data.close()

    def _make_format(self, name: str) -> Format:
        return self._part("formats", name).make(None)  # type: ignore[no-any-return]  # registered with this type

    def _make_sources(self, name: str) -> Iterator[Source]:
        for part in self.plugins.parts("sources", name):
            try:
                yield from part.make(self)
            except ToolError as problem:
                if part.is_ours:
                    raise
                self.plugins.problems.append(problem)

    def _tools_of_packages(self) -> ToolList:
        tools = ToolList(Rank.PACKAGES)
        for part in self.plugins.parts("tools"):
            try:
                tools.add(part.load())
            except ToolError as problem:
                self.plugins.problems.append(problem)
        return tools

    def _part(self, kind: str, name: str) -> Part:
        parts = self.plugins.parts(kind, name)
        if not parts:
            raise ToolError(Kind.INTERNAL, f"no part of {kind} is called {name!r}; install the package that brings it")
        return parts[-1]


class Runners(dict[str, "Runner"]):
    """The runners by kind of tool; each is created when the first tool of its kind is prepared."""

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._resources = resources
        # By part, because one runner may run several kinds.
        self._made: dict[object, Runner] = {}
        self._making = threading.RLock()

    def get(self, kind: str, default: Any = None) -> Any:
        """The runner of a kind."""
        if kind not in self:
            parts = self._resources.plugins.parts("runners", kind)
            if not parts:
                return default
            # Runners of packages before ours, those for one class of `run` before general ones, the newest first.
            asked = list(reversed(parts))
            asked.sort(key=lambda part: (part.is_ours, part.options["runs"] is None))
            self[kind] = LazyRunner(kind, asked, self._make)
        return self[kind]

    def _make(self, part: Part) -> Runner:
        with self._making:
            key = part.value if isinstance(part.value, str) else id(part.value)
            if key not in self._made:
                self._made[key] = self._resources.own(part.make(self._resources))
            return self._made[key]


class LazyRunner:
    """Creates the runner of a kind on first use and delegates to it; `parts` are tried in order."""

    def __init__(self, kind: str, parts: list[Part], make: Callable[[Part], Runner]) -> None:
        self.kind = kind
        self._parts = parts
        self._make = make

    def bind(self, tool: Tool) -> Bound:
        """Bind the tool with the first runner that supports it."""
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
    """Creates a format on first use, when there is a file with one of its suffixes (any file, if it has none).

    With `mentions` it is only created for a file that contains one of these words.
    """

    def __init__(
        self, make: Callable[[], Format], suffixes: frozenset[str] = frozenset(), mentions: tuple[bytes, ...] = ()
    ) -> None:
        self.name = ""
        self._make = make
        self._suffixes = suffixes
        self._endings = tuple(suffixes)
        self._mentions = mentions
        self._format: Format | None = None

    def reads(self, path: Path) -> bool:
        """Whether the file is in the format."""
        # Equal to a comparison of `path.suffix`, but three times as fast; this runs for every file of a folder.
        name = path.name
        is_meant = not self._suffixes or (name.endswith(self._endings) and name not in self._suffixes)
        if not is_meant or self._mentions:
            return is_meant
        try:
            return self._made.reads(path)
        except Exception:  # noqa: BLE001 - the border to foreign code: `read` raises it again, as a problem of this file
            return True

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        """The tools of the file."""
        if self._mentions and not self._is_mentioned(code):
            return ()
        return self._made.read(path, code) if self._made.reads(path) else ()

    def _is_mentioned(self, code: bytes) -> bool:
        # A loop and no generator expression, because it runs for every file of a folder.
        for word in self._mentions:  # noqa: SIM110 - see above
            if word in code:
                return True
        return False

    @property
    def _made(self) -> Format:
        if self._format is None:
            self._format = made = self._make()
            self.name = made.name
        return self._format


def _format(part: Part) -> Format:
    """The format of a part, created on first use."""
    return LazyFormat(partial(part.make, None), part.options["suffixes"], part.options["mentions"])


async def _close(part: Any) -> None:
    """Close one part, if it can be closed; a part with `settle` may block on child processes, so it closes in a thread."""
    if hasattr(part, "settle"):
        import asyncio

        await part.settle()
        await asyncio.to_thread(part.close)
        return
    close = getattr(part, "close", None)
    ended = None if close is None else close()
    if isawaitable(ended):
        await ended
