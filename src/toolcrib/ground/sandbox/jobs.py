"""What a worker can be asked to do, how it is told, and what came of it."""

from __future__ import annotations

import json
import sys
import sysconfig
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.ground.channel import frame
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLEAN_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """Run a program with these arguments; the first is its path."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonFile:
    """Run these bytes as the Python file at `path`, in its folder, and call the entry function with the arguments."""

    path: Path
    code: bytes
    entry: str
    arguments: Mapping[str, object]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(CLEAN_ENVIRONMENT))


Job = Program | PythonFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a job ended.

    Either `exit_code` or `signal` is set, neither if it could not be learned. `result` is what a Python file answered,
    None if it answered nothing or more than was allowed. `killed` counts the processes that did not end by themselves;
    `gone` says that every one was seen to end. `cannot_start` is the reason why nothing ran.
    """

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_dropped: int
    stderr_dropped: int
    result: bytes | None
    result_too_long: bool
    timed_out: bool
    killed: int
    gone: bool
    cannot_start: str


def encode(job: Job, deadline: float) -> bytes:
    """The job as the supervisor reads it: a description in JSON, and the code beside it."""
    description: dict[str, object] = {"deadline": deadline, "environment": dict(job.environment)}
    code = b""
    if isinstance(job, Program):
        description |= {"argv": list(job.argv), "cwd": str(job.cwd)}
    else:
        path = job.path.absolute()
        description |= {"path": str(path), "name": path.stem, "cwd": str(path.parent), "python_path": site_paths()}
        description |= {"entry": job.entry, "arguments": dict(job.arguments)}
        code = job.code
    try:
        return frame(json.dumps(description, allow_nan=False).encode()) + frame(code)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(Kind.VALIDATION, f"the arguments cannot be handed to another process: {problem}") from problem


def site_paths() -> list[str]:
    """Where this interpreter finds installed packages.

    They stand behind the standard library; what stands before it (the host's own folder, PYTHONPATH) is the host's
    affair and no tool's.
    """
    library = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    places = [place for place, entry in enumerate(sys.path) if entry in library or entry.endswith("lib-dynload")]
    return [entry for entry in sys.path[max(places, default=-1) + 1 :] if entry]
