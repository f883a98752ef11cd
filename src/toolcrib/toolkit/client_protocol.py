"""The protocols of a crib that interfaces use, the same for one of this machine and one behind a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from toolcrib.infra.settings import Settings
    from toolcrib.model.approval import Approval, State
    from toolcrib.model.bundle import Bundle
    from toolcrib.model.call import Call
    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Explanation, Piece, Result
    from toolcrib.model.tool import Entry, Tool
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed, Status, Submitted
    from toolcrib.toolkit.tool_facts import Facts


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

    def parameters_of(self, name: str) -> Mapping[str, object]:
        """The schema of what a tool takes; empty if there is no such tool."""

    def get_ready(self, name: str) -> None:
        """Start ahead what a call of the tool will need."""

    def output_of(self, name: str) -> Mapping[str, object] | None:
        """The schema of what a tool gives; None if it promises nothing, or there is no such tool."""

    def call_sync(self, call: Call, /) -> Result:
        """Make a call."""

    def stream_sync(self, call: Call, /) -> Generator[Any, None, None]:
        """Make a call and hear it while it runs; the last event is its Result."""

    def explain(self, call: Call, /) -> Explanation:
        """What every gate would say to a call, without making it."""


class AnyCrib(CallingCrib, Protocol):
    """A crib with all that works here and behind a URL alike."""

    @property
    def bundles(self) -> AnyBundles:
        """The bundles and the tools in them."""

    @property
    def requests(self) -> AnyRequests:
        """Requests for tools that do not exist yet."""

    @property
    def approvals(self) -> AnyApprovals:
        """Calls that wait for a person."""

    def list_tools(self, *, tags: Sequence[str] = (), executors: bool = False) -> list[Facts]:
        """The tools, or those with every one of the tags; or what executes them."""

    def show_tool(self, name: str) -> Facts | None:
        """All that is known of the tool that a name means."""

    def meant_by(self, name: str) -> str:
        """The address of the tool that a name means; empty if it means none, or one whose document is broken."""

    def search_tools(self, text: str, *, is_question: bool, everything: bool, limit: int) -> tuple[list[Facts], bool]:
        """The tools that fit what was typed, or a question; and whether there are more."""

    def request_from_search(self, text: str) -> str:
        """The id of the request that was filed here for what was searched for in vain; empty if none was."""

    def list_bundles(self) -> Sequence[Bundle]:
        """Every bundle, also disabled ones."""

    def stored_tool(self, bundle_id: str, slug: str, version: str) -> Mapping[str, object] | None:
        """The document of a version with what is known of it; None if there is none."""

    def secret_names(self) -> Collection[str]:
        """What no argument of a tool may be called, as far as that is known here."""

    def switch_tool(self, name: str, *, on: bool) -> tuple[str, str] | None:
        """Switch a tool; its address, and why it still cannot be called. None if there is no such tool."""

    def read_result(self, handle: str, *, offset: int, length: int) -> Piece:
        """A piece of a value that was too large to be handed over at once."""


class AnyBundles(Protocol):
    """Bundles of every owner."""

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
    """Calls that wait for a person; every method blocks until it is done."""

    def list(self, state: State | None = ...) -> Sequence[Approval]:
        """The approvals in a state, or all that are stored."""

    def show(self, approval_id: str) -> Approval:
        """One of them."""

    def approve(self, approval_id: str, *, note: str = "") -> Approval:
        """Let the call run once."""

    def refuse(self, approval_id: str, *, note: str = "") -> Approval:
        """Refuse the call until the approval expires."""


class AnyRequests(Protocol):
    """Requests for tools that do not exist yet; every method blocks until it is done."""

    def submit(self, text: str, *, strict: bool | None = None, place: str = ...) -> Submitted:
        """File a request under the id that it has; what is wrong with it is told with the place it was read from."""

    def new(self, text: str, /, *, strict: bool | None = None, place: str = ...) -> Submitted:
        """File a request, which gets a number unless it has an id."""

    def list(self, status: Status | None = None, *, limit: int = ...) -> list[Filed]:
        """The requests, the newest last."""

    def show(self, request_id: str) -> Filed:
        """One of them."""

    def history(self, request_id: str, after: int = 0) -> Sequence[Event]:
        """What happened to it."""

    def follow(self, request_id: str, hear: Callable[[Event], None]) -> Filed:
        """Hear what happens to it until it is over."""

    def package(self, request_id: str) -> Path | None:
        """The package that was laid out for a person, on this machine."""

    def deliver(self, request_id: str, path: Path, hear: Callable[[str], None]) -> Filed:
        """Have proved and published what was made for it."""

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel it; a builder that works on it stops."""

    def retry(self, request_id: str) -> Filed:
        """Have it built again."""

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows."""

    def experiments(self) -> Sequence[Experiment]:
        """Everything that waits or waited for a tool."""
