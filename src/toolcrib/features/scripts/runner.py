"""Run scripts with metadata: along the chain of executors to the driver of a primitive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.scripts.chain import BoundChain
from toolcrib.features.scripts.filesystem import FilesystemDriver
from toolcrib.features.scripts.http_client import HttpDriver
from toolcrib.features.scripts.process import ProcessDriver
from toolcrib.infra.programs.executables import Commands
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.features.scripts.chain import Driver, FindExecutor
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import Premises
    from toolcrib.model.protocols import Bound
    from toolcrib.model.tool import Tool


class ExecutorRunner:
    """Hands what has an executor to the driver of its primitive.

    `find` looks executors up, `variable` gives a host variable that the operator granted to a tool (None for one that
    was not), `search_path` is where commands are looked for, `roots` are the folders of projects, and `environments` is
    where those of Python files are kept. `version` is that of the application, for tools that name it. `egress` and `jail`
    are only made when a tool needs them.
    """

    kind = Script.kind

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        premises: Premises,
        find: FindExecutor,
        egress: Callable[[], Egress],
        jail: Callable[[], Jail],
        variable: Callable[[Tool, str], str | None],
        search_path: str = "",
        roots: tuple[Path, ...] = (),
        environments: Path | None = None,
        version: str = "",
        observe: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._premises = premises
        self._find = find
        self._egress = egress
        self._jail = jail
        self._variable = variable
        self._search_path = search_path
        self._roots = roots
        self._environments = environments
        self._version = version
        self._observe = observe
        self._drivers: dict[str, Driver] = {}

    def bind(self, tool: Tool) -> Bound:
        """Bind the tool alone; its chain of executors is looked up at each call."""
        if not isinstance(tool.run, Chained):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no executor runs it")
        return BoundChain(tool, tool.run, self._find, self._driver, self._variable, self._version)

    async def close(self) -> None:
        """Nothing to do: sandbox, egress and jail are closed by their owner."""

    def _driver(self, primitive: str) -> Driver:
        """The driver of a primitive, made when the first tool needs it."""
        if primitive not in self._drivers:
            self._drivers[primitive] = self._make_driver(primitive)
        return self._drivers[primitive]

    def _make_driver(self, primitive: str) -> Driver:
        if primitive == "http_client":
            return HttpDriver(self._egress())
        if primitive == "filesystem":
            return FilesystemDriver(self._jail())
        return ProcessDriver(
            self._sandbox,
            self._premises,
            commands=Commands(self._search_path, self._roots, self._premises.workspace),
            egress=self._egress,
            environments=self._environments,
            observe=self._observe,
        )
