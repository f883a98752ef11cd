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
    from collections.abc import Callable, Mapping
    from pathlib import Path


MEGABYTE = 1_000_000
# A file of the host program that changed later may have another text than what was loaded from it.
LOADED_AT = time.time()
# What an agent may be spoken to in.
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
    """When to try again; `max_attempts` counts the first attempt, delays are seconds."""

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
    """What a tool declares about itself; None leaves the decision to the crib."""

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
        """The price of one call that takes this long."""
        return round(self.per_invocation + seconds / 60 * self.per_minute, 6)

    def estimate(self) -> float:
        """The price of one call that takes as long as its author expects."""
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
    """Where a tool is written down."""

    place: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.place}:{self.line}"


@record
class Function:
    """A function of the host program; it runs in this process.

    `revive` turns checked JSON arguments into the objects that the signature asks for, `flatten` turns what the function
    returned into JSON or into an `Outcome`, `check` raises ToolError for what can be seen to fail before it runs; None
    means there is nothing to do. `context_parameter` names the parameter that takes the Context. One that `takes_whole` is
    called as `call(context, arguments)`, as functions are that are registered under a key. What one `yields` is its value, item
    by item.
    """

    kind = "function"

    call: Callable[..., object]
    is_async: bool
    thread: bool = False
    context_parameter: str | None = None
    revive: Callable[[dict[str, object]], dict[str, object]] | None = None
    flatten: Callable[[object], object] | None = None
    check: Callable[[dict[str, object]], None] | None = None
    takes_whole: bool = False
    yields: bool = False

    def identity(self) -> dict[str, object]:
        """What makes this another function: where it is defined, and its text where that can be read."""
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
    """How a file of code takes its arguments and gives its answer."""

    KEYWORDS = "keywords"  # entry(**arguments), the return value
    PARAMS = "params"  # entry(arguments), the return value
    ARGV = "argv"  # the file itself with --key value, what it prints
    SINK = "sink"  # the class `entry`, made from arguments; it is written to and answers nothing
    OBJECT = "object"  # the function or object that `binding` finds in the file, the return value
    HANDLER = "handler"  # entry(args, context), a response of the form that handlers give


@record
class Script:
    """A file of code that was read and not run; it runs in a child process, from the very bytes that were read.

    `imports` names the modules that its first lines bring in, which a warm process may have ready. `files` are the bytes of
    a package by their paths from its folder, the script's own among them; none for a file that stands alone. An answer of
    one that is `enveloped` may be an object of `result`, `success` and `error` alone, which then says how it went.
    `binding` says where in a file of another framework the function is, and how it is called, `packages` what such a file
    needs where it does not say so.
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
        """What makes this another script."""
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
    """A tool that its executor runs: the executor is a tool itself, and the chain ends in a primitive of the platform.

    `kind` is the canonical one (script, subprocess, http, docker, runtime, primitive, library, sink). `script` is the code
    of a file that is code, None where the file only describes. `folder` is where it runs. `action` is the sub-action that
    this tool is. `hosts` narrows where its network leads; None narrows nothing.
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
        """Whether it is written down as a line for a shell."""
        return self.config.get("shell") is True

    def identity(self) -> dict[str, object]:
        """What makes this another tool; where it lies does not."""
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
    """The code of a tool folder, which takes `{args, context}` and answers with a response of its own form.

    `root` is the folder that holds the tool folders, `folder` the name of this one in it. `files` are the bytes of all its
    files and `shared` those of the folders beside it that begin with an underscore, each by its path from `root`; what runs
    are these bytes, even if the files change. `registry` is the version of the registry that it was loaded from.
    `hosts` narrows where its network leads; None narrows nothing.
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
        """Every file that belongs to it, its own and the shared ones, by their paths from the root."""
        return {**self.shared, **self.files}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its own folder, and then those that it shares with others."""
        root = self.root.absolute()
        names = [self.folder, *sorted({path.partition("/")[0] for path in self.shared})]
        return tuple(root / name for name in names)

    def identity(self) -> dict[str, object]:
        """What makes this another handler; where it lies does not."""
        import hashlib

        return {
            "kind": self.kind,
            "language": self.language,
            "files": {path: hashlib.sha256(code).hexdigest() for path, code in sorted(self.contents.items())},
            "hosts": self.hosts,
        }


@record
class Registered:
    """A function that the host program may or may not have registered under this key; what runs is the one it has.

    `model` names a model that the tool cannot do without.
    """

    kind = "function"

    key: str
    model: str = ""

    def identity(self) -> dict[str, object]:
        """What makes this another tool."""
        return {"kind": self.kind, "key": self.key, "model": self.model}


class Encoding(StrEnum):
    """How the body of an answer is read; `declared` as its Content-Type says, `events` and `lines` item by item."""

    JSON = "json"
    TEXT = "text"
    DECLARED = "declared"
    EVENTS = "events"
    LINES = "lines"


class ErrorMode(StrEnum):
    """What a request comes to that failed."""

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
# What changes nothing; what reads, and has no body; what may be repeated.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
READING_METHODS = frozenset({"GET", "HEAD"})
REPEATABLE_METHODS = READING_METHODS | {"PUT", "DELETE"}


@record
class HttpCall:
    """One request of a tool, with slots in url, query, headers, body and auth.

    `name` is how later requests speak of its answer. `success` are the statuses that count as success, none of them named
    means any from 200 to 299. `extract` takes the value out of the answer; empty takes all of it. A body that is not text is
    a JSON document, headers that are text are one slot. `auth` says how the request is signed, `pagination` how further pages are asked for, `cache` for how
    long an answer may be used again.
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
        """What makes this another request."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        further = {name for name in ("auth", "pagination", "cache") if not facts[name]}
        known = {name: fact for name, fact in facts.items() if name not in further}
        return {**known, "success": sorted(self.success), "retry": repr(self.retry)}


@record
class Http:
    """Requests to the outside, one after the other; the answer of the last is the value.

    `bundle` is the id of the bundle that keeps it, which a request may name. `hosts` narrows where it leads; None narrows
    nothing.
    """

    kind = "http"

    calls: tuple[HttpCall, ...]
    model: str = ""
    bundle: str = field(default="", compare=False)
    spelling: Spelling = Spelling.DOLLARS
    hosts: tuple[str, ...] | None = None

    def identity(self) -> dict[str, object]:
        """What makes this another tool."""
        calls = [call.identity() for call in self.calls]
        facts: dict[str, object] = {"kind": self.kind, "calls": calls, "model": self.model}
        return facts if self.hosts is None else {**facts, "hosts": self.hosts}


@record
class Remote:
    """A tool of a server, which runs there: `kind` is what runs it there, `digest` the content hash that it has there."""

    kind: str
    url: str
    digest: str

    def identity(self) -> dict[str, object]:
        """What makes this another tool."""
        return {"kind": self.kind, "url": self.url, "digest": self.digest}


class Rows(StrEnum):
    """What of its rows a statement returns: an object that holds them, a plain list, one row, or one value of one row."""

    ROWS = "rows"
    LIST = "list"
    ROW = "row"
    VALUE = "value"


@record
class Sql:
    """One SQL statement with parameters that a database binds.

    `database` is a path in the workspace (SQLite) or a `postgresql://` URL, which may hold or be a slot such as `${secret:SHOP}`.
    `choices` are arguments whose value selects a piece of SQL that the author wrote. Only one that declares to `write` may
    change the database; `confirm` says that each call of it is confirmed. `hosts` narrows where it leads; None narrows nothing.
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
        """What makes this another tool."""
        return {"kind": self.kind, **{each.name: getattr(self, each.name) for each in fields(self)}}


Run = Function | Script | Chained | Handler | Registered | Http | Remote | Sql


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """Everything there is to know about a tool. Schemas are plain JSON and are read, never changed.

    `summary` is what a system prompt says of it, `documentation` all there is to read. `examples` are arguments that its
    author showed. `metadata` is what else the author said, for people to read.
    `id` is the id of a stored tool, which a new name does not change; empty where it is not stored.
    Two tools are the same only if they are one object: closures of one text are different tools, and `content_hash`
    says whether two definitions read alike.
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
        """The same tool in another bundle; `replace` would check the name again, which takes longer than all of this."""
        made = object.__new__(Tool)
        made.__dict__.update(self.__dict__)
        made.__dict__["bundle"] = bundle
        # It is made of what the bundle is a part of.
        made.__dict__.pop("content_hash", None)
        return made

    @property
    def slug(self) -> str:
        """The name as the platform spells it: dashes for underscores."""
        return self.name.replace("_", "-")

    @property
    def kind(self) -> str:
        """What runs it."""
        return self.run.kind

    @property
    def address(self) -> str:
        """The one spelling that means exactly this tool."""
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
    """Holds a name for something that cannot be used, so that no tool of a later source is called in its place."""

    reason: str


def is_document(tool: Tool) -> bool:
    """Whether the tool is written as documents of bundles are, whose servers the list of allowed hosts bounds."""
    return isinstance(tool.run, Http | Sql) and tool.run.spelling is Spelling.DOLLARS


def check_slug(slug: str, name: str) -> None:
    """Refuse what is not 1 to 64 Unicode letters, digits and dashes."""
    if problem := _problem_of(slug, "-", "letters, digits, '-' or '_'"):
        raise ToolError(Kind.VALIDATION, f"name {name[:80]!r}: {problem}")


def check_version(version: str) -> None:
    """Refuse what is not 1 to 64 Unicode letters, digits, dashes and dots."""
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
    # Nearly every name and version is of this kind; the rest is looked at letter by letter.
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

    # Two spellings that look alike and mean the same would be two tools.
    composed = unicodedata.normalize("NFC", text)
    return "" if composed == text else f"its letters have a shorter or more usual spelling; write {composed!r} (NFC)"


def _is_letter_or_digit(letter: str) -> bool:
    """Whether Unicode calls it a letter or a decimal digit; numbers such as a half are neither."""
    if letter.isascii():
        return letter.isalnum()
    return letter.isalpha() or letter.isdecimal()
