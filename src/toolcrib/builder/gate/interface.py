"""Whether a candidate defines what the example imports, with exactly the inputs: read from its syntax tree, nothing runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolcrib.builder.gate.bindings import find_bindings
from toolcrib.builder.gate.hinting import contradicts, describe_type
from toolcrib.builder.gate.nouns import Check, complain, show_value, spell_value
from toolcrib.dialects.reading import parse_python
from toolcrib.dialects.syntax import HintError, SyntaxHints, literal, read_answer
from toolcrib.model.errors import ToolError
from toolcrib.model.toolrequest import MISSING
from toolcrib.pure.names import did_you_mean
from toolcrib.pure.schema import is_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.builder.candidate import Candidate
    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.dialects.syntax import AnyFunction
    from toolcrib.model.toolrequest import Input, ToolRequest

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check_interface(candidate: Candidate, request: ToolRequest) -> list[Complaint]:
    """What is not as the request says; none if everything is."""
    return [complain(Check.INTERFACE, text) for text in _problems(candidate, request)]


def line_of_function(candidate: Candidate, request: ToolRequest) -> int:
    """Where the function begins, decorators included, in a candidate whose interface is as it should be."""
    module = parse_python(candidate.files[candidate.entry], candidate.entry)
    function = next(node for node in module.body if isinstance(node, FUNCTIONS) and node.name == request.function)
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _problems(candidate: Candidate, request: ToolRequest) -> Iterator[str]:
    entry = f"{request.name}.py"
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
    for binding in find_bindings(module, name):
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
    bound = next(iter(find_bindings(module, name)), None)
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
            wish = "and callers would have to give it" if default is None else "even with a default"
            yield f"{place} has the parameter {name}, which is no input of the request, {wish}; remove it"
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
    elif default is not None and (problem := default_problem(given, literal(default))):
        yield f"{place}: {problem}"
    if argument.annotation is None:
        return
    try:
        hint = hints.read(argument.annotation)
    except HintError as problem:
        yield f"{place}: {given.name}: {problem}"
        return
    if contradicts(hint, given.schema):
        written, wanted = ast.unparse(argument.annotation), describe_type(given.schema)
        yield f"{place}: {given.name} is annotated {written}, and the request says {wanted}; correct the annotation"


def default_problem(given: Input, written: object) -> str:
    """What is wrong with a default that is written as a literal, or was found at run time; empty if nothing is.

    None in place of a list or an object is how Python writes a default that nobody must change.
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
    if schema is None or function.returns is None or not contradicts({"type": "object"}, schema):
        return
    outputs = ", ".join(f'"{output.name}": …' for output in request.outputs or ())
    written = ast.unparse(function.returns)
    yield (
        f"{entry}:{function.lineno}: {function.name} is annotated to return {written}, and the request declares outputs; "
        f"return a dict {{{outputs}}}"
    )
