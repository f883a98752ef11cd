"""The file that a maker starts from: the typed interface of a requested tool, and nothing that could pass for the tool."""

from __future__ import annotations

import ast
import keyword
from typing import TYPE_CHECKING

from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from toolcrib.model.toolrequest import Input, ToolRequest

TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[object]",
    "object": "dict[str, object]",
    "null": "None",
}
ANYTHING = "object"
NONE = "None"


def entry_file(request: ToolRequest) -> str:
    """The name of the file that holds the tool's function."""
    return f"{request.name}.py"


def write_starter(request: ToolRequest) -> str:
    """The file with the function still to be written.

    Nothing in it is text of whoever asks: names that are no names of Python and values that it cannot write are left out.
    """
    return (
        f'"""The tool {request.name}: BRIEF.md says what it does."""\n\n'
        "from __future__ import annotations\n\n\n"
        f"{write_signature(request)}\n"
        '    raise RuntimeError("this tool is still to be written")\n'
    )


def write_signature(request: ToolRequest) -> str:
    """The first line of the function, as it is called: by keywords alone."""
    returned = ANYTHING if request.outputs is None else TYPES["object"]
    return f"def {_function(request)}({_parameters(request.inputs)}) -> {returned}:"


def describe_type(schema: dict[str, object]) -> str:
    """What a JSON Schema lets through, as Python says it."""
    named = schema.get("type")
    names = named if isinstance(named, list) else [named]
    return " | ".join(TYPES.get(str(name), ANYTHING) for name in names)


def is_name(text: str) -> bool:
    """Whether Python takes it for the name of a parameter."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def _function(request: ToolRequest) -> str:
    return request.function if is_name(request.function) else request.name


def _parameters(inputs: tuple[Input, ...]) -> str:
    if not inputs:
        return ""
    if not all(is_name(each.name) for each in inputs):
        return f"**arguments: {ANYTHING}"
    return ", ".join(["*", *map(_parameter, inputs)])


def _parameter(given: Input) -> str:
    hint = describe_type(given.schema)
    if given.required:
        return f"{given.name}: {hint}"
    default = NONE if given.default is MISSING else _literal(given.default)
    optional = hint if default != NONE or hint.endswith((ANYTHING, NONE)) else f"{hint} | {NONE}"
    return f"{given.name}: {optional} = {default}"


def _literal(value: object) -> str:
    """The value as Python writes it; None for what would be shared between calls or cannot be written."""
    if isinstance(value, list | dict):
        return NONE
    written = ascii(value)
    try:
        ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return NONE
    return written
