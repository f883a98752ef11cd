"""Serve the channel of a child process: its messages and questions to the client of its call, and its calls of tools.

Number, size and time are limited, because a child may be in a loop.

{"id": 1, "tool": "name", "arguments": {}}
{"do": "progress", "progress": 1, "total": 10, "message": "…"}   {"do": "log", "level": "info", "data": …}
{"do": "chunk", "value": …}   {"id": 1, "do": "end_chunks"}
{"do": "elicit", "message": "…", "schema": {…}}   {"do": "sample", "messages": […], "maxTokens": 1000}   {"do": "roots"}
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.infra.programs import ParentSlot, run_in_slot
from toolcrib.model.call import DEFAULT_TOKENS, LOG_LEVELS, cannot_ask
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any, TypeGuard

    from toolcrib.infra.sandbox.attempt import Lines, Talk
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, Job
    from toolcrib.model.call import Context, ToolLink
    from toolcrib.model.result import Result

    Id = str | int | None

logger = logging.getLogger("toolcrib.runners")

TOLD = frozenset({"progress", "log"})
CHUNK, END_CHUNKS = "chunk", "end_chunks"
ASKED = {"elicit": "elicitation/create", "sample": "sampling/createMessage", "roots": "roots/list"}
# Messages to the client of one call: so many at once, then so many per second. Further ones are dropped.
SENT_AT_ONCE, SENT_PER_SECOND = 100, 20.0
# Messages read from one child; beyond the limit the child waits.
READ_AT_ONCE, READ_PER_SECOND = 2_000, 1_000.0
MAX_MESSAGE_LETTERS = 2_000
MAX_LOG_BYTES = 100_000
MAX_LOG_BYTES_OF_A_CALL = 1_000_000
MAX_QUESTION_BYTES = 1_000_000
MAX_QUESTIONS_OF_A_CALL = 100
MAX_KEY_LETTERS = 128
SAID_OTHERWISE = frozenset({"messages", "maxTokens", "max_tokens", "key"})
# How long a child may wait for its client, all its questions together.
MAX_WAIT_SECONDS = 600.0
# Further complaints are not logged.
MAX_COMPLAINTS = 10
# How often the deadline of a child is checked while its client is asked.
LOOK_SECONDS = 0.02

CAPABILITY = "rye.execute"
MAX_AT_ONCE = 8

_CALL_SHAPE = '{"id": 1, "tool": "name", "arguments": {}}'
_CALL_KEYS = frozenset({"id", "tool", "arguments"})
_SHAPES = '{"do": "progress", "progress": 1, "total": 10} or {"id": 1, "do": "elicit", "message": "…", "schema": {…}}'


class TokenBucket:
    """Rate limit: so many at once, then so many per second."""

    def __init__(self, at_once: int, per_second: float) -> None:
        self._most = self._left = float(at_once)
        self._per_second = per_second
        self._since = time.monotonic()

    def take(self) -> bool:
        """Count one; False if the limit is exceeded."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def pause(self) -> float:
        """How many seconds until the next one may be taken."""
        return max(0.0, (1 - self._left) / self._per_second)


class ClientRequests:
    """Serves one running child; `close` it when the child has ended."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._heard = TokenBucket(SENT_AT_ONCE, SENT_PER_SECOND)
        self._read = TokenBucket(READ_AT_ONCE, READ_PER_SECOND)
        # The last progress that was dropped: it is sent at the end, so that the client sees the final state.
        self._last_dropped: tuple[float, float | None, str] | None = None
        self._log_bytes = self._questions = self._complaints = self._dropped = 0

    def tell(self, message: Mapping[str, object]) -> None:
        """Pass on a message that needs no answer; one that is invalid is logged."""
        try:
            if message["do"] == "progress":
                self._progress(message)
            else:
                self._log(message)
        except ToolError as refusal:
            self._complaints += 1
            if self._complaints <= MAX_COMPLAINTS:
                logger.warning("%s: refused what it told its client: %s", self._context.tool.name, refusal.message)

    async def chunk(self, message: Mapping[str, object]) -> None:
        """Send the client what the child yielded, if it wants that; the child waits meanwhile. Raises ToolError for too much."""
        if self._context.send_chunk is not None:
            await self._context.send_chunk(message.get("value"))

    async def slow_down(self) -> None:
        """Count one message; a child that sends too many waits here until the host reads on."""
        if not self._read.take():
            await asyncio.sleep(self._read.pause)

    async def ask(self, message: Mapping[str, object]) -> object:
        """The answer of the client; raises ToolError where it cannot be asked, or does not answer."""
        action = str(message.get("do"))
        if action == END_CHUNKS:
            return None  # chunks are read in their order, so every one was
        if action not in ASKED:
            raise _refusal(f"{action[:40]!r} is nothing that a client can be told or asked; write {_SHAPES}")
        client = self._context.client
        if client is None or not client.can_ask:
            raise cannot_ask(ASKED[action])
        self._questions += 1
        if self._questions > MAX_QUESTIONS_OF_A_CALL:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"a call asks its client at most {MAX_QUESTIONS_OF_A_CALL} questions")
        if _length(message) > MAX_QUESTION_BYTES:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"a question has at most {MAX_QUESTION_BYTES} bytes")
        left = MAX_WAIT_SECONDS - client.waited()
        try:
            async with asyncio.timeout(max(0.0, left)):
                return await self._put(action, message)
        except TimeoutError:
            reason = f"the client did not answer; a call waits for its client at most {MAX_WAIT_SECONDS:g} s"
            raise ToolError(Kind.TIMEOUT, reason) from None

    def close(self) -> None:
        """Send the client the last progress, if it has not received it yet."""
        if self._last_dropped is not None:
            self._context.progress(*self._last_dropped)
        if self._dropped:
            logger.info(
                "%s: %d messages to its client were dropped, because they came too fast",
                self._context.tool.name,
                self._dropped,
            )

    async def _put(self, action: str, message: Mapping[str, object]) -> object:
        context, key = self._context, message.get("key", "")
        if not isinstance(key, str) or len(key) > MAX_KEY_LETTERS:
            raise _refusal(f"the key of a question is a text of at most {MAX_KEY_LETTERS} letters")
        if action == "roots":
            return await context.roots(key=key)
        if action == "elicit":
            text, schema = message.get("message"), message.get("schema")
            if not isinstance(text, str) or not isinstance(schema, dict):
                raise _refusal("elicit takes a message, which is a text, and a schema, which is an object")
            return await context.elicit(text, schema, key=key)
        said, tokens, more = message.get("messages"), message.get("maxTokens", DEFAULT_TOKENS), message.get("more", {})
        if not _is_prompt(said) or type(tokens) is not int or not isinstance(more, dict):
            raise _refusal("sample takes messages, which is a text or a list of objects, and maxTokens, a whole number")
        beside = {name: value for name, value in more.items() if name not in SAID_OTHERWISE}
        return await context.sample(said, max_tokens=tokens, key=key, **beside)

    def _progress(self, message: Mapping[str, object]) -> None:
        progress, total, text = message.get("progress"), message.get("total"), message.get("message", "")
        if not _is_number(progress) or not (total is None or _is_number(total)) or not isinstance(text, str):
            raise _refusal("progress takes a number, a total that is one too, and a message, which is a text")
        figures = progress, total, text[:MAX_MESSAGE_LETTERS]
        if not self._heard.take():
            self._dropped += 1
            self._last_dropped = figures
            return
        self._last_dropped = None
        self._context.progress(*figures)

    def _log(self, message: Mapping[str, object]) -> None:
        level, data = message.get("level"), message.get("data")
        if level not in LOG_LEVELS:
            raise _refusal(f"there is no level {str(level)[:40]!r}; use one of {', '.join(LOG_LEVELS)}")
        length = _length(data)
        if length > MAX_LOG_BYTES or self._log_bytes + length > MAX_LOG_BYTES_OF_A_CALL:
            raise _refusal(
                f"a message of the log has at most {MAX_LOG_BYTES} bytes, all of a call {MAX_LOG_BYTES_OF_A_CALL}"
            )
        if not self._heard.take():
            self._dropped += 1
            return
        self._log_bytes += length
        self._context.log(str(level), data)


class ChildClock:
    """The time of a child, which does not run while the client of its call is asked.

    A child whose client can be asked is ended here when its time is up; the sandbox ends it `extra_seconds` later at the latest.
    """

    def __init__(self, context: Context, sandbox: Sandbox, deadline: float) -> None:
        client = context.client
        self._client: ToolLink | None = client if client is not None and client.can_ask else None
        self._deadline = deadline
        self._sandbox = sandbox
        self._watching: asyncio.Task[None] | None = None
        self._struck = False
        if self._client is not None:
            self._client.hold_while_asking(lambda: sandbox.waiting.hold(context.caller))

    @property
    def extra_seconds(self) -> float:
        """How much longer than its own time a child may be there because it waits for its client."""
        return 0.0 if self._client is None else MAX_WAIT_SECONDS

    @property
    def left(self) -> float:
        """How many seconds the child has."""
        waited = 0.0 if self._client is None else self._client.waited()
        return self._deadline + waited - time.monotonic()

    async def run(self, job: Job, talk: Talk | None, **how: Any) -> CompletedJob:
        """Run the job in its slot, and end it when its time is up."""
        try:
            ended = await run_in_slot(
                self._sandbox,
                job,
                deadline=self._deadline,
                extra_seconds=self.extra_seconds,
                talk=talk if talk is None or self._client is None else self._watched(talk),
                **how,
            )
        finally:
            if self._watching is not None:
                self._watching.cancel()
        return replace(ended, timed_out=True) if self._struck else ended

    def _watched(self, talk: Talk) -> Talk:
        async def talk_and_watch(lines: Lines) -> None:
            self._watching = self._watching or asyncio.create_task(self._watch(lines.end_job))
            await talk(lines)

        return talk_and_watch

    async def _watch(self, end_job: Callable[[], None]) -> None:
        # Its time may have been moved when the pause is over.
        while (left := self.left) > 0:  # noqa: ASYNC110 - there is no event for it: the clock of the child is the host's own
            await asyncio.sleep(max(left, LOOK_SECONDS))
        self._struck = True
        end_job()


def is_chunk(message: Mapping[str, object]) -> bool:
    """Whether the message is what a child yielded; it needs no answer."""
    return message.get("do") == CHUNK


def is_told(message: Mapping[str, object]) -> bool:
    """Whether the message is one to the client that needs no answer."""
    action = message.get("do")
    return isinstance(action, str) and action in TOLD


def is_asked(message: Mapping[str, object]) -> bool:
    """Whether the message is a question to the client."""
    action = message.get("do")
    return isinstance(action, str) and action in ASKED


def _is_prompt(value: object) -> TypeGuard[str | list[Mapping[str, object]]]:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, dict) for one in value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _length(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))


def _refusal(reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, reason)


# The channel of a script, which may call tools too.


class ChildChannel:
    """Runs jobs of scripts that talk to the client of their call; made when the first call has one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def run(self, job: Job, context: Context, deadline: float, **how: Any) -> CompletedJob:
        """Run the job in its slot and serve its channel; its time does not run while the client is asked."""
        return await ChildClock(context, self._sandbox, deadline).run(job, serve_calls(context), **how)


def serve_calls(context: Context) -> Callable[[Lines], Awaitable[None]]:
    """The handler of a script's channel: what it tells its client, its questions and its calls, several at a time."""

    async def talk(lines: Lines) -> None:
        slot, requests = ParentSlot(), ClientRequests(context)
        slots = asyncio.Semaphore(MAX_AT_ONCE)
        under_way: set[asyncio.Task[None]] = set()
        refusal: ToolError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                while (message := await _next_message(lines, slots)) is not None:
                    if is_chunk(message):
                        slots.release()
                        try:
                            await requests.chunk(message)
                        except ToolError as problem:
                            refusal = problem
                            break
                        continue
                    if "do" in message:
                        await requests.slow_down()
                    if is_told(message):
                        # Not in a task of its own, so that the order of the script is kept.
                        requests.tell(message)
                        slots.release()
                        continue
                    task = group.create_task(_answer(message, context, requests, lines, slot))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                    task.add_done_callback(lambda _: slots.release())
                # No reader is left for the answers.
                for task in under_way:
                    task.cancel()
        finally:
            requests.close()
        if refusal is not None:
            raise refusal  # which ends the child

    return talk


async def _next_message(lines: Lines, slots: asyncio.Semaphore) -> dict[str, object] | None:
    """The next request of the script, read only when one can be served: a script that sends more waits."""
    await slots.acquire()
    return await lines.read()


async def _answer(
    message: dict[str, object], context: Context, requests: ClientRequests, lines: Lines, slot: ParentSlot
) -> None:
    slot.lend_in_this_task()
    number = _id_of(message)
    try:
        value = await (requests.ask(message) if "do" in message else _call(message, context))
        answer = {"id": number, "ok": True, "value": value}
    except ToolError as refusal:
        answer = _refuse(number, refusal)
    try:
        await lines.write(answer)
    except ToolError as problem:
        await lines.write(_refuse(number, problem))


async def _call(message: dict[str, object], context: Context) -> object:
    """The value of the tool that a script calls."""
    tool, arguments = _read(message)
    if CAPABILITY not in context.tool.requires:
        reason = f"calling {tool[:200]} requires {CAPABILITY}; list it in requires"
        raise ToolError(Kind.CAPABILITY_MISSING, reason, details={"missing": [CAPABILITY]})
    return _value_of(tool, await context.call(tool, arguments))


def _id_of(message: dict[str, object]) -> Id:
    given = message.get("id")
    return given if isinstance(given, str | int) and not isinstance(given, bool) else None


def _read(message: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The tool and the arguments of a request."""
    tool, arguments = message.get("tool"), message.get("arguments", {})
    if _id_of(message) is None:
        raise _malformed("the id is neither a number nor a text")
    if not isinstance(tool, str):
        raise _malformed("the tool is not named")
    if not isinstance(arguments, dict):
        raise _malformed("the arguments are not an object")
    if unknown := sorted(message.keys() - _CALL_KEYS):
        raise _malformed(f"{unknown[0][:40]!r} is not a known key")
    return tool, arguments


def _malformed(reason: str) -> ToolError:
    return _refusal(f"{reason}; write {_CALL_SHAPE}")


def _value_of(tool: str, result: Result) -> object:
    """The whole value, or an error."""
    if result.error is not None:
        raise result.error
    kept = result.meta.get("kept")
    if isinstance(kept, dict):
        message = f"{tool} returned {kept.get('bytes')} bytes, more than a call hands over at once; ask it for less"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    return result.value


def _refuse(number: Id, error: ToolError) -> dict[str, object]:
    return {"id": number, "ok": False, "error": error.to_json()}
