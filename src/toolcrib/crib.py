"""Crib: the one object that users hold, and the only place that chooses and connects the parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.catalog import Catalog, Folder
from toolcrib.compat.plugins import find_plugins
from toolcrib.dialects.plain import PlainFile
from toolcrib.ground.settings import FILE_NAME, HOST_PROGRAM, Settings, load_settings
from toolcrib.model.call import Call, wish
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.protocols import ENTRY_POINT_GROUP, Journal, Plugins, Store
from toolcrib.model.session import Session
from toolcrib.model.tool import Function, Script, Tool
from toolcrib.pipeline import Pipeline, Policy
from toolcrib.pipeline.alone import refuse_inside_a_loop, run_alone
from toolcrib.pipeline.confirmation import Confirmations
from toolcrib.pipeline.kept import KeptResults
from toolcrib.pure.schema import check_parameters, check_schema
from toolcrib.rules.engine import RuleEngine, default_rules
from toolcrib.runners.function import FunctionRunner
from toolcrib.runners.later import Later

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable
    from types import TracebackType
    from typing import Self, TypeVar

    from toolcrib.compat.agent import BaseTool
    from toolcrib.ground.egress import Egress
    from toolcrib.ground.sandbox.host import Sandbox
    from toolcrib.ground.settings import CustomRule
    from toolcrib.model.protocols import Rule, Runner
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Entry
    from toolcrib.pipeline.explanation import Explanation
    from toolcrib.pipeline.kept import Piece

    T = TypeVar("T")

DATA_FOLDER = ".toolcrib"
BUILTIN_BUNDLE = "builtin"
# A module that is imported here may import any neighbour, also one that is not there yet.
CODE_ENDINGS = (".py", ".pyc", ".pyd", ".so", ".pth")


class Crib:
    """A room of tools: `async with Crib("path") as crib: result = await crib.call("name", city="Oslo")`.

    `project` is a folder with a `toolcrib.toml` or at least tools in it; without one the crib keeps nothing on disk.
    `tools` are functions of the host program, agent-side tools, or Tools; `settings` are written as in `toolcrib.toml` and win over it,
    and `given_by` says who gave them. `store` and `journal` replace those of the project.
    """

    def __init__(
        self,
        project: Path | str | None = None,
        *,
        tools: Iterable[Callable[..., object] | BaseTool | Tool] = (),
        rules: Iterable[Rule] = (),
        caller: str = "local",
        environment: Mapping[str, str] | None = None,
        store: Store | None = None,
        journal: Journal | None = None,
        given_by: str = HOST_PROGRAM,
        **settings: object,
    ) -> None:
        root = None if project is None else Path(project).resolve()
        if root is not None and not root.is_dir():
            raise SettingsError(f"{root} is not a folder; make one with: crib init {root}")
        self.settings: Settings = load_settings(
            root, os.environ if environment is None else environment, given_by, **settings
        )
        self.caller = caller
        self._runner: asyncio.Runner | None = None
        self._plugins = self._register()
        self._rules = RuleEngine(rules=[*self._plugins.rules, *self._rules_of_modules(), *rules])
        self._catalog = self._fill_catalog(tools)
        if store is not None:
            self._store = store
        self.journal: Journal = self._open_journal() if journal is None else journal
        self._kept = KeptResults(lambda: self._store)
        self._pipeline = Pipeline(
            find=self._catalog.find,
            suggest=self._catalog.suggest,
            rules=self._rules,
            runners=self._plugins.runners,
            journal=self.journal,
            confirmations=Confirmations(self._key, lambda: self._store, seconds=self.settings.confirmation_seconds),
            kept=self._kept,
            policy=Policy(
                grants=self.settings.grants,
                timeout_seconds=self.settings.timeout_ms / 1000,
                result_bytes=self.settings.result_bytes,
                where=self.settings.where,
            ),
        )

    def call(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Coroutine[object, object, Result]:
        """Call a tool: `await crib.call("name", city="Oslo")`. A Call in place of the name says everything itself."""
        if type(name) is Call:
            return self._pipeline.call(name)
        if arguments is not None:
            # What is no mapping is refused like any other wrong argument, and not raised here.
            given: object = arguments
            more = {**arguments, **more} if isinstance(given, Mapping) else arguments  # type: ignore[assignment]  # see above
        return self._pipeline.call_simply(name, more, self.caller)  # type: ignore[arg-type]  # what is no Call is a name

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Call a tool from code that is not async."""
        call = name if isinstance(name, Call) else wish(name, {}, self.caller)
        needs_no_loop = self._needs_no_loop(call)
        work = self.call(name, arguments, **more)
        return run_alone(work) if needs_no_loop else self._run_sync(work)

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Perform several calls side by side: one result for each, in their order."""
        import asyncio

        return await asyncio.gather(*(self._pipeline.call(call) for call in calls))

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """What every gate would say to this call, without making it."""
        if isinstance(name, Call):
            return self._pipeline.explain(name)
        return self._pipeline.explain(wish(name, {**(arguments or {}), **more}, self.caller))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool there is."""
        return tuple(entry.tool for entry in self._catalog.entries())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool there is, with its switch."""
        return tuple(self._catalog.entries())

    def find(self, name: str) -> Entry | None:
        """The tool of that name, slug or address."""
        return self._catalog.find(name)

    def same_name(self, tool: Tool) -> list[str]:
        """The addresses of other tools by this name, which only their address can call."""
        return self._catalog.same_name(tool)

    def suggest(self, name: str) -> str:
        """A hint at the name that was perhaps meant."""
        return self._catalog.suggest(name)

    @property
    def problems(self) -> list[ToolError]:
        """What could not be loaded, and why."""
        return [*self._plugins.problems, *self._catalog.problems()]

    def check(self, tool: Tool) -> None:
        """Raise ToolError if the tool could never run."""
        self._pipeline.check(tool)

    def add(self, tool: Callable[..., object] | BaseTool | Tool) -> Tool:
        """Register a function of the host program, an agent-side tool, or a Tool."""
        canonical = as_tool(tool)
        self._catalog.add(canonical)
        return canonical

    def add_rule(self, rule: Rule) -> None:
        """Let one more rule judge every call from now on."""
        self._rules.add_rule(rule)

    def session(self, *, mode: str = "text", max_calls: int | None = None) -> Session:
        """Open a conversation; its calls are bounded by `max_steps` of the settings unless `max_calls` says otherwise."""
        return Session(
            id=os.urandom(12).hex(), mode=mode, max_calls=self.settings.max_steps if max_calls is None else max_calls
        )

    def read_result(self, handle: str, *, caller: str | None = None, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of a value that was too large to be handed over at once."""
        return self._kept.read(handle, self.caller if caller is None else caller, offset=offset, length=length)

    @property
    def sandbox_report(self) -> Mapping[str, object]:
        """What the sandbox guarantees here, and what it does not."""
        return self._sandbox.report()

    async def close(self) -> None:
        """End what was started and write down what is owed."""
        for runner in self._plugins.runners.values():
            await runner.close()
        # A part that nobody used was never made.
        if "_egress" in self.__dict__:
            await self._egress.close()
        if "_sandbox" in self.__dict__:
            import asyncio

            await asyncio.to_thread(self._sandbox.close)
        for end in self._plugins.on_close:
            end()
        self.journal.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "asyncio" in sys.modules:
            self._run_sync(self.close())
        else:
            run_alone(self.close())
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _needs_no_loop(self, call: Call) -> bool:
        """Whether a call is of a plain function that is called once: it runs here and now, and waits for nothing."""
        name: object = call.name
        entry = self._catalog.find(call.name, call.bundle, call.version) if isinstance(name, str) else None
        if (
            entry is None
            or not isinstance(entry.tool.run, Function)
            or entry.tool.run.is_async
            or entry.tool.run.thread
        ):
            return False
        tool = entry.tool
        return entry.tool.run.context_parameter is None and tool.limits.retry is None and not tool.idempotent

    def _run_sync(self, work: Coroutine[object, object, T]) -> T:
        import asyncio

        refuse_inside_a_loop(work)
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    @cached_property
    def _sandbox(self) -> Sandbox:
        from toolcrib.ground.sandbox.host import Sandbox

        return Sandbox(require=self.settings.sandbox_require)

    @cached_property
    def _egress(self) -> Egress:
        from toolcrib.ground.egress import Egress

        return Egress(private=self.settings.egress_private)

    @cached_property
    def _store(self) -> Store:
        if self.settings.root is None:
            from toolcrib.stores.memory import MemoryStore

            return MemoryStore()
        from toolcrib.stores.files import FileStore

        return FileStore(self.settings.root / DATA_FOLDER)

    def _key(self) -> bytes:
        from toolcrib.ground import secrets

        if self.settings.root is None:
            return secrets.new_key()
        return secrets.load_key(self.settings.root / DATA_FOLDER / "key")

    def _open_journal(self) -> Journal:
        if self.settings.root is None:
            from toolcrib.journal.memory import MemoryJournal

            return MemoryJournal()
        from toolcrib.journal.files import FileJournal

        return FileJournal(self.settings.root / DATA_FOLDER / "journal")

    def _register(self) -> Plugins:
        """Let our own parts and then those of plug-ins name themselves; what is heavy is made when it is first needed."""
        plugins = Plugins()
        plugins.dialects.append(PlainFile())
        plugins.runners[Function.kind] = FunctionRunner()
        plugins.runners[Script.kind] = Later(Script.kind, self._script_runner)
        plugins.rules += [
            rule for rule in default_rules(self.settings.workspace) if rule.name not in self.settings.rules_off
        ]
        plugins.rules += [self._safety_rule(rule) for rule in self.settings.rules]
        for load in find_plugins(ENTRY_POINT_GROUP):
            try:
                load()(plugins)
            except Exception as problem:  # noqa: BLE001 - the border to foreign code
                plugins.problems.append(ToolError(Kind.INTERNAL, f"a plug-in could not be loaded: {problem!r}"))
        return plugins

    def _script_runner(self) -> Runner:
        from toolcrib.runners.script import ScriptRunner

        return ScriptRunner(self._sandbox)

    def _safety_rule(self, rule: CustomRule) -> Rule:
        from toolcrib.rules.safety import SafetyRule

        return SafetyRule(
            name=rule.name,
            forbidden_patterns=rule.forbidden_patterns,
            include_text=rule.include_text,
            where=self.settings.where("rules"),
        )

    def _builtins(self) -> list[Tool]:
        from toolcrib.builtins.fetch import fetch_tool
        from toolcrib.builtins.files import file_tools
        from toolcrib.builtins.shell import shell_tool
        from toolcrib.ground.files.jail import Jail
        from toolcrib.rules.paths import is_sensitive

        workspace = self.settings.workspace
        root = self.settings.root
        ours = [] if root is None else [root / name for name in (FILE_NAME, DATA_FOLDER, *self.settings.tools)]
        runs_here = bool(self.settings.modules or self.settings.rule_modules)
        jail = Jail(
            workspace,
            is_sensitive=partial(is_sensitive, root=str(workspace)),
            # What would be obeyed, or run, at the next start is not for tools to write.
            protected=ours,
            protected_endings=CODE_ENDINGS if runs_here else (),
        )
        self._plugins.on_close.append(jail.close)
        return [
            *file_tools(jail),
            shell_tool(self._sandbox, workspace=workspace, timeout_seconds=self.settings.shell_timeout_ms / 1000),
            fetch_tool(self._egress),
        ]

    def _rules_of_modules(self) -> list[Rule]:
        """The operator's own rules; one that cannot be loaded keeps the crib from starting."""
        if not self.settings.rule_modules:
            return []
        from toolcrib.compat.modules import load_module, rules_in

        rules: list[Rule] = []
        for name in self.settings.rule_modules:
            try:
                found = rules_in(load_module(name, self.settings.root))
            except ToolError as problem:
                raise SettingsError(f"rule_modules: {problem.message}") from problem
            if not found:
                raise SettingsError(f"rule_modules: {name!r} holds no rule; write one at its top level")
            rules += found
        return rules

    def _fill_catalog(self, tools: Iterable[Callable[..., object] | BaseTool | Tool]) -> Catalog:
        if callable(tools):
            raise SettingsError("tools is a list: write Crib(tools=[…])")
        catalog = Catalog(self.settings.disabled, self.settings.where("disabled"))
        for tool in tools:
            catalog.add(as_tool(tool))
        for name in self.settings.modules:
            self._add_module(catalog, name)
        if self.settings.root is not None:
            for folder in self.settings.tools:
                path = self.settings.root / folder
                catalog.add_folder(Folder(path, path.name, self._plugins.dialects))
                if "tools" in self.settings.places and not path.is_dir():
                    message = f"{path} is not a folder; make it, or change {self.settings.where('tools')}"
                    self._plugins.problems.append(ToolError(Kind.NOT_FOUND, message))
        self._add_tools(catalog, self._plugins.tools)
        if self.settings.builtins:
            catalog.add_later(BUILTIN_BUNDLE, self._builtins)
        return catalog

    def _add_module(self, catalog: Catalog, name: str) -> None:
        """Register what a module of the host program holds; what cannot be loaded is reported and the rest goes on."""
        from toolcrib.compat.modules import load_module, rules_in, tools_in

        try:
            module = load_module(name, self.settings.root)
            tools, problems = tools_in(module)
        except ToolError as problem:
            self._plugins.problems.append(problem)
            return
        self._plugins.problems += problems
        if rules_in(module) and name not in self.settings.rule_modules:
            message = f"module {name!r} holds rules that nobody obeys; name it in rule_modules too"
            self._plugins.problems.append(ToolError(Kind.VALIDATION, message))
        self._add_tools(catalog, [tool for tool in tools if not self._is_listed_elsewhere(tool, name)])

    def _is_listed_elsewhere(self, tool: Tool, name: str) -> bool:
        """Whether another of the modules defines the function, so that this one only imports it."""
        home = getattr(tool.run.call, "__module__", name) if isinstance(tool.run, Function) else name
        return home != name and home in self.settings.modules

    def _add_tools(self, catalog: Catalog, tools: Iterable[Tool]) -> None:
        for tool in tools:
            try:
                catalog.add(tool)
            except ToolError as problem:
                self._plugins.problems.append(problem)


def as_tool(tool: Callable[..., object] | BaseTool | Tool) -> Tool:
    """A Tool as it is, the Tool of a function, or that of an agent-side tool."""
    if isinstance(tool, Tool):
        check_parameters(tool.parameters, f"{tool.name}: parameters")
        if tool.output_schema is not None:
            check_schema(tool.output_schema, f"{tool.name}: output schema")
        return tool
    if callable(tool):
        from toolcrib.dialects.function import tool_of

        return tool_of(tool)
    from toolcrib.compat.agent import tool_from

    return tool_from(tool)
