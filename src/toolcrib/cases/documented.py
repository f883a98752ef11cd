"""Examples that run: what the documents of a tool show becomes a case, and what cannot be run a case that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.cases.context import FAILS, FakeContext
from toolcrib.cases.nouns import Case
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Handler
from toolcrib.pure.documents import decode
from toolcrib.pure.names import did_you_mean
from toolcrib.pure.schema import compile_schema, explain_problems, fill_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.dialects.folder import DocExample
    from toolcrib.model.tool import Tool

DOCUMENT = "doc.md"
FAILURE_MODES = "Failure Modes"
# An example whose result is one of these errors shows what comes of such a client.
CAUSES: dict[str, FakeContext] = {
    Kind.SESSION_INACTIVE: FakeContext(is_active=False),
    Kind.CONFIRMATION_REQUIRED: FakeContext(confirm=False),
    Kind.TRANSIENT: FakeContext(send=FAILS),
}


def documented_cases(tool: Tool) -> Iterator[Case]:
    """One case for each example that the author of the tool shows."""
    if isinstance(tool.run, Handler):
        yield from _cases_of_document(tool, tool.run)
        return
    place = "" if tool.origin is None else str(tool.origin)
    for number, arguments in enumerate(tool.examples, 1):
        problem = _misfit(tool, arguments)
        yield Case(name=f"example {number}", place=place, arguments=arguments, problem=problem, is_documented=True)


def _cases_of_document(tool: Tool, handler: Handler) -> Iterator[Case]:
    from toolcrib.dialects.folder import doc_examples, failure_modes

    file = handler.root / handler.folder / DOCUMENT
    written = handler.files.get(f"{handler.folder}/{DOCUMENT}")
    text = tool.documentation if written is None else decode(written, str(file))
    for example in doc_examples(text):
        yield _case_of_example(tool, example, f"{file}:{example.line}")
    for mode in failure_modes(text):
        if not mode.known:
            hint = did_you_mean(mode.name, Kind) or f"use one of {', '.join(Kind)}"
            problem = f"{mode.name[:80]!r} is no type of error; {hint}"
            yield Case(name=FAILURE_MODES, place=f"{file}:{mode.line}", problem=problem)


def _case_of_example(tool: Tool, example: DocExample, place: str) -> Case:
    """The call that an example shows; what it shows of the result has to be in the result."""
    from toolcrib.dialects.folder import Absent

    if example.arguments is None or example.problem:
        return Case(name=example.title, place=place, problem=example.problem)
    expect: dict[str, object] = {}
    if example.expected is not Absent:
        expect["contains"] = example.expected
    if example.expected_error:
        expect["error"] = {"type": example.expected_error}
    is_about_arguments = example.expected_error == Kind.VALIDATION
    return Case(
        name=example.title,
        place=place,
        arguments=example.arguments,
        context=CAUSES.get(example.expected_error, FakeContext()),
        expect=expect,
        problem="" if is_about_arguments else _misfit(tool, example.arguments),
        is_documented=True,
    )


def _misfit(tool: Tool, arguments: object) -> str:
    """Why the schema of the tool does not let the arguments pass; empty if it does."""
    try:
        fill, validator = fill_defaults(tool.parameters), compile_schema(tool.parameters)
        filled = fill(arguments) if fill is not None and isinstance(arguments, dict) else arguments
        if validator.is_valid(filled):
            return ""
        problems = explain_problems(validator, filled, tool.parameters)
    except (ToolError, ValueError, TypeError) as problem:
        problems = [str(problem)]
    return f"the arguments do not fit the schema of {tool.name}: {'; '.join(problems)}; correct the example"
