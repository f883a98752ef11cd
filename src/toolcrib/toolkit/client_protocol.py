"""The protocols that a local crib and a remote crib both implement."""

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
        Iterator,
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
    """Suggests names of tools, and lists what could not be loaded."""

    def suggest(self, name: str) -> str:
        """A hint at the similar name that may have been meant; empty if there is none."""

    @property
    def problems(self) -> Sequence[ToolError]:
        """What could not be loaded, and why."""


class Closing(Protocol):
    """A context manager that closes itself at the end of the block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ProjectCrib(Suggesting, Closing, Protocol):
    """A local crib; features extend this protocol with what their commands use."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool except executors."""

    def find(self, name: str) -> Entry | None:
        """The tool of that name, slug or address."""


class CallingCrib(Suggesting, Closing, Protocol):
    """Makes and explains calls.

    `url` is the address of the server, empty for a local crib. `caller` is the default caller.
    """

    url: str
    caller: str

    def find(self, name: str, session: Session | None = None) -> Entry | None:
        """The tool of that name, slug or address, as a session finds it if one is given."""

    def get_ready(self, name: str) -> None:
        """Start the sandbox in advance if a call of the tool will need it."""

    def call_sync(self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Make a call from code that is not async."""

    def stream_sync(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Generator[StreamEvent, None, None]:
        """Make a call and stream its events; the last event is its Result."""

    def explain(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Explanation:
        """The finding of every gate for a call, without making it."""


class AnyCrib(CallingCrib, Protocol):
    """A crib, local (`Crib(…)`) or of a server (`Crib.connect(url)`): everything in here works alike on both.

    Methods that are not async block, on a remote crib for an HTTP request; inside an event loop, call them in a thread:
    `await asyncio.to_thread(crib.offered)`.
    """

    # --- calls ---------------------------------------------------------------------------------------------------------

    def call(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> Coroutine[object, object, Result]:
        """Make a call: `await crib.call("name", city="Oslo")`; a failure to reach a server is a Result, too."""

    async def call_all(self, calls: Iterable[Call]) -> list[Result]:
        """Make several calls concurrently; one result for each, in their order."""

    def stream(
        self, name: str | Call, arguments: Mapping[str, object] | None = None, /, **more: object
    ) -> AsyncGenerator[StreamEvent, None]:
        """Make a call and stream its events; closing the generator cancels the call."""

    def run_sync(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine that uses this crib from code that is not async."""

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
        """Open a session, which limits its calls together."""

    def read_result(self, handle: str, *, offset: int = 0, length: int = ...) -> Piece:
        """A piece of a stored result that was too large to return at once."""

    # --- tools ---------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool except executors."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool except executors, each with whether it is enabled."""

    @property
    def tags(self) -> set[str]:
        """Every tag that a tool has."""

    def require(self, name: str, session: Session | None = None) -> Entry:
        """The tool of that name, slug or address; raises ToolError, with a cure, if there is none."""

    def documentation(self, name: str) -> str:
        """The documentation of a tool; empty if it has none, or if there is no such tool."""

    def find_tools(self, text: str, *, limit: int = 10) -> list[Tool]:
        """The tools that have their grants and match a text, best match first, then those that answer it as a question."""

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools that have all of the tags, as JSON; or the executors instead."""

    def show_tool(self, name: str) -> Facts | None:
        """All facts of the tool that a name means, as JSON."""

    def search_tools(
        self, text: str, *, is_question: bool = False, everything: bool = False, limit: int = 10
    ) -> tuple[list[Facts], bool]:
        """The tools that match a search text, then those that answer it as a question; and whether there are more."""

    def request_from_search(self, text: str) -> str:
        """File a request for a search without results and return its id; empty if none was filed."""

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Enable or disable a tool; returns its address and why it still cannot be called, or None if there is no such tool."""

    def secret_names(self) -> Collection[str]:
        """The names that no argument of a tool may have, as far as they are known here."""

    # --- models --------------------------------------------------------------------------------------------------------

    def offered(
        self, mode: str | None = None, session: Session | None = None, names: Iterable[str] | None = None
    ) -> tuple[Tool, ...]:
        """The tools that a model is offered, in a mode or in any; with `names` only these, by name or address."""

    def prompt(self, mode: str, *, max_characters: int | None = None, max_tokens: int | None = None) -> Prompt:
        """The part of a system prompt that describes the tools of a mode, within a budget."""

    def export(self, provider: str, *, mode: str | None = None, strict: bool = False) -> list[Export]:
        """The tools in the format of a provider, each with a report of what that format cannot express."""

    def as_langchain(self, **options: Any) -> list[Any]:
        """The tools as LangChain tools."""

    def as_openai_agents(self, **options: Any) -> list[Any]:
        """The tools as tools of openai-agents."""

    def as_pydantic_ai(self, **options: Any) -> list[Any]:
        """The tools as tools of pydantic-ai."""

    def as_smolagents(self, **options: Any) -> list[Any]:
        """The tools as tools of smolagents."""

    # --- what else a crib has ------------------------------------------------------------------------------------------

    @property
    def bundles(self) -> AnyBundles:
        """The bundles and the tools in them."""

    @property
    def requests(self) -> AnyRequests:
        """Requests for tools that do not exist yet."""

    @property
    def audit(self) -> AnyAudit:
        """The audit trail: who decided and changed what."""

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
        """The tool of that name; if it does not exist, request it and wait until it is built."""

    async def close(self) -> None:
        """Close connections and resources."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AnyBundles(Protocol):
    """Bundles of every owner."""

    def list_all(self) -> Sequence[Bundle]:
        """Every bundle, including disabled ones."""

    def document(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version of a stored tool, with its id and times; None if there is none."""

    def bundle(self, bundle_id: str) -> Bundle:
        """The bundle of that id."""

    def put_bundle(self, bundle_id: str, document: Mapping[str, object]) -> tuple[Bundle, bool]:
        """Create or replace a bundle; returns it and whether it is new."""

    def switch_bundle(self, bundle_id: str, enabled: bool) -> Bundle:  # noqa: FBT001 - a boolean is the point of it
        """Enable or disable a bundle."""

    def delete_bundle(self, bundle_id: str) -> Bundle:
        """Delete an empty bundle."""

    def export_bundle(self, bundle_id: str) -> bytes:
        """A stored bundle and all its tools as a ZIP archive."""

    def import_bundle(self, bundle_id: str, data: bytes, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive and all its tools under this id, atomically."""

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object]) -> object:
        """Add a version of a tool."""

    def delete_tool(self, bundle_id: str, slug: str, version: str) -> None:
        """Remove a version of a tool permanently."""


class AnyAudit(Protocol):
    """The audit trail."""

    def events(self, *, since: str = "", actor: str = "", what: str = "") -> Iterator[Mapping[str, Any]]:
        """The events, the newest first: since a time, of an actor's id or name, of or about `what`."""


class AnyApprovals(Protocol):
    """Calls that wait for a person; methods that are not async block."""

    def list(self, state: State | None = ...) -> Sequence[Approval]:
        """The approvals in a state, or all of them; the oldest first."""

    def show(self, approval_id: str) -> Approval:
        """The approval of that id."""

    def approve(self, approval_id: str, *, note: str = "") -> Approval:
        """Let the call run once."""

    def refuse(self, approval_id: str, *, note: str = "") -> Approval:
        """Refuse the call until the approval expires."""

    async def wait(self, approval_id: str, seconds: float) -> Approval:
        """Wait until it is decided or expired, for at most `seconds`."""

    def watch(self) -> AsyncGenerator[Approval, None]:
        """Yield the pending approvals, and then every approval that is created or changes its state."""


class AnyRequests(Protocol):
    """Requests for tools that do not exist yet; methods that are not async block."""

    def submit(self, text: str, *, strict: bool | None = None, place: str = ...) -> Submitted:
        """File a request under its own id; errors name `place` as its origin."""

    def new(
        self, request: Mapping[str, object] | str | bytes, *, strict: bool | None = None, place: str = ...
    ) -> Submitted:
        """File a request, given as fields or as text; without an id it gets the next number."""

    def list(self, status: Status | None = None, *, limit: int = ...) -> list[Filed]:
        """The requests, the newest last."""

    def show(self, request_id: str) -> Filed:
        """The request of that id; raises NOT_FOUND."""

    def history(self, request_id: str, after: int = 0) -> Sequence[Event]:
        """The events of a request after that number."""

    def watch(self, request_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events of a request until it is final; retries while a server or queue is unreachable."""

    def package(self, request_id: str) -> Path | None:
        """The folder that a person is to fill, if it is on this machine."""

    async def deliver(self, request_id: str, path: Path, say: Callable[[str], None] | None = None) -> Filed:
        """Prove and publish the package that a person made for a request."""

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel a request; a builder that works on it stops."""

    def retry(self, request_id: str) -> Filed:
        """Build a failed or cancelled request again."""

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request."""

    def experiments(self) -> Sequence[Experiment]:
        """All experiments that wait or waited for a tool."""
