"""A tool with an executor, made ready: its chain is followed at each call, and the work handed to the driver at its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.runners.chain import resolve
from toolcrib.runners.driver import Order
from toolcrib.runners.system import RUNTIME, is_ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.call import Call, Context
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Chained, Tool
    from toolcrib.runners.chain import Chain, FindExecutor
    from toolcrib.runners.driver import Driver

LIBRARY = "library"
SINK = "sink"


class BoundChain:
    """A tool whose chain of executors is followed anew at each call, so that an edit of any of them counts at once."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self,
        tool: Tool,
        run: Chained,
        find: FindExecutor,
        driver: Callable[[str], Driver],
        variable: Callable[[Tool, str], str | None],
        version: str,
    ) -> None:
        self._tool = tool
        self._run = run
        self._find = find
        self._driver = driver
        self._variable = variable
        self._version = version

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse what nothing executes, what is not for calling, and what its driver refuses."""
        order = self._order(arguments, call.id, call.caller)
        self._driver(order.chain.primitive).check(order, call)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Hand the work to the driver."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        order = self._order(arguments, context.call_id, context.caller)
        return await self._driver(order.chain.primitive).run(order, context)

    def _order(self, arguments: dict[str, object], call_id: str, caller: str) -> Order:
        return Order(
            tool=self._tool,
            run=self._run,
            chain=self._resolve(),
            arguments=arguments,
            values=self._values(call_id, caller),
            variable=self._granted,
        )

    def _resolve(self) -> Chain:
        name, kind = self._tool.name, self._run.kind
        if kind == LIBRARY:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} is a library; it is listed and never run")
        if kind == SINK:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} is not directly invocable; use it as a sink")
        if kind == RUNTIME and is_ours(self._tool):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} runs other tools; name it as their executor_id")
        return resolve(self._tool, self._find)

    def _values(self, call_id: str, caller: str) -> dict[str, object]:
        """The names that the platform knows."""
        return {
            "request_id": call_id,
            "version": self._version,
            "tool_version": self._tool.version,
            "slug": self._tool.slug,
            "tool_id": self._tool.name,
            "bundle_id": self._tool.bundle,
            "client_id": caller,
            "now": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def _granted(self, name: str) -> str | None:
        value = self._variable(self._tool, name)
        if value is None:
            message = (
                f"{self._tool.name} asks for the host's variable {name}, which is not granted to it; "
                f"the operator may add '{self._tool.name}:{name}' to the setting variables"
            )
            raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [name]})
        return value or None
