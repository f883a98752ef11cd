"""The executor chain: from a tool through runtimes to the primitive of the platform that does the work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained
from toolcrib.runners.system import BUNDLE, PRIMITIVE, RUNTIME, SUBPROCESS, primitive_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Entry, Tool

MAX_CHAIN = 10
ALIASES = {"python": "python_runtime"}
COMMAND = "command"
STARTS_ITSELF = "shell.execute"
ENVIRONMENT = "env"


class FindExecutor(Protocol):
    """Looks an executor up by name in the space of `bundle` and those below it."""

    def __call__(self, name: str, bundle: str, /) -> Entry | None:
        """The tool of that name and whether it is switched on; None if nobody there knows it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """A tool, the runtimes under it and the primitive at the end, with what their authors configured.

    `primitive` is subprocess, http_client or filesystem. Of `config` the word of the tool counts before that of a runtime;
    `env` is always a mapping: a list of names says that each is taken from the host, which is written `${NAME}`.
    """

    elements: tuple[Tool, ...]
    config: Mapping[str, object]
    primitive: str


def resolve(tool: Tool, find: FindExecutor) -> Chain:
    """Follow the executors of a tool to a primitive; raises ToolError with the element that leads nowhere."""
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
    """How the tool is run, if an executor runs it."""
    if not isinstance(tool.run, Chained):
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no executor runs it")
    return tool.run


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
    if not entry.enabled:
        raise ToolError(Kind.DISABLED, f"{tool.name}: its executor {entry.tool.name} is switched off: {entry.reason}")
    if entry.tool.kind not in {RUNTIME, PRIMITIVE} or not isinstance(entry.tool.run, Chained):
        message = f"{tool.name}: {entry.tool.name} runs no other tool, it is a {entry.tool.kind}; name a runtime or a primitive"
        raise ToolError(Kind.EXECUTOR_NOT_FOUND, message, details={"executor": executor})
    return entry.tool


def _refuse_unlisted(tool: Tool, executors: list[Tool]) -> None:
    """A tool lists what its runtimes require; what a primitive requires depends on what it is told to do.

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
    """What the authors wrote, the tool's own word last; variables are merged one by one."""
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
