"""A tool, written down once: the canonical definition that every dialect translates into."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import Cost, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a tool is written down."""

    place: str
    line: int = 1

    def __str__(self) -> str:
        return f"{self.place}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A function of the host program; it runs in this process.

    `revive` turns checked JSON arguments into the objects that the signature asks for, `flatten` turns what the function
    returned into JSON or into an `Outcome`, `check` raises ToolError for what can be seen to fail before it runs; None
    means there is nothing to do. `context_parameter` names the parameter that takes the Context.
    """

    kind = "function"

    call: Callable[..., object]
    is_async: bool
    thread: bool = False
    context_parameter: str | None = None
    revive: Callable[[dict[str, object]], dict[str, object]] | None = None
    flatten: Callable[[object], object] | None = None
    check: Callable[[dict[str, object]], None] | None = None

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
    HANDLER = "handler"  # entry(args, context), a response of the form that handlers give


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A file of code that was read and not run; it runs in a child process, from the very bytes that were read.

    `imports` names the modules that its first lines bring in, which a warm process may have ready.
    """

    kind = "script"

    path: Path
    code: bytes
    language: str
    entry: str
    convention: Convention = Convention.KEYWORDS
    imports: tuple[str, ...] = ()

    def identity(self) -> dict[str, object]:
        """What makes this another script."""
        import hashlib

        return {
            "kind": self.kind,
            "code": hashlib.sha256(self.code).hexdigest(),
            "language": self.language,
            "entry": self.entry,
            "convention": self.convention,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """The code of a tool folder, which takes `{args, context}` and answers with a response of its own form.

    `root` is the folder that holds the tool folders, `folder` the name of this one in it. `files` are the bytes of all its
    files and `shared` those of the folders beside it that begin with an underscore, each by its path from `root`; what runs
    are these bytes, whatever becomes of the files. `registry` is the version of the registry that it was loaded from.
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


Run = Function | Script | Chained | Handler


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """Everything there is to know about a tool. Schemas are plain JSON and are read, never changed.

    `summary` is what a system prompt says of it, `documentation` all there is to read. `examples` are arguments that its
    author showed. `metadata` is what else the author said, for people to read.
    Two tools are the same only if they are one object: closures of one text are different tools, and `content_hash`
    says whether two definitions read alike.
    """

    name: str
    description: str
    parameters: dict[str, object]
    run: Run
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Tools under one switch."""

    slug: str
    display_name: str = ""
    description: str = ""
    enabled: bool = True
    built_in: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A tool as the catalogue hands it out: switched on, or off for a reason."""

    tool: Tool
    enabled: bool = True
    reason: str = ""
    cure: str = ""


def check_slug(slug: str, name: str) -> None:
    """Refuse what is not 1 to 64 Unicode letters, digits and dashes."""
    if 0 < len(slug) <= MAX_NAME and all(letter == "-" or letter.isalnum() for letter in slug):
        return
    message = f"name {name[:80]!r}: use 1 to {MAX_NAME} letters, digits, '-' or '_'"
    raise ToolError(Kind.VALIDATION, message)


def check_version(version: str) -> None:
    """Refuse what is not 1 to 64 Unicode letters, digits, dashes and dots."""
    if 0 < len(version) <= MAX_NAME and all(letter in "-." or letter.isalnum() for letter in version):
        return
    message = f"version {version[:80]!r}: use 1 to {MAX_NAME} letters, digits, '-' or '.'"
    raise ToolError(Kind.VALIDATION, message)
