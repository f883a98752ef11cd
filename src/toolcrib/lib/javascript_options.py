"""Derive the command line of a JavaScript program that uses `parseArgs`, `commander` or `yargs`."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    AFTER_END,
    COUNT,
    FLAG,
    REPEAT,
    SPREAD,
    WORD,
    CommandLine,
    Parameter,
)
from toolcrib.lib.javascript_tokens import NAME, STRING, NotLiteralError
from toolcrib.lib.javascript_words import MAX_FOUND, REST, destructured_words, pattern_words, read_properties, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.lib.javascript_source import JavaScript

    Schema = dict[str, object]

TYPES = {"string": {"type": "string"}, "number": {"type": "number"}, "boolean": {"type": "boolean"}}
COMMANDER_NAME = re.compile(r"--(no-)?([\w-]+)")
COMMANDER_VALUE = re.compile(r"([<\[])(\.\.\.)?([\w|-]+)(\.\.\.)?[>\]]")
POSITIONAL = re.compile(r"([<\[])([\w-]+)(\.\.\.|\.\.)?[>\]]")


# util.parseArgs


def read_parse_args(code: JavaScript) -> CommandLine:
    """The command line of a program that uses `parseArgs` of Node."""
    index = next(code.find("parseArgs", "("))
    where = code.inside(index + 1)
    described = _object_at(code, where)
    if described is None:
        return CommandLine(
            warnings=(
                (
                    code[index].line,
                    "its options are not written where they are used; write them inside parseArgs({ … })",
                ),
            )
        )
    options = _object_at(code, described.get("options", range(0)))
    parameters: list[Parameter] = []
    for name, value in (options or {}).items():
        entry = _object_at(code, value)
        known = _literals(code, entry or {})
        is_flag = known.get("type") != "string"
        schema: Schema = {"type": "boolean"} if is_flag else dict(WORD)
        parameters.append(_option(name, f"--{name}", schema, known, takes=FLAG if is_flag else ""))
    if _literals(code, described).get("allowPositionals") is True or "positionals" in {
        token.text for token in code.tokens
    }:
        parameters += destructured_words(code, "positionals")
    allows_no = _literals(code, described).get("allowNegative") is True
    if allows_no:
        parameters = [replace(one, off=f"--no-{one.option[2:]}") if one.takes == FLAG else one for one in parameters]
    return CommandLine(parameters=tuple(parameters), dashes=AFTER_END)


def _option(name: str, option: str, schema: Schema, known: dict[str, object], *, takes: str = "") -> Parameter:
    """A parameter from the declaration of an option to a library."""
    if known.get("multiple") is True or known.get("array") is True or known.get("type") == "array":
        items = schema if schema.get("type") != "boolean" else dict(WORD)
        schema, takes = {"type": "array", "items": items}, REPEAT
    description = known.get("description", known.get("describe", known.get("desc")))
    if isinstance(description, str):
        schema = {**schema, "description": description}
    default = known.get("default")
    if default is not None and not (takes == FLAG and default is False):
        schema = {**schema, "default": default}
    return Parameter(
        name=name.replace("-", "_") if not name.isidentifier() else name,
        schema=schema,
        option=option,
        takes=takes or "value",
        required=known.get("demandOption") is True or known.get("required") is True or known.get("demand") is True,
    )


def _object_at(code: JavaScript, where: range) -> dict[str, range] | None:
    """The members of an object literal, or of a constant with one."""
    if not len(where):
        return None
    if len(where) == 1 and code[where.start].kind == NAME:
        where = code.found.values.get(code[where.start].text, where)
    return code.entries(where) if code[where.start].text == "{" else None


def _literals(code: JavaScript, entries: dict[str, range]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, where in entries.items():
        try:
            found[name] = code.literal(where)
        except NotLiteralError:
            continue
    return found


# commander


def read_commander(code: JavaScript) -> CommandLine:
    """The command line of a program that uses commander."""
    starts = sorted(islice(code.find(".", "command", "("), MAX_FOUND))
    if not starts:
        return _commander_part(code, range(len(code.tokens)))
    actions: dict[str, CommandLine] = {}
    for position, start in enumerate(starts):
        first = code[start + 3]
        if first.kind != STRING:
            continue
        name, _, words = first.value.partition(" ")
        stop = starts[position + 1] if position + 1 < len(starts) else len(code.tokens)
        part = _commander_part(code, range(start + 3, stop))
        positional = tuple(_commander_words(words))
        parameters = (*part.parameters, *positional)
        actions[name] = replace(part, before=(name,), parameters=parameters)
    return CommandLine(actions=actions, dashes=AFTER_END)


def _commander_part(code: JavaScript, where: range) -> CommandLine:
    parameters: list[Parameter] = []
    summary = ""
    words: list[Parameter] = []
    for index in where:
        if code[index].text != "." or code[index + 2].text != "(" or code[index + 1].kind != NAME:
            continue
        method, inside = code[index + 1].text, code.split(code.inside(index + 2))
        first = code[inside[0].start] if inside else code[index + 2]
        if method in {"option", "requiredOption"} and first.kind == STRING:
            found = _commander_option(code, first.value, inside, required=method == "requiredOption")
            parameters += [found] if found is not None else []
        elif method == "addOption" and inside:
            found = _made_option(code, inside[0])
            parameters += [found] if found is not None else []
        elif method == "addArgument" and inside:
            words += _made_words(code, inside[0])
        elif method == "argument" and first.kind == STRING:
            words += _described(code, list(_commander_words(first.value)), inside)
        elif method == "arguments" and first.kind == STRING:
            words += _commander_words(first.value)
        elif method == "description" and first.kind == STRING and not summary:
            summary = first.value
    merged = _merge_negated(parameters)
    return CommandLine(summary=summary, parameters=(*merged, *words), dashes=AFTER_END)


def _made_option(code: JavaScript, where: range) -> Parameter | None:
    """The option of `new Option("--size <size>", "…").choices([…]).default(…)`."""
    inside = _made_with(code, where, "Option")
    if inside is None:
        return None
    required = "makeOptionMandatory" in code.texts(where)
    found = _commander_option(code, code[inside[0].start].value, inside, required=required)
    if found is None:
        return None
    schema = _with_choices(code, where, found.schema)
    default = _given_to(code, where, "default")
    if default is not None and not (found.takes == FLAG and default is False):
        schema = {**schema, "default": default}
    return replace(found, schema=schema)


def _made_words(code: JavaScript, where: range) -> list[Parameter]:
    """The positional arguments of `new Argument("<file>", "…").choices([…])`."""
    inside = _made_with(code, where, "Argument")
    if inside is None:
        return []
    words = _described(code, list(_commander_words(code[inside[0].start].value)), inside)
    return [replace(word, schema=_with_choices(code, where, word.schema)) for word in words]


def _made_with(code: JavaScript, where: range, name: str) -> list[range] | None:
    """The arguments of the constructor of this class, if the first is a string."""
    at = next((index for index in where if code[index].text == name and code[index + 1].text == "("), None)
    inside = [] if at is None else code.split(code.inside(at + 1))
    return inside if inside and code[inside[0].start].kind == STRING else None


def _given_to(code: JavaScript, where: range, method: str) -> object:
    """The literal argument of a method in a chain of calls; None if there is none."""
    at = next(
        (i for i in where if code[i].text == "." and code[i + 1].text == method and code[i + 2].text == "("), None
    )
    inside = [] if at is None else code.split(code.inside(at + 2))
    return next(iter(_literals(code, {"": inside[0]}).values()), None) if inside else None


def _with_choices(code: JavaScript, where: range, schema: Mapping[str, object]) -> Mapping[str, object]:
    choices = _given_to(code, where, "choices")
    if not isinstance(choices, list) or not choices:
        return schema
    described = {key: value for key, value in schema.items() if key == "description"}
    if schema.get("type") == "array":
        return {"type": "array", "items": {"enum": choices}, **described}
    return {"enum": choices, **described}


def _described(code: JavaScript, words: list[Parameter], inside: list[range]) -> list[Parameter]:
    if len(inside) > 1 and code[inside[1].start].kind == STRING:
        text = code[inside[1].start].value
        return [replace(word, schema={**word.schema, "description": text}) for word in words]
    return words


def _commander_option(code: JavaScript, flags: str, inside: list[range], *, required: bool) -> Parameter | None:
    found = COMMANDER_NAME.search(flags)
    short = re.search(r"(?<![\w-])-(\w)\b", flags)
    if found is None and short is None:
        return None
    option = f"--{found[1] or ''}{found[2]}" if found else f"-{short[1]}" if short else ""
    name = _camel(found[2]) if found else short[1] if short else ""
    value = COMMANDER_VALUE.search(flags)
    schema: Schema = {"type": "boolean"} if value is None else dict(WORD)
    known: dict[str, object] = (
        {"description": code[inside[1].start].value} if len(inside) > 1 and code[inside[1].start].kind == STRING else {}
    )
    numeric = any(token in {"parseInt", "parseFloat", "Number"} for part in inside[2:] for token in code.texts(part))
    if numeric:
        schema = {"type": "number"}
    for part in inside[2:]:
        try:
            known["default"] = code.literal(part)
        except NotLiteralError:
            continue
    takes = FLAG if value is None else ""
    if value is not None and (value[2] or value[4]):
        schema, takes = {"type": "array", "items": schema}, SPREAD
    if found and found[1]:
        known["negated"] = True
    parameter = _option(name, option, schema, known, takes=takes)
    return replace(parameter, required=required and "default" not in known)


def _merge_negated(parameters: list[Parameter]) -> list[Parameter]:
    """Merge `--no-color` into `--color`; alone it means that color is on by default."""
    merged: list[Parameter] = []
    for one in parameters:
        if one.takes == FLAG and one.option.startswith("--no-"):
            known = next((other for other in merged if other.name == one.name), None)
            if known is not None:
                merged[merged.index(known)] = replace(known, off=one.option)
                continue
            merged.append(replace(one, option="", off=one.option, takes=FLAG))
            continue
        merged.append(one)
    return [replace(one, option="--") if not one.option and one.off else one for one in merged]


def _commander_words(text: str) -> Iterator[Parameter]:
    for found in POSITIONAL.finditer(text):
        name = _camel(found[2])
        if found[3]:
            yield replace(spread(name), required=found[1] == "<")
        else:
            yield Parameter(name=name, required=found[1] == "<")


def _camel(text: str) -> str:
    head, *rest = text.split("-")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


# yargs


def read_yargs(code: JavaScript) -> CommandLine:
    """The command line of a program that uses yargs."""
    commands = list(islice(code.find(".", "command", "("), MAX_FOUND))
    actions: dict[str, CommandLine] = {}
    skipped: list[range] = []
    default: CommandLine | None = None
    for index in commands:
        inside = code.split(code.inside(index + 2))
        if not inside:
            continue
        spec, summary, builder = _yargs_command(code, inside)
        if not spec:
            continue
        skipped.append(range(index, code.partners[index + 2]))
        name, _, words = spec.partition(" ")
        part = CommandLine(parameters=()) if builder is None else _yargs_part(code, builder, [])
        positional = [_typed_word(part, word) for word in _commander_words(words)]
        named = {word.name for word in positional}
        options = [one for one in part.parameters if one.name not in named]
        line = CommandLine(
            summary=summary, parameters=(*options, *positional), before=() if name in {"$0", "*"} else (name,)
        )
        if name in {"$0", "*"}:
            default = line
        else:
            actions[name] = line
    top = _yargs_part(code, range(len(code.tokens)), skipped)
    if actions:
        common = top.parameters
        return CommandLine(
            actions={name: replace(line, parameters=(*common, *line.parameters)) for name, line in actions.items()}
        )
    if default is not None:
        return replace(default, parameters=(*top.parameters, *default.parameters))
    reads_words = next((index for index in code.find("argv", ".", "_")), None)
    rest = [] if reads_words is None else _words_of_yargs(code)
    if not top.parameters and not rest:
        return read_properties(code, "yargs")
    return replace(top, parameters=(*top.parameters, *rest))


def _typed_word(part: CommandLine, word: Parameter) -> Parameter:
    known = next((one for one in part.parameters if one.name == word.name), None)
    if known is None or word.takes == SPREAD:
        return word
    return replace(word, schema=known.schema if known.schema.get("type") != "boolean" else word.schema)


def _words_of_yargs(code: JavaScript) -> list[Parameter]:
    for index in islice(code.find("_"), MAX_FOUND):
        if code[index - 1].text == "." and code[index - 3].text == "=" and code[index - 4].text == "]":
            return list(pattern_words(code, code.openings[index - 4]))
    return [spread(REST)]


def _yargs_command(code: JavaScript, inside: list[range]) -> tuple[str, str, range | None]:
    first = code[inside[0].start]
    if first.kind == STRING:
        summary = code[inside[1].start].value if len(inside) > 1 else ""
        return first.value, summary, inside[2] if len(inside) > 2 else None  # noqa: PLR2004 - command, text, builder
    entries = code.entries(inside[0])
    known = _literals(code, entries)
    spec = known.get("command")
    text = known.get("describe", known.get("description", known.get("desc")))
    return (str(spec) if isinstance(spec, str) else "", str(text or ""), entries.get("builder"))


def _yargs_part(  # noqa: C901 - one case per method of yargs
    code: JavaScript, where: range, skipped: list[range]
) -> CommandLine:
    parameters: list[Parameter] = []
    demanded: set[str] = set()
    index = where.start
    if len(where) and code[where.start].text == "{":
        for name, value in code.entries(where).items():
            parameters.append(_yargs_option(name, _literals(code, _object_at(code, value) or {})))
        return CommandLine(parameters=tuple(parameters))
    while index < where.stop:
        block = next((part for part in skipped if part.start == index), None)
        if block is not None:
            index = block.stop
            continue
        if code[index].text == "." and code[index + 1].kind == NAME and code[index + 2].text == "(":
            method, inside = code[index + 1].text, code.split(code.inside(index + 2))
            first = code[inside[0].start] if inside else code[index + 2]
            if method in {"option", "positional", "options"} and first.kind == STRING:
                known = _literals(code, _object_at(code, inside[1]) or {}) if len(inside) > 1 else {}
                parameters.append(_yargs_option(first.value, known))
            elif method in {"options", "option"} and inside:
                for name, value in (_object_at(code, inside[0]) or {}).items():
                    parameters.append(_yargs_option(name, _literals(code, _object_at(code, value) or {})))
            elif method in {"string", "boolean", "number", "array", "count"} and inside:
                parameters += [_yargs_option(name, {"type": method}) for name in _names(code, inside[0])]
            elif method in {"demandOption", "demand", "required"} and inside:
                demanded.update(_names(code, inside[0]))
        index += 1
    known_names: dict[str, Parameter] = {}
    for one in parameters:
        known_names.setdefault(one.name, one)
    return CommandLine(
        parameters=tuple(replace(one, required=one.required or one.name in demanded) for one in known_names.values())
    )


def _names(code: JavaScript, where: range) -> list[str]:
    try:
        value = code.literal(where)
    except NotLiteralError:
        return []
    words = value if isinstance(value, list) else [value]
    return [word for word in words if isinstance(word, str)]


def _yargs_option(name: str, known: dict[str, object]) -> Parameter:
    kind = known.get("type")
    for word in ("boolean", "number", "string", "array", "count"):
        if known.get(word) is True:
            kind = word
    schema: Schema = dict(TYPES.get(str(kind), WORD))
    if kind is None and isinstance(known.get("default"), bool):
        schema = {"type": "boolean"}
    if kind == "string":
        schema = dict(WORD)
    choices = known.get("choices")
    if isinstance(choices, list) and choices:
        schema = {"enum": choices}
    takes = FLAG if schema.get("type") == "boolean" else ""
    if kind == "count":
        schema, takes = {"type": "integer", "minimum": 0}, COUNT
    found = _option(name, f"--{name}", schema, {**known, "type": kind}, takes=takes)
    return replace(found, off=f"--no-{name}" if found.takes == FLAG else "")
