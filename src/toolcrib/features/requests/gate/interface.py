"""Check that a candidate defines the function of the example with exactly the inputs, in its syntax tree and once imported."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.features.requests.gate import Check, complain, show_value, spell_value
from toolcrib.lib.names import did_you_mean
from toolcrib.lib.python_hints import HintError, SyntaxHints, read_answer
from toolcrib.lib.python_source import literal, parse_python
from toolcrib.lib.schema_structure import is_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.features.requests.candidate import Candidate
    from toolcrib.features.requests.gate import Complaint
    from toolcrib.features.requests.gate.calls import Probed, Raised
    from toolcrib.lib.python_source import AnyFunction
    from toolcrib.model.toolrequest import Input, ToolRequest

    Schema = Mapping[str, object]


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Node = ast.stmt | ast.expr | ast.excepthandler | ast.pattern

NAMES = {"array": "list", "null": "null"}
EVERY = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
OF_VALUES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
MAX_DEPTH = 8
SHOWN_LETTERS = 200
BY_NAME = frozenset({"POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"})
# The message of Python itself.
RELATIVE = "attempted relative import"
MAY_IMPORT = "import what Python brings with it, or modules that lie beside it in the package"


def check_interface(candidate: Candidate, request: ToolRequest) -> list[Complaint]:
    """Where the candidate differs from the request; nothing is run."""
    return [complain(Check.INTERFACE, text) for text in _problems(candidate, request)]


def line_of_function(candidate: Candidate, request: ToolRequest) -> int:
    """The first line of the function, decorators included, in a candidate that passed `check_interface`."""
    module = parse_python(candidate.files[candidate.entry], candidate.entry)
    function = next(node for node in module.body if isinstance(node, FUNCTIONS) and node.name == request.function)
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def check_import(probed: Probed, request: ToolRequest, line: int) -> list[Complaint]:
    """What the import of a candidate left, printed or raised; `line` is where its source defines the function."""
    entry = request.entry_file
    found = [complain(Check.IMPORT, text) for text in _import_problems(probed, entry)]
    if probed.function is not None:
        problems = _function_problems(probed.function, request, line)
        found += [complain(Check.INTERFACE, f"{entry}: {text}") for text in problems]
    return found


def _problems(candidate: Candidate, request: ToolRequest) -> Iterator[str]:
    entry = request.entry_file
    modules: dict[str, ast.Module] = {}
    for path, code in sorted(candidate.files.items()):
        if not path.endswith(".py"):
            continue
        try:
            modules[path] = parse_python(code, path)
        except ToolError as problem:
            yield problem.message
    if entry not in candidate.files:
        found = ", ".join(sorted(candidate.files)[:10]) or "nothing"
        yield f"there is no {entry}, only {found}; write def {request.function}(…) in {entry}"
    elif entry in modules:
        yield from _entry_problems(modules[entry], entry, request)


def _entry_problems(module: ast.Module, entry: str, request: ToolRequest) -> Iterator[str]:
    name = request.function
    found = [node for node in module.body if isinstance(node, FUNCTIONS) and node.name == name]
    if not found:
        yield _why_missing(module, entry, request)
        return
    function = found[-1]
    for binding in _find_bindings(module, name):
        if binding is not function:
            yield f"{entry}:{binding.lineno}: {name} is bound a second time; define it once, as a plain def"
    try:
        hints = SyntaxHints(module)
        yield from _parameter_problems(function, entry, request, hints)
        yield from _answer_problems(function, entry, request, hints)
    except RecursionError:
        yield f"{entry}:{function.lineno}: {name} is nested too deeply to be read; make it simpler"


def _why_missing(module: ast.Module, entry: str, request: ToolRequest) -> str:
    name = request.function
    signature = f"def {name}({', '.join(given.name for given in request.inputs)})"
    bound = next(iter(_find_bindings(module, name)), None)
    if bound is not None:
        return f"{entry}:{bound.lineno}: {name} is not a plain function of the module; write {signature}: at the left margin, once"
    inner = next((node for node in ast.walk(module) if isinstance(node, FUNCTIONS) and node.name == name), None)
    if inner is not None:
        return f"{entry}:{inner.lineno}: {name} is defined inside something else; write {signature}: at the left margin"
    names = [node.name for node in module.body if isinstance(node, FUNCTIONS)]
    hint = did_you_mean(name, names) if names else ""
    has = f"it has {', '.join(names[:10])}" if names else "it has no function at all"
    return f"{entry}: defines no function {name}, which the example imports; {hint or has}; write {signature}:"


def _parameter_problems(function: AnyFunction, entry: str, request: ToolRequest, hints: SyntaxHints) -> Iterator[str]:
    place, arguments = f"{entry}:{function.lineno}: {function.name}", function.args
    for starred, sign in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if starred is not None:
            yield f"{place} takes {sign}{starred.arg}; remove it, and write the inputs of the request as parameters"
    for argument in arguments.posonlyargs:
        yield f"{place}: {argument.arg} cannot be given by name; remove the '/'"
    inputs = {given.name: given for given in request.inputs}
    parameters = _parameters(function)
    for name in inputs:
        if name not in parameters:
            yield f"{place} has no parameter {name}, which is an input of the request; add it"
    for name, (argument, default) in parameters.items():
        if name not in inputs:
            need = "and callers would have to give it" if default is None else "even with a default"
            yield f"{place} has the parameter {name}, which is not an input of the request, {need}; remove it"
        else:
            yield from _input_problems(inputs[name], argument, default, place, hints)


def _parameters(function: AnyFunction) -> dict[str, tuple[ast.arg, ast.expr | None]]:
    """The parameters that have a name, each with its default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return {argument.arg: (argument, default) for argument, default in pairs}


def _input_problems(
    given: Input, argument: ast.arg, default: ast.expr | None, place: str, hints: SyntaxHints
) -> Iterator[str]:
    if given.required and default is not None:
        yield f"{place}: {given.name} is required by the request and has a default; remove the default"
    elif not given.required and default is None:
        wanted = "None" if given.default is MISSING else show_value(given.default)
        yield f"{place}: {given.name} is optional and has no default; write {given.name}={wanted}"
    elif default is not None and (problem := _default_problem(given, literal(default))):
        yield f"{place}: {problem}"
    if argument.annotation is None:
        return
    try:
        hint = hints.read(argument.annotation)
    except HintError as problem:
        yield f"{place}: {given.name}: {problem}"
        return
    if _contradicts(hint, given.schema):
        written, wanted = ast.unparse(argument.annotation), _describe_type(given.schema)
        yield f"{place}: {given.name} is annotated {written}, and the request says {wanted}; correct the annotation"


def _default_problem(given: Input, written: object) -> str:
    """What is wrong with a default that is written as a literal, or was found at run time; empty if nothing is.

    None in place of a list or an object is how Python writes a mutable default.
    """
    if given.default is MISSING or given.required or written is NotImplemented or not is_json(written):
        return ""
    if written is None and isinstance(given.default, list | dict):
        return ""
    if spell_value(written) == spell_value(given.default):
        return ""
    wanted = show_value(given.default)
    return f"{given.name} defaults to {show_value(written)}, and the request says {wanted}; write {given.name}={wanted}"


def _answer_problems(function: AnyFunction, entry: str, request: ToolRequest, hints: SyntaxHints) -> Iterator[str]:
    schema = None if request.output_schema is None else read_answer(function, hints)
    if schema is None or function.returns is None or not _contradicts({"type": "object"}, schema):
        return
    outputs = ", ".join(f'"{output.name}": …' for output in request.outputs or ())
    written = ast.unparse(function.returns)
    yield (
        f"{entry}:{function.lineno}: {function.name} is annotated to return {written}, and the request declares outputs; "
        f"return a dict {{{outputs}}}"
    )


def _find_bindings(module: ast.Module, name: str) -> list[Node]:
    """The statements and expressions that bind the name in the module itself, in their order."""
    found = list(_bindings(module, name))
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _bindings(module: ast.Module, name: str) -> Iterator[Node]:
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, SCOPES):
            if node.name == name:
                yield node
            yield from _global_bindings(node, name)
            continue
        if isinstance(node, Node) and _binds(node, name):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _global_bindings(scope: ast.AST, name: str) -> Iterator[Node]:
    """The `global` statements of a function for the name."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Global) and name in node.names:
            yield node


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name == name
    return isinstance(node, ast.MatchMapping) and node.rest == name


def _contradicts(hint: Schema, declared: Schema, depth: int = 0) -> bool:
    """Whether the hint leaves out a type that the request declares, or does so for the items of a list.

    A narrower hint within a type is not a contradiction; the calls show whether it holds.
    """
    allowed = _types(hint)
    wanted = _types(declared)
    if wanted == EVERY:
        return False
    if "number" in allowed:
        allowed |= {"integer"}
    if not wanted <= allowed:
        return True
    inner = hint.get("items"), declared.get("items")
    if depth >= MAX_DEPTH or not all(isinstance(part, Mapping) and part for part in inner):
        return False
    return _contradicts(inner[0], inner[1], depth + 1)  # type: ignore[arg-type]  # both are mappings, checked above


def _describe_type(schema: Schema) -> str:
    """The type in the words of a request."""
    types = _types(schema)
    if types == EVERY:
        return "anything"
    return " | ".join(NAMES.get(name, name) for name in sorted(types, key=lambda name: (name == "null", name)))


def _types(schema: Schema) -> frozenset[str]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, list):
        return frozenset(map(str, kinds))
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        return frozenset().union(*(_types(branch) for branch in branches if isinstance(branch, Mapping)))
    choices = schema.get("enum")
    if isinstance(choices, list):
        return frozenset(OF_VALUES.get(type(choice), "null") for choice in choices)
    return EVERY


def _import_problems(probed: Probed, entry: str) -> Iterator[str]:
    result, raised = probed.result, probed.raised
    for stream in ("stdout", "stderr"):
        if printed := result.meta.get(stream):
            yield f"importing {entry} prints {str(printed)[:SHOWN_LETTERS]!r}; print nothing at the top level"
    for left in probed.left:
        yield f"importing {entry} leaves {left}; do such things inside the function, and undo them there"
    if raised is not None:
        yield _describe_raised(raised, entry)
    elif result.error is not None and result.error.kind is Kind.TIMEOUT:
        yield f"importing {entry} does not end in time; do nothing at the top level but define"
    elif result.error is not None:
        yield f"importing {entry} fails: {result.error.message}; do nothing at the top level but define"
    elif probed.function is None:
        yield f"importing {entry} puts an answer of its own in place of the gate's; remove what does that"


def _describe_raised(raised: Raised, entry: str) -> str:
    if raised.missing:
        return f"{entry} imports {raised.missing}, which is not installed for it; {MAY_IMPORT}"
    if raised.message.startswith(RELATIVE):
        return f"{entry} imports with dots ({raised}); a file beside it goes by its own name: from helper import …"
    if raised.type == "SystemExit":
        return f"importing {entry} ends the process ({raised}); remove the call of exit at the top level"
    return f"importing {entry} raises {raised}; correct it"


def _function_problems(found: Mapping[str, object], request: ToolRequest, line: int) -> Iterator[str]:
    name, entry = request.function, request.entry_file
    if found.get("kind") != "function":
        yield f"after the import {name} is a {found.get('kind')} and not a function; define it as a plain def"
        return
    if (found.get("file"), found.get("line")) != (entry, line):
        place = f"{found.get('file')}:{found.get('line')}"
        yield f"after the import {name} is the function at {place} and not the one at line {line}; define it once"
    parameters = found.get("parameters")
    if not isinstance(parameters, list) or not all(isinstance(known, Mapping) for known in parameters):
        yield f"the signature of {name} cannot be read; remove the decorator that hides it"
        return
    yield from _loaded_parameter_problems({str(known.get("name")): known for known in parameters}, request)


def _loaded_parameter_problems(parameters: Mapping[str, Mapping[str, object]], request: ToolRequest) -> Iterator[str]:
    """Problems that only show at run time: a decorator that changes the signature, a computed default."""
    name = request.function
    inputs = {given.name: given for given in request.inputs}
    if parameters.keys() != inputs.keys():
        yield f"after the import {name} takes ({', '.join(parameters)}) and not ({', '.join(inputs)}); remove what changes it"
        return
    for known in parameters.values():
        given = inputs[str(known["name"])]
        if known.get("kind") not in BY_NAME:
            yield f"{name}: {given.name} cannot be given by name; write it as a plain parameter"
        elif bool(known.get("optional")) is given.required:
            wrong = "has a default and is required" if given.required else "has no default and is optional"
            yield f"{name}: {given.name} {wrong}; write it as the request says"
        elif "default" in known and (problem := _default_problem(given, known["default"])):
            yield f"{name}: {problem}"
