"""Read function definitions in the formats of OpenAI, Anthropic and Gemini, from JSON beside a Python file or in one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.lib.python_source import last_name
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.lib.python_source import AnyFunction

MAX_DEFINITIONS = 500
MAX_DEPTH = 24
CONTAINERS = ("tools", "functions", "function_declarations", "functionDeclarations")
SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
# Gemini writes types in capitals and has keywords of its own; the rest is JSON Schema.
GEMINI_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
# Names of the single parameter of a function that takes all arguments as one dict.
WHOLE = frozenset({"args", "arguments", "data", "input", "inputs", "params", "payload", "tool_args", "tool_input"})
MAPPINGS = frozenset({"Dict", "Mapping", "dict"})
GEMINI_WORDS = frozenset({"nullable", "propertyOrdering", "property_ordering"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """The definition of one function, as a model gets it."""

    name: str
    description: str
    parameters: dict[str, object]


def read_definitions(document: object) -> list[Definition]:
    """The definitions of a document, in any of the formats; empty if it contains anything else."""
    found: list[Definition] = []
    for item in _items(document):
        definition = _definition(item)
        if definition is None or len(found) == MAX_DEFINITIONS:
            return []
        found.append(definition)
    return found


def _items(document: object) -> Iterator[object]:
    for item in document if isinstance(document, list) else [document]:
        inner = next((item[word] for word in CONTAINERS if isinstance(item, dict) and word in item), None)
        if isinstance(inner, list):
            yield from inner
        else:
            yield item


def _definition(item: object) -> Definition | None:
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    said = inner if isinstance(inner, dict) else item
    name, description = said.get("name"), said.get("description", "")
    word = next((word for word in SCHEMAS if isinstance(said.get(word), dict)), "")
    is_bare = not word and item.get("type") == "function"
    if not isinstance(name, str) or not isinstance(description, str) or not (word or is_bare):
        return None
    schema = said[word] if word else {"type": "object", "properties": {}}
    plain = plain_schema(schema)
    return Definition(name=name, description=description, parameters=plain) if isinstance(plain, dict) else None


def plain_schema(schema: object, depth: int = 0) -> object:
    """Convert a schema of Gemini to JSON Schema."""
    if isinstance(schema, list):
        return [plain_schema(item, depth + 1) for item in schema] if depth < MAX_DEPTH else schema
    if not isinstance(schema, dict) or depth >= MAX_DEPTH:
        return schema
    written = schema.get("type")
    is_gemini = isinstance(written, str) and written in GEMINI_TYPES
    plain = {
        word: value if word in {"enum", "default", "const", "required"} else plain_schema(value, depth + 1)
        for word, value in schema.items()
        if not ((is_gemini or isinstance(schema.get("nullable"), bool)) and word in GEMINI_WORDS)
    }
    if isinstance(written, str) and is_gemini:
        plain["type"] = written.lower()
    if schema.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
        if isinstance(choices := plain.get("enum"), list):
            plain["enum"] = [*choices, None]
    return plain


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """How a function takes the arguments of its definition: each by name, or all as one dict."""

    parameters: dict[str, object]
    takes_whole: bool = False
    warnings: tuple[str, ...] = ()


def fit(definition: Definition, function: AnyFunction) -> Fit:
    """Match a definition with its function; raises ToolError if they do not fit each other."""
    schema = definition.parameters
    properties = schema.get("properties", {})
    given = list(properties) if isinstance(properties, dict) else []
    arguments = function.args
    named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    positional = [*arguments.posonlyargs, *arguments.args]
    demanded = [argument.arg for argument in positional[: len(positional) - len(arguments.defaults)]]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    demanded += [argument.arg for argument, default in pairs if default is None]
    closed = {"additionalProperties": False, **schema}
    if len(named) == 1 and demanded == named and given and named[0] not in given and _takes_whole(positional):
        return Fit(parameters=closed, takes_whole=True)
    unknown = [name for name in given if name not in named] if arguments.kwarg is None else []
    missing = [name for name in demanded if name not in given]
    if unknown or missing:
        reasons = [
            *([f"{function.name} does not take {', '.join(unknown)}"] if unknown else []),
            *([f"{function.name} needs {', '.join(missing)}, which the definition does not have"] if missing else []),
        ]
        message = f"the definition of {definition.name} and its function differ: {'; '.join(reasons)}"
        raise ToolError(Kind.VALIDATION, f"{message}; give both the same parameters")
    required = schema.get("required", [])
    required = list(required) if isinstance(required, list) else []
    added = [name for name in demanded if name not in required]
    if not added:
        return Fit(parameters=closed)
    warning = (
        f"{function.name} has no default for {', '.join(added)}, so it is required; give it one, or list it in required"
    )
    return Fit(parameters={**closed, "required": [*required, *added]}, warnings=(warning,))


def _takes_whole(positional: list[ast.arg]) -> bool:
    if not positional:
        return False
    hint = positional[0].annotation
    hint = hint.value if isinstance(hint, ast.Subscript) else hint
    return positional[0].arg in WHOLE if hint is None else last_name(hint) in MAPPINGS
