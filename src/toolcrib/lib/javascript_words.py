"""Derive the command line of a JavaScript program that reads `process.argv` itself or through a schemaless parser."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    AFTER_END,
    ANY,
    FLAG,
    PLAIN,
    SPREAD,
    WORD,
    CommandLine,
    Parameter,
)
from toolcrib.lib.javascript_tokens import NAME, STRING, NotLiteralError
from toolcrib.lib.javascript_types import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.lib.javascript_source import JavaScript

    Schema = dict[str, object]

REST = "args"
MAX_FOUND = 500
MAX_PLACES = 40
NUMERIC = {"type": "number"}
CONVERSIONS = frozenset({"Number", "parseInt", "parseFloat", "String", "BigInt"})


def read_properties(code: JavaScript, library: str) -> CommandLine:
    """The command line of a program that uses a library without declarations, from the properties of its result."""
    variable = ""
    for index, token in enumerate(code.tokens):
        if token.text == "argv" and code[index - 1].text == "." and code[index - 2].text == "process":
            start = next((at for at in range(index, max(index - 20, -1), -1) if code[at].text == "="), None)
            if start is not None and code[start - 1].kind == NAME:
                variable = code[start - 1].text
            elif start is not None and code[start - 1].text == "}":
                names = [code[part.start].text for part in code.split(code.inside(code.openings[start - 1]))]
                return CommandLine(
                    parameters=tuple(
                        Parameter(name=name, option=f"--{name}", schema={}, takes=ANY) for name in names if name != "_"
                    ),
                    warnings=_guess(library),
                )
            break
    found: dict[str, bool] = {}
    has_words = False
    for index in islice(code.find(variable), MAX_FOUND) if variable else ():
        if code[index + 1].text in {".", "?."} and code[index + 2].kind == NAME:
            name, following = code[index + 2].text, code[index + 3].text
            if name == "_":
                has_words = True
            elif following != "(" and name not in BUILT_IN:
                found[name] = found.get(name, False) or following in {"||", "??"}
    parameters = [Parameter(name=name, option=f"--{name}", schema={}, takes=ANY) for name in found]
    if has_words:
        parameters.append(spread(REST))
    return CommandLine(parameters=tuple(parameters), warnings=_guess(library))


def _guess(library: str) -> tuple[tuple[int, str], ...]:
    return ((1, f"what it takes is guessed from the properties that it reads of {library}; declare parameters"),)


def read_argv(code: JavaScript) -> CommandLine:
    """The command line of a program that reads process.argv itself."""
    parameters: list[Parameter] = []
    for index in islice(code.find("process", ".", "argv"), MAX_FOUND):
        after = index + 3
        if code[after].text == "[" and code[after + 1].text.isdigit():
            continue
        if (
            code[after].text == "."
            and code[after + 1].text in {"includes", "indexOf"}
            and code[after + 3].kind == STRING
        ):
            parameters += _looked_for(code, code[after + 3].value, after)
    variables = ["process.argv", *_slices(code)]
    for variable in variables[1:]:
        for index in islice(code.find(variable, "."), MAX_FOUND):
            if code[index + 2].text in {"includes", "indexOf", "findIndex"} and code[index + 4].kind == STRING:
                parameters += _looked_for(code, code[index + 4].value, index)
    unique = list({one.name: one for one in parameters}.values())
    words = _words_in_places(code, variables[1:])
    if unique:
        return CommandLine(parameters=(*unique, *(one for one in words if one.takes != SPREAD)), dashes=AFTER_END)
    return CommandLine(parameters=tuple(words), dashes=PLAIN)


def _looked_for(code: JavaScript, text: str, index: int) -> list[Parameter]:
    """An option that the program searches for in its words; it has a value if the program reads the next word."""
    if not text.startswith("-") or text in {"-h", "--help"}:
        return []
    following = code.texts(range(index, min(index + 14, len(code.tokens))))
    name = text.lstrip("-")
    takes_value = "indexOf" in following and ("+" in following or _is_added_to(code, index))
    if not takes_value:
        return [Parameter(name=name, option=text, schema={"type": "boolean"}, takes=FLAG)]
    return [Parameter(name=name, option=text, glued=False)]


def _is_added_to(code: JavaScript, index: int) -> bool:
    """Whether the found index is assigned to a variable to which one is added later."""
    for at in range(index, max(index - 8, -1), -1):
        if code[at].text == "=" and code[at - 1].kind == NAME:
            return any(True for _ in code.find(code[at - 1].text, "+"))
    return False


def _slices(code: JavaScript) -> list[str]:
    """The variables with the value of `process.argv.slice(2)`."""
    return [
        code[index - 2].text
        for index in islice(code.find("process", ".", "argv", ".", "slice", "(", "2", ")"), MAX_FOUND)
        if code[index - 1].text == "=" and code[index - 2].kind == NAME and code[index + 8].text not in {".", "["}
    ]


def _words_in_places(code: JavaScript, variables: list[str]) -> list[Parameter]:
    for index in islice(code.find("process", ".", "argv"), MAX_FOUND):
        if code[index - 1].text == "=" and code[index - 2].text == "]":
            return list(_array_pattern(code, code.openings[index - 2], sliced=code[index + 4].text == "slice"))
    numbered: dict[int, int] = {}
    for index in islice(code.find("process", ".", "argv", "["), MAX_FOUND):
        if code[index + 4].text.isdigit() and int(code[index + 4].text) > 1:
            numbered.setdefault(int(code[index + 4].text) - 2, index)
    if numbered:
        return [
            _argv_word(code, number, numbered.get(number)) for number in range(min(max(numbered), MAX_PLACES - 1) + 1)
        ]
    for variable in variables:
        words = destructured_words(code, variable)
        options = any(True for index in code.find(variable, ".") if code[index + 2].text in {"includes", "indexOf"})
        if words and not (options and words[0].name == REST):
            return words
    uses = any(True for _ in code.find("process", ".", "argv"))
    return [spread(REST)] if uses else []


def _argv_word(code: JavaScript, number: int, index: int | None) -> Parameter:
    if index is None:
        return Parameter(name=f"arg{number + 1}", required=True)
    # `process.argv` is three tokens where a variable is one.
    close = code.partners.get(index + 3, index + 5)
    required = code[close + 1].text not in {"||", "??"}
    before = index - 1
    if code[before].text == "(" and code[before - 1].text in CONVERSIONS:
        required = required and code[code.partners[before] + 1].text not in {"||", "??"}
        before -= 2
    if code[before].text == "+":
        before -= 1
    name = _name_of_word(code, before) or f"arg{number + 1}"
    return Parameter(name=name, schema=dict(WORD if before == index - 1 else NUMERIC), required=required)


def _name_of_word(code: JavaScript, before: int) -> str:
    """The variable that a word is assigned to, or the parameter of the function that is called with it."""
    if code[before].text == "=" and code[before - 1].kind == NAME:
        return code[before - 1].text
    position, at = 0, before
    while at > before - 40 and code[at].text != "(":
        position += code[at].text == ","
        at = code.openings.get(at, at) - 1
    function = code.found.functions.get(code[at - 1].text)
    parts = [] if function is None else code.split(function.parameters)
    known = code[parts[position].start] if position < len(parts) else None
    return known.text if known is not None and known.kind == NAME else ""


def _array_pattern(code: JavaScript, opening: int, *, sliced: bool) -> Iterator[Parameter]:
    parts = _with_holes(code, opening)
    for part in parts if sliced else parts[2:]:
        if not len(part):
            continue
        if code[part.start].text == "...":
            yield spread(code[part.start + 1].text)
        elif code[part.start].kind == NAME:
            yield Parameter(
                name=code[part.start].text, required=not (len(part) > 1 and code[part.start + 1].text == "=")
            )


def _with_holes(code: JavaScript, opening: int) -> list[range]:
    """The parts of an array pattern, including empty ones."""
    inside = code.inside(opening)
    parts, start, index = [], inside.start, inside.start
    while index < inside.stop:
        if code[index].text == ",":
            parts.append(range(start, index))
            start = index + 1
        index = code.partners.get(index, index) + 1
    return [*parts, range(start, inside.stop)]


# Words that are named by an array pattern or an index


def destructured_words(code: JavaScript, source: str) -> list[Parameter]:
    """The words that `const [a, b = 1, ...rest] = source` names; all words as one list if nothing names them."""
    for index in islice(code.find(source), MAX_FOUND):
        if code[index - 1].text != "=" or code[index - 2].text != "]" or code[index + 1].text in {".", "["}:
            continue
        return list(pattern_words(code, code.openings[index - 2]))
    for index in islice(code.find(source, ":", "["), MAX_FOUND):
        return list(pattern_words(code, index + 2))
    numbered = {
        int(code[index + 2].text): index
        for index in islice(code.find(source, "["), MAX_FOUND)
        if code[index + 2].text.isdigit()
    }
    uses = islice(code.find(source, "."), MAX_FOUND)
    if numbered and max(numbered) < MAX_PLACES and all(code[index + 2].text == "length" for index in uses):
        return [_numbered(code, number, numbered.get(number)) for number in range(max(numbered) + 1)]
    return [spread(REST)]


def _numbered(code: JavaScript, number: int, index: int | None) -> Parameter:
    """A word that is read as `source[number]`; it is named after the variable that it is assigned to."""
    name, required = f"arg{number + 1}", True
    if index is not None:
        close = code.partners.get(index + 1, index + 3)
        if code[close + 1].text in {"||", "??"}:
            required = False
        before = index - 1
        if code[before].text == "(" and code[before - 1].text in CONVERSIONS:
            before -= 2
        if code[before].text == "+":
            before -= 1
        if code[before].text == "=" and code[before - 1].kind == NAME:
            name = code[before - 1].text
    return Parameter(name=name, required=required)


def pattern_words(code: JavaScript, opening: int) -> Iterator[Parameter]:
    """The words that an array pattern names."""
    for part in code.split(code.inside(opening)):
        if code[part.start].text == "...":
            yield spread(code[part.start + 1].text)
        elif code[part.start].kind == NAME:
            has_default = len(part) > 1 and code[part.start + 1].text == "="
            schema: Schema = dict(WORD)
            if has_default:
                with suppress(NotLiteralError):
                    schema["description"] = f"Without it: {code.literal(range(part.start + 2, part.stop))}"
            yield Parameter(name=code[part.start].text, schema=schema, required=not has_default)


def spread(name: str) -> Parameter:
    """All remaining words as one list."""
    return Parameter(name=name, schema={"type": "array", "items": dict(WORD)}, takes=SPREAD)
