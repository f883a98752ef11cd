"""Resolve the executor chain of a tool: from the tool through runtimes to the primitive that does the work.

The chain is resolved at each call, and the driver of its primitive does the work.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from toolcrib.core.plugins import later
from toolcrib.infra.secrets.grants import granted_value
from toolcrib.lib.redaction import hide_secrets
from toolcrib.lib.run_part import KNOWN_LATER, PartKind, RunPart
from toolcrib.lib.system_tools import (
    BUNDLE,
    DOCKER,
    FILESYSTEM,
    HTTP_CLIENT,
    PRIMITIVE,
    RUNTIME,
    SUBPROCESS,
    is_ours,
    primitive_of,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.model.call import Call, Context
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Entry, Script, Tool

# Only needed to preview a call.
script_parts: Callable[[Script, Path, tuple[Path, ...]], Iterable[RunPart]] = later(
    "toolcrib.infra.programs.code_parts:script_parts"
)
MAX_CHAIN = 10
ALIASES = {"python": "python_runtime"}
COMMAND = "command"
STARTS_ITSELF = "shell.execute"
ENVIRONMENT = "env"
LIBRARY = "library"
SINK = "sink"


class FindExecutor(Protocol):
    """Looks an executor up by name in the space of `bundle` and those below it."""

    def __call__(self, name: str, bundle: str, /) -> Entry | None:
        """The tool of that name and whether it is enabled; None if it is unknown there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """A tool, the runtimes under it and the primitive at the end, with what their authors configured.

    `primitive` is subprocess, http_client or filesystem. In `config` a key of the tool overrides that of a runtime;
    `env` is always a mapping: a list of names says that each is taken from the host, which is written `${NAME}`.
    """

    elements: tuple[Tool, ...]
    config: Mapping[str, object]
    primitive: str


def resolve(tool: Tool, find: FindExecutor) -> Chain:
    """Follow the executors of a tool to a primitive; raises ToolError that names the element without an executor."""
    elements = [tool]
    while primitive_of(elements[-1]) is None:
        if len(elements) > MAX_CHAIN:
            message = (
                f"{tool.name}: its chain of executors has more than {MAX_CHAIN} elements; name a primitive earlier"
            )
            raise ToolError(Kind.CHAIN_TOO_DEEP, message)
        following = _executor_of(elements[-1], find)
        elements.append(following)
        if any(following is earlier for earlier in elements[:-1]):
            names = " → ".join(element.name for element in elements)
            message = f"{tool.name}: its executors run in a circle ({names}); let one name a primitive"
            raise ToolError(Kind.CIRCULAR_DEPENDENCY, message)
    _refuse_unlisted(tool, elements[1:])
    return Chain(elements=tuple(elements), config=_merge(elements), primitive=primitive_of(elements[-1]) or "")


def chained(tool: Tool) -> Chained:
    """The executor settings of the tool; raises ToolError if no executor runs it."""
    if not isinstance(tool.run, Chained):
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no executor runs it")
    return tool.run


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One call of a tool: its resolved chain, the checked arguments and the values of the platform.

    `run` is `tool.run`, and `chain.config` what its authors configured, verbatim but merged. `values` are the names that
    the platform knows (request_id, version, tool_version, slug, tool_id, bundle_id, client_id, now). `variable` gives a
    variable of the host, None if it is not set, and raises CAPABILITY_MISSING for one that was not granted to this tool. If it
    `streams`, what the tool yields or prints is sent to the client at once. `variables` are those that were granted and
    that its file names. `hidden` are the files beside it that it may not import.
    """

    tool: Tool
    run: Chained
    chain: Chain
    arguments: Mapping[str, object]
    values: Mapping[str, object]
    variable: Callable[[str], str | None]
    streams: bool = False
    variables: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def is_primitive(self) -> bool:
        """Whether a primitive is called by its own name, so that the arguments say everything."""
        return len(self.chain.elements) == 1


def with_names(order: Order) -> Order:
    """The order for a preview: names stand in place of variables, and of values that are only known when it runs."""

    def named(name: str) -> str | None:
        return None if order.variable(name) is None else f"{{env:{name}}}"

    values = {**order.values, **{name: f"{{{name}}}" for name in KNOWN_LATER}}
    return replace(order, values=values, variable=named)


class Driver(Protocol):
    """Does the work of one primitive."""

    def check(self, order: Order, call: Call) -> object:
        """Raise ToolError for what is known to fail before anything runs; changes nothing.

        What it returns is `prepared` in the Context that `run` is given.
        """

    def preview(self, order: Order, call: Call) -> Iterable[RunPart]:
        """What exactly would be started, sent or done; variables and secrets stand in it by name."""

    async def run(self, order: Order, context: Context) -> Outcome:
        """Run it once. A failure is raised, or stands in the outcome beside the output."""


class BoundChain:
    """A tool whose executor chain is resolved at each call, so that an edit of any executor takes effect at once."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self,
        tool: Tool,
        run: Chained,
        find: FindExecutor,
        driver: Callable[[str], Driver],
        variable: Callable[[Tool, str], str | None],
        version: str,
        variables: Callable[[Tool, bytes], tuple[str, ...]] = lambda *_: (),
        hidden: Callable[[Tool], tuple[Path, ...]] = lambda _: (),
    ) -> None:
        self._tool = tool
        self._run = run
        self._find = find
        self._driver = driver
        self._variable = variable
        self._version = version
        self._variables = variables
        self._hidden = hidden

    def check(self, arguments: dict[str, object], call: Call) -> object:
        """Refuse a tool without an executor, a library or sink, and what the driver refuses."""
        order = self._order(arguments, call.id, call.caller)
        return self._driver(order.chain.primitive).check(order, call)

    def preview(self, arguments: dict[str, object], call: Call) -> Iterator[RunPart]:
        """The code of the tool, what its primitive does with it, and the executors between them, which are tools of their own."""
        order = self._order(arguments, call.id, call.caller)
        yield from self._driver(order.chain.primitive).preview(order, call)
        script = self._run.script
        yield from () if script is None else script_parts(script, self._run.folder, order.hidden)
        for executor in order.chain.elements[1:]:
            if not is_ours(executor):
                yield _executor_part(executor)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Run the tool by the driver of its primitive."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        order = self._order(arguments, context.call_id, context.caller)
        return await self._driver(order.chain.primitive).run(order, context)

    def _order(self, arguments: dict[str, object], call_id: str, caller: str) -> Order:
        script, chain = self._run.script, self._resolve()
        # Executors bring files of their own origin.
        hidden = [self._hidden(element) for element in chain.elements if not is_ours(element)]
        return Order(
            tool=self._tool,
            run=self._run,
            chain=chain,
            arguments=arguments,
            values=self._values(call_id, caller),
            variable=self._granted,
            variables=() if script is None else self._variables(self._tool, script.code),
            hidden=tuple(path for path in hidden[0] if all(path in other for other in hidden)) if hidden else (),
        )

    def _resolve(self) -> Chain:
        name, kind = self._tool.name, self._run.kind
        if kind == LIBRARY:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} is a library; it is listed and never run")
        if kind == SINK:
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} is not directly invocable; use it as a sink")
        if kind == RUNTIME and is_ours(self._tool):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{name} runs other tools; name it as their executor_id")
        return resolve(self._tool, self._find)

    def _values(self, call_id: str, caller: str) -> dict[str, object]:
        """The names that the platform knows."""
        return {
            "request_id": call_id,
            "version": self._version,
            "tool_version": self._tool.version,
            "slug": self._tool.slug,
            "tool_id": self._tool.name,
            "bundle_id": self._tool.bundle,
            "client_id": caller,
            "now": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def _granted(self, name: str) -> str | None:
        purpose = " for its docker container" if self._tool.kind == DOCKER else ""
        return granted_value(self._tool, name, self._variable, purpose)


def _executor_part(executor: Tool) -> RunPart:
    config = json.dumps(hide_secrets(dict(chained(executor).config)), ensure_ascii=False, indent=2, default=str)
    facts = (("content hash", executor.content_hash),)
    return RunPart(kind=PartKind.SETTINGS, title=executor.address, data=config.encode(), facts=facts)


def _executor_of(tool: Tool, find: FindExecutor) -> Tool:
    run = chained(tool)
    if run.executor is not None:
        return _look_up(tool, run.executor, tool.bundle, find)
    # A runtime without an executor starts its command as a process; nothing else can do without one.
    if run.kind == RUNTIME and run.config.get(COMMAND):
        return _look_up(tool, SUBPROCESS, BUNDLE, find)
    if run.kind == RUNTIME:
        cure = "write the command that it starts: config: {command: …}"
    else:
        cure = "name its executor_id; only the platform's own primitives have none"
    raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name}: nothing executes it; {cure}")


def _look_up(tool: Tool, executor: str, bundle: str, find: FindExecutor) -> Tool:
    entry = find(ALIASES.get(executor, executor), bundle)
    if entry is None:
        message = (
            f"{tool.name}: there is no executor {executor!r} in its space or below; "
            "name one that is listed there, such as python_runtime, node_runtime or subprocess"
        )
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message, details={"executor": executor})
    if entry.enabled and bundle != BUNDLE and _means_ours(entry.tool):
        return _look_up(tool, entry.tool.name.replace("-", "_"), BUNDLE, find)
    if not entry.enabled:
        raise ToolError(Kind.DISABLED, f"{tool.name}: its executor {entry.tool.name} is disabled: {entry.reason}")
    if entry.tool.kind not in {RUNTIME, PRIMITIVE} or not isinstance(entry.tool.run, Chained):
        message = f"{tool.name}: {entry.tool.name} runs no other tool, it is a {entry.tool.kind}; name a runtime or a primitive"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message, details={"executor": executor})
    return entry.tool


def _means_ours(tool: Tool) -> bool:
    """Whether a file only describes a primitive of the platform: it is called like one and names no executor."""
    run = tool.run
    is_bare = isinstance(run, Chained) and run.kind == PRIMITIVE and run.executor is None and not is_ours(tool)
    return is_bare and tool.name.replace("-", "_") in {SUBPROCESS, HTTP_CLIENT, FILESYSTEM}


def _refuse_unlisted(tool: Tool, executors: list[Tool]) -> None:
    """Refuse a tool that does not list what its runtimes require; what a primitive requires depends on its config.

    That a runtime starts a program, its interpreter, is no reason for its tools to start others.
    """
    for executor in executors:
        missing = sorted(executor.requires - tool.requires - {STARTS_ITSELF}) if executor.kind == RUNTIME else []
        if missing:
            message = (
                f"{tool.name}: its executor {executor.name} requires {', '.join(missing)}; "
                f"list {'it' if len(missing) == 1 else 'them'} in the tool's requires"
            )
            raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": missing})


def _merge(elements: list[Tool]) -> dict[str, object]:
    """Merge the configs of the chain, the tool's own last; variables are merged one by one."""
    merged: dict[str, object] = {}
    variables: dict[str, object] = {}
    for element in reversed(elements):
        config = chained(element).config
        merged |= config
        variables |= _variables(element, config.get(ENVIRONMENT))
    if variables:
        merged[ENVIRONMENT] = variables
    return merged


def _variables(tool: Tool, written: object) -> dict[str, object]:
    if written is None:
        return {}
    if isinstance(written, dict) and all(isinstance(name, str) for name in written):
        return dict(written)
    if isinstance(written, list) and all(isinstance(name, str) and name.isidentifier() for name in written):
        return {name: f"${{{name}}}" for name in written}
    message = f"{tool.name}: config.env: write a mapping of names to values, or a list of names of host variables"
    raise ToolError(Kind.VALIDATION, message)
