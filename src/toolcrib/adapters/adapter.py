"""One chat with a model: the tools it is offered, the calls it asks for, the answers it gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from toolcrib.adapters.asking import read_arguments
from toolcrib.adapters.confirming import make_calls
from toolcrib.adapters.reading import has
from toolcrib.crib.offering import offered_tools, without_failing
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Result
from toolcrib.model.session import MODES
from toolcrib.pipeline.case import TEXT_MODE
from toolcrib.pure.export import export_tools
from toolcrib.pure.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcrib.adapters.asking import Asked
    from toolcrib.adapters.confirming import Confirm
    from toolcrib.crib import Crib
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool
    from toolcrib.pure.export import Loss, Provider

MAX_CALLS = 64
MAX_LETTERS = 4_000_000
MAX_SHOWN_NAME = 80


class Adapter(ABC):
    """Offers tools to a model and answers its calls, in the shape of one vendor.

    `tools` names those that may be offered, by name or address; without it all may. Of these the ones are offered that are
    switched on and may be called in the mode: `mode`, else that of the session, else text. `strict` has the vendor hold the
    model to the schema. `caller` is for whom the calls are made, without it the caller of the crib. `confirm` is asked
    when a call needs a person's word, one question after the other; only True is a yes. A model never sees the token of a
    confirmation and cannot give one. What tools ask of the host beside their value goes to `on_intent` of the session.
    """

    provider: ClassVar[Provider]
    # What a reply can be told by, and in words what may be handed in.
    marks: ClassVar[tuple[str, ...]]
    replies: ClassVar[str]

    def __init__(
        self,
        crib: Crib,
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
        """Offer the tools that there are now; until then the set stays as it was when the chat began."""
        self._exports = {
            export.name: export for export in export_tools(self._tools(), self.provider, strict=self._strict)
        }

    @property
    def definitions(self) -> list[dict[str, object]]:
        """What the vendor's client takes as `tools`."""
        return [export.definition for export in self._exports.values()]

    @property
    def losses(self) -> dict[str, tuple[Loss, ...]]:
        """What the vendor cannot express of a tool's parameters, by the tool's name; the crib checks it all the same."""
        return {export.tool.name: export.losses for export in self._exports.values() if export.losses}

    def calls(self, reply: object) -> list[Call]:
        """The calls that a reply asks for and that can be made, in their order; nothing runs."""
        return [wish for wish in self._wishes(self._read_checked(reply)) if isinstance(wish, Call)]

    async def answer(self, reply: object) -> list[dict[str, object]]:
        """Make the calls of a reply side by side; what to append to the conversation, nothing if there were none."""
        asked = self._read_checked(reply)
        if not asked:
            return []
        wishes = self._wishes(asked)
        calls = [wish for wish in wishes if isinstance(wish, Call)]
        made = iter(await make_calls(self._crib, calls, self._confirm))
        results = [next(made) if isinstance(wish, Call) else Result(error=wish) for wish in wishes]
        return self._write(list(zip(asked, results, strict=True)))

    def answer_sync(self, reply: object) -> list[dict[str, object]]:
        """Answer from code that is not async."""
        return self._crib.run_sync(self.answer(reply))

    @abstractmethod
    def _read(self, reply: object) -> list[Asked]:
        """The calls of a reply, as they stand there."""

    @abstractmethod
    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        """The answers, one for each call, as the vendor wants them."""

    def _tools(self) -> tuple[Tool, ...]:
        if self._names is None:
            return self._crib.offered(self._mode, self._session)
        return tuple(tool for name in dict.fromkeys(self._names) for tool in self._named(name))

    def _named(self, name: str) -> tuple[Tool, ...]:
        """The tool of that name, nothing if it is switched off or not for this mode."""
        entry = self._crib.find(name, self._session)
        if entry is None:
            cure = self._crib.suggest(name) or "list the tools with: crib list"
            raise ToolError(Kind.NOT_FOUND, f"Tool {name[:MAX_SHOWN_NAME]!r} not found; {cure}")
        # Whoever gave an address meant that tool, even where its bare name means another.
        offered = offered_tools([entry], lambda _: entry, self._mode)
        return without_failing(offered, self._crib.examples.failing())

    def _read_checked(self, reply: object) -> list[Asked]:
        if isinstance(reply, (list, tuple)) or any(has(reply, mark) for mark in self.marks):
            return self._read(reply)
        given = f"a {type(reply).__name__} without any of {', '.join(self.marks)}"
        raise ToolError(Kind.VALIDATION, f"{type(self).__name__} reads {self.replies}, not {given}")

    def _wishes(self, asked: Sequence[Asked]) -> list[Call | ToolError]:
        """For each the call to make, or why none is made; past the bounds nothing is even read."""
        wishes: list[Call | ToolError] = []
        room = MAX_LETTERS
        for number, each in enumerate(asked):
            room -= len(each.arguments) if isinstance(each.arguments, str) else 0
            wishes.append(self._wish(each) if number < MAX_CALLS and room >= 0 else _too_many())
        return wishes

    def _wish(self, asked: Asked) -> Call | ToolError:
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
        # Only what was offered is named: a model does not learn here what else there is.
        cure = did_you_mean(name, self._exports) or "call one of the tools that you were given"
        return ToolError(Kind.NOT_FOUND, f"there is no tool {name[:MAX_SHOWN_NAME]!r} here; {cure}")


def _too_many() -> ToolError:
    message = (
        f"a reply may ask for {MAX_CALLS} calls at most, with arguments of {MAX_LETTERS} letters in all; "
        "ask for this one again in the next"
    )
    return ToolError(Kind.LIMIT_EXCEEDED, message, retryable=True)
