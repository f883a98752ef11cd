"""The built-in tools: list_files, read_file and write_file in the workspace, shell in a child process, fetch through egress."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolcrib.core.plugins import later
from toolcrib.features.builtins import BuiltinsSettings
from toolcrib.infra.egress import Request, describe_binary, text_of
from toolcrib.infra.files.jail import encode_text, list_items, read_text
from toolcrib.infra.programs import cure_of_refusal, run_in_slot
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, PROGRAMS, READ, WRITE, Program, build_policy, explain_start
from toolcrib.lib.http_syntax import parse_url
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Behaviour, Function, Limits, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from toolcrib.core.resources import Resources
    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.files.jail import Jail
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, WorkspacePolicy
    from toolcrib.lib.run_part import RunPart
    from toolcrib.model.call import Context


BUNDLE = "builtin"
MAX_FILE_BYTES = 1_000_000
MAX_ITEMS = 5_000

_ITEMS: dict[str, object] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name in the folder."},
            "type": {
                "type": "string",
                "enum": ["file", "directory", "symlink", "other"],
                "description": "What it is; links are not followed.",
            },
            "size": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Bytes of a file, null for anything else.",
            },
        },
        "required": ["name", "type", "size"],
        "additionalProperties": False,
    },
}


class FileTools:
    """The three file tools; they keep no state between calls."""

    def __init__(self, jail: Jail) -> None:
        self._jail = jail

    def list_files(self, path: str) -> list[dict[str, object]]:
        """The items of a folder, sorted by name."""
        return list_items(self._jail, path, MAX_ITEMS)

    def read_file(self, path: str) -> str:
        """The text of a file."""
        return read_text(self._jail, path, MAX_FILE_BYTES)

    def write_file(self, path: str, content: str) -> str:
        """Write the whole file and say how many bytes it has."""
        data = encode_text(path, content, MAX_FILE_BYTES)
        self._jail.write(path, data)
        return f"Wrote {len(data)} bytes to {path}"


def file_tools(jail: Jail) -> list[Tool]:
    """The three tools over one jail."""
    tools = FileTools(jail)
    return [
        _reader(
            "list_files",
            f"List the files and folders of a folder in the workspace, with their types and sizes; at most {MAX_ITEMS} of them.",
            "The folder, relative to the workspace; '.' for the workspace itself.",
            tools.list_files,
            _ITEMS,
        ),
        _reader(
            "read_file",
            f"Read a UTF-8 text file of the workspace; at most {MAX_FILE_BYTES} bytes.",
            "The file, relative to the workspace.",
            tools.read_file,
            {"type": "string", "description": "The content of the file."},
        ),
        Tool(
            name="write_file",
            description=f"Write a UTF-8 text file of the workspace, at most {MAX_FILE_BYTES} bytes. "
            "Folders on the way are created; a file that exists is replaced.",
            parameters=_closed(
                path="The file, relative to the workspace.", content="The whole new content of the file."
            ),
            output_schema={"type": "string", "description": "What was written, with the number of bytes."},
            # In a thread, because it calls fsync and searches the workspace for repositories.
            run=Function(call=tools.write_file, is_async=False, thread=True),
            bundle=BUNDLE,
            behaviour=Behaviour.ACTION,
            side_effects=SideEffects.WRITES,
            idempotent=True,
            requires=frozenset({"fs.write"}),
        ),
    ]


def _reader(
    name: str, description: str, path: str, call: Callable[..., object], output_schema: dict[str, object]
) -> Tool:
    return Tool(
        name=name,
        description=description,
        parameters=_closed(path=path),
        output_schema=output_schema,
        run=Function(call=call, is_async=False),
        bundle=BUNDLE,
        behaviour=Behaviour.RETRIEVAL,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        requires=frozenset({"fs.read"}),
    )


def _closed(**descriptions: str) -> dict[str, object]:
    """A closed schema of required strings."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in descriptions.items()},
        "required": list(descriptions),
        "additionalProperties": False,
    }


SHELL = "/bin/sh"
# Loaded on first use: only approvals need it.
shell_parts: Callable[[str, Path, Path], Iterable[RunPart]] = later("toolcrib.infra.programs.code_parts:shell_parts")
CAPABILITIES = frozenset({PROGRAMS, READ, WRITE})  # a command works on the files of the workspace
SHELL_SECONDS = 30.0
MAX_OUTPUT_BYTES = 256 * 1024
STDERR_TAIL = 1_000
SIGNAL_BASE = 128  # shells report a signal as the exit code 128 + its number

# The limit of the call is a little longer than that of the command, so that this one applies first and the output is kept.
REPORT_SECONDS = 1.0

SHELL_PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The command line, as /bin/sh reads it."},
        "cwd": {
            "type": "string",
            "description": "The folder to run it in, relative to the workspace; the workspace itself if left out.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}

SHELL_OUTPUT: dict[str, object] = {
    "type": "object",
    "properties": {
        "stdout": {"type": "string", "description": "What the command wrote to its standard output."},
        "stderr": {"type": "string", "description": "What the command wrote to its error output."},
        "exit_code": {"type": "integer", "description": "0 if the command succeeded."},
        "stdout_truncated": {"type": "boolean", "description": "The end of stdout was cut off."},
        "stderr_truncated": {"type": "boolean", "description": "The end of stderr was cut off."},
    },
    "required": ["stdout", "stderr", "exit_code"],
    "additionalProperties": False,
}


def shell_tool(
    sandbox: Sandbox,
    *,
    workspace_policy: WorkspacePolicy,
    timeout_seconds: float = SHELL_SECONDS,
    environment: Mapping[str, str] | None = None,
    max_output: int = MAX_OUTPUT_BYTES,
) -> Tool:
    """The shell tool; `environment` is added to the few variables that a command gets."""
    if not timeout_seconds > 0:
        raise SettingsError(f"the time limit of shell must be greater than 0, not {timeout_seconds:g} s")
    root = workspace_policy.workspace.resolve()
    variables = {**CLEAN_ENVIRONMENT, "HOME": str(root), **(environment or {})}

    async def shell(command: str, cwd: str = "", *, context: Context) -> Outcome:
        own = time.monotonic() + timeout_seconds
        struck_by_call = context.deadline < own
        deadline = kill_time(context.deadline) if struck_by_call else own
        job = Program(
            argv=(SHELL, "-c", command),
            cwd=_folder(root, cwd),
            environment=variables,
            policy=build_policy(_capabilities(workspace_policy), workspace_policy),
        )
        seconds = context.deadline - time.monotonic() if struck_by_call else timeout_seconds
        ended = await run_in_slot(sandbox, job, deadline=deadline, max_stdout=max_output, max_stderr=max_output)
        meta = {"sandbox": sandbox.report_on(job)}
        value = _value(ended)
        limit = f"the {round(seconds, 1):g} s left to the call" if struck_by_call else f"{timeout_seconds:g} s"
        error = _error(ended, value, limit)
        return Outcome(value=value, error=error, meta=meta)

    def preview(arguments: dict[str, object]) -> Iterable[RunPart]:
        return shell_parts(str(arguments["command"]), _folder(root, str(arguments.get("cwd", ""))), root)

    return Tool(
        name="shell",
        description="Run a command with /bin/sh in the workspace. Returns stdout, stderr and the exit code.",
        parameters=SHELL_PARAMETERS,
        output_schema=SHELL_OUTPUT,
        run=Function(call=shell, is_async=True, context_parameter="context", preview=preview),
        bundle="builtin",
        behaviour=Behaviour.ACTION,
        side_effects=SideEffects.WRITES,
        requires=frozenset({PROGRAMS}),
        limits=Limits(timeout_ms=round((timeout_seconds + REPORT_SECONDS) * 1000)),
    )


def _capabilities(workspace_policy: WorkspacePolicy) -> frozenset[str]:
    """The capabilities of commands: without write if the workspace is read-only."""
    return CAPABILITIES - {WRITE} if workspace_policy.unwritable else CAPABILITIES


def _folder(root: Path, cwd: str) -> Path:
    """The folder to run in, with links resolved; raises ToolError if it is outside the workspace."""
    try:
        folder = (root / cwd).resolve()
        is_folder = folder.is_dir()
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links, a name too long, a NUL
        raise ToolError(
            Kind.VALIDATION, f"cwd {cwd[:200]!r} is not the name of a folder; write a path in the workspace"
        ) from problem
    if not folder.is_relative_to(root):
        raise ToolError(Kind.BLOCKED, f"cwd {cwd[:200]!r} is outside the workspace; write a path inside it")
    if not is_folder:
        raise ToolError(Kind.NOT_FOUND, f"cwd {cwd[:200]!r} is not a folder of the workspace")
    return folder


def _value(ended: CompletedJob) -> dict[str, object]:
    value: dict[str, object] = {
        "stdout": ended.stdout.decode("utf-8", "replace"),
        "stderr": ended.stderr.decode("utf-8", "replace"),
    }
    if ended.signal is not None and not ended.timed_out:
        value["exit_code"] = SIGNAL_BASE + ended.signal
    elif ended.exit_code is not None:
        value["exit_code"] = ended.exit_code
    if ended.stdout_dropped:
        value["stdout_truncated"] = True
    if ended.stderr_dropped:
        value["stderr_truncated"] = True
    return value


def _error(ended: CompletedJob, value: dict[str, object], limit: str) -> ToolError | None:
    if ended.cannot_start:
        return ToolError(Kind.PERMANENT, f"{SHELL} could not be started: {explain_start(ended.cannot_start)}")
    if ended.timed_out:
        message = f"the command ran longer than {limit}; it and everything it started was killed"
        return ToolError(Kind.TIMEOUT, message, partial_side_effects=True, value=value)
    code = value.get("exit_code")
    if code == 0:
        return None
    tail = str(value["stderr"])[-STDERR_TAIL:].strip()
    message = f"the command ended with exit code {code}" + (f": {tail}" if tail else "")
    return ToolError(Kind.PERMANENT, message, cure=cure_of_refusal(ended), partial_side_effects=True, value=value)


MAX_FETCHED_BYTES = 5_000_000
FETCH_SECONDS = 30
HTTP_OK = 200
TRANSIENT_STATUSES = frozenset({408, 429})
SERVER_ERRORS = range(500, 600)
FETCH_PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"url": {"type": "string", "description": "The http or https URL to read, written out in full."}},
    "required": ["url"],
    "additionalProperties": False,
}


def fetch_tool(egress: Egress, *, max_bytes: int = MAX_FETCHED_BYTES, timeout_seconds: float = FETCH_SECONDS) -> Tool:
    """The fetch tool, which sends its requests through the given egress."""

    async def fetch(url: str) -> str:
        request = Request(url=parse_url(url))
        response = await egress.fetch(request, hosts=None, max_bytes=max_bytes, timeout=timeout_seconds)
        _check_status(response)
        text = text_of(response)
        return describe_binary(response) if text is None else text

    def check(arguments: dict[str, object]) -> None:
        egress.check(parse_url(str(arguments["url"])), None)

    return Tool(
        name="fetch",
        description="Read a URL with GET. Returns the response content (text, JSON, XML) or size info for binary.",
        parameters=FETCH_PARAMETERS,
        output_schema={"type": "string"},
        run=Function(call=fetch, is_async=True, check=check),
        bundle="builtin",
        behaviour=Behaviour.RETRIEVAL,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        requires=frozenset({"net.http"}),
        limits=Limits(timeout_ms=round(timeout_seconds * 1000)),
    )


def _check_status(response: Response) -> None:
    if response.status == HTTP_OK:
        return
    again = response.status in TRANSIENT_STATUSES or response.status in SERVER_ERRORS
    raise ToolError(
        Kind.TRANSIENT if again else Kind.PERMANENT,
        f"{response.url.origin}: the server answered with status {response.status} instead of {HTTP_OK}",
        retryable=again,
        details={"origin": response.url.origin, "status": response.status},
    )


def builtin_tools(resources: Resources) -> list[Tool]:
    """The tools for files, shell and web, in the workspace of the settings."""
    settings = resources.settings.table(BuiltinsSettings)
    if not settings.enabled:
        return []
    seconds = settings.shell_timeout_ms / 1000
    return [
        *file_tools(resources.get("confirmed_jail")),
        shell_tool(
            resources.get("sandbox"), workspace_policy=resources.get("workspace_policy"), timeout_seconds=seconds
        ),
        fetch_tool(resources.get("egress")),
    ]
