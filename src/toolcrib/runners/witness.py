"""What the host sees of a job itself: the tools that it calls, and where it asks the proxy to lead."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox.jobs import Effect
from toolcrib.ground.sandbox.observer import MORE
from toolcrib.runners.effects import CALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeVar

    from toolcrib.ground.egress.proxy import ProxyLog
    from toolcrib.ground.sandbox.jobs import Ended
    from toolcrib.model.call import Context
    from toolcrib.model.result import Result

    Listener = TypeVar("Listener")
    Serve = Callable[[Listener], AbstractAsyncContextManager[ProxyLog]]


class Witness:
    """Stands beside one job and remembers."""

    def __init__(self) -> None:
        self._seen: dict[Effect, None] = {}

    def hear(self, context: Context) -> Context:
        """The context, through which every call is heard."""

        async def call(name: str, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
            self._seen[Effect(CALL, name)] = None
            return await context.call(name, arguments, **more)

        return replace(context, call=call)

    def follow(self, proxy: Serve[Listener]) -> Serve[Listener]:
        """The proxy, whose visits are remembered."""

        @asynccontextmanager
        async def followed(listener: Listener) -> AsyncIterator[ProxyLog]:
            async with proxy(listener) as log:
                try:
                    yield log
                finally:
                    self._remember(log)

        return followed

    def testify(self, ended: Ended) -> Ended:
        """The end of the job, with what was seen among its effects."""
        return replace(ended, effects=(*ended.effects, *self._seen))

    def _remember(self, log: ProxyLog) -> None:
        for visit in log.visits:
            if visit.host:
                self._seen[Effect("connect", f"{visit.host}:{visit.port}", denied=not visit.allowed)] = None
        if log.dropped:
            self._seen[Effect(MORE, "")] = None
