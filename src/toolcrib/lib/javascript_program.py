"""Determine how a JavaScript or TypeScript file is used: as an exported function, or as a program with a command line.

The command line is derived from `parseArgs`, `commander`, `yargs` or plain `process.argv`; for other libraries, from the
properties of their result that the program reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.command_line import MAX_PARAMETERS, SPREAD, STDIN, WORD, CommandLine, Parameter
from toolcrib.lib.javascript_options import read_commander, read_parse_args, read_yargs
from toolcrib.lib.javascript_source import JavaScript
from toolcrib.lib.javascript_tokens import STRING, NotLiteralError
from toolcrib.lib.javascript_types import Signature, TypeProblemError, read_signature, summary_of
from toolcrib.lib.javascript_words import MAX_FOUND, NUMERIC, read_argv, read_properties
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.lib.javascript_source import Function

    Schema = dict[str, object]

ENTRIES = ("main", "default", "run", "execute", "handler", "handle", "call", "invoke")
TOOLS = "__tools__"
# Metadata that a file may export beside its function, with the names that chat libraries use.
NAME, DESCRIPTION, SCHEMAS = "name", "description", ("parameters", "inputSchema", "input_schema", "schema")
MAX_NAMED = 20
CALLBACKS = frozenset({"callback", "cb", "done", "next"})
PARSERS = frozenset(
    {"minimist", "mri", "yargs-parser", "meow", "cac", "sade", "arg", "getopts", "command-line-args", "citty"}
)
NODE_MODULES = frozenset(
    {"assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "dns"}
    | {"diagnostics_channel", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os"}
    | {"path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder"}
    | {"sys", "timers", "tls", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib"}
)
# How many tokens an import may have before the string with its package.
MAX_NAMES = 200
CONVERSIONS = frozenset({"Number", "parseInt", "parseFloat"})


@dataclass(frozen=True, kw_only=True, slots=True)
class JavaScriptProgram:
    """How a file is used: `entry` is the export that is called, empty for a program.

    One of `signature`, `line` and `functions` (several tools, by name) is set, unless `problem` says why none is; `is_empty`
    means that the file has no function at all.
    """

    entry: str = ""
    summary: str = ""
    number: int = 1
    signature: Signature | None = None
    line: CommandLine | None = None
    functions: Mapping[str, JavaScriptProgram] = field(default_factory=dict)
    warnings: tuple[tuple[int, str], ...] = ()
    problem: str = ""
    is_empty: bool = False


def read_javascript_program(text: str, stem: str, place: str = "") -> JavaScriptProgram:
    """How the file is used; raises ToolError if it cannot be tokenised."""
    code = JavaScript(text, place)
    found = code.found
    header = summary_of(code.comments.get(0, "")) if code.comments.get(0, "").startswith("/*") else _first_line(code)
    entry, function = _exported(code, stem)
    if (number := _mixed(code)) is not None:
        problem = "require is not defined in a file with import or export; write import instead of require"
        return JavaScriptProgram(entry=entry, summary=header, number=number, problem=problem)
    if TOOLS in found.exports:
        return _listed(code, header)
    starts = bool(found.acts) or (
        bool(found.guards) and (function is None or (_reads_words(code) and not len(function.parameters)))
    )
    if function is not None and not starts:
        return _with_declared(code, _called(code, entry, function, header), stem)
    if starts or _reads_words(code):
        return JavaScriptProgram(summary=header, line=_command_line(code))
    return _documented(code, header) or _neither(code, entry, header)


def _listed(code: JavaScript, header: str) -> JavaScriptProgram:
    """The functions that the file lists in `__tools__`."""
    where = code.found.values.get(TOOLS, range(0))
    number = code[where.start].line if len(where) else 1
    known = {name for name, local in code.found.exports.items() if local in code.found.functions}
    try:
        names = code.literal(where)
    except (NotLiteralError, IndexError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        sample = ", ".join(f"'{name}'" for name in sorted(known)[:3])
        return JavaScriptProgram(
            summary=header,
            number=number,
            problem=f"{TOOLS}: write a list of the names of exported functions, such as [{sample}]",
        )
    if missing := [name for name in names if name not in known]:
        problem = f"{TOOLS}: {missing[0][:80]} is not a function that this file exports; it exports {', '.join(sorted(known)[:MAX_NAMED]) or 'none'}"
        return JavaScriptProgram(summary=header, number=number, problem=problem)
    return JavaScriptProgram(summary=header, functions=_several(code, list(dict.fromkeys(names)), header))


def _documented(code: JavaScript, header: str) -> JavaScriptProgram | None:
    """The exported functions with a comment, if none of them is the obvious entry; None if there are not several."""
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
    return JavaScriptProgram(summary=header, functions=_several(code, names, header), warnings=((number, warning),))


def _several(code: JavaScript, names: list[str], header: str) -> dict[str, JavaScriptProgram]:
    found = code.found
    return {name: _called(code, name, found.functions[found.exports[name]], header) for name in names}


def _mixed(code: JavaScript) -> int | None:
    """The line of a `require` in an ES module that does not use `createRequire`; None if there is none."""
    makes_one = any(True for _ in code.find("createRequire"))
    is_module = code.found.is_module and code.place.endswith((".js", ".mjs", ".ts", ".mts"))
    if not is_module or makes_one:
        return None
    calls = (index for index in code.find("require", "(") if code[index - 1].text not in {".", "?.", "function"})
    return next((code[index].line for index in calls), None)


def is_positional(line: CommandLine) -> bool:
    """Whether the program takes only positional arguments."""
    return bool(line.parameters) and not any(one.option or one.takes == SPREAD for one in line.parameters)


def _called(code: JavaScript, entry: str, function: Function, header: str) -> JavaScriptProgram:
    summary = summary_of(function.comment) or header
    if (callback := _callback(code, function)) is not None:
        problem = f"{function.name or entry} answers by calling {callback}, and a call here has no such function; return the value or a promise"
        return JavaScriptProgram(entry=entry, summary=summary, number=function.line, problem=problem)
    try:
        signature = read_signature(code, function)
    except TypeProblemError as problem:
        return JavaScriptProgram(
            entry=entry, summary=summary, number=function.line, problem=f"{function.name} {problem}"
        )
    return JavaScriptProgram(entry=entry, summary=summary, number=function.line, signature=signature)


def _with_declared(code: JavaScript, program: JavaScriptProgram, stem: str) -> JavaScriptProgram:
    """The program with the description and the schema that the file exports beside its function."""
    declared = {name: _exported_value(code, name) for name in (NAME, DESCRIPTION, *SCHEMAS)}
    name, description = declared.pop(NAME), declared.pop(DESCRIPTION)
    signature = program.signature
    schema = next((value for value in declared.values() if _describes_arguments(value)), None)
    if signature is not None and isinstance(schema, dict):
        taken = signature.schema.get("properties")
        fits = signature.style == "whole" or (isinstance(taken, dict) and schema["properties"].keys() <= taken.keys())
        signature = replace(signature, schema=schema) if fits else signature
    warnings = program.warnings
    if isinstance(name, str) and name.replace("-", "_") != stem.replace("-", "_"):
        warnings = (*warnings, (1, f"a tool has the name of its file; rename the file if {name[:80]} is meant"))
    summary = description if isinstance(description, str) and description else program.summary
    return replace(program, signature=signature, summary=summary, warnings=warnings)


def _exported_value(code: JavaScript, name: str) -> object:
    if name not in code.found.exports:
        return None
    try:
        return code.literal(code.found.values.get(code.found.exports[name] or name, range(0)))
    except (NotLiteralError, IndexError):
        return None


def _describes_arguments(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties"), dict)


def _callback(code: JavaScript, function: Function) -> str | None:
    """The last parameter, if it is a callback that the function calls with its result."""
    parts = code.split(function.parameters)
    name = code[parts[-1].start].text if parts else ""
    calls = any(True for _ in code.find(name, "(", where=function.body)) if name in CALLBACKS else False
    return name if calls else None


def _neither(code: JavaScript, entry: str, header: str) -> JavaScriptProgram:
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
    return JavaScriptProgram(summary=header, problem=problem, is_empty=is_empty)


def _exported(code: JavaScript, stem: str) -> tuple[str, Function | None]:
    """The name of the export that is the tool, and its function."""
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
    """The packages that the file imports, without subpaths."""
    found = set()
    for index, token in enumerate(code.tokens):
        if token.kind == STRING and (
            code[index - 1].text in {"from", "import"}
            or (code[index - 1].text == "(" and code[index - 2].text in {"require", "import"})
        ):
            name = token.value.removeprefix("node:")
            found.add("/".join(name.split("/")[: 2 if name.startswith("@") else 1]))
    return frozenset(found)


def needed_packages(text: str) -> tuple[str, ...]:
    """The packages that a file needs to load: no modules of Node, and none that are imported inside a `try`."""
    try:
        code = JavaScript(text)
    except ToolError:
        return ()
    tried = {index for start in code.find("try", "{") for index in code.inside(start + 1)}
    names = [_package(code, index) for index in range(len(code.tokens)) if index not in tried]
    return tuple(dict.fromkeys(name for name in names if name and name not in NODE_MODULES))


def _package(code: JavaScript, index: int) -> str:
    """The package that the string at an index imports; empty for a file, an alias, or a string that is not imported."""
    token = code[index]
    is_imported = token.kind == STRING and (
        code[index - 1].text in {"from", "import"}
        or (code[index - 1].text == "(" and code[index - 2].text == "require")
    )
    if not is_imported or _is_erased(code, index) or not re.fullmatch(r"(@[\w.-]+/)?[\w][\w.-]*(/.*)?", token.value):
        return ""
    return "/".join(token.value.split("/")[: 2 if token.value.startswith("@") else 1])


def _is_erased(code: JavaScript, index: int) -> bool:
    """Whether a string is the source of `import type …`, which does not exist at run time."""
    start = next((at for at in range(index - 1, max(index - MAX_NAMES, -1), -1) if code[at].text == "import"), index)
    return code[start + 1].text == "type" and code[start + 2].text not in {"from", ","}


def _command_line(code: JavaScript) -> CommandLine:
    modules = _modules(code)
    if any(True for _ in code.find("parseArgs", "(")):
        line = read_parse_args(code)
    elif "commander" in modules:
        line = read_commander(code)
    elif "yargs" in modules:
        line = read_yargs(code)
    elif modules & PARSERS:
        line = read_properties(code, min(modules & PARSERS))
    else:
        line = read_argv(code)
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
    """A word that the program converts to a number gets that type: any other text would become NaN."""
    if word.option or dict(word.schema).get("type") != WORD["type"]:
        return word
    is_number = any(
        code[index - 1].text == "(" and code[index - 2].text in CONVERSIONS
        for index in islice(code.find(word.name), MAX_FOUND)
    )
    return replace(word, schema={**word.schema, **NUMERIC}) if is_number else word


def _reads_input(code: JavaScript) -> bool:
    for index in code.find("process", ".", "stdin"):
        if code[index + 4].text not in {"isTTY", "setRawMode"}:
            return True
    for index in code.find("readFileSync", "("):
        first = code[index + 2]
        if first.text == "0" or first.value == "/dev/stdin":
            return True
    return False
