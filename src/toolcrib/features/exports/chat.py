"""Offer tools to a model, make the calls in its replies, and write the results as messages; the base of all adapters.

Replies are read without the vendor's package: its objects and the plain JSON of the wire have the same keys. The token that
confirms a call is never sent to the model.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeGuard, TypeVar

import orjson

from toolcrib.core.call_state import TEXT_MODE
from toolcrib.lib.documents import MAX_ARGUMENT_BYTES, check_plain, read_json
from toolcrib.lib.export_schemas.definitions import export_tools
from toolcrib.lib.names import did_you_mean
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Result
from toolcrib.model.tool import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from toolcrib.lib.export_schemas import Loss, Provider
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool

    Confirm = Callable[[Call, ToolError], bool | Awaitable[bool]]

T = TypeVar("T")

logger = logging.getLogger("toolcrib.adapters")

PLACE = "arguments"
CANNOT_CONFIRM = "it cannot be confirmed here, and not by you; say what it would do and let the person decide"
PERSON_ASKED = "the person was asked; ask for it again only if they say so"
MAX_CALLS = 64
MAX_LETTERS = 4_000_000
MAX_SHOWN_NAME = 80


class Host(Protocol):
    """What an adapter uses of a crib, local or remote."""

    caller: str

    def offered(
        self, mode: str | None = None, session: Session | None = None, names: Iterable[str] | None = None
    ) -> tuple[Tool, ...]:
        """The tools that are offered to models; with `names`, only these, by name or address."""

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Perform several calls concurrently."""

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine of the Crib from synchronous code."""


class Adapter(ABC):
    """Offer tools to a model and answer its calls, in the format of one vendor.

    `tools` names the tools that may be offered, by name or address; by default all. Of these, the enabled ones that may be
    called in the mode are offered: `mode`, else that of the session, else text. `strict` uses the strict mode of the vendor,
    which makes the model follow the schema. `caller` is the caller of the calls; by default that of the crib. `confirm` is
    called for each call that needs confirmation, one after the other; only True confirms. A model never sees the token of a
    confirmation and cannot confirm a call. Intents of tools go to `on_intent` of the session.
    """

    provider: ClassVar[Provider]
    # Keys that identify a reply, and a description of the accepted replies.
    marks: ClassVar[tuple[str, ...]]
    replies: ClassVar[str]

    def __init__(
        self,
        crib: Host,
        *,
        tools: Iterable[str] | None = None,
        strict: bool = False,
        session: Session | None = None,
        mode: str | None = None,
        caller: str | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        if isinstance(tools, str):
            raise ToolError(Kind.VALIDATION, f"tools is a list of names: write tools=[{tools!r}]")
        self._mode = (TEXT_MODE if session is None else session.mode) if mode is None else mode
        if self._mode not in MODES:
            raise ToolError(Kind.VALIDATION, f"there is no mode {self._mode!r}; use {' or '.join(sorted(MODES))}")
        self._crib = crib
        self._names = None if tools is None else tuple(tools)
        self._strict = strict
        self._session = session
        self._caller = crib.caller if caller is None else caller
        self._confirm = confirm
        self.refresh()

    def refresh(self) -> None:
        """Update the offered tools; without this the set stays as it was when the chat began."""
        self._exports = {
            export.name: export for export in export_tools(self._tools(), self.provider, strict=self._strict)
        }

    @property
    def definitions(self) -> list[dict[str, object]]:
        """The `tools` argument of the vendor's client."""
        return [export.definition for export in self._exports.values()]

    @property
    def losses(self) -> dict[str, tuple[Loss, ...]]:
        """What the vendor's schema cannot express of a tool's parameters, by the tool's name; the crib validates it anyway."""
        return {export.tool.name: export.losses for export in self._exports.values() if export.losses}

    def calls(self, reply: object) -> list[Call]:
        """The valid calls in a reply, in order; nothing runs."""
        return [each for each in self._calls_of(self._read_checked(reply)) if isinstance(each, Call)]

    async def answer(self, reply: object) -> list[dict[str, object]]:
        """Make the calls of a reply concurrently; the messages to append to the conversation, empty if there were none."""
        asked = self._read_checked(reply)
        if not asked:
            return []
        requested = self._calls_of(asked)
        calls = [each for each in requested if isinstance(each, Call)]
        made = iter(await make_calls(self._crib, calls, self._confirm))
        results = [next(made) if isinstance(each, Call) else Result(error=each) for each in requested]
        return self._write(list(zip(asked, results, strict=True)))

    def answer_sync(self, reply: object) -> list[dict[str, object]]:
        """`answer` for synchronous code."""
        return self._crib.run_sync(self.answer(reply))

    @abstractmethod
    def _read(self, reply: object) -> list[Asked]:
        """The calls in a reply, unchecked."""

    @abstractmethod
    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        """The messages with the results, in the format of the vendor."""

    def _tools(self) -> tuple[Tool, ...]:
        return self._crib.offered(self._mode, self._session, self._names)

    def _read_checked(self, reply: object) -> list[Asked]:
        if isinstance(reply, (list, tuple)) or any(has(reply, mark) for mark in self.marks):
            return self._read(reply)
        given = f"a {type(reply).__name__} without any of {', '.join(self.marks)}"
        raise ToolError(Kind.VALIDATION, f"{type(self).__name__} reads {self.replies}, not {given}")

    def _calls_of(self, asked: Sequence[Asked]) -> list[Call | ToolError]:
        """For each the call to make, or the error; beyond the limits nothing is parsed."""
        requested: list[Call | ToolError] = []
        left = MAX_LETTERS
        for number, each in enumerate(asked):
            left -= len(each.arguments) if isinstance(each.arguments, str) else 0
            requested.append(self._call_of(each) if number < MAX_CALLS and left >= 0 else _too_many())
        return requested

    def _call_of(self, asked: Asked) -> Call | ToolError:
        export = self._exports.get(asked.name)
        if export is None:
            return self._not_offered(asked.name)
        try:
            arguments = export.restore(read_arguments(asked.arguments))
        except ToolError as problem:
            return problem
        return self._call(export.tool, arguments)

    def _call(self, tool: Tool, arguments: dict[str, object]) -> Call:
        return Call(
            name=tool.name,
            bundle=tool.bundle,
            version=tool.version,
            arguments=arguments,
            caller=self._caller,
            session=self._session,
            mode=self._mode,
        )

    def _not_offered(self, name: str) -> ToolError:
        # Suggest only offered tools: the model must not learn the names of others.
        cure = did_you_mean(name, self._exports) or "call one of the tools that you were given"
        return ToolError(Kind.NOT_FOUND, f"there is no tool {name[:MAX_SHOWN_NAME]!r} here; {cure}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A call in a reply: the vendor's id, the name that the model used, and the raw arguments."""

    id: str
    name: str
    arguments: object = None


def read_arguments(written: object) -> dict[str, object]:
    """Parse the arguments of a call, from JSON text or from an object of the vendor's package."""
    if written is None or (isinstance(written, str) and not written.strip()):
        # Models send an empty string for a tool without parameters.
        return {}
    value = read_json(written, place=PLACE, max_bytes=MAX_ARGUMENT_BYTES) if isinstance(written, str) else written
    if not isinstance(value, Mapping):
        raise ToolError(Kind.VALIDATION, f'{PLACE}: must be a JSON object; write {{"name": value, …}}')
    arguments = dict(value)
    check_plain(arguments, place=PLACE)
    if not isinstance(written, str):
        _check_size(arguments)
    return arguments


async def make_calls(crib: Host, calls: Sequence[Call], confirm: Confirm | None) -> list[Result]:
    """Make calls concurrently; those that need confirmation are made again after one question each."""
    results = await crib.call_all(calls)
    if confirm is None:
        return [_without_token(result, CANNOT_CONFIRM) for result in results]
    confirmed: dict[int, Call] = {}
    for number, (call, result) in enumerate(zip(calls, results, strict=True)):
        if not _is_refused(result.error):
            continue
        token = result.error.details.get("confirmation")
        if isinstance(token, str) and await _is_confirmed(confirm, call, result.error):
            confirmed[number] = replace(call, confirmation=token)
    for number, result in zip(confirmed, await crib.call_all(confirmed.values()), strict=True):
        results[number] = result
    return [_without_token(result, PERSON_ASKED) for result in results]


def has(thing: object, name: str) -> bool:
    """Whether an item or attribute of that name exists."""
    return name in thing if isinstance(thing, Mapping) else hasattr(thing, name)


def part(thing: object, *names: str) -> object:
    """The first of these items or attributes that exists and is not null."""
    for name in names:
        value: object = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


def items(value: object) -> Sequence[object]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, (list, tuple)) else ()


def text(value: object) -> str:
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def _check_size(arguments: dict[str, object]) -> None:
    size = len(orjson.dumps(arguments))
    if size > MAX_ARGUMENT_BYTES:
        message = f"{PLACE}: have {size} bytes, the limit is {MAX_ARGUMENT_BYTES}; make them smaller"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)


async def _is_confirmed(confirm: Confirm, call: Call, error: ToolError) -> bool:
    """Whether a person confirmed; a failure to ask counts as no."""
    try:
        answer = confirm(call, error)
        return (await answer if isinstance(answer, Awaitable) else answer) is True
    except Exception:
        # The other calls have run, and the model must get their results.
        logger.exception("asking for the confirmation of %s failed; it counts as not confirmed", call.name)
        return False


def _without_token(result: Result, cure: str) -> Result:
    """A refusal for a model, without the confirmation token."""
    error = result.error
    if not _is_refused(error):
        return result
    return replace(result, error=ToolError(error.kind, error.reason, cure=cure))


def _is_refused(error: ToolError | None) -> TypeGuard[ToolError]:
    return error is not None and error.kind is Kind.CONFIRMATION_REQUIRED


def _too_many() -> ToolError:
    message = (
        f"a reply may ask for {MAX_CALLS} calls at most, with arguments of {MAX_LETTERS} letters in all; "
        "ask for this one again in the next"
    )
    return ToolError(Kind.LIMIT_EXCEEDED, message, retryable=True)
