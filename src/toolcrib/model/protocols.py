"""Every place where a part can be added; a plug-in meets one of these and names itself under the entry-point group.

    [project.entry-points."toolcrib.plugins"]
    mine = "my_package:register"

`register(plugins: Plugins)` is called once when a Crib starts; the parts that come with Toolcrib register the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from toolcrib.model.call import Call, Context
    from toolcrib.model.errors import ToolError
    from toolcrib.model.tool import Tool
    from toolcrib.model.verdict import Verdict

ENTRY_POINT_GROUP = "toolcrib.plugins"
LOCK_SECONDS = 10.0


class Dialect(Protocol):
    """Reads one way of writing tools down, without running any of it."""

    name: str

    def reads(self, path: Path) -> bool:
        """Whether this file is written in the dialect."""

    def read(self, path: Path, code: bytes) -> Iterable[Tool]:
        """The tools of the file; raises ToolError with place and cure."""


@runtime_checkable
class Rule(Protocol):
    """Judges a raw call before anything else looks at it; reads, and changes nothing."""

    name: str

    def concerns(self, tool: Tool) -> bool:
        """Whether any call of this tool could be judged other than ALLOW; False keeps the rule off its way."""

    def __call__(self, tool: Tool | None, call: Call) -> Verdict:
        """Judge; `tool` is None when nobody knows the name."""


class Bound(Protocol):
    """A tool made ready to run."""

    is_async: bool
    wants_context: bool
    checks: bool

    @property
    def function(self) -> Callable[..., Any] | None:
        """What to call with the arguments, where that is all there is to do; None where `run` does more."""

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse, by raising ToolError, what can be seen to fail before anything runs; changes nothing.

        Only asked where `checks` is true.
        """

    def run(self, arguments: dict[str, object], context: Context | None) -> object:
        """Run once: the value, an `Outcome`, or an awaitable of one (`is_async` says which)."""


class Runner(Protocol):
    """Runs one kind of tool."""

    kind: str

    def bind(self, tool: Tool) -> Bound:
        """Do everything that needs to be done once per tool."""

    async def close(self) -> None:
        """End whatever was started."""


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


class Store(Protocol):
    """Keeps documents by key; many processes may share one. The first word of a key is its space: `bundles/…`."""

    def get(self, key: str) -> bytes | None:
        """The document, or None."""

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken. Of many creators, in whichever process, one wins."""

    def replace(self, key: str, document: bytes) -> None:
        """Keep a document in place of the one that may be there; whoever reads sees the old one or the new one."""

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""

    def stamp(self, key: str) -> str | None:
        """What changes whenever the document does, whoever changed it; None if there is none. Quick: nothing is read."""

    def changed_at(self, key: str) -> float | None:
        """When the document last changed, whoever changed it, in seconds since 1970; None if there is none."""

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents whose keys begin so, in one pass."""

    def folders(self, prefix: str) -> dict[str, str]:
        """The words that follow `prefix/` in longer keys, each with a stamp of its own.

        It changes when a document below it comes, goes or is replaced as a whole; edits within one may go unnoticed.
        """

    def strangers(self, prefix: str) -> list[str]:
        """What lies directly in a folder and is neither a document nor the store's own, by name."""

    def discard(self, prefix: str) -> None:
        """Forget everything below a folder at once: others see all of it or nothing."""

    def generation(self, space: str) -> str:
        """What changes with every document of the space that is created, replaced or removed through a store."""

    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Be the only one, of all processes and threads, to hold the name; raises TRANSIENT at the deadline."""


@dataclass(slots=True)
class Plugins:
    """What the parts register themselves in."""

    dialects: list[Dialect] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    runners: dict[str, Runner] = field(default_factory=dict)
    tools: list[Tool] = field(default_factory=list)
    functions: dict[str, Callable[..., object]] = field(default_factory=dict)
    problems: list[ToolError] = field(default_factory=list)
    on_close: list[Callable[[], None]] = field(default_factory=list)
