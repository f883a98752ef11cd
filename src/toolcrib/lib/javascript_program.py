"""Read from a JavaScript or TypeScript file how it is used: a function that it exports, or a program with options.

Options are those of `parseArgs`, `commander`, `yargs` and of plain `process.argv`; of other libraries the properties that the
program reads of their result.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import (
    AFTER_END,
    ANY,
    COUNT,
    FLAG,
    MAX_PARAMETERS,
    PLAIN,
    REPEAT,
    SPREAD,
    WORD,
    CommandLine,
    Parameter,
)
from toolcrib.lib.javascript_source import NAME, STRING, JavaScript, NotLiteralError
from toolcrib.lib.javascript_types import BUILT_IN, Signature, TypeProblemError, read_signature, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.lib.javascript_source import Function

    Schema = dict[str, object]

ENTRIES = ("main", "default", "run", "execute", "handler", "handle", "call", "invoke")
TOOLS = "__tools__"
MAX_NAMED = 20
CALLBACKS = frozenset({"callback", "cb", "done", "next"})
STDIN = "stdin"
REST = "args"
PARSERS = frozenset(
    {"minimist", "mri", "yargs-parser", "meow", "cac", "sade", "arg", "getopts", "command-line-args", "citty"}
)
MAX_FOUND = 500
MAX_PLACES = 40
NUMERIC = {"type": "number"}
CONVERSIONS = frozenset({"Number", "parseInt", "parseFloat"})
TYPES = {"string": {"type": "string"}, "number": {"type": "number"}, "boolean": {"type": "boolean"}}
COMMANDER_NAME = re.compile(r"--(no-)?([\w-]+)")
COMMANDER_VALUE = re.compile(r"([<\[])(\.\.\.)?([\w|-]+)(\.\.\.)?[>\]]")
POSITIONAL = re.compile(r"([<\[])([\w-]+)(\.\.\.|\.\.)?[>\]]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """How a file is used: `entry` is the export that is called, empty for a program that is started.

    One of `signature`, `line` and `functions`, by their names where there are several, is set, unless `problem` says why none
    is; `is_empty` if there is no function at all.
    """

    entry: str = ""
    summary: str = ""
    number: int = 1
    signature: Signature | None = None
    line: CommandLine | None = None
    functions: Mapping[str, Program] = field(default_factory=dict)
    warnings: tuple[tuple[int, str], ...] = ()
    problem: str = ""
    is_empty: bool = False


def read_javascript_program(text: str, stem: str, place: str = "") -> Program:
    """How the file is used; raises ToolError for one that cannot be read."""
    code = JavaScript(text, place)
    found = code.found
    header = summary_of(code.comments.get(0, "")) if code.comments.get(0, "").startswith("/*") else _first_line(code)
    entry, function = _exported(code, stem)
    if (number := _mixed(code)) is not None:
        problem = "require is not defined in a file with import or export; write import instead of require"
        return Program(entry=entry, summary=header, number=number, problem=problem)
    if TOOLS in found.exports:
        return _listed(code, header)
    starts = bool(found.acts) or (
        bool(found.guards) and (function is None or (_reads_words(code) and not len(function.parameters)))
    )
    if function is not None and not starts:
        return _called(code, entry, function, header)
    if starts or _reads_words(code):
        return Program(summary=header, line=_command_line(code))
    return _documented(code, header) or _neither(code, entry, header)


def _listed(code: JavaScript, header: str) -> Program:
    """The functions that the file lists as its tools."""
    where = code.found.values.get(TOOLS, range(0))
    number = code[where.start].line if len(where) else 1
    known = {name for name, local in code.found.exports.items() if local in code.found.functions}
    try:
        names = code.literal(where)
    except (NotLiteralError, IndexError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        sample = ", ".join(f"'{name}'" for name in sorted(known)[:3])
        return Program(
            summary=header,
            number=number,
            problem=f"{TOOLS}: write a list of the names of exported functions, such as [{sample}]",
        )
    if missing := [name for name in names if name not in known]:
        problem = f"{TOOLS}: {missing[0][:80]} is no function that this file exports; it exports {', '.join(sorted(known)[:MAX_NAMED]) or 'none'}"
        return Program(summary=header, number=number, problem=problem)
    return Program(summary=header, functions=_several(code, list(dict.fromkeys(names)), header))


def _documented(code: JavaScript, header: str) -> Program | None:
    """The exported functions with a comment, where nothing says which one is meant; None if there are not several."""
    found = code.found
    names = [
        name
        for name, local in found.exports.items()
        if local in found.functions and not name.startswith("_") and summary_of(found.functions[local].comment)
    ]
    if len(names) < 2:  # noqa: PLR2004 - one alone is not several
        return None
    number = found.functions[found.exports[names[0]]].line
    written = ", ".join(f"'{name}'" for name in names[:MAX_NAMED])
    how = f"export const {TOOLS} = [{written}]" if found.is_module else f"exports.{TOOLS} = [{written}]"
    warning = f"{', '.join(names[:MAX_NAMED])} are taken for tools; say so: {how}"
    return Program(summary=header, functions=_several(code, names, header), warnings=((number, warning),))


def _several(code: JavaScript, names: list[str], header: str) -> dict[str, Program]:
    found = code.found
    return {name: _called(code, name, found.functions[found.exports[name]], header) for name in names}


def _mixed(code: JavaScript) -> int | None:
    """The line of a require in an ES module, which has none unless it makes one."""
    makes_one = any(True for _ in code.find("createRequire"))
    is_module = code.found.is_module and code.place.endswith((".js", ".mjs", ".ts", ".mts"))
    if not is_module or makes_one:
        return None
    calls = (index for index in code.find("require", "(") if code[index - 1].text not in {".", "?.", "function"})
    return next((code[index].line for index in calls), None)


def is_positional(line: CommandLine) -> bool:
    """Whether the program takes nothing but words in their places."""
    return bool(line.parameters) and not any(one.option or one.takes == SPREAD for one in line.parameters)


def _called(code: JavaScript, entry: str, function: Function, header: str) -> Program:
    summary = summary_of(function.comment) or header
    if (callback := _callback(code, function)) is not None:
        problem = f"{function.name or entry} answers by calling {callback}, and a call here has no such function; return the value or a promise"
        return Program(entry=entry, summary=summary, number=function.line, problem=problem)
    try:
        signature = read_signature(code, function)
    except TypeProblemError as problem:
        return Program(entry=entry, summary=summary, number=function.line, problem=f"{function.name} {problem}")
    return Program(entry=entry, summary=summary, number=function.line, signature=signature)


def _callback(code: JavaScript, function: Function) -> str | None:
    """The last parameter, if the function hands its answer to it."""
    parts = code.split(function.parameters)
    name = code[parts[-1].start].text if parts else ""
    calls = any(True for _ in code.find(name, "(", where=function.body)) if name in CALLBACKS else False
    return name if calls else None


def _neither(code: JavaScript, entry: str, header: str) -> Program:
    names = [name for name in code.found.functions if not name.startswith("_")]
    exported = [name for name, local in code.found.exports.items() if local in code.found.functions]
    if len(exported) > 1:
        known = ", ".join(exported[:20])
        problem = f"which function is the tool? it exports {known}; call one of them main, export it as the default, or list them in {TOOLS}"
    elif entry and code.found.exports.get(entry) in code.found.classes:
        name = code.found.exports[entry]
        problem = f"{entry} is the class {name}; write export function main(…) that uses it, also for a static method"
    elif entry:
        problem = f"what {entry} is cannot be seen here; write export function main(…) in this file"
    elif names:
        problem = f"it runs nothing and exports nothing; write export before function {names[0]}"
    else:
        problem = "it runs nothing and exports no function; write export function main(…), or begin its name with '_'"
    is_empty = not names and all(name.startswith("__") for name in code.found.exports)
    return Program(summary=header, problem=problem, is_empty=is_empty)


def _exported(code: JavaScript, stem: str) -> tuple[str, Function | None]:
    """The exported function that is the tool, and the name that it is exported by."""
    exports, functions = code.found.exports, code.found.functions
    words = re.split(r"[-_.]", stem)
    camel = words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])
    for name in ("main", stem, camel, stem.replace("-", "_"), *ENTRIES):
        if name in exports:
            return name, functions.get(exports[name])
    known = [name for name, local in exports.items() if local in functions and not name.startswith("_")]
    if len(known) == 1:
        return known[0], functions[exports[known[0]]]
    return "", None


def _first_line(code: JavaScript) -> str:
    comment = code.comments.get(0, "")
    return comment.lstrip("/").strip() if comment.startswith("//") else ""


def _reads_words(code: JavaScript) -> bool:
    return (
        any(True for _ in code.find("process", ".", "argv"))
        or bool(_modules(code) & {"commander", "yargs", *PARSERS})
        or any(True for _ in code.find("parseArgs", "("))
    )


def _modules(code: JavaScript) -> frozenset[str]:
    """The packages that the file imports, without the part behind a slash."""
    found = set()
    for index, token in enumerate(code.tokens):
        if token.kind == STRING and (
            code[index - 1].text in {"from", "import"}
            or (code[index - 1].text == "(" and code[index - 2].text in {"require", "import"})
        ):
            name = token.value.removeprefix("node:")
            found.add("/".join(name.split("/")[: 2 if name.startswith("@") else 1]))
    return frozenset(found)


def _command_line(code: JavaScript) -> CommandLine:
    modules = _modules(code)
    if any(True for _ in code.find("parseArgs", "(")):
        line = _parse_args(code)
    elif "commander" in modules:
        line = _commander(code)
    elif "yargs" in modules:
        line = _yargs(code)
    elif modules & PARSERS:
        line = _by_properties(code, min(modules & PARSERS))
    else:
        line = _plain_words(code)
    return _finish(code, line)


def _finish(code: JavaScript, line: CommandLine) -> CommandLine:
    if len(line.parameters) > MAX_PARAMETERS:
        line = replace(
            line,
            parameters=(),
            problems=((1, f"takes more than {MAX_PARAMETERS} arguments; declare those that matter"),),
        )
    line = replace(line, parameters=tuple(_as_number(code, one) for one in line.parameters))
    names = [one.name for one in line.parameters]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        line = replace(line, problems=(*line.problems, (1, f"two arguments are called {twice}; rename one of them")))
    if _reads_input(code) and STDIN not in names and not line.actions:
        return replace(line, stdin=STDIN)
    return line


def _as_number(code: JavaScript, word: Parameter) -> Parameter:
    """A word that the program makes a number of is one: of any other text it would make NaN."""
    if word.option or dict(word.schema).get("type") != WORD["type"]:
        return word
    is_number = any(
        code[index - 1].text == "(" and code[index - 2].text in CONVERSIONS
        for index in islice(code.find(word.name), MAX_FOUND)
    )
    return replace(word, schema={**word.schema, **NUMERIC}) if is_number else word


def _reads_input(code: JavaScript) -> bool:
    for index in code.find("process", ".", "stdin"):
        if code[index + 4].text not in {"isTTY", "setRawMode", "fd"}:
            return True
        if code[index + 4].text == "fd":
            return True
    for index in code.find("readFileSync", "("):
        first = code[index + 2]
        if first.text == "0" or first.value == "/dev/stdin":
            return True
    return False


# util.parseArgs


def _parse_args(code: JavaScript) -> CommandLine:
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
        parameters += _destructured_words(code, "positionals")
    allows_no = _literals(code, described).get("allowNegative") is True
    if allows_no:
        parameters = [replace(one, off=f"--no-{one.option[2:]}") if one.takes == FLAG else one for one in parameters]
    return CommandLine(parameters=tuple(parameters), dashes=AFTER_END)


def _option(name: str, option: str, schema: Schema, known: dict[str, object], *, takes: str = "") -> Parameter:
    """A parameter from what a library is told about an option."""
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
    """The members of an object literal, or of the constant that is named there."""
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


def _destructured_words(code: JavaScript, source: str) -> list[Parameter]:
    """The words that `const [a, b = 1, ...rest] = source` names; all words under one name if nothing does."""
    for index in islice(code.find(source), MAX_FOUND):
        if code[index - 1].text != "=" or code[index - 2].text != "]" or code[index + 1].text in {".", "["}:
            continue
        return list(_pattern_words(code, code.openings[index - 2]))
    for index in islice(code.find(source, ":", "["), MAX_FOUND):
        return list(_pattern_words(code, index + 2))
    numbered = {
        int(code[index + 2].text): index
        for index in islice(code.find(source, "["), MAX_FOUND)
        if code[index + 2].text.isdigit()
    }
    uses = islice(code.find(source, "."), MAX_FOUND)
    if numbered and max(numbered) < MAX_PLACES and all(code[index + 2].text == "length" for index in uses):
        return [_numbered(code, number, numbered.get(number)) for number in range(max(numbered) + 1)]
    return [_spread(REST)]


def _numbered(code: JavaScript, number: int, index: int | None) -> Parameter:
    """A word that is read as `source[number]`; it is called like the variable that it is given to."""
    name, required = f"arg{number + 1}", True
    if index is not None:
        close = code.partners.get(index + 1, index + 3)
        if code[close + 1].text in {"||", "??"}:
            required = False
        before = index - 1
        if code[before].text == "(" and code[before - 1].text in {
            "Number",
            "parseInt",
            "parseFloat",
            "String",
            "BigInt",
        }:
            before -= 2
        if code[before].text == "+":
            before -= 1
        if code[before].text == "=" and code[before - 1].kind == NAME:
            name = code[before - 1].text
    return Parameter(name=name, required=required)


def _pattern_words(code: JavaScript, opening: int) -> Iterator[Parameter]:
    for part in code.split(code.inside(opening)):
        if code[part.start].text == "...":
            yield _spread(code[part.start + 1].text)
        elif code[part.start].kind == NAME:
            has_default = len(part) > 1 and code[part.start + 1].text == "="
            schema: Schema = dict(WORD)
            if has_default:
                with suppress(NotLiteralError):
                    schema["description"] = f"Without it: {code.literal(range(part.start + 2, part.stop))}"
            yield Parameter(name=code[part.start].text, schema=schema, required=not has_default)


def _spread(name: str) -> Parameter:
    return Parameter(name=name, schema={"type": "array", "items": dict(WORD)}, takes=SPREAD)


# commander


def _commander(code: JavaScript) -> CommandLine:
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
        elif method == "argument" and first.kind == STRING:
            words += _described(code, list(_commander_words(first.value)), inside)
        elif method == "arguments" and first.kind == STRING:
            words += _commander_words(first.value)
        elif method == "description" and first.kind == STRING and not summary:
            summary = first.value
    merged = _merge_negated(parameters)
    return CommandLine(summary=summary, parameters=(*merged, *words), dashes=AFTER_END)


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
    """`--no-color` alone means that color is on; beside `--color` it is how to say no."""
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
            yield replace(_spread(name), required=found[1] == "<")
        else:
            yield Parameter(name=name, required=found[1] == "<")


def _camel(text: str) -> str:
    head, *rest = text.split("-")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


# yargs


def _yargs(code: JavaScript) -> CommandLine:
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
        return _by_properties(code, "yargs")
    return replace(top, parameters=(*top.parameters, *rest))


def _typed_word(part: CommandLine, word: Parameter) -> Parameter:
    known = next((one for one in part.parameters if one.name == word.name), None)
    if known is None or word.takes == SPREAD:
        return word
    return replace(word, schema=known.schema if known.schema.get("type") != "boolean" else word.schema)


def _words_of_yargs(code: JavaScript) -> list[Parameter]:
    for index in islice(code.find("_"), MAX_FOUND):
        if code[index - 1].text == "." and code[index - 3].text == "=" and code[index - 4].text == "]":
            return list(_pattern_words(code, code.openings[index - 4]))
    return [_spread(REST)]


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


# process.argv, and libraries that only split it


def _by_properties(code: JavaScript, library: str) -> CommandLine:
    """The properties that are read of what a library makes of the words."""
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
            name, behind = code[index + 2].text, code[index + 3].text
            if name == "_":
                has_words = True
            elif behind != "(" and name not in BUILT_IN:
                found[name] = found.get(name, False) or behind in {"||", "??"}
    parameters = [Parameter(name=name, option=f"--{name}", schema={}, takes=ANY) for name in found]
    if has_words:
        parameters.append(_spread(REST))
    return CommandLine(parameters=tuple(parameters), warnings=_guess(library))


def _guess(library: str) -> tuple[tuple[int, str], ...]:
    return ((1, f"what it takes is guessed from the properties that it reads of {library}; declare parameters"),)


def _plain_words(code: JavaScript) -> CommandLine:
    """A program that reads process.argv itself."""
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
    """An option that the program looks for in its words: one with a value if it takes the word behind it."""
    if not text.startswith("-") or text in {"-h", "--help"}:
        return []
    behind = code.texts(range(index, min(index + 14, len(code.tokens))))
    name = text.lstrip("-")
    takes_value = "indexOf" in behind and ("+" in behind or _is_added_to(code, index))
    if not takes_value:
        return [Parameter(name=name, option=text, schema={"type": "boolean"}, takes=FLAG)]
    return [Parameter(name=name, option=text, glued=False)]


def _is_added_to(code: JavaScript, index: int) -> bool:
    """Whether the position that was found is given to a variable to which one is added later."""
    for at in range(index, max(index - 8, -1), -1):
        if code[at].text == "=" and code[at - 1].kind == NAME:
            return any(True for _ in code.find(code[at - 1].text, "+"))
    return False


def _slices(code: JavaScript) -> list[str]:
    """The variables that hold process.argv.slice(2)."""
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
        words = _destructured_words(code, variable)
        options = any(True for index in code.find(variable, ".") if code[index + 2].text in {"includes", "indexOf"})
        if words and not (options and words[0].name == REST):
            return words
    uses = any(True for _ in code.find("process", ".", "argv"))
    return [_spread(REST)] if uses else []


def _argv_word(code: JavaScript, number: int, index: int | None) -> Parameter:
    if index is None:
        return Parameter(name=f"arg{number + 1}", required=True)
    # `process.argv` is three tokens where a variable is one.
    close = code.partners.get(index + 3, index + 5)
    required = code[close + 1].text not in {"||", "??"}
    before = index - 1
    if code[before].text == "(" and code[before - 1].text in {"Number", "parseInt", "parseFloat", "String", "BigInt"}:
        required = required and code[code.partners[before] + 1].text not in {"||", "??"}
        before -= 2
    if code[before].text == "+":
        before -= 1
    name = _name_of_word(code, before) or f"arg{number + 1}"
    return Parameter(name=name, schema=dict(WORD if before == index - 1 else NUMERIC), required=required)


def _name_of_word(code: JavaScript, before: int) -> str:
    """The variable that a word is given to, or the parameter of the function that is called with it."""
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
            yield _spread(code[part.start + 1].text)
        elif code[part.start].kind == NAME:
            yield Parameter(
                name=code[part.start].text, required=not (len(part) > 1 and code[part.start + 1].text == "=")
            )


def _with_holes(code: JavaScript, opening: int) -> list[range]:
    """The parts of an array pattern, also empty ones."""
    inside = code.inside(opening)
    parts, start, index = [], inside.start, inside.start
    while index < inside.stop:
        if code[index].text == ",":
            parts.append(range(start, index))
            start = index + 1
        index = code.partners.get(index, index) + 1
    return [*parts, range(start, inside.stop)]
