"""The parts of a Crib, each made when it is first needed."""

from __future__ import annotations

import sys
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.plugins import Either, Later, find_plugins
from toolcrib.core.project_data import Data
from toolcrib.core.rules import default_rules
from toolcrib.features.folders.source import REGISTRY
from toolcrib.features.functions.runner import FunctionRunner
from toolcrib.features.python_files.format import PlainFile
from toolcrib.infra.settings import FILE_NAME
from toolcrib.lib.protected_names import ASKED, FIXED, judge
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.protocols import ENTRY_POINT_GROUP, Plugins
from toolcrib.model.tool import Function, Handler, Http, Script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import Premises
    from toolcrib.infra.settings import Settings
    from toolcrib.infra.settings.readers import CustomRule
    from toolcrib.model.protocols import Rule, Runner
    from toolcrib.model.tool import Entry, Tool

PROJECT_SCRIPTS = ".ai/tools"
USER_SCRIPTS = "~/.ai/tools"
# What runs tools of these kinds is found along their chain of executors.
EXECUTED_KINDS = (
    *(Script.kind, "subprocess", "http", "docker", "filesystem"),
    *("runtime", "primitive", "library", "sink"),
)
# What Node and Python find from a project's scripts upwards, and run for them.
INSTALLED = ("node_modules", "package.json", ".venv", "venv")
# A module that is imported here may import any neighbour, also one that is not there yet.
CODE_ENDINGS = (".py", ".pyc", ".pyd", ".so", ".pth")


class Parts:
    """What a Crib connects. `find_below` looks up the executors of a tool, in its own space or one further down."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        find_below: Callable[[str, str], Entry | None],
        *,
        observe: bool = False,
    ) -> None:
        self.settings = settings
        self.environment = environment
        self.data = Data(settings, environment)
        self.functions: dict[str, Callable[..., object]] = {}
        self._find_below = find_below
        self._observe = observe
        self._lent: Sandbox | None = None

    @cached_property
    def plugins(self) -> Plugins:
        """Our own parts and then those of plug-ins name themselves."""
        plugins = Plugins()
        plugins.dialects.append(PlainFile())
        plugins.runners[Function.kind] = FunctionRunner()
        executor = Later(Script.kind, self._executor_runner)
        plugins.runners |= dict.fromkeys(EXECUTED_KINDS, executor)
        plugins.runners[Script.kind] = Either(Script, Later(Script.kind, self._file_runner), executor)
        plugins.runners[Http.kind] = Either(Http, Later(Http.kind, self._http_runner), executor)
        plugins.runners[Handler.kind] = Later(Handler.kind, self._handler_runner)
        plugins.rules += [
            rule
            for rule in default_rules(self.settings.workspace, self.settings.workspace_open)
            if rule.name not in self.settings.rules_off
        ]
        plugins.rules += [self._safety_rule(rule) for rule in self.settings.rules]
        for load in find_plugins(ENTRY_POINT_GROUP):
            try:
                load()(plugins)
            except Exception as problem:  # noqa: BLE001 - the border to foreign code
                plugins.problems.append(ToolError(Kind.INTERNAL, f"a plug-in could not be loaded: {problem!r}"))
        self.functions |= plugins.functions
        return plugins

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where files of code run."""
        if self._lent is not None:
            return self._lent
        from toolcrib.infra.sandbox.host import Sandbox

        settings = self.settings
        return Sandbox(
            require=settings.sandbox_require,
            jobs=settings.sandbox_jobs,
            queue=settings.sandbox_queue,
            cache=self.data.file("sandbox.json"),
            workspace=settings.workspace,
        )

    @cached_property
    def premises(self) -> Premises:
        """What files of code may work in."""
        from toolcrib.infra.sandbox.jobs import MEGABYTE, Premises

        settings = self.settings
        return Premises(
            workspace=settings.workspace,
            opened=settings.workspace_open,
            closed=() if self.data.path is None else (self.data.path,),
            fixed=tuple(self._obeyed()),
            unwritable=self._why_unwritable(),
            memory_bytes=settings.sandbox_memory_mb * MEGABYTE,
            processes=settings.sandbox_processes,
            disk_bytes=settings.sandbox_disk_mb * MEGABYTE,
        )

    def check_settings(self) -> None:
        """Refuse settings that would only be found to be wrong when the first request is sent."""
        from toolcrib.lib.hosts import parse_hosts

        for name, check in (
            ("egress_private", lambda: self.egress),
            ("allowed_hosts", lambda: parse_hosts(self.settings.allowed_hosts)),
        ):
            try:
                check()
            except ToolError as problem:
                raise SettingsError(f"{self.settings.where(name)}: {problem.message}") from problem

    @cached_property
    def egress(self) -> Egress:
        """The way out."""
        from toolcrib.infra.egress.client import Egress

        return Egress(private=self.settings.egress_private)

    @cached_property
    def jail(self) -> Jail:
        """The workspace as operations of script files and sinks see it."""
        return self._make_jail(frozenset({FIXED, ASKED}))

    @cached_property
    def confirmed_jail(self) -> Jail:
        """The workspace as the built-in tools see it, whose calls a person confirms where a rule says so."""
        return self._make_jail(frozenset({FIXED}))

    def _make_jail(self, kept: frozenset[str]) -> Jail:
        from toolcrib.infra.files.hook_folders import find_hook_folders
        from toolcrib.infra.files.jail import Jail
        from toolcrib.infra.sandbox.child.broker import Mark
        from toolcrib.lib.sensitive_paths import is_sensitive

        workspace, opened = self.settings.workspace, self.settings.workspace_open
        mark = Mark(str(workspace))
        data = [] if self.data.path is None else [self.data.path]
        jail = Jail(
            workspace,
            is_sensitive=partial(is_sensitive, root=str(workspace), opened=opened),
            is_fixed=lambda path: (
                judge(path, opened=opened, hooks=find_hook_folders(workspace), is_repository=mark) in kept
            ),
            # What would be obeyed, or run, at the next start is not for tools to write.
            protected=[*data, *self._obeyed()],
            # Settings further down would be obeyed by whoever starts there.
            protected_endings=(FILE_NAME, *(CODE_ENDINGS if self._runs_code_here else ())),
        )
        self.plugins.on_close.append(jail.close)
        return jail

    def builtins(self) -> list[Tool]:
        """The tools for files, shell and web."""
        from toolcrib.features.builtins.fetch import fetch_tool
        from toolcrib.features.builtins.workspace_tools import file_tools, shell_tool

        seconds = self.settings.shell_timeout_ms / 1000
        return [
            *file_tools(self.confirmed_jail),
            shell_tool(self.sandbox, premises=self.premises, timeout_seconds=seconds),
            fetch_tool(self.egress),
        ]

    def tool_folders(self) -> list[Path]:
        """The folders of plain tools, in their order."""
        root = self.settings.root
        return [] if root is None else [root / folder for folder in self.settings.tools]

    @property
    def environments(self) -> Path | None:
        """Where environments of single tools are kept: not with our data, which no tool sees.

        None if there is no home, or if it lies in the project: what a project brings along must not pass for prepared.
        """
        home, root = self.environment.get("HOME", ""), self.settings.root
        cache = Path(self.environment.get("XDG_CACHE_HOME") or Path(home, ".cache"))
        if not cache.is_absolute() or (root is not None and cache.resolve().is_relative_to(root.resolve())):
            return None
        return cache / "toolcrib" / "environments"

    def script_trees(self) -> dict[str, Path]:
        """The trees of script files by the bundle of each, in their order; a crib without a project has only those it is given."""
        trees: dict[str, Path] = {}
        if self.settings.root is None and "scripts" not in self.settings.places:
            return trees
        for written in self.settings.scripts:
            path = self._script_tree(written)
            if path is None or path in trees.values():
                continue
            bundle = "user" if written.startswith("~") else "project" if written == PROJECT_SCRIPTS else path.name
            trees.setdefault(bundle, path)
        return trees

    def variable(self, tool: Tool, name: str) -> str | None:
        """A variable of the host or a secret, if the operator lets the tool see it; empty if it is not set."""
        granted = {f"{tool.name}:{name}", f"{tool.slug}:{name}", f"*:{name}"} & self.settings.variables
        if not granted:
            return None
        if name in self.environment:
            return self.environment[name]
        secret = self.data.secrets.get(name)
        return "" if secret is None else secret.reveal()

    def borrow(self, sandbox: Sandbox, egress: Egress) -> None:
        """Use a sandbox that stays another's, and this way out; before anything else needs one."""
        self._lent = sandbox
        self.egress = egress

    async def close(self) -> None:
        """End what was started."""
        for runner in dict.fromkeys(self.plugins.runners.values()):
            await runner.close()
        # A part that nobody used was never made.
        if "egress" in self.__dict__:
            await self.egress.close()
        if "sandbox" in self.__dict__ and self._lent is None:
            import asyncio

            await self.sandbox.settle()
            await asyncio.to_thread(self.sandbox.close)
        for end in self.plugins.on_close:
            end()

    @property
    def _runs_code_here(self) -> bool:
        return bool(self.settings.modules or self.settings.rule_modules)

    def _obeyed(self) -> list[Path]:
        """What will be obeyed, or run, at the next start: settings, tools, and what they run with."""
        root = self.settings.root
        ours = [] if root is None else [root / name for name in (FILE_NAME, *self.settings.tools)]
        program = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
        environments = [] if self.environments is None else [self.environments]
        return [*ours, *self._scripts_and_what_they_use(), *environments, *program]

    def _scripts_and_what_they_use(self) -> list[Path]:
        """The trees of scripts, and what is installed for those of the project and its handlers, which counts as their runtime."""
        root = self.settings.root
        trees = list(self.script_trees().values())
        uses = [*trees, *(folder / REGISTRY for folder in self.tool_folders())]
        if root is None or not any(path.is_relative_to(root) and path.exists() for path in uses):
            return trees
        around = [root / PROJECT_SCRIPTS.partition("/")[0]]
        return [*trees, *around, *(root / name for name in INSTALLED)]

    def _why_unwritable(self) -> str:
        root, workspace = self.settings.root, self.settings.workspace
        if not self._runs_code_here or root is None:
            return ""
        names = (*self.settings.modules, *self.settings.rule_modules)
        packages = [root / name.partition(".")[0] for name in names]
        if not root.is_relative_to(workspace) and not any(map(workspace.is_relative_to, packages)):
            return ""
        return (
            f"the workspace {workspace} holds modules that run in the host's process, so no file of code may write there; "
            "set workspace to a folder of its own"
        )

    def _script_tree(self, written: str) -> Path | None:
        """Where a tree lies; None if it lies in a home and there is none, or if it is a link that leads out of the project."""
        if written == "~" or written.startswith("~/"):
            home = self.environment.get("HOME")
            return Path(home, written[2:]) if home and Path(home).is_absolute() else None
        root = self.settings.root
        path = Path(written) if root is None else root / written
        is_link_out = written == PROJECT_SCRIPTS and root is not None and root.resolve() not in path.resolve().parents
        return None if is_link_out else path

    def _tops(self) -> list[Path]:
        """Where looking upwards for what a project has installed ends."""
        root = self.settings.root
        return [*([] if root is None else [root]), *self.script_trees().values()]

    def _file_runner(self) -> Runner:
        from toolcrib.features.python_files.runner import PythonFileRunner

        return PythonFileRunner(sandbox=self.sandbox, premises=self.premises, observe=self._observe)

    def _executor_runner(self) -> Runner:
        from toolcrib.features.scripts.runner import ExecutorRunner
        from toolcrib.lib.version import __version__

        return ExecutorRunner(
            sandbox=self.sandbox,
            premises=self.premises,
            find=self._find_below,
            egress=lambda: self.egress,
            jail=lambda: self.jail,
            variable=self.variable,
            search_path=self.environment.get("PATH", ""),
            roots=tuple(self._tops()),
            environments=self.environments,
            version=__version__,
            observe=self._observe,
        )

    def _http_runner(self) -> Runner:
        from toolcrib.features.http_tools.runner import HttpRunner
        from toolcrib.lib.version import __version__

        settings = self.settings
        return HttpRunner(
            lambda: self.egress,
            hosts=settings.allowed_hosts,
            secrets=self.data.secrets,
            version=settings.application_version or __version__,
            max_retries=settings.max_retries,
            max_sent_bytes=settings.max_sent_bytes,
            max_response_bytes=settings.max_response_bytes,
        )

    def _handler_runner(self) -> Runner:
        from toolcrib.features.folders.runner import HandlerRunner
        from toolcrib.infra.programs.executables import Commands

        settings = self.settings
        return HandlerRunner(
            sandbox=self.sandbox,
            premises=self.premises,
            commands=lambda: Commands(self.environment.get("PATH", ""), tuple(self._tops()), settings.workspace),
            egress=lambda: self.egress,
            workers=settings.handler_workers,
            environments=self.environments,
            fresh=settings.handler_fresh,
            observe=self._observe,
        )

    def _safety_rule(self, rule: CustomRule) -> Rule:
        from toolcrib.features.safety_rules.operator_patterns import SafetyRule

        return SafetyRule(
            name=rule.name,
            forbidden_patterns=rule.forbidden_patterns,
            include_text=rule.include_text,
            where=self.settings.where("rules"),
        )

    def rules_of_modules(self) -> list[Rule]:
        """The operator's own rules; one that cannot be loaded keeps the crib from starting."""
        if not self.settings.rule_modules:
            return []
        from toolcrib.core.host_modules import load_module, rules_in

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
