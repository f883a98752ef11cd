"""The answer of a program: what it printed, and the exit code that says whether that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_json
from toolcrib.runners.script import describe_end, refuse_early_end, tail_of

if TYPE_CHECKING:
    from toolcrib.ground.sandbox.jobs import Ended
    from toolcrib.model.tool import Tool

MAX_PRINTED_BYTES = 8 * 1024 * 1024
# By convention these say that there was nothing to run: a container that could not be made, a file that is no program,
# a command that is not there. Another attempt finds the same.
NOTHING_RAN = frozenset({125, 126, 127})


def printed_value(tool: Tool, ended: Ended, seconds: float) -> object:
    """The text without its last line end, or the JSON it is where the tool promises a shape; raises ToolError."""
    refuse_early_end(tool.name, ended, seconds)
    if ended.exit_code != 0:
        raise _failure(tool, ended)
    if ended.stdout_dropped:
        message = f"{tool.name} printed more than {MAX_PRINTED_BYTES} bytes; print less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    text = ended.stdout.decode("utf-8", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    return text if tool.output_schema is None else _read(tool, text, tool.output_schema)


def _failure(tool: Tool, ended: Ended) -> ToolError:
    """What a program says about its failure; only an author who asks for repetition gets it repeated."""
    said = tail_of(ended.stderr).strip()
    again = tool.limits.retry is not None and ended.exit_code not in NOTHING_RAN
    return ToolError(
        Kind.TRANSIENT if again else Kind.PERMANENT,
        f"{tool.name} {describe_end(ended)}" + (f": {said}" if said else ""),
        retryable=again,
        partial_side_effects=True,
        details={} if ended.exit_code is None else {"exitCode": ended.exit_code},
    )


def _read(tool: Tool, text: str, promised: dict[str, object]) -> object:
    is_text = promised.get("type") == "string"
    try:
        value = read_json(text.encode(), place=f"what {tool.name} printed", max_bytes=4 * MAX_PRINTED_BYTES)
    except ToolError as problem:
        if is_text:
            return text
        message = f"{tool.name} promises a shape and so prints JSON, but: {problem.message}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
    return text if is_text and not isinstance(value, str) else value
