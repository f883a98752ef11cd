"""The protocols of a crib, the same for one of this machine and one behind a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Collection,
        Coroutine,
        Generator,
        Iterable,
        Mapping,
        Sequence,
    )
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.infra.settings import Settings
    from toolcrib.lib.export_schemas import Export
    from toolcrib.lib.presentation import Prompt
    from toolcrib.model.approval import Approval, State
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.call import Call
    from toolcrib.model.errors import ToolError
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.result import Explanation, Intent, Piece, Result
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Status, Submitted
    from toolcrib.toolkit.tool_facts import Facts

T = TypeVar("T")


class Suggesting(Protocol):
    """Knows the names of tools, and what could not be loaded."""

    def suggest(self, name: str) -> str:
        """A hint at the name that was perhaps meant."""

    @property
    def problems(self) -> Sequence[ToolError]:
        """What could not be loaded, and why."""


class Closing(Protocol):
    """Is closed at the end of a `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ProjectCrib(Suggesting, Closing, Protocol):
    """A crib of this machine; commands of features add to it what only they use."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool there is, but those that only run others."""

    def find(self, name: str) -> Entry | None:
        """The tool of that name, slug or address."""


class CallingCrib(Suggesting, Closing, Protocol):
    """Makes and explains calls.

    `url` says where the crib is and is empty for one of this machine. `caller` is who calls there by default.
    """

    url: str
    caller: str

    def find(self, name: str, session: Session | None = None) -> Entry | None:
        """The tool of that name, slug or address, as a session finds it if one is given."""

    def get_ready(self, name: str) -> None:
        """Start ahead what a call of the tool will need."""

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Make a call from code that is not async."""

    def stream_sync(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Generator[StreamEvent, None, None]:
        """Make a call and hear it while it runs; the last event is its Result."""

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """What every gate would say to a call, without making it."""


class AnyCrib(CallingCrib, Protocol):
    """A crib, of this machine (`Crib(…)`) or of a server (`Crib.connect(url)`): what is in here works alike on both.

    What is not async waits for its answer, on a server for a request there; inside an event loop that must not wait, call it in a
    thread: `await asyncio.to_thread(crib.offered)`.
    """

    # --- calls ---------------------------------------------------------------------------------------------------------

    def call(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Coroutine[object, object, Result]:
        """Make a call: `await crib.call("name", city="Oslo")`; also what goes wrong on the way to a server is a result."""

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Make several calls side by side: one result for each, in their order."""

    def stream(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AsyncGenerator[StreamEvent, None]:
        """Make a call and hear it while it runs; to close the generator is to cancel the call."""

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """Wait from plain code for work that uses this crib."""

    def session(
        self,
        *,
        mode: str = "text",
        on_intent: Callable[[Intent], None] | None = None,
        max_calls: int | None = None,
        max_turn_calls: int | None = None,
        max_turn_retrievals: int | None = None,
        max_repeats: int | None = None,
    ) -> Session:
        """Open a conversation, whose calls are bounded together."""

    def read_result(self, handle: str, *, offset: int = 0, length: int = ...) -> Piece:
        """A piece of a value that was too large to be handed over at once."""

    # --- tools ---------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool there is, but those that only run others."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool there is, with its switch, but those that only run others."""

    @property
    def tags(self) -> set[str]:
        """Every tag that a tool has."""

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The same; raises ToolError, with what may help, if there is none."""

    def documentation(self, name: str) -> str:
        """All there is to read about a tool; empty if there is nothing, or no such tool."""

    def find_tools(self, question: str, *, limit: int = 10) -> list[Tool]:
        """The tools that fit a question in plain words, the most fitting first."""

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools as JSON, or those with every one of the tags; or what executes them."""

    def show_tool(self, name: str) -> Facts | None:
        """All that is known of the tool that a name means, as JSON."""

    def search_tools(
        self, text: str, *, is_question: bool = False, everything: bool = False, limit: int = 10
    ) -> tuple[list[Facts], bool]:
        """The tools that fit what was typed, or a question; and whether there are more."""

    def request_from_search(self, text: str) -> str:
        """The id of the request that was filed here for what was searched for in vain; empty if none was."""

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Switch a tool; its address, and why it still cannot be called. None if there is no such tool."""

    def secret_names(self) -> Collection[str]:
        """What no argument of a tool may be called, as far as that is known here."""

    # --- models --------------------------------------------------------------------------------------------------------

    def offered(
        self, mode: str | None = None, session: Session | None = None, names: Iterable[str] | None = None
    ) -> tuple[Tool, ...]:
        """The tools that a model may be told of, in a mode or in any; with `names` only these, by name or address."""

    def prompt(self, mode: str, *, max_characters: int | None = None, max_tokens: int | None = None) -> Prompt:
        """What a system prompt says of the tools of a mode, within a budget."""

    def export(self, provider: str, *, mode: str | None = None, strict: bool = False) -> list[Export]:
        """The tools as a provider takes them, each with what the provider cannot express."""

    def as_langchain(self, **options: Any) -> list[Any]:
        """The tools as LangChain takes them."""

    def as_openai_agents(self, **options: Any) -> list[Any]:
        """The tools as openai-agents takes them."""

    def as_pydantic_ai(self, **options: Any) -> list[Any]:
        """The tools as pydantic-ai takes them."""

    def as_smolagents(self, **options: Any) -> list[Any]:
        """The tools as smolagents takes them."""

    # --- what else a crib has ------------------------------------------------------------------------------------------

    @property
    def bundles(self) -> AnyBundles:
        """The bundles and the tools in them."""

    @property
    def requests(self) -> AnyRequests:
        """Requests for tools that do not exist yet."""

    @property
    def approvals(self) -> AnyApprovals:
        """Calls that wait for a person."""

    async def obtain(
        self,
        name: str,
        request: str | Path | Mapping[str, object] | None = None,
        *,
        experiment: str = "",
        seconds: float | None = None,
    ) -> Tool:
        """The tool of that name, at once if it is there; else it is asked for, and this waits until it is ready."""

    async def close(self) -> None:
        """End what was started."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AnyBundles(Protocol):
    """Bundles of every owner."""

    def list_all(self) -> Sequence[Bundle]:
        """Every bundle, also disabled ones."""

    def document(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version of a stored tool, with what is known of it; None if there is none."""

    def bundle(self, bundle_id: str) -> Bundle:
        """One of them."""

    def put_bundle(self, bundle_id: str, document: Mapping[str, object]) -> tuple[Bundle, bool]:
        """Make or replace one; whether it is new."""

    def switch_bundle(self, bundle_id: str, enabled: bool) -> Bundle:  # noqa: FBT001 - a switch is what it is about
        """Switch one on or off."""

    def delete_bundle(self, bundle_id: str) -> Bundle:
        """Delete one that is empty."""

    def export_bundle(self, bundle_id: str) -> bytes:
        """A stored one and all its tools as a ZIP archive."""

    def import_bundle(self, bundle_id: str, data: bytes, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive under this id, with all its tools or not at all."""

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object]) -> object:
        """Add a version of a tool."""

    def delete_tool(self, bundle_id: str, slug: str, version: str) -> None:
        """Remove a version of a tool permanently."""


class AnyApprovals(Protocol):
    """Calls that wait for a person; what is not async waits until it is done."""

    def list(self, state: State | None = ...) -> Sequence[Approval]:
        """The approvals in a state, or all that are stored; the oldest first."""

    def show(self, approval_id: str) -> Approval:
        """One of them."""

    def approve(self, approval_id: str, *, note: str = "") -> Approval:
        """Let the call run once."""

    def refuse(self, approval_id: str, *, note: str = "") -> Approval:
        """Refuse the call until the approval expires."""

    async def wait(self, approval_id: str, seconds: float) -> Approval:
        """Wait until it is decided or has expired, at most so long."""

    def watch(self) -> AsyncGenerator[Approval, None]:
        """Every approval that is stored or changes its state from now on, after those that are pending now."""


class AnyRequests(Protocol):
    """Requests for tools that do not exist yet; what is not async waits until it is done."""

    def submit(self, text: str, *, strict: bool | None = None, place: str = ...) -> Submitted:
        """File a request under the id that it has; what is wrong with it is told with the place it was read from."""

    def new(
        self, request: Mapping[str, object] | str | bytes, *, strict: bool | None = None, place: str = ...
    ) -> Submitted:
        """File a request, given as its fields or as text; it gets a number unless it has an id."""

    def list(self, status: Status | None = None, *, limit: int = ...) -> list[Filed]:
        """The requests, the newest last."""

    def show(self, request_id: str) -> Filed:
        """One of them."""

    def history(self, request_id: str, after: int = 0) -> Sequence[Event]:
        """What happened to it."""

    def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """What happens to it until it is over; a server or queue that is away for a while is asked again."""

    def package(self, request_id: str) -> Path | None:
        """The package that was laid out for a person, on this machine."""

    async def deliver(self, request_id: str, path: Path, say: Callable[[str], None] | None = None) -> Filed:
        """Have proved and published what was made for it."""

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel it; a builder that works on it stops."""

    def retry(self, request_id: str) -> Filed:
        """Have it built again."""

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows."""

    def experiments(self) -> Sequence[Experiment]:
        """Everything that waits or waited for a tool."""
