"""A call of a tool, what a caller may do, and what a running tool may use."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolcrib.model.result import Result
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool


# The event of the line that the pipeline writes to the journal for each call.
CALL = "call"
MAX_DEPTH = 10
PLAIN = (None, None, None, None, None, None, None)


# From the least to the most urgent.
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"
DEFAULT_TOKENS = 1_000


class Consent(StrEnum):
    """How a call that needs confirmation can get it.

    token: the caller hands back the token of the refusal, for a person it speaks for
    either: the same, or another person approves the stored call
    person: only another person can approve the stored call; the caller gets no token
    """

    TOKEN = "token"  # noqa: S105 - a word, no secret
    EITHER = "either"
    PERSON = "person"


class _Draft:
    """The fields of a Call before it is frozen; see `plain_call`."""

    __slots__ = (
        "arguments",
        "bundle",
        "caller",
        "client",
        "confirmation",
        "consent",
        "deadline",
        "grants",
        "id",
        "mode",
        "name",
        "parent",
        "session",
        "version",
    )

    name: str
    arguments: dict[str, object]
    caller: str
    bundle: str | None
    version: str | None
    session: Session | None
    mode: str | None
    confirmation: str | None
    deadline: float | None
    grants: frozenset[str] | None
    parent: Call | None
    id: str
    consent: Consent
    client: ClientLink | None


@record
class Call(_Draft):
    """A request to run a tool: its name, arguments, caller and deadline.

    `deadline` is in the time of `time.monotonic`. `grants` restricts the operator's grants and never widens them; None
    restricts nothing. `parent` is the call whose tool made this one. `consent` says how a confirmation can be given.
    `client` connects the running tool with the client.
    """

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    caller: str = "local"
    bundle: str | None = None
    version: str | None = None
    session: Session | None = None
    mode: str | None = None
    confirmation: str | None = None
    deadline: float | None = None
    grants: frozenset[str] | None = None
    parent: Call | None = None
    id: str = ""
    consent: Consent = Consent.TOKEN
    client: ClientLink | None = None

    def __post_init__(self) -> None:
        if type(self.consent) is not Consent:  # compared by identity: a plain "person" would be none of the three
            object.__setattr__(self, "consent", Consent(self.consent))

    @property
    def is_plain(self) -> bool:
        """Whether it has only a tool, arguments and a caller, so that the fast path can make it."""
        further = (self.session, self.mode, self.confirmation, self.deadline, self.grants, self.parent, self.client)
        return further == PLAIN

    @property
    def depth(self) -> int:
        """The number of its ancestors."""
        return 0 if self.parent is None else self.parent.depth + 1


def plain_call(
    name: str,
    arguments: dict[str, object],
    caller: str,
    bundle: str | None = None,
    version: str | None = None,
    call_id: str = "",
    consent: Consent = Consent.TOKEN,
) -> Call:
    """Make a Call that only carries arguments, several times as fast as its constructor (see `result.succeed` for the reason)."""
    draft = _Draft()
    draft.name = name
    draft.arguments = arguments
    draft.caller = caller
    draft.bundle = bundle
    draft.version = version
    draft.session = draft.mode = draft.confirmation = draft.deadline = draft.grants = draft.parent = None
    draft.client = None
    draft.id = call_id
    draft.consent = consent
    draft.__class__ = Call
    return draft  # type: ignore[return-value]  # it is one now; `cast` would be one more call


class CallTool(Protocol):
    """Calls another tool for the running one."""

    async def __call__(self, name: str, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Run the tool under the same caller, within the same grants and deadline."""


class Audit(Protocol):
    """Writes an entry of the running tool to the journal."""

    def __call__(self, event: str, data: Mapping[str, object] | None = None) -> None:
        """Record the event."""


@record
class Question:
    """A question to the client: `method` and `params` are those of the Model Context Protocol.

    `key` identifies the question among those of one call, so that its answer can be matched; an interface numbers those
    without a key.
    """

    method: str
    params: Mapping[str, object] = field(default_factory=dict)
    key: str = ""


class ClientLink(Protocol):
    """The connection to the client of a running call, provided by an interface; its methods are thread-safe."""

    @property
    def can_ask(self) -> bool:
        """Whether the client can answer any kind of question."""

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Report progress to the client, if it asked for that."""

    def log(self, level: str, data: object, logger: str) -> None:
        """Send the client a log message, if it asked for messages of this level."""

    async def ask(self, question: Question) -> dict[str, object]:
        """The client's answer; raises ToolError where the client cannot be asked, or does not answer."""

    @property
    def takes_chunks(self) -> bool:
        """Whether the client wants what a tool yields before the value is complete."""

    async def chunk(self, value: object) -> None:
        """Send the client an item that the tool yielded, not validated against a schema; waits for a client that reads slowly."""


class ToolLink(ClientLink, Protocol):
    """The connection to the client as a running tool has it; its runner reads here how long the tool waits for answers."""

    def waited(self) -> float:
        """How many seconds the tool, or one that it called, has waited for the client so far."""

    def hold_while_asking(self, hold: Callable[[], AbstractContextManager[None]]) -> None:
        """Enter the context manager of `hold` while questions are open; it may refuse them with a ToolError."""

    async def end_chunks(self) -> None:
        """Send the text that was held back because it could have been the beginning of a secret."""


class ReachesClient:
    """The methods by which a tool reaches the client of its call; without a client they do nothing, and questions are refused."""

    __slots__ = ()

    client: ClientLink | None

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Report progress; each figure should be greater than the last."""
        if self.client is not None:
            self.client.progress(progress, total, message)

    def log(self, level: str, data: object) -> None:
        """Send a log message to the client; `data` is any JSON value."""
        if level not in LOG_LEVELS:
            raise ToolError(Kind.VALIDATION, f"there is no level {level!r:.40}; use one of {', '.join(LOG_LEVELS)}")
        if self.client is not None:
            self.client.log(level, data, self._log_name())

    async def elicit(self, message: str, schema: Mapping[str, object], *, key: str = "") -> dict[str, object]:
        """Ask the user of the client: `{"action": "accept", "content": {…}}`, or the action `decline` or `cancel`.

        `schema` is an object whose properties are texts, numbers, switches or choices.
        """
        return await self._ask(ELICIT, {"message": message, "requestedSchema": dict(schema)}, key)

    async def sample(
        self,
        messages: str | Sequence[Mapping[str, object]],
        *,
        max_tokens: int = DEFAULT_TOKENS,
        key: str = "",
        **more: object,
    ) -> dict[str, object]:
        """Ask the model of the client; a text is one message of the user. The answer has `role`, `content` and `model`.

        `more` are further parameters of the request, such as `systemPrompt` or `temperature`.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        return await self._ask(SAMPLE, {"messages": list(messages), "maxTokens": max_tokens, **more}, key)

    async def roots(self, *, key: str = "") -> list[dict[str, object]]:
        """Ask the client for the folders that it works on, each with a `uri`."""
        found = (await self._ask(ROOTS, {}, key))["roots"]
        return found if isinstance(found, list) else []

    def _log_name(self) -> str:
        return ""

    async def _ask(self, method: str, params: Mapping[str, object], key: str) -> dict[str, object]:
        if self.client is None:
            raise cannot_ask(method)
        return await self.client.ask(Question(method=method, params=params, key=key))


def cannot_ask(method: str) -> ToolError:
    """The error for a question that the client has not declared as a capability."""
    name = method.partition("/")[0]
    return ToolError(
        Kind.CAPABILITY_MISSING,
        f"the client of this call cannot answer {method}; call the tool from a client with the capability {name!r}",
        details={"clientCapability": name},
    )


@record
class Context(ReachesClient):
    """What a running tool may use; `progress`, `log`, `elicit`, `sample` and `roots` reach the client of the call.

    `deadline` is in the time of `time.monotonic`, `seconds` the time limit that set it. `grace` is the time in
    seconds for the answer: some after the tool's own time limit, none after a deadline of its caller. `prepared` is the
    return value of `Bound.check`. `mask` masks stored secrets in what is sent to the client.
    """

    tool: Tool
    call_id: str
    caller: str
    mode: str
    deadline: float
    seconds: float
    session: Session | None
    call: CallTool
    audit: Audit
    grace: float = 0.0
    client: ToolLink | None = None
    prepared: object = field(default=None, repr=False)
    mask: Callable[[object], object] | None = field(default=None, repr=False)

    @property
    def send_chunk(self) -> Callable[[object], Awaitable[None]] | None:
        """Sends an item that the tool yielded, as JSON, to the client; None if the client takes no chunks."""
        return self.client.chunk if self.client is not None and self.client.takes_chunks else None

    def _log_name(self) -> str:
        return self.tool.name


class Scope(StrEnum):
    """What a token permits; `confirm` is for people, who confirm their own calls, `setup` to set secrets and allowed hosts."""

    READ = "read"
    INVOKE = "invoke"
    MANAGE = "manage"
    APPROVE = "approve"
    CONFIRM = "confirm"
    SETUP = "setup"
