"""What went wrong in a Python file, in words of ours: those of an exception may hold anything and are for the log alone."""

from __future__ import annotations

import errno
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.sandbox.jobs import MEGABYTE, PROGRAMS, READ, WRITE, has_network
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.infra.sandbox.jobs import PythonFile
    from toolcrib.model.tool import Script, Tool

    Described = Mapping[str, object]


# MERGED toolcrib.runners.envelope

# An answer that says of itself whether it is one: `{"result": …, "success": …, "error": …}`.

KEYS = frozenset({"result", "success", "error"})
MAX_MESSAGE_LETTERS = 2_000


def open_envelope(tool: Tool, script: Script, value: object) -> object:
    """What is in it; raises ToolError, with what was achieved, if it tells of a failure. Any other value is itself."""
    if (
        not script.enveloped
        or not isinstance(value, dict)
        or value.keys() != KEYS
        or not isinstance(value["success"], bool)
    ):
        return value
    if value["success"]:
        return value["result"]
    said = value["error"] if isinstance(value["error"], str) else ""
    message = said[:MAX_MESSAGE_LETTERS] or f"{tool.name} failed and does not say why; have it say so in error"
    raise ToolError(Kind.PERMANENT, message, partial_side_effects=True, value=value["result"])


logger = logging.getLogger("toolcrib.runners")

FULL = frozenset({errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
DENIED = frozenset({errno.EPERM, errno.EACCES, errno.EROFS})
NAME_LETTERS = 200

_MODULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
# What only the platform can know: that somebody has to agree, that something is not granted, switched off or overloaded.
WORDS_OF_THE_PLATFORM = frozenset(
    (
        *(Kind.BLOCKED, Kind.CAPABILITY_MISSING, Kind.CONFIRMATION_REQUIRED, Kind.DISABLED, Kind.MODE_RESTRICTED),
        *(Kind.BUDGET_EXCEEDED, Kind.SANDBOX_UNAVAILABLE, Kind.OVERLOADED, Kind.CANCELLED, Kind.LOOP_DETECTED),
        *(Kind.EXECUTOR_NOT_FOUND, Kind.CIRCULAR_DEPENDENCY, Kind.CHAIN_TOO_DEEP, Kind.OUTPUT_INVALID),
    )
)


def to_error(tool: Tool, job: PythonFile, described: Described) -> ToolError:
    """The error that a script's answer describes: its own if it meant to give one, else one of ours."""
    facts = described.get("tool_error")
    if isinstance(facts, dict):
        return _own_error(str(described.get("message")), facts)
    logger.error("%s failed unexpectedly\n%s", tool.name, described.get("traceback"))
    known = _too_much(tool, job, described) or _no_module(tool, described) or _kept_from(tool, job, described)
    if known is not None:
        return known
    if "in_result" in described:
        message = f"{tool.name} returned what has no JSON form ({described.get('type')}); return plain values"
        return ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)
    if "exit" in described:
        message = f"{tool.name} ended itself with exit code {described['exit']}; return a value from {job.entry}"
        return failure(tool, message)
    return failure(tool, f"{tool.name} failed unexpectedly ({described.get('type')}); the log has the details")


def failure(
    tool: Tool, message: str, kind: Kind = Kind.INTERNAL, *, details: Mapping[str, object] | None = None
) -> ToolError:
    """A failure of what ran; only an author who asks for repetition gets it repeated."""
    again = tool.limits.retry is not None
    return ToolError(
        Kind.TRANSIENT if again else kind, message, retryable=again, partial_side_effects=True, details=details
    )


def _own_error(message: str, facts: dict[str, object]) -> ToolError:
    """An error that the script meant to give: its word counts, but it cannot pass for a refusal of the platform's."""
    kind, details = facts.get("kind"), facts.get("details")
    known = Kind(kind) if isinstance(kind, str) and kind in set(Kind) else Kind.INTERNAL
    return ToolError(
        Kind.PERMANENT if known in WORDS_OF_THE_PLATFORM else known,
        message,
        retryable=facts.get("retryable") is True,
        partial_side_effects=facts.get("partial_side_effects") is True,
        details=details if isinstance(details, dict) else {},
        value=facts.get("value"),
    )


def _too_much(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    if described.get("exceeded") == "mem":
        limit, what, size, setting = "mem", "memory", job.walls.memory_bytes, "sandbox_memory_mb"
    elif _number(described) in FULL:
        limit, what, size, setting = "disk", "disk", job.walls.disk_bytes, "sandbox_disk_mb"
    else:
        return None
    message = f"{tool.name} ran out of {what}: it may use {size // MEGABYTE} MB (setting {setting})"
    return ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True, details={"limit": limit})


def _no_module(tool: Tool, described: Described) -> ToolError | None:
    module = described.get("missing")
    if not isinstance(module, str) or _MODULE_NAME.fullmatch(module) is None:
        return None
    message = (
        f"{tool.name} needs the Python module {module}, which is not installed for it; "
        f"declare its package in a block '# /// script' of the file, then run: crib prepare {tool.name}"
    )
    return ToolError(Kind.EXECUTOR_NOT_FOUND, message, partial_side_effects=True, details={"module": module})


def _kept_from(tool: Tool, job: PythonFile, described: Described) -> ToolError | None:
    """What the walls denied, and which capability would open it, as far as that can be told."""
    number, module = _number(described), described.get("module")
    # A name that cannot be looked up has a number below zero.
    asks_network = module == "socket" and (number in DENIED or number < 0) and not has_network(tool.requires)
    if not asks_network and number not in DENIED:
        return None
    reason = f"{described.get('type')}: {os.strerror(number)}" if number > 0 else described.get("type")
    look = f"see: crib check --observe {tool.name}"
    if asks_network:
        what, cure = "the network", f"list net.http in its requires, and {look}"
    elif module == "subprocess" and PROGRAMS not in tool.requires:
        what, cure = "starting a program", f"list {PROGRAMS} in its requires, and {look}"
    elif (place := _in_workspace(job, described)) is not None:
        what, capability = _place_name(place), _capability(tool, job, place, number)
        cure = f"list {capability} in its requires, and {look}" if capability else "no capability opens it"
    else:
        cure = f"a tool reaches what its requires opens and nothing else, {look}"
        return failure(tool, f"{tool.name} was kept from what it tried ({reason}); {cure}")
    message = f"{tool.name} was kept from {what} ({reason}); {cure}"
    return ToolError(Kind.INTERNAL, message, partial_side_effects=True)


def _number(described: Described) -> int:
    number = described.get("errno")
    return number if isinstance(number, int) else 0


def _in_workspace(job: PythonFile, described: Described) -> Path | None:
    """The file that was asked for, relative to the workspace; None if it lies elsewhere. Nobody looks at the file itself."""
    path = described.get("path")
    if not isinstance(path, str) or not path or job.project is None:
        return None
    place = Path(os.path.normpath(job.path.absolute().parent / path))
    return place.relative_to(job.project) if place.is_relative_to(job.project) else None


def _place_name(place: Path) -> str:
    return f"{str(place)[:NAME_LETTERS]!r} in the workspace" if place.parts else "the workspace"


def _capability(tool: Tool, job: PythonFile, place: Path, number: int) -> str:
    """The capability that opens a place of the workspace; none for what is no tool's to use."""
    path = Path(job.project or "", place)
    is_write = number == errno.EROFS
    kept = (*job.walls.closed, *(job.walls.fixed if is_write else ()))
    if any(path.is_relative_to(outer) for outer in kept):
        return ""
    wanted = (WRITE,) if is_write else (READ, WRITE)
    return next((capability for capability in wanted if capability not in tool.requires), "")
