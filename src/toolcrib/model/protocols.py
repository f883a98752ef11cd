"""The protocols of parts: what a package registers in `toolcrib.core.plugins` meets one of these."""

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
# The largest document that a store gives out unless a reader expects less; results that are stored may be large.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


class Format(Protocol):
    """Reads one way of writing tools, without running any of it.

    `path` is that of a file, of the file that describes a tool which is a folder, or the key of a stored document.
    """

    name: str

    def reads(self, path: Path) -> bool:
        """Whether what lies there is written in the format."""

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        """The tools that the bytes describe; raises ToolError with place and cure, after those that can be used."""


class Source(Protocol):
    """Where tools are found; `toolcrib.core.sources.ListedSource` has all of it but `entries`."""

    @property
    def rank(self) -> float:
        """Its place in the order of sources: of equal names the tool of the lower rank is meant."""

    @property
    def bundles(self) -> Collection[str]:
        """The bundles of its tools; empty where they are not known beforehand."""

    @property
    def listed(self) -> bool:
        """Whether the catalog lists all of its tools; a source with too many is asked by name and keeps their switches."""

    @property
    def settled(self) -> bool:
        """Whether `generation` alone tells that a tool changed; else `find` looks again at every call."""

    @property
    def version(self) -> str:
        """What a new session keeps to; empty where its tools have no versions."""

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """The tool that is meant; for a session of an earlier version, as that version has it.

        Broken where the name is that of something which cannot be used.
        """

    def entries(self, session: Session | None = None) -> Iterable[Entry]:
        """Every tool as it is now, the one that is meant first of equal names first."""

    def generation(self) -> object:
        """What changes whenever the source has other tools; quick, because every call asks."""

    def problems(self) -> list[ToolError]:
        """What the source holds and cannot be used, with place and cure."""

    def hint(self, slug: str) -> str:
        """Why there is no tool of that slug, although there could be; empty if there is nothing to say."""


class Converter(Protocol):
    """Turns values of the host program into Tools."""

    def converts(self, value: object) -> bool:
        """Whether a value that was handed over as a tool is one of its kind."""

    def convert(self, value: object) -> Tool:
        """The Tool of such a value; raises ToolError with place and cure."""

    def is_tool(self, value: object) -> bool:
        """Whether a value at the top of a module is meant as a tool."""

    def tools_among(self, module: ModuleType, values: Iterable[object]) -> list[object]:
        """What is meant as a tool among the values at the top of a module."""

    def functions_among(self, values: Iterable[object]) -> dict[str, Callable[..., object]]:
        """The functions that tools of bundles name, by their keys."""


@runtime_checkable
class Rule(Protocol):
    """Judges a raw call before anything else looks at it; reads, and changes nothing."""

    name: str

    def concerns(self, tool: Tool) -> bool:
        """Whether any call of this tool could be judged other than ALLOW; False keeps the rule off its way."""

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge; `tool` is None when the name is unknown."""


class Bound(Protocol):
    """A tool made ready to run."""

    is_async: bool
    wants_context: bool
    checks: bool

    @property
    def function(self) -> Callable[..., Any] | None:
        """What to call with the arguments, where that is all there is to do; None where `run` does more."""

    def check(self, arguments: dict[str, object], call: Call) -> object:
        """Refuse, by raising ToolError, what can be seen to fail before anything runs; changes nothing.

        Only asked where `checks` is true. What it returns is `prepared` in the Context that `run` is given.
        """

    def run(self, arguments: dict[str, object], context: Context | None) -> object:
        """Run once: the value, an `Outcome`, or an awaitable of one (`is_async` says which)."""


class Runner(Protocol):
    """Runs one kind of tool."""

    kind: str

    def bind(self, tool: Tool) -> Bound:
        """Do everything that needs to be done once per tool."""

    async def close(self) -> None:
        """End everything that was started."""


# A line of the journal: event, time.monotonic, call id, tool, caller, seconds, kind of error, further facts, the tool's id
# where it is kept under one. A bare tuple, because every call waits for one to be made; it becomes JSON when it is written.
Line = tuple[str, float, str, str, str, float, "str | None", "Mapping[str, object] | None", str]


class Journal(Protocol):
    """Keeps what happened."""

    def record(self, line: Line) -> None:
        """Keep one line; quick, because a call waits for it."""

    def read(self) -> Iterator[dict[str, object]]:
        """The lines that were kept, oldest first."""

    def close(self) -> None:
        """Write down what is still in memory."""


class ApprovalStore(Protocol):
    """Stores calls that wait for a person, and lets an approved one run once."""

    def file(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call, verdict: Verdict) -> Approval:
        """Store the call, or find the same one that waits already; raises LIMIT_EXCEEDED."""

    def find(self, tool: Tool, bound: Bound, arguments: dict[str, object], call: Call) -> Approval | None:
        """The approval of exactly this call that is approved, refused or pending; nothing is used up."""

    def use(self, approval_id: str) -> bool:
        """Use an approval up; False if another call, in any process, was faster."""


class Store(Protocol):
    """Keeps documents by key; many processes may share one. The first word of a key is its space: `bundles/…`."""

    def get(self, key: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
        """The document, or None; raises LIMIT_EXCEEDED, without reading further, for one of more than `limit` bytes."""

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken. Of many creators, in whichever process, one wins."""

    def replace(self, key: str, document: bytes) -> None:
        """Keep a document in place of the one that may be there; a reader sees the old one or the new one."""

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""

    def stamp(self, key: str) -> str | None:
        """What changes whenever the document does, also by another process; None if there is none. Quick: nothing is read."""

    def changed_at(self, key: str) -> float | None:
        """When the document last changed, also by another process, in seconds since 1970; None if there is none."""

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents whose keys begin so, in one pass."""

    def folders(self, prefix: str) -> dict[str, str]:
        """The words that follow `prefix/` in longer keys, each with a stamp of its own.

        It changes when a document below it comes, goes or is replaced as a whole; edits within one may go unnoticed.
        """

    def strangers(self, prefix: str) -> list[str]:
        """What lies directly in a folder and is neither a document nor the store's own, by name."""

    def create_folder(self, prefix: str, documents: Mapping[str, bytes], *, replacing: bool = False) -> bool:
        """Keep a folder of documents, by the last word of each key: others see all of them or none; False if it is there.

        When `replacing`, what is there goes in the same step.
        """

    def discard(self, prefix: str) -> None:
        """Forget everything below a folder at once: others see all of it or nothing."""

    def generation(self, space: str) -> str:
        """What changes with every document of the space that is created, replaced or removed through a store."""

    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Be the only one, of all processes and threads, to hold the name; raises TRANSIENT at the deadline."""


class Queue(Protocol):
    """Keeps requests until their tools are there; many processes may share one. Every method may block and may be called by any thread.

    What a method has returned is stored. A queue that cannot be reached raises TRANSIENT and says that nothing was stored.
    """

    def file(self, request: ToolRequest) -> Filed:
        """Keep a request and wake an idle Builder, in one step; one without an id gets the next number of today (UTC).

        The same id with the same text is no second request; with another text it is refused with CONFLICT. A request that is
        open already is not built twice: without an id it becomes part of that one, which is returned; with an id it is kept
        under its own and ends as that one does. The higher priority counts for both. Its experiment waits from now on.
        Raises LIMIT_EXCEEDED when the numbers of a day are used up.
        """

    def get(self, request_id: str) -> Filed | None:
        """One request."""

    def requests(self, status: Status | None = None, *, limit: int = 1_000) -> list[Filed]:
        """The requests in the order in which they were filed, the newest last; of many the newest."""

    def find_open(self, name: str) -> Filed | None:
        """The request for a tool of that name which is pending or being built, if there is one."""

    def history(self, request_id: str, after: int = 0) -> list[Event]:
        """What happened to it, from the event behind that number on; only the latest are kept."""

    def claim(self, owner: str, seconds: float, request_id: str | None = None) -> Claim | None:
        """Take what is to be built next, by priority and then by age, or this very one, also one that is held.

        None if there is nothing to build, or if another builder has that one or it is over. A lease that ran out is there
        to be claimed again.
        """

    def renew(self, claim: Claim) -> bool:
        """Extend the lease; False if another builder has the request by now, or it is over."""

    def note(self, claim: Claim, step: str, text: str = "") -> bool:
        """Write what happens into the history; False as for `renew`."""

    def hold(self, claim: Claim, text: str) -> bool:
        """Leave it to a person: it stays `building`, without a lease, until it is claimed by its id. False as for `renew`."""

    def give_back(self, claim: Claim, text: str) -> bool:
        """Return it to the queue for another builder. False as for `renew`."""

    def finish(self, claim: Claim, made: Made) -> bool:
        """It is ready: say so to everyone, and release every experiment that waits for it, once. False as for `renew`."""

    def fail(self, claim: Claim, error: str) -> bool:
        """Mark as failed, with the reason. False as for `renew`."""

    def cancel(self, request_id: str, reason: str) -> Filed:
        """Cancel it. Raises NOT_FOUND, or CONFLICT if it is over already."""

    def retry(self, request_id: str) -> Filed:
        """Have one that failed, or was cancelled, built again. Raises NOT_FOUND, or CONFLICT if it is not over or is ready."""

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Have the Builder know what the operator adds to it; one that failed, or was cancelled, is built so when it is retried.

        Raises NOT_FOUND, or CONFLICT if it is ready.
        """

    def experiments(self) -> list[Experiment]:
        """Everything that waits or waited for a tool."""

    def reconcile(self) -> int:
        """Take in what arrived while no builder listened, and what was left half-done; how much that was."""

    def wait(self, seconds: float) -> bool:
        """Sleep until anything may have changed since this object last waited, at most so long; False if nothing did."""

    def remarks(self) -> list[str]:
        """What the operator should know: what would be lost in a fall, what could not be read."""

    def close(self) -> None:
        """Close what is open, and wake every waiter."""


@record
class MakerTask:
    """What a maker is asked for.

    `folder` is its workspace: it holds the brief, the request, the schemas and the contract, and the folder `package`
    that is to be filled. `complaints` are what the gate said to its last attempt. `deadline` is a reading of `time.monotonic`.
    `say` reports progress.
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
    """Writes the code of a tool that was asked for."""

    name: str

    async def make(self, task: MakerTask) -> bool:
        """Fill the package; False leaves that to a person, who delivers it. Raises ToolError if it comes to nothing."""

    async def close(self) -> None:
        """End everything that was started."""
