"""Run functions of the host program in its own process."""

from __future__ import annotations

import inspect
import logging
import threading
import types
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolcrib.core.call_state import json_size
from toolcrib.core.plugins import later
from toolcrib.lib.python_declarations import registered_function
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Function, Registered
from toolcrib.values import MAX_ITEMS, ConversionError, joins_text, to_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import Any

    from toolcrib.lib.run_part import RunPart
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool

    Run = Callable[[dict[str, object], Context | None], object]
    Push = Callable[[object], object]

logger = logging.getLogger("toolcrib.runners")

MAX_THREADS = 64
# The maximum of all that a generator yields in one call.
MAX_BYTES = 64_000_000
# The number of event-loop iterations that it takes to send a chunk to the socket of the client.
LOOP_TURNS = 6
# Loaded on first use: only approvals need it.
preview_function: Callable[[Function], Iterable[RunPart]] = later(
    "toolcrib.features.functions.preview:preview_function"
)


class BoundFunction:
    """A function prepared for calls: everything that does not depend on the arguments is done once."""

    def __init__(self, function: Function, run: Run) -> None:
        self.is_async = function.is_async or function.thread
        self.wants_context = function.takes_whole or function.context_parameter is not None or function.yields
        self.checks = function.check is not None
        self._check = function.check
        self._declared = function
        is_bare = not (function.thread or self.wants_context or function.revive or function.flatten)
        self.function = function.call if is_bare else None
        self.run = run

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Raise ToolError if the function's own check refuses the call."""
        if self._check is not None:
            self._check(arguments)

    def preview(self, arguments: dict[str, object], call: Call) -> Iterable[RunPart]:
        """The parts that the function names itself, or its source and where it runs."""
        own = self._declared.preview
        return preview_function(self._declared) if own is None else own(arguments)


class FunctionRunner:
    """Calls functions inline, awaits coroutines, and uses a thread only for functions that ask for one."""

    kind = Function.kind

    def __init__(
        self, max_threads: int = MAX_THREADS, functions: Mapping[str, Callable[..., object]] = MappingProxyType({})
    ) -> None:
        self._functions = functions
        self._threads = threading.BoundedSemaphore(max_threads)
        self._max_threads = max_threads

    def bind(self, tool: Tool) -> BoundFunction:
        """Choose the fast path for this function."""
        function = tool.run
        if isinstance(function, Registered):
            registered = self._functions.get(function.key)
            if registered is None:
                return BoundFunction(_MISSING, partial(_refuse_missing, function.key))
            function = registered_function(registered)
        if not isinstance(function, Function):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is not a function")
        in_thread = function.thread and not function.is_async
        if function.yields:
            generator = GeneratorCall(_starter(function), function, tool)
            run = self._in_thread(_pushing(generator), tool.name) if in_thread else generator.run
            return BoundFunction(function, run)
        run = _caller(function)
        return BoundFunction(function, self._in_thread(lambda _: run, tool.name) if in_thread else run)

    async def close(self) -> None:
        """No-op: threads that were abandoned at their time limit are daemons and end with the process."""

    def _in_thread(self, make: Callable[[asyncio.AbstractEventLoop], Run], name: str) -> Run:
        """Run in a thread the function that `make` returns for the event loop of the call."""

        async def run_in_thread(arguments: dict[str, object], context: Context | None) -> object:
            if not self._threads.acquire(blocking=False):
                message = f"all {self._max_threads} threads are taken; call again later"
                raise ToolError(Kind.OVERLOADED, message, retryable=True)
            import asyncio

            loop = asyncio.get_running_loop()
            run = make(loop)
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

            # A daemon thread and not a pool: a function that never returns must not keep the program from exiting.
            try:
                threading.Thread(target=work, name=f"toolcrib {name}", daemon=True).start()
            except RuntimeError as problem:
                self._threads.release()
                message = f"no thread can be started: {problem}; call again later"
                raise ToolError(Kind.OVERLOADED, message, retryable=True) from problem
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
        # A future refuses StopIteration, and GeneratorExit would close the awaiting coroutine.
        done.set_exception(RuntimeError(f"the function raised {type(failure).__name__}"))
    else:
        done.set_exception(failure)


def _caller(function: Function) -> Run:
    """Adapt the function to `run(arguments, context)`, with only the steps that it needs."""
    flatten, prepared = function.flatten, _starter(function)
    if flatten is None or function.takes_whole:
        return prepared
    if function.is_async:

        async def flattened(arguments: dict[str, object], context: Context | None) -> object:
            answer = prepared(arguments, context)
            return flatten(await answer if isinstance(answer, types.CoroutineType) else answer)

        return flattened
    return lambda arguments, context: flatten(prepared(arguments, context))


def _starter(function: Function) -> Run:
    """Make a function that calls the function with the objects of its signature: Context, revived arguments."""
    call, revive, parameter = function.call, function.revive, function.context_parameter
    if function.takes_whole:
        return lambda arguments, context: call(context, arguments)
    if revive is None and parameter is None:
        return lambda arguments, _: call(**arguments)

    def start(arguments: dict[str, object], context: Context | None) -> object:
        objects = arguments if revive is None else revive(arguments)
        return call(**objects) if parameter is None else call(**objects, **{parameter: context})

    return start


def _pushing(generator: GeneratorCall) -> Callable[[asyncio.AbstractEventLoop], Run]:
    """Read a generator in a thread, which blocks while the client is slower than the generator."""

    def make(loop: asyncio.AbstractEventLoop) -> Run:
        import asyncio

        def run(arguments: dict[str, object], context: Context | None) -> object:
            send = None if context is None else context.send_chunk

            def push(item: object) -> None:
                if send is not None:
                    asyncio.run_coroutine_threadsafe(_sent(send, item), loop).result()

            return generator.run_in_thread(arguments, context, push)

        return run

    return make


async def _sent(send: Callable[[object], Awaitable[None]], item: object) -> None:
    await send(item)


# Generators: the value is the list of all items, and a streaming client gets each item at once.


class GeneratorCall:
    """Calls a generator function, and reads the generator to its end.

    `start` calls the function. `read` awaits the client after each item; `read_here` does not await, and passes items to
    `push` if it is given.
    """

    def __init__(self, start: Run, function: Function, tool: Tool) -> None:
        self._start = start
        self._flatten = function.flatten
        self._must_wait = function.is_async
        self._joins = joins_text(tool.output_schema)

    def run(self, arguments: dict[str, object], context: Context | None) -> object:
        """Read the generator now, or return a coroutine that does if reading has to await."""
        send = None if context is None else context.send_chunk
        if self._must_wait or send is not None:
            return self.read(self._start(arguments, context), send)
        return self._finish(self.read_here(self._start(arguments, context)))

    def run_in_thread(self, arguments: dict[str, object], context: Context | None, push: Push | None) -> object:
        """Read the generator in a thread, which may block; `push` sends an item."""
        return self._finish(self.read_here(self._start(arguments, context), push))

    async def read(self, answer: Any, send: Callable[[object], Awaitable[None]] | None) -> object:
        """The value of what a function returned: all items of a generator, or the answer itself if it is none."""
        while inspect.isawaitable(answer):
            answer = await answer
        if not hasattr(type(answer), "__anext__") and not hasattr(type(answer), "__next__"):
            return self._finish(answer)
        items = _Items(self._joins)
        try:
            if hasattr(type(answer), "__anext__"):
                async for item in answer:
                    made = items.add(item)
                    if send is not None:
                        await send(made)
            else:
                for item in answer:
                    made = items.add(item)
                    if send is not None:
                        await send(made)
                        await _let_others_run()
        finally:
            # An unfinished generator cleans up now, and not when it is garbage-collected.
            if hasattr(answer, "aclose"):
                await answer.aclose()
            elif hasattr(answer, "close"):
                answer.close()
        return self._finish(items.value)

    def read_here(self, answer: Any, push: Push | None = None) -> object:
        """Like `read` for a plain generator, without awaiting."""
        if not hasattr(type(answer), "__next__"):
            return answer
        items = _Items(self._joins)
        try:
            for item in answer:
                made = items.add(item)
                if push is not None:
                    push(made)
        finally:
            if hasattr(answer, "close"):
                answer.close()
        return items.value

    def _finish(self, value: object) -> object:
        return value if self._flatten is None else self._flatten(value)


class _Items:
    """The items that a generator has yielded so far, as JSON."""

    def __init__(self, joins: bool) -> None:  # noqa: FBT001 - it is all there is to say
        self._joins = joins
        self._made: list[object] = []
        self._bytes = 0

    def add(self, item: object) -> object:
        """Add an item; returns its JSON. Raises ToolError if it has none, or if there are too many."""
        try:
            if len(self._made) == MAX_ITEMS:
                raise ConversionError(f"a generator of more than {MAX_ITEMS:,} items; return fewer")
            try:
                made = to_json(item)
            except ConversionError as problem:
                raise problem.at(len(self._made)) from None
            self._bytes += json_size(made)
            if self._bytes > MAX_BYTES:
                raise ConversionError(f"a generator of more than {MAX_BYTES:,} bytes; return less")
        except ConversionError as problem:
            message = f"it returned what has no JSON form: {problem}"
            raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
        self._made.append(made)
        return made

    @property
    def value(self) -> object:
        """The list of the items; joined if the tool declares a text result and all items are text."""
        if self._joins and all(isinstance(item, str) for item in self._made):
            return "".join(map(str, self._made))
        return self._made


async def _let_others_run() -> None:
    """Let the event loop send what was yielded: a plain generator blocks it until the next item."""
    import asyncio

    for _ in range(LOOP_TURNS):
        await asyncio.sleep(0)
