"""Read what a function of a JavaScript file returned, as `call.cjs` writes it down."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from toolcrib.infra.programs import (
    PRINTED_TAIL,
    cure_of_output,
    describe_end,
    exit_details,
    failure,
    has_crashed,
    refuse_early_end,
    report_crash,
    tail_of,
)
from toolcrib.lib.documents import read_json
from toolcrib.lib.javascript_error import name_class, tell_all
from toolcrib.model.errors import NO_CURE, Kind, ToolError, cure_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.infra.sandbox.jobs import CompletedJob
    from toolcrib.model.tool import Script, Tool

logger = logging.getLogger("toolcrib.runners")

MAX_MESSAGE_LETTERS = 500
MAX_BYTES = 16 * 1024 * 1024
NOT_FOUND = frozenset({"MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND"})
UNREADABLE = frozenset({"ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX", "ERR_INVALID_TYPESCRIPT_SYNTAX"})
_PACKAGE = re.compile(r"Cannot find (?:package|module) '([^'\n]{1,100})'")


def node_value(
    tool: Tool, script: Script, ended: CompletedJob, seconds: float, meta: dict[str, object]
) -> tuple[object, str | None]:
    """What the function returned, and what it printed if it returned nothing; raises ToolError for a failure.

    The output of the process is the answer; in `meta` it is replaced by the output of the function, which is part of it.
    """
    meta.pop("stdout", None)
    refuse_early_end(tool.name, ended, seconds)
    if ended.exit_code != 0:
        said = tail_of(ended.stderr).strip()
        message = f"{tool.name} {describe_end(ended)} before {script.entry} returned" + (f": {said}" if said else "")
        cure = report_crash(tool, ended) if has_crashed(ended) else NO_CURE
        raise failure(tool, message, Kind.PERMANENT, cure=cure, details=exit_details(ended))
    answer = _answer(tool, ended)
    if text := answer.get("printed"):
        meta["stdout"] = str(text)[-PRINTED_TAIL:]
    if "value" in answer:
        return answer["value"], None
    if answer.get("missing") is True:
        printed = answer.get("printed")
        if printed is None:
            message = f"{tool.name} printed more than a result may have; print less, or write it to a file"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
        if answer.get("early") is True and not printed:
            # It printed nothing, so it is not a program that answers by printing: the function never returned.
            message = f"{tool.name} ended itself with exit code 0 before {script.entry} returned"
            raise failure(tool, message, Kind.PERMANENT, cure=cure_of(f"return a value from {script.entry}"))
        return None, str(printed)
    if "unwritable" in answer:
        message = f"{tool.name}: {str(answer['unwritable'])[:300]}, which has no JSON form; return plain values"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)
    raise _error(tool, script, answer.get("error"))


def no_package(tool: Tool, said: str) -> ToolError | None:
    """The error of a file that imports what is not there, if Node says so."""
    found = _PACKAGE.search(said)
    if found is None:
        return None
    package = found[1]
    if package.startswith((".", "/")):
        message = f"{tool.name} imports {package}, which is not there; write that file, or remove the import"
    else:
        # A package may be imported by one of its parts, but is installed as a whole.
        package = "/".join(package.split("/")[: 2 if package.startswith("@") else 1])
        message = f"{tool.name} needs {package}, which is not installed near it; run: npm install {package}"
    return ToolError(Kind.EXECUTOR_NOT_FOUND, message, details={"module": package})


def _answer(tool: Tool, ended: CompletedJob) -> Mapping[str, object]:
    """The answer line; the file itself could have written it, or others."""
    if ended.stdout_dropped:
        message = f"{tool.name} returned more than a result may have; return less, or write it to a file"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=True)
    try:
        answer = read_json(ended.stdout, place="the answer", max_bytes=MAX_BYTES)
    except ToolError as problem:
        message = f"{tool.name} gave an answer that cannot be read: {problem.message}"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True) from problem
    if not isinstance(answer, dict):
        message = f"{tool.name} gave an answer that cannot be read; let it print with console.log alone"
        raise ToolError(Kind.OUTPUT_INVALID, message, partial_side_effects=True)
    return answer


def _error(tool: Tool, script: Script, described: object) -> ToolError:
    facts = described if isinstance(described, dict) else {}
    logger.error("%s failed unexpectedly\n%s", tool.name, tell_all(facts))
    code, text = facts.get("code"), str(facts.get("message") or "")
    if code in NOT_FOUND:
        return no_package(tool, text) or failure(tool, f"{tool.name} needs a package that is not installed near it")
    if code in UNREADABLE:
        message = f"{script.path.name} is not TypeScript that Node runs: {text[:300]}"
        return ToolError(Kind.VALIDATION, message)
    # Shown like the error output of a program: what a function throws says what was wrong with the arguments.
    said = " ".join(text.split())[:MAX_MESSAGE_LETTERS]
    message = f"{tool.name} failed with {name_class(facts)}" + (f": {said}" if said else "")
    error = failure(tool, message, cure=cure_of_output(tool, said))
    error.trace = tell_all(facts)
    return error
