"""Run functions of the host program in its own process."""

from __future__ import annotations

import logging
import threading
import types
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Function, Registered

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool

    Run = Callable[[dict[str, object], Context | None], object]

logger = logging.getLogger("toolcrib.runners")

MAX_THREADS = 64


class BoundFunction:
    """A function prepared for calls: everything that does not depend on the arguments is decided."""

    def __init__(self, function: Function, run: Run) -> None:
        self.is_async = function.is_async or function.thread
        self.wants_context = function.takes_whole or function.context_parameter is not None
        self.checks = function.check is not None
        self._check = function.check
        is_bare = not (function.thread or self.wants_context or function.revive or function.flatten)
        self.function = function.call if is_bare else None
        self.run = run

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse what the function's own check refuses."""
        if self._check is not None:
            self._check(arguments)


class FunctionRunner:
    """Calls functions inline, awaits coroutines, and uses a thread only for functions that ask for one."""

    kind = Function.kind

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._threads = threading.BoundedSemaphore(max_threads)
        self._max_threads = max_threads

    def bind(self, tool: Tool) -> BoundFunction:
        """Choose the fast path for this function."""
        if isinstance(tool.run, Registered):
            return BoundFunction(_MISSING, partial(_refuse_missing, tool.run.key))
        if not isinstance(tool.run, Function):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is not a function")
        function = tool.run
        run = _caller(function)
        if function.thread and not function.is_async:
            run = self._in_thread(run, tool.name)
        return BoundFunction(function, run)

    async def close(self) -> None:
        """Threads that were given up at their time limit are daemons and end with the process."""

    def _in_thread(self, run: Run, name: str) -> Run:
        async def run_in_thread(arguments: dict[str, object], context: Context | None) -> object:
            if not self._threads.acquire(blocking=False):
                message = f"all {self._max_threads} threads are taken; call again later"
                raise ToolError(Kind.OVERLOADED, message, retryable=True)
            import asyncio

            loop = asyncio.get_running_loop()
            done: asyncio.Future[object] = loop.create_future()

            def work() -> None:
                try:
                    answer: object = run(arguments, context)
                    failure: BaseException | None = None
                except BaseException as problem:  # noqa: BLE001 - a border to foreign code: the failure goes to the caller
                    answer, failure = None, problem
                finally:
                    self._threads.release()
                try:
                    loop.call_soon_threadsafe(_settle, done, answer, failure)
                except RuntimeError:
                    logger.info("%s: its caller stopped waiting", name)

            # A thread of our own and not a pool: a function that never returns must not keep the program from ending.
            threading.Thread(target=work, name=f"toolcrib {name}", daemon=True).start()
            return await done

        return run_in_thread


def _refuse_missing(key: str, _arguments: dict[str, object], _context: Context | None) -> object:
    raise ToolError(Kind.DISABLED, f"no function is registered under {key!r}; register it in the host program")


_MISSING = Function(call=_refuse_missing, is_async=False, takes_whole=True)


def _settle(done: asyncio.Future[object], answer: object, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(answer)
    elif isinstance(failure, (StopIteration, GeneratorExit)):
        # Neither can be thrown into a coroutine: it would end what waits instead of telling it.
        done.set_exception(RuntimeError(f"the function raised {type(failure).__name__}"))
    else:
        done.set_exception(failure)


def _caller(function: Function) -> Run:
    """The function behind `run(arguments, context)`, with only the steps that it needs."""
    call, revive, flatten, parameter = function.call, function.revive, function.flatten, function.context_parameter
    if function.takes_whole:
        return lambda arguments, context: call(context, arguments)
    if revive is None and flatten is None and parameter is None:
        return lambda arguments, _: call(**arguments)

    def prepared(arguments: dict[str, object], context: Context | None) -> object:
        objects = arguments if revive is None else revive(arguments)
        return call(**objects) if parameter is None else call(**objects, **{parameter: context})

    if flatten is None:
        return prepared
    if function.is_async:

        async def flattened(arguments: dict[str, object], context: Context | None) -> object:
            answer = prepared(arguments, context)
            return flatten(await answer if isinstance(answer, types.CoroutineType) else answer)

        return flattened
    return lambda arguments, context: flatten(prepared(arguments, context))
