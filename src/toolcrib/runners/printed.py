"""The answer of a program: what it printed, and the exit code that says whether that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import read_json
from toolcrib.pure.schema import compile_schema
from toolcrib.runners.raised import failure
from toolcrib.runners.script import (
    describe_end,
    described_error,
    exit_details,
    read_answer,
    refuse_early_end,
    tail_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.ground.sandbox.jobs import Ended, PythonFile
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
    return _printed(tool, ended)


def answered_value(tool: Tool, job: PythonFile, ended: Ended, seconds: float) -> object:
    """What the entry function returned; where that is nothing, what it printed counts, as it does for a program."""
    answer = read_answer(tool, job, ended, seconds)
    exit_code = _exit_code(answer)
    if exit_code:
        raise _failure(tool, replace(ended, exit_code=exit_code, signal=None))
    if exit_code is None and "value" not in answer:
        raise described_error(tool, job, answer)
    value = answer.get("value")
    return value if value is not None or not ended.stdout or _may_be_null(tool) else _printed(tool, ended)


def _exit_code(answer: Mapping[str, object]) -> int | None:
    """The code with which the function ended the script, None if it did not."""
    described = answer.get("error")
    code = described.get("exit") if isinstance(described, dict) else None
    return code if isinstance(code, int) else None


def _may_be_null(tool: Tool) -> bool:
    return tool.output_schema is not None and compile_schema(tool.output_schema).is_valid(None)


def _printed(tool: Tool, ended: Ended) -> object:
    if ended.stdout_dropped:
        message = f"{tool.name} printed more than {MAX_PRINTED_BYTES} bytes; print less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    text = ended.stdout.decode("utf-8", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    return text if tool.output_schema is None else _read(tool, text, tool.output_schema)


def _failure(tool: Tool, ended: Ended) -> ToolError:
    """What a program says about its failure."""
    said = tail_of(ended.stderr).strip()
    message = f"{tool.name} {describe_end(ended)}" + (f": {said}" if said else "")
    details = exit_details(ended)
    if ended.exit_code in NOTHING_RAN:
        return ToolError(Kind.PERMANENT, message, partial_side_effects=True, details=details)
    return failure(tool, message, Kind.PERMANENT, details=details)


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
