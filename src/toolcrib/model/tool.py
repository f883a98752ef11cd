"""The canonical definition of a tool, which every format produces, with its limits: time, rate, retries and cost."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any


MEGABYTE = 1_000_000
# About when the host program was loaded: a source file of it that changed later may differ from the loaded code.
LOADED_AT = time.time()
# How the user and the agent of a session communicate.
MODES = frozenset({"text", "voice"})
MAX_ATTEMPTS = 100
# How documents of every format write the fields of a retry policy.
RETRY_KEYS = ("max_attempts", "backoff_type", "initial_delay", "max_delay", "backoff_multiplier")


class Backoff(StrEnum):
    """How the wait grows from one attempt to the next."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    CONSTANT = "constant"


@record
class RetryPolicy:
    """How often to retry, and after what delay; `max_attempts` counts the first attempt, delays are seconds."""

    max_attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay: float = 1.0
    max_delay: float = 60.0
    multiplier: float = 2.0
    jitter: bool = False

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.initial_delay, self.max_delay, self.multiplier) < 0:
            message = "retry policy: max_attempts must be at least 1 and delays must not be negative"
            raise ValueError(message)

    def delay_after(self, attempt: int) -> float:
        """Seconds to wait after the given attempt (the first is 1), before jitter."""
        if self.backoff is Backoff.CONSTANT:
            return min(self.initial_delay, self.max_delay)
        if self.backoff is Backoff.LINEAR:
            return min(self.initial_delay * attempt, self.max_delay)
        try:
            return min(self.initial_delay * self.multiplier ** min(attempt - 1, 64), self.max_delay)
        except OverflowError:
            return self.max_delay


# The key of a rate in documents, and in `limits` of scripts and folders.
MAX_CALLS_KEY = "maxCallsPerMinute"
MAX_CALLS_PER_MINUTE = 1_000_000
ONCE = RetryPolicy()
REPEAT_IDEMPOTENT = RetryPolicy(max_attempts=3, initial_delay=0.3, max_delay=3.0, jitter=True)


@record
class Limits:
    """The limits that a tool declares for its calls; None means the default of the crib."""

    timeout_ms: int | None = None
    latency_budget_ms: int | None = None
    calls_per_minute: int | None = None
    retry: RetryPolicy | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_ms", "latency_budget_ms", "calls_per_minute"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                message = f"{name} must be greater than 0, not {number}"
                raise ValueError(message)


@record
class Cost:
    """What a call costs; `estimated_duration` is in seconds."""

    per_invocation: float = 0.0
    per_minute: float = 0.0
    estimated_duration: float = 0.0
    currency: str = "USD"

    def __post_init__(self) -> None:
        if not all(0 <= number < inf for number in (self.per_invocation, self.per_minute, self.estimated_duration)):
            message = "cost must be numbers that are not negative"
            raise ValueError(message)

    def of(self, seconds: float) -> float:
        """The cost of one call that takes this long."""
        return round(self.per_invocation + seconds / 60 * self.per_minute, 6)

    def estimate(self) -> float:
        """The cost of one call of the estimated duration."""
        return self.of(self.estimated_duration)


MAX_NAME = 64


class Behaviour(StrEnum):
    """What a tool is for."""

    RETRIEVAL = "retrieval"
    ACTION = "action"
    UTILITY = "utility"


class SideEffects(StrEnum):
    """What a call may change."""

    NONE = "none"
    READ_ONLY = "read_only"
    WRITES = "writes"


@record
class Origin:
    """The file and line that define a tool."""

    place: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.place}:{self.line}"


@record
class Function:
    """A function of the host program; it runs in this process.

    `revive` converts validated JSON arguments into the types of the signature, `flatten` converts the return value into JSON
    or into an `Outcome`, `check` raises ToolError for a call that would certainly fail; None means there is nothing to do.
    `preview` tells an approver what runs instead of the function. `context_parameter` names the parameter that takes the Context.
    With `takes_whole` the function is called as `call(context, arguments)`, as functions registered under a key are. With `yields`
    its value is the list of the items that it yields.
    """

    kind = "function"

    call: Callable[..., object]
    is_async: bool
    thread: bool = False
    context_parameter: str | None = None
    revive: Callable[[dict[str, object]], dict[str, object]] | None = None
    flatten: Callable[[object], object] | None = None
    check: Callable[[dict[str, object]], None] | None = None
    preview: Callable[[dict[str, object]], Iterable[Any]] | None = None
    takes_whole: bool = False
    yields: bool = False

    def identity(self) -> dict[str, object]:
        """What the content hash covers: where the function is defined, and its source if that can be read."""
        import inspect

        function = inspect.unwrap(self.call)
        function = getattr(function, "__func__", function)
        try:
            text = inspect.getsource(function)
        except (OSError, TypeError):
            text = ""
        names = (getattr(function, "__module__", ""), getattr(function, "__qualname__", type(function).__qualname__))
        return {"kind": self.kind, "module": names[0], "name": names[1], "source": text, "thread": self.thread}


class Convention(StrEnum):
    """How a file takes its arguments and returns its result."""

    KEYWORDS = "keywords"  # entry(**arguments) returns the result
    PARAMS = "params"  # entry(arguments) returns the result
    ARGV = "argv"  # the file runs with --key value and prints the result
    SINK = "sink"  # the class `entry`, constructed with the arguments; it is written to and returns no result
    OBJECT = "object"  # the function or object that `binding` locates in the file returns the result
    HANDLER = "handler"  # entry(args, context) returns the response of a handler


@record
class Script:
    """A file of code that was read and not run; it runs in a child process, from exactly the bytes that were read.

    `imports` names the modules that the file imports at its top, which a warm process may have loaded. `files` are the bytes
    of a package by their paths in its folder, the script itself included; empty for a single file. With `enveloped` the
    result may be an object of only `result`, `success` and `error`, which then decides over success and failure.
    `binding` says where in a file of another framework the function is, and how it is called; `packages` are what such a
    file needs if it does not declare them.
    """

    kind = "script"

    path: Path
    code: bytes
    language: str
    entry: str
    convention: Convention = Convention.KEYWORDS
    imports: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    enveloped: bool = False
    binding: Mapping[str, object] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        import hashlib

        facts: dict[str, object] = {
            "kind": self.kind,
            "code": hashlib.sha256(self.code).hexdigest(),
            "language": self.language,
            "entry": self.entry,
            "convention": self.convention,
        }
        if self.files:
            facts["files"] = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(self.files.items())}
        if self.binding:
            facts["binding"] = self.binding
        return {**facts, "enveloped": True} if self.enveloped else facts


@record
class Chained:
    """A tool that another tool, its executor, runs; the chain of executors ends in a primitive of the platform.

    `kind` is the canonical one (script, subprocess, http, docker, runtime, primitive, library, sink). `script` is the code
    of the file, None if the file holds only a description. `folder` is the working directory. `action` is the sub-action
    that this tool performs. `hosts` restricts its network access; None restricts nothing.
    """

    kind: str
    tool_type: str
    executor: str | None
    folder: Path
    config: Mapping[str, object] = field(default_factory=dict)
    script: Script | None = None
    action: str = ""
    hosts: tuple[str, ...] | None = None

    @property
    def is_command_line(self) -> bool:
        """Whether its command is a line for a shell."""
        return self.config.get("shell") is True

    def identity(self) -> dict[str, object]:
        """What the content hash covers; its location is not part of it."""
        return {
            "kind": self.kind,
            "toolType": self.tool_type,
            "executor": self.executor,
            "config": self.config,
            "script": None if self.script is None else self.script.identity(),
            "action": self.action,
            "hosts": self.hosts,
        }


@record
class Handler:
    """The code of a tool folder, which takes `{args, context}` and returns a handler's response.

    `root` is the folder that holds the tool folders, `folder` the name of this one in it. `files` are the bytes of all its
    files and `shared` those of the sibling folders that begin with an underscore, each by its path from `root`; these bytes
    run, even if the files change. `registry` is the version of the registry that it was loaded from.
    `hosts` restricts its network access; None restricts nothing.
    """

    kind = "handler"

    root: Path
    folder: str
    language: str
    files: Mapping[str, bytes]
    shared: Mapping[str, bytes] = field(default_factory=dict)
    registry: str = ""
    hosts: tuple[str, ...] | None = None

    @property
    def path(self) -> str:
        """The file that holds `execute`, from the root."""
        return f"{self.folder}/handler.{'js' if self.language == 'javascript' else 'py'}"

    @property
    def contents(self) -> dict[str, bytes]:
        """All its files, its own and the shared ones, by their paths from the root."""
        return {**self.shared, **self.files}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its own folder, followed by the shared ones."""
        root = self.root.absolute()
        names = [self.folder, *sorted({path.partition("/")[0] for path in self.shared})]
        return tuple(root / name for name in names)

    def identity(self) -> dict[str, object]:
        """What the content hash covers; its location is not part of it."""
        import hashlib

        return {
            "kind": self.kind,
            "language": self.language,
            "files": {path: hashlib.sha256(code).hexdigest() for path, code in sorted(self.contents.items())},
            "hosts": self.hosts,
        }


@record
class Registered:
    """A function by the key under which the host program may have registered it; it is looked up when the tool is called.

    `model` names a model that the tool requires.
    """

    kind = "function"

    key: str
    model: str = ""

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        return {"kind": self.kind, "key": self.key, "model": self.model}


class Encoding(StrEnum):
    """How the body of a response is decoded; `declared` as its Content-Type says, `events` and `lines` item by item."""

    JSON = "json"
    TEXT = "text"
    DECLARED = "declared"
    EVENTS = "events"
    LINES = "lines"


class ErrorMode(StrEnum):
    """What happens when a request fails: the call fails, or its value is empty."""

    FAIL = "fail"
    EMPTY = "empty"


class Spelling(StrEnum):
    """How slots are written: `${city}` in documents of bundles, `{city}` and `${VARIABLE}` in scripts."""

    DOLLARS = "dollars"
    BRACES = "braces"


class Method(StrEnum):
    """The methods of HTTP that a tool may use."""

    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    OPTIONS = "OPTIONS"


METHODS = tuple(method.value for method in Method)
# Safe and repeatable (idempotent) as RFC 9110 defines them; reading methods have no request body.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
READING_METHODS = frozenset({"GET", "HEAD"})
REPEATABLE_METHODS = READING_METHODS | {"PUT", "DELETE"}


@record
class HttpCall:
    """One request of a tool, with slots in url, query, headers, body and auth.

    `name` is how later requests refer to its response. `success` are the statuses that count as success; empty means 200 to
    299. `extract` is an expression for the value in the response; empty takes all of it. A body that is not text is a JSON
    document, headers that are text are one slot. `auth` says how the request is authenticated, `pagination` how further
    pages are requested, `cache` for how long a response may be reused.
    """

    url: str
    name: str = ""
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] | str = field(default_factory=dict)
    body: object = ""
    success: frozenset[int] = frozenset()
    timeout_ms: int = 10_000
    encoding: Encoding = Encoding.JSON
    extract: str = ""
    error_mode: ErrorMode = ErrorMode.FAIL
    retry: RetryPolicy | None = None
    auth: Mapping[str, object] = field(default_factory=dict)
    pagination: Mapping[str, object] = field(default_factory=dict)
    cache: Mapping[str, object] = field(default_factory=dict)

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        further = {name for name in ("auth", "pagination", "cache") if not facts[name]}
        known = {name: fact for name, fact in facts.items() if name not in further}
        return {**known, "success": sorted(self.success), "retry": repr(self.retry)}


@record
class Http:
    """HTTP requests, one after the other; the response of the last is the value.

    `bundle` is the id of its bundle, which a slot may refer to. `hosts` restricts its network access; None restricts
    nothing.
    """

    kind = "http"

    calls: tuple[HttpCall, ...]
    model: str = ""
    bundle: str = field(default="", compare=False)
    spelling: Spelling = Spelling.DOLLARS
    hosts: tuple[str, ...] | None = None

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        calls = [call.identity() for call in self.calls]
        facts: dict[str, object] = {"kind": self.kind, "calls": calls, "model": self.model}
        return facts if self.hosts is None else {**facts, "hosts": self.hosts}


@record
class Remote:
    """A tool that runs on a server; `kind` and `digest` are the kind and the content hash that it has there."""

    kind: str
    url: str
    digest: str

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        return {"kind": self.kind, "url": self.url, "digest": self.digest}


class Rows(StrEnum):
    """The form in which a statement returns its rows: an object that holds them, a list, one row, or one value of one row."""

    ROWS = "rows"
    LIST = "list"
    ROW = "row"
    VALUE = "value"


@record
class Sql:
    """One SQL statement with bound parameters.

    `database` is a path in the workspace (SQLite) or a `postgresql://` URL, which may hold or be a slot such as `${secret:SHOP}`.
    `choices` are arguments whose value selects a piece of SQL that the author wrote. Only with `write` may it change the
    database; `confirm` says that each such call needs confirmation. `hosts` restricts its network access; None restricts nothing.
    """

    kind = "sql"

    database: str
    statement: str
    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    write: bool = False
    confirm: bool = True
    returns: Rows = Rows.ROWS
    max_rows: int = 1_000
    max_bytes: int = 1_000_000
    timeout_ms: int = 10_000
    spelling: Spelling = Spelling.DOLLARS
    hosts: tuple[str, ...] | None = None

    def identity(self) -> dict[str, object]:
        """What the content hash covers."""
        return {"kind": self.kind, **{each.name: getattr(self, each.name) for each in fields(self)}}


Run = Function | Script | Chained | Handler | Registered | Http | Remote | Sql


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """The definition of a tool. Schemas are plain JSON and are never modified.

    `summary` is the text for a system prompt, `documentation` the full text. `examples` are sample arguments of the author.
    `metadata` are further facts of the author, for people to read.
    `id` is the id of a stored tool, which survives a change of its name; empty if it is not stored.
    Tools are compared by identity, because closures with the same source are different tools; `content_hash` compares
    definitions.
    """

    name: str
    description: str
    parameters: dict[str, object]
    run: Run
    id: str = ""
    version: str = "1.0.0"
    display_name: str = ""
    output_schema: dict[str, object] | None = None
    bundle: str = ""
    category: str = ""
    source_type: str = ""
    behaviour: Behaviour | None = None
    side_effects: SideEffects | None = None
    idempotent: bool = False
    requires_confirmation: bool = False
    modes: frozenset[str] | None = None
    requires: frozenset[str] = frozenset()
    limits: Limits = Limits()
    cost: Cost | None = None
    tags: tuple[str, ...] = ()
    summary: str = ""
    documentation: str = ""
    examples: tuple[dict[str, object], ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    deprecated: bool = False
    origin: Origin | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_slug(self.slug, self.name)
        check_version(self.version)

    def in_bundle(self, bundle: str) -> Tool:
        """The same tool in another bundle; `replace` would validate the name again, which takes longer than the copy."""
        made = object.__new__(Tool)
        made.__dict__.update(self.__dict__)
        made.__dict__["bundle"] = bundle
        made.__dict__.pop("content_hash", None)
        return made

    @property
    def slug(self) -> str:
        """The name with dashes for underscores, as documents and addresses spell it."""
        return self.name.replace("_", "-")

    @property
    def kind(self) -> str:
        """The kind of its `run`, which selects the runner."""
        return self.run.kind

    @property
    def script(self) -> Script | None:
        """The file of code that it runs, by itself or through executors; None if it runs none."""
        run = self.run.script if isinstance(self.run, Chained) else self.run
        return run if isinstance(run, Script) else None

    @property
    def address(self) -> str:
        """The unambiguous name of this tool: bundle, slug and version."""
        return f"{self.bundle}/{self.slug}@{self.version}"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over everything that changes behaviour or that a model reads; the same on every machine."""
        if isinstance(self.run, Remote):
            return self.run.digest
        import hashlib
        import json

        facts = {
            "name": self.name,
            "version": self.version,
            "displayName": self.display_name,
            "description": self.description,
            "summary": self.summary,
            "documentation": self.documentation,
            "parameters": self.parameters,
            "outputSchema": self.output_schema,
            "category": self.category,
            "behaviour": self.behaviour,
            "sideEffects": self.side_effects,
            "idempotent": self.idempotent,
            "requiresConfirmation": self.requires_confirmation,
            "modes": None if self.modes is None else sorted(self.modes),
            "requires": sorted(self.requires),
            "limits": repr(self.limits),
            "cost": repr(self.cost),
            "tags": self.tags,
            "examples": self.examples,
            "metadata": self.metadata,
            "deprecated": self.deprecated,
            "run": self.run.identity(),
        }
        # The standard library and not orjson: it keeps integers beyond 64 bit, which a schema may hold.
        text = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@record
class Entry:
    """A tool as the catalog returns it: enabled, or disabled for a reason."""

    tool: Tool
    enabled: bool = True
    reason: str = ""
    cure: Cure | str = ""


@record(kw_only=False)
class Broken:
    """A tool that cannot be used; it keeps its name, so that no tool of a later source is called in its place."""

    reason: str


def is_document(tool: Tool) -> bool:
    """Whether the tool is an HTTP or SQL document of a bundle, whose hosts the list of allowed hosts restricts."""
    return isinstance(tool.run, Http | Sql) and tool.run.spelling is Spelling.DOLLARS


def check_slug(slug: str, name: str) -> None:
    """Raise ToolError unless the slug is 1 to 64 Unicode letters, digits and dashes."""
    if problem := _problem_of(slug, "-", "letters, digits, '-' or '_'"):
        raise ToolError(Kind.VALIDATION, f"name {name[:80]!r}: {problem}")


def check_version(version: str) -> None:
    """Raise ToolError unless the version is 1 to 64 Unicode letters, digits, dashes and dots."""
    if problem := version_problem(version):
        raise ToolError(Kind.VALIDATION, f"version {version[:80]!r}: {problem}")


def slug_problem(slug: str) -> str:
    """Why it cannot be a slug; empty if it can."""
    return _problem_of(slug, "-", "letters, digits or '-'")


def version_problem(version: str) -> str:
    """Why it cannot be a version; empty if it can."""
    if version and not version.strip("."):
        return "dots alone mean a folder in a path, which clients shorten; write a letter, a digit or '-' with them"
    return _problem_of(version, "-.", "letters, digits, '-' or '.'")


def _problem_of(text: str, signs: str, rule: str) -> str:
    # Fast path for ASCII, which nearly every name and version is.
    bare = text
    for sign in signs:
        bare = bare.replace(sign, "a")
    if len(text) <= MAX_NAME and bare.isascii() and bare.isalnum():
        return ""
    if not 0 < len(text) <= MAX_NAME or not all(letter in signs or _is_letter_or_digit(letter) for letter in text):
        return f"use 1 to {MAX_NAME} {rule}"
    if text.isascii():
        return ""
    import unicodedata

    # Two Unicode spellings of one name would be two tools.
    composed = unicodedata.normalize("NFC", text)
    return "" if composed == text else f"its letters have a shorter or more usual spelling; write {composed!r} (NFC)"


def _is_letter_or_digit(letter: str) -> bool:
    """Whether it is a letter or a decimal digit of Unicode; other numbers, such as ½, are neither."""
    if letter.isascii():
        return letter.isalnum()
    return letter.isalpha() or letter.isdecimal()
