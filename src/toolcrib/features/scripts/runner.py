"""Run scripts with metadata: follow the chain of executors to a primitive, whose driver runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import BoundChain
from toolcrib.features.scripts.host_drivers import FilesystemDriver, HttpDriver
from toolcrib.features.scripts.process_driver import ProcessDriver
from toolcrib.infra.programs.executables import Executables
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.http_tools.runner import HttpRunner
    from toolcrib.features.scripts.chain import Driver, FindExecutor
    from toolcrib.features.scripts.process_driver import FindValves
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import WorkspacePolicy
    from toolcrib.model.protocols import Bound
    from toolcrib.model.tool import Tool


class ExecutorRunner:
    """Runs tools with an executor by the driver of their primitive.

    `find` looks executors up, `variable` gives a host variable that the operator granted to a tool (None for one that
    was not), and `variables` says which of those a file names. `hidden` are the files beside a tool's that it may not import. `search_path` is where commands are looked for, `roots` are the
    folders of projects, and `environments` is where the environments of Python files are kept. `version` is that of the application, for tools that name it. `valves` tells what
    the operator set for a file of Open WebUI, None if that is nothing. `egress`,
    `jail` and `http`, which sends requests, are only made when a tool needs them.
    """

    kind = Script.kind

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        workspace_policy: WorkspacePolicy,
        find: FindExecutor,
        egress: Callable[[], Egress],
        jail: Callable[[], Jail],
        http: Callable[[], HttpRunner],
        variable: Callable[[Tool, str], str | None],
        variables: Callable[[Tool, bytes], tuple[str, ...]] = lambda *_: (),
        hidden: Callable[[Tool], tuple[Path, ...]] = lambda _: (),
        search_path: str = "",
        roots: tuple[Path, ...] = (),
        environments: Path | None = None,
        version: str = "",
        observe: bool = False,
        valves: FindValves | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._workspace_policy = workspace_policy
        self._find = find
        self._egress = egress
        self._jail = jail
        self._http = http
        self._variable = variable
        self._variables = variables
        self._hidden = hidden
        self._search_path = search_path
        self._roots = roots
        self._environments = environments
        self._version = version
        self._observe = observe
        self._valves = valves
        self._drivers: dict[str, Driver] = {}

    def bind(self, tool: Tool) -> Bound:
        """Bind the tool alone; its chain of executors is looked up at each call."""
        if not isinstance(tool.run, Chained):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no executor runs it")
        return BoundChain(
            tool, tool.run, self._find, self._driver, self._variable, self._version, self._variables, self._hidden
        )

    async def close(self) -> None:
        """Nothing to do: sandbox, egress and jail are closed by their owner."""

    def _driver(self, primitive: str) -> Driver:
        """The driver of a primitive, made when the first tool needs it."""
        if primitive not in self._drivers:
            self._drivers[primitive] = self._make_driver(primitive)
        return self._drivers[primitive]

    def _make_driver(self, primitive: str) -> Driver:
        if primitive == "http_client":
            return HttpDriver(self._http())
        if primitive == "filesystem":
            return FilesystemDriver(self._jail())
        return ProcessDriver(
            self._sandbox,
            self._workspace_policy,
            commands=Executables(self._search_path, self._roots, self._workspace_policy.workspace),
            egress=self._egress,
            environments=self._environments,
            observe=self._observe,
            valves=self._valves,
        )
