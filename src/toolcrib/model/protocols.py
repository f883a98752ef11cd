"""The protocols of the parts that packages register in `toolcrib.core.plugins`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import ModuleType

    from toolcrib.model.approval import Approval
    from toolcrib.model.call import Call, Context
    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Verdict
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Broken, Entry, Tool
    from toolcrib.model.toolrequest import Allowance, Claim, Event, Experiment, Filed, Made, Status, ToolRequest

LOCK_SECONDS = 10.0
# The default size limit for reading a document; stored results may be large.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


class Format(Protocol):
    """Reads one way of writing tools, without running any of it.

    `path` is that of a file, of the describing file in a tool folder, or the key of a stored document.
    """

    name: str

    def reads(self, path: Path) -> bool:
        """Whether the file at this path is in this format."""

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        """Yield the tools that the bytes describe; raises ToolError with place and cure after the usable ones."""


class Source(Protocol):
    """Where tools are found; `toolcrib.core.sources.ListedSource` implements everything except `entries`."""

    @property
    def rank(self) -> float:
        """The order of sources: among equal names the tool of the source with the lowest rank is found."""

    @property
    def bundles(self) -> Collection[str]:
        """The bundles of its tools; empty if they are not known in advance."""

    @property
    def listed(self) -> bool:
        """Whether the catalog lists all its tools; a very large source is only queried by name, and stores its own switches."""

    @property
    def settled(self) -> bool:
        """Whether `generation` changes with every tool, so that lookups can be cached; else every call runs `find`."""

    @property
    def version(self) -> str:
        """The version that a new session is pinned to; empty if its tools have no versions."""

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """The tool of that name, in the version that the session is pinned to.

        Broken if the tool of that name cannot be used; None if there is none.
        """

    def entries(self, session: Session | None = None) -> Iterable[Entry]:
        """Every present tool; among equal names the one that `find` returns comes first."""

    def generation(self) -> object:
        """A value that changes whenever the tools of the source do; must be fast, because every call reads it."""

    def problems(self) -> list[ToolError]:
        """Errors of the tools that cannot be used, with place and cure."""

    def hint(self, slug: str) -> str:
        """Why a tool of that slug is missing here, for error messages; empty if there is nothing to say."""


class Converter(Protocol):
    """Converts objects of the host program into Tools."""

    def converts(self, value: object) -> bool:
        """Whether this converter handles a value that was given as a tool."""

    def convert(self, value: object) -> Tool:
        """Make the Tool of such a value; raises ToolError with place and cure."""

    def is_tool(self, value: object) -> bool:
        """Whether a module-level value is meant as a tool."""

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """The module-level values that are meant as tools."""

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """The functions that tools of bundles refer to, by their keys."""


@runtime_checkable
class Rule(Protocol):
    """Judges a call before its arguments are validated; a pure function, which changes nothing."""

    name: str

    def concerns(self, tool: Tool) -> bool:
        """Whether any call of this tool could be judged other than ALLOW; if False, the rule is skipped for it."""

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge; `tool` is None when the name is unknown."""


class Bound(Protocol):
    """A tool that a runner has prepared to run."""

    is_async: bool
    wants_context: bool
    checks: bool

    @property
    def function(self) -> Callable[..., Any] | None:
        """The plain function, if calling it with the arguments is all that `run` does; else None."""

    def check(self, arguments: dict[str, object], call: Call) -> object:
        """Raise ToolError for a call that would certainly fail; has no side effects.

        Only called if `checks` is true. `run` gets the return value as `prepared` of its Context.
        """

    def run(self, arguments: dict[str, object], context: Context | None) -> object:
        """Run the tool; returns the value or an `Outcome`, or an awaitable of it if `is_async`."""


class Runner(Protocol):
    """Runs one kind of tool."""

    kind: str

    def bind(self, tool: Tool) -> Bound:
        """Do the work that is needed once per tool."""

    async def close(self) -> None:
        """Stop everything that was started."""


# An entry of the journal: event, time.monotonic, call id, tool, caller, seconds, kind of error, further facts, id of a
# stored tool. A bare tuple, because every call makes one; it is serialised when it is written.
Line = tuple[str, float, str, str, str, float, "str | None", "Mapping[str, object] | None", str]


class Journal(Protocol):
    """Records calls and other events."""

    def record(self, line: Line) -> None:
        """Record one entry; must be fast, because the call waits for it."""

    def read(self) -> Iterator[dict[str, object]]:
        """The recorded entries, oldest first."""

    def close(self) -> None:
        """Flush the entries that are still in memory."""


class ApprovalStore(Protocol):
    """Stores calls that wait for a person, and lets an approved one run once."""

    def file(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call, verdict: Verdict) -> Approval:
        """Store the call, or return the pending approval of the same call; raises LIMIT_EXCEEDED."""

    def find(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call) -> Approval | None:
        """The approved, refused or pending approval of exactly this call; does not use it."""

    def use(self, approval_id: str) -> bool:
        """Use an approval; False if another call, in any process, has used it already."""


class Store(Protocol):
    """Stores documents by key; many processes may share one. The first segment of a key is its space: `bundles/…`."""

    def get(self, key: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
        """The document, or None; raises LIMIT_EXCEEDED, without reading further, for one of more than `limit` bytes."""

    def create(self, key: str, document: bytes) -> bool:
        """Store a new document; False if the key exists. Of concurrent creators, in any process, one succeeds."""

    def replace(self, key: str, document: bytes) -> None:
        """Store a document, replacing an existing one atomically."""

    def remove(self, key: str) -> bool:
        """Delete a document; False if there is none."""

    def keys(self, prefix: str = "") -> list[str]:
        """The keys with this prefix, sorted."""

    def stamp(self, key: str) -> str | None:
        """A value that changes with the document, also by another process; None if there is none. Fast: reads no content."""

    def changed_at(self, key: str) -> float | None:
        """When the document last changed, also by another process, in seconds since 1970; None if there is none."""

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents with this prefix, in one pass."""

    def folders(self, prefix: str) -> dict[str, str]:
        """The next segments after `prefix/` in longer keys, each with a stamp.

        The stamp changes when a document below is created, removed or replaced; edits in place may go unnoticed.
        """

    def other_files(self, prefix: str) -> list[str]:
        """The names of files directly in a folder that are neither documents nor the store's own files."""

    def create_folder(self, prefix: str, documents: Mapping[str, bytes], *, replacing: bool = False) -> bool:
        """Store a folder of documents, by the last segment of each key, atomically; False if the folder exists.

        With `replacing`, an existing folder is replaced in the same step.
        """

    def discard(self, prefix: str) -> None:
        """Delete a folder and everything below it, atomically."""

    def generation(self, space: str) -> str:
        """A value that changes whenever a store creates, replaces or removes a document of the space."""

    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Hold a lock, exclusive among all processes and threads; raises TRANSIENT at the deadline."""


class Queue(Protocol):
    """Stores requests until their tools are built; many processes may share one. Methods may block and are thread-safe.

    When a method returns, its change is stored. A queue that cannot be reached raises TRANSIENT and has stored nothing.
    """

    def file(self, request: ToolRequest) -> Filed:
        """Store a request and wake an idle Builder, in one step; one without an id gets the next number of today (UTC).

        Filing the same id and text again has no effect; the same id with another text raises CONFLICT. A tool with an open
        request is not built twice: a request without an id is merged into the open one, which is returned; one with an id is
        stored under it and gets the status of the open one. The higher priority counts for both. The experiment of the
        request waits from now on. Raises LIMIT_EXCEEDED when the numbers of a day are used up.
        """

    def get(self, request_id: str) -> Filed | None:
        """The request of that id, or None."""

    def requests(self, status: Status | None = None, *, limit: int = 1_000) -> list[Filed]:
        """The newest requests, up to `limit`, in the order in which they were filed."""

    def find_open(self, name: str) -> Filed | None:
        """The pending or building request for a tool of that name, or None."""

    def history(self, request_id: str, after: int = 0) -> list[Event]:
        """The events of a request after that number; only the latest are stored."""

    def claim(self, owner: str, seconds: float, request_id: str | None = None) -> Claim | None:
        """Claim the next request, by priority and then by age, or the one of this id, even if it is held.

        None if there is nothing to build, or if the request of this id is final or leased by another builder. An expired
        lease can be claimed again.
        """

    def renew(self, claim: Claim) -> bool:
        """Extend the lease; False if another builder has claimed the request, or if it is final."""

    def note(self, claim: Claim, step: str, text: str = "") -> bool:
        """Add an event to the history; False as for `renew`."""

    def hold(self, claim: Claim, text: str) -> bool:
        """Leave it to a person: it stays `building`, without a lease, until it is claimed by its id. False as for `renew`."""

    def give_back(self, claim: Claim, text: str) -> bool:
        """Return it to the queue for another builder. False as for `renew`."""

    def finish(self, claim: Claim, made: Made) -> bool:
        """Mark as ready, notify all waiters, and release each waiting experiment once. False as for `renew`."""

    def fail(self, claim: Claim, error: str) -> bool:
        """Mark as failed, with the reason. False as for `renew`."""

    def cancel(self, request_id: str, reason: str) -> Filed:
        """Cancel a request. Raises NOT_FOUND, or CONFLICT if it is final already."""

    def retry(self, request_id: str) -> Filed:
        """Build a failed or cancelled request again. Raises NOT_FOUND, or CONFLICT for any other status."""

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request; for a failed or cancelled one it takes effect with a retry.

        Raises NOT_FOUND, or CONFLICT if it is ready.
        """

    def experiments(self) -> list[Experiment]:
        """All experiments that wait or waited for a tool."""

    def reconcile(self) -> int:
        """Process what arrived while no builder listened and what was left half-done; returns how many that were."""

    def wait(self, seconds: float) -> bool:
        """Wait until the queue may have changed since the last wait, at most so many seconds; False if it has not."""

    def remarks(self) -> list[str]:
        """Warnings for the operator: what a crash would lose, what could not be read."""

    def close(self) -> None:
        """Close all connections and wake every waiter."""


@record
class MakerTask:
    """The task of a maker: one attempt to write the code of a requested tool.

    `folder` is its workspace: it holds the brief, the request, the schemas and the contract, and the folder `package`
    that is to be filled. `complaints` are the gate's findings on the last attempt. `deadline` is in the time of
    `time.monotonic`. `say` reports progress.
    """

    request: ToolRequest
    folder: Path
    brief: str
    attempt: int
    complaints: tuple[str, ...]
    deadline: float
    say: Callable[[str], None]

    @property
    def package(self) -> Path:
        """The folder to fill."""
        return self.folder / "package"


class Maker(Protocol):
    """Writes the code of a requested tool."""

    name: str

    async def make(self, task: MakerTask) -> bool:
        """Fill the package; False if a person will deliver it later. Raises ToolError if it fails."""

    async def close(self) -> None:
        """Stop everything that was started."""
