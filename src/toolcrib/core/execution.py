"""Run calls without an event loop, classify failures, and cancel calls at their deadline."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Coroutine
from enum import Enum
from inspect import CO_COROUTINE, CO_GENERATOR
from threading import current_thread, get_ident, main_thread
from time import monotonic
from traceback import walk_tb
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, NoReturn, TypeVar

from toolcrib.model.errors import READ_THE_LOG, Kind, ToolError
from toolcrib.model.tool import Function

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Generator
    from types import TracebackType

    from toolcrib.infra.secrets.chunk_mask import ChunkMask
    from toolcrib.infra.secrets.secret import Masking
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool


T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Coroutine[object, object, Result]]")


def never_waits(tool: Tool) -> bool:
    """Whether the tool is a plain function without retries, so that its call never awaits anything."""
    run = tool.run
    if (
        not isinstance(run, Function)
        or run.is_async
        or run.thread
        or run.takes_whole
        or run.context_parameter is not None
    ):
        return False
    return tool.limits.retry is None and not tool.idempotent


CURE = "write: await crib.call(...), or crib.call_sync(...) in code that is not async"


def named_for_warning(function: F) -> F:
    """Name the cure in Python's warning about a coroutine of this function that was never awaited."""
    function.__qualname__ = f"crib.call(...) [{CURE}]"
    return function


class PendingCall(Coroutine[object, object, "Result"]):
    """The coroutine that `crib.call(...)` returns; using it without `await` raises an error that names the cure.

    `crib.call` sets `work`, the inner coroutine, and its `__await__`. Both are plain attributes, and there is no `__init__`,
    because every further method would slow down each call.
    """

    __slots__ = ("__await__", "work")

    work: Coroutine[object, object, Result]
    if TYPE_CHECKING:

        def __await__(self) -> Generator[object, object, Result]: ...

    def send(self, value: object, /) -> object:
        """Resume the coroutine."""
        return self.work.send(value)

    def throw(
        self, kind: type[BaseException] | BaseException, value: object = None, trace: TracebackType | None = None, /
    ) -> object:
        """Raise an exception inside the coroutine."""
        try:
            if isinstance(kind, BaseException):
                return self.work.throw(kind)
            return self.work.throw(kind, value, trace)
        finally:
            # The traceback references this frame: an exception in it would be a reference cycle, which keeps the objects
            # of the call alive until the garbage collector runs.
            del kind, value, trace

    def close(self) -> None:
        """Close the coroutine."""
        self.work.close()

    if not TYPE_CHECKING:  # so that type checkers report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"a call that was not awaited has no {name}; {CURE}", name=name, obj=self)

    def __bool__(self) -> bool:
        # From Python 3.12 on, asyncio tests the truth of a task's coroutine in the repr of the task.
        if sys._getframe(1).f_globals.get("__name__") == "asyncio.base_tasks":  # noqa: SLF001 - identifies the caller
            return True
        raise TypeError(f"a call that was not awaited is neither true nor false; {CURE}")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"a call that was not awaited has no items; {CURE}")

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(f"a call that was not awaited has no item {key!r:.80}; {CURE}")

    def __repr__(self) -> str:
        return f"<crib.call(...), not awaited; {CURE}>"


# Keys in `details` that a tool must not set: it could pass its failure off as a refusal, or issue a confirmation.
WORDS_OF_GATES = frozenset({"gate", "confirmation", "expiresAt"})
# How often to look whether another process has stored the first secret.
LOOK_SECONDS = 0.1


def classify(problem: BaseException, name: str) -> ToolError:
    """Convert any exception into a ToolError, without its traceback and without details that only gates may set."""
    if isinstance(problem, ToolError):
        return copy_error(problem, value=problem.value)
    if isinstance(problem, (ConnectionError, TimeoutError)):
        message = f"{name} could not reach what it needs ({type(problem).__name__})"
        return ToolError(Kind.TRANSIENT, message, retryable=True, partial_side_effects=True)
    if is_cancellation(problem):
        return ToolError(Kind.CANCELLED, f"{name} gave up by itself", partial_side_effects=True)
    # Python turns a StopIteration of a coroutine into a RuntimeError; that of a plain function is named alike.
    kind = RuntimeError if isinstance(problem, StopIteration) else type(problem)
    reason = f"{name} failed unexpectedly ({kind.__name__})"
    return ToolError(Kind.INTERNAL, reason, cure=READ_THE_LOG, partial_side_effects=True)


def copy_error(error: ToolError, *, value: object) -> ToolError:
    """The same error with another partial value, without traceback and without details that only gates may set."""
    details = {key: fact for key, fact in error.details.items() if key not in WORDS_OF_GATES}
    return error.replace(details=details, value=value)


class SecretsMask:
    """Masks stored secrets in results. The store is opened on first use; `active` is False while there are no secrets.

    Another process may store the first one, so from `look_at` on (time.monotonic) the next call asks `exists`.
    """

    __slots__ = ("_exists", "_open", "active", "look_at")

    def __init__(
        self, open_masking: Callable[[], Masking] | None = None, exists: Callable[[], bool] = lambda: False
    ) -> None:
        self._open = open_masking
        self._exists = exists
        self.active = False
        self.look_at = 0.0

    def activate(self) -> None:
        """Mask from now on, because there is a secret."""
        self.active = True

    def value(self, value: object) -> object:
        """Mask the value of a result; a subclass of str keeps its type, except an enum, which has no member for the mask."""
        if (masking := self._masking()) is None:
            return value
        if isinstance(value, str) and not isinstance(value, Enum):
            return type(value)(masking.hide(value))
        return masking.hide_in(value)

    def chunks(self, *, is_one_text: bool) -> ChunkMask | None:
        """A mask for the chunks of one call, also for secrets that span chunks; None while there are no secrets."""
        return None if (masking := self._masking()) is None else masking.chunks(is_one_text=is_one_text)

    def error(self, error: ToolError) -> ToolError:
        """Mask the error of a result."""
        return error if (masking := self._masking()) is None else masking.hide_error(error)

    def raised(self, problem: BaseException) -> BaseException:
        """Mask an exception for the log."""
        return problem if (masking := self._masking()) is None else masking.hide_raised(problem)

    def _masking(self) -> Masking | None:
        if not self.active and monotonic() >= self.look_at:
            self.look_at = monotonic() + LOOK_SECONDS
            self.active = self._exists()
        return self._open() if self.active and self._open is not None else None


def must_pass(problem: BaseException) -> bool:
    """Whether an exception must be re-raised to the host program, and not returned as the error of a call."""
    if is_cancellation(problem):
        return _is_being_cancelled()
    if isinstance(problem, KeyboardInterrupt):
        # Python's own handler raises at Ctrl-C in the main thread; those of asyncio.run and of servers cancel the task.
        is_handled = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        return current_thread() is main_thread() and not (is_handled and _runs_in_a_task())
    if not isinstance(problem, GeneratorExit) or _runs_in_a_task():
        return False
    # An unfinished coroutine is closed where it waits, by code outside of its task; a plain function raises it itself.
    frames = [frame for frame, _ in walk_tb(problem.__traceback__)]
    return not frames or bool(frames[-1].f_code.co_flags & (CO_COROUTINE | CO_GENERATOR))


def is_cancellation(problem: BaseException) -> bool:
    """Whether this is a CancelledError of asyncio, without importing asyncio."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(problem, asyncio.CancelledError)


def _is_being_cancelled() -> bool:
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:
        # No event loop runs, so nothing was cancelled.
        return False
    return task is None or task.cancelling() > 0


def _runs_in_a_task() -> bool:
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and asyncio.current_task() is not None
    except RuntimeError:
        return False


CANCEL_AGAIN_SECONDS = 1.0


class Watch:
    """The deadline of one call: the task to cancel, how often it was cancelled, and how often before this call."""

    __slots__ = ("cancelled", "cancelled_before", "deadline", "task", "watched")

    deadline: float
    task: asyncio.Task[object]
    cancelled_before: int
    cancelled: int
    watched: set[Watch]


class Deadlines:
    """Cancels calls at their deadlines, with one timer for each event loop.

    `asyncio.timeout` sets a timer for every call, which costs several times the call itself. Here a call is added to a
    set, and the timer of its loop is only moved if the call has the earliest deadline.
    """

    def __init__(self) -> None:
        self._timers: dict[int, _Timer] = {}

    def watch(self, deadline: float, running: object = None) -> Watch:
        """Cancel the current task at `deadline` (time.monotonic), unless the watch is removed from `watched` before.

        `running` is the coroutine that the task is about to await; it is closed if no event loop runs, which raises.
        """
        timer = self._timers.get(get_ident())
        # Not get_running_loop: up to Python 3.11 it makes a system call for the process id each time.
        task = None if timer is None else timer.current_task(timer.loop)
        if timer is None or task is None:
            timer = self._timers[get_ident()] = _start_timer(running)
            task = timer.current_task(timer.loop)
            if task is None:
                raise RuntimeError("a tool is called inside a task")
        watch = Watch()
        watch.deadline = deadline
        watch.task = task
        watch.cancelled_before = task.cancelling()
        watch.cancelled = 0
        watch.watched = timer.watched
        timer.watched.add(watch)
        if deadline < timer.next:
            timer.set(deadline)
        return watch

    def move(self, watch: Watch, deadline: float) -> None:
        """Change the deadline of a watch of this thread's event loop."""
        watch.deadline = deadline
        timer = self._timers.get(get_ident())
        if timer is not None and deadline < timer.next:
            timer.set(deadline)


class _Timer:
    """The timer of one event loop, set to the earliest deadline among its calls."""

    def __init__(self) -> None:
        # Imported here: a program that only calls plain functions never needs asyncio, which takes half of the start.
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.current_task = asyncio.current_task
        self.watched: set[Watch] = set()
        self.next = math.inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, deadline: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self.next = deadline
        self._handle = self.loop.call_later(max(0.0, deadline - monotonic()), self._cancel_overdue)

    def _cancel_overdue(self) -> None:
        now = monotonic()
        # In the order of their deadlines, of which a busy event loop may find several passed at once.
        for watch in sorted((each for each in self.watched if each.deadline <= now), key=lambda each: each.deadline):
            watch.cancelled += 1
            # Cancelled again later, in case the tool swallows this cancellation, or it ends only an inner call.
            watch.deadline = now + CANCEL_AGAIN_SECONDS
            watch.task.cancel()
        self._handle, self.next = None, math.inf
        if self.watched:
            self.set(min(watch.deadline for watch in self.watched))


def _start_timer(running: object) -> _Timer:
    try:
        return _Timer()
    except RuntimeError as problem:
        if isinstance(running, CoroutineType):
            running.close()
        message = "it returned something to wait for, and no event loop runs; write it as async def"
        raise ToolError(Kind.INTERNAL, message, partial_side_effects=True) from problem


async def as_coroutine(awaitable: Awaitable[object]) -> object:
    """Wrap an awaitable in a coroutine."""
    return await awaitable


@coroutine
def go_on(running: CoroutineType[object, object, object], waits_for: object) -> Generator[object, object, object]:
    """Drive a coroutine that has taken its first step, as `await` would have."""
    while True:
        try:
            yield waits_for
        except GeneratorExit:
            running.close()
            raise
        except BaseException as problem:  # noqa: BLE001 - an exception thrown in here is meant for the coroutine
            try:
                waits_for = running.throw(problem)
            except StopIteration as end:
                return end.value
        else:
            return (yield from running)  # type: ignore[misc]  # types.coroutine allows it, which mypy does not know


def unwatch(watch: Watch | None, name: str, started: float) -> None:
    """End the watch of a call that returned; raises TIMEOUT if that was after its deadline.

    The tool may have swallowed its cancellation, or blocked the event loop so that the timer could not fire.
    """
    if watch is None:
        return
    watch.watched.discard(watch)
    if watch.cancelled or monotonic() > watch.deadline:
        raise stop(watch, name, started)


def leave(watch: Watch | None, problem: BaseException, name: str, started: float) -> BaseException:
    """End the watch of a call that raised, and return the exception to report.

    A cancellation that comes only from the deadline of this call is revoked and becomes a TIMEOUT. Any other cancellation
    is returned as it is.
    """
    if watch is None:
        return problem
    watch.watched.discard(watch)
    if watch.cancelled:
        is_ours = watch.task.cancelling() - watch.cancelled <= watch.cancelled_before
        stopped = stop(watch, name, started)
        problem = stopped if is_ours or not is_cancellation(problem) else problem
    # A cancelled task keeps its exception, whose frames reference the watch: that would be a reference cycle.
    del watch.task
    return problem


def stop(watch: Watch, name: str, started: float) -> ToolError:
    """Revoke the cancellation of a call that ran out of time, and return the TIMEOUT to raise instead."""
    for _ in range(watch.cancelled):
        watch.task.uncancel()
    watch.cancelled = 0
    message = f"{name} was stopped after {monotonic() - started:.3g} s"
    return ToolError(Kind.TIMEOUT, message, partial_side_effects=True)
