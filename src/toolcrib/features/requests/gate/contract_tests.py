"""Write the contract of a request as a test file that the maker can run: plain Python and pytest, nothing else."""

from __future__ import annotations

import json
from pprint import pformat
from typing import TYPE_CHECKING

from toolcrib.features.requests.gate import LONG, REPEATED, WORDS, derive_contract
from toolcrib.infra.sandbox.jobs import has_network
from toolcrib.model.toolrequest import MISSING

if TYPE_CHECKING:
    from toolcrib.model.toolrequest import ToolRequest

WIDTH = 110


def write_contract_tests(request: ToolRequest) -> str:
    """The text of a test file in a folder beside the folder `package`."""
    contract = derive_contract(request)
    facts = {
        "MODULE": request.name,
        "FUNCTION": request.function,
        "INPUTS": [given.name for given in request.inputs],
        "REQUIRED": [given.name for given in request.inputs if given.required],
        "DEFAULTS": {given.name: given.default for given in request.inputs if given.default is not MISSING},
        "OUTPUT": request.output_schema,
        "CALLS": [(sample.about, _with_name(sample.arguments), sample.plain) for sample in contract.accepted],
        "EXAMPLES": [(example.arguments, example.expected) for example in contract.examples],
        "NEEDS_NETWORK": has_network(request.capabilities),
    }
    named = "\n".join(f"{name} = {pformat(value, width=WIDTH, sort_dicts=False)}" for name, value in facts.items())
    title = json.dumps(
        f"The contract of {request.name}, as far as it can be checked here: {request.id or 'a request'}."
    )
    before, _, after = TEXT.replace("@TITLE@", title[1:-1]).partition("@FACTS@")
    return f"{before}LONG = {WORDS!r} * {REPEATED}\n{named}{after}"


class _LongText(str):
    """The long text, whose repr is the name of a constant."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LONG"


def _with_name(value: object) -> object:
    """The value, with the long text replaced by its constant."""
    if isinstance(value, dict):
        return {name: _with_name(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_name(inner) for inner in value]
    return _LongText(value) if isinstance(value, str) and value == LONG else value


TEXT = '''"""@TITLE@

Made from the request; editing it changes nothing, because the gate makes its own. The gate looks at more besides: what the
tool does to files, programs and the network, what importing it does, and how long it takes.
"""

import asyncio
import dataclasses
import importlib.util
import inspect
import json
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "package"
@FACTS@

TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


@pytest.fixture(scope="module")
def function():
    sys.dont_write_bytecode = True
    sys.path.append(str(PACKAGE))
    path = PACKAGE / f"{MODULE}.py"
    assert path.is_file(), f"write the tool in package/{MODULE}.py"
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, FUNCTION, None)
    assert callable(found), f"write def {FUNCTION}({', '.join(INPUTS)}) in package/{MODULE}.py"
    return found


def call(function, arguments):
    """What the tool answers, as JSON; an object of result, success and error is opened."""
    value = function(**json.loads(json.dumps(arguments)))
    if inspect.isawaitable(value):
        value = asyncio.run(settle(value))
    value = json.loads(json.dumps(value, allow_nan=False, default=plain))
    if isinstance(value, dict) and value.keys() == {"result", "success", "error"}:
        assert value["success"], value["error"]
        return value["result"]
    return value


async def settle(value):
    return await value


def plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def problems(value, schema, path="the answer"):
    """Everything in a value that is not as its schema says."""
    if not schema:
        return []
    if "anyOf" in schema:
        found = [problems(value, branch, path) for branch in schema["anyOf"]]
        return [] if [] in found else found[0]
    names = schema.get("type", list(TYPES))
    names = names if isinstance(names, list) else [names]
    if not any(fits(value, name) for name in names):
        return [f"{path} is {value!r:.80} and has to be {' or '.join(names)}"]
    if isinstance(value, list):
        items = schema.get("items", {})
        return [found for i, item in enumerate(value) for found in problems(item, items, f"{path}[{i}]")]
    if isinstance(value, dict):
        return object_problems(value, schema, path)
    return []


def object_problems(value, schema, path):
    known = schema.get("properties", {})
    found = [f"{path} lacks {name}" for name in schema.get("required", []) if name not in value]
    if schema.get("additionalProperties") is False:
        found += [f"{path} has {name}, which was not asked for" for name in value if name not in known]
    for name in known:
        if name in value:
            found += problems(value[name], known[name], f"{path}.{name}")
    return found


def fits(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name]) or (name == "integer" and isinstance(value, float) and value.is_integer())


def is_refusal(problem):
    """Whether the tool says that it does not take this value; it may, at the edges of what a type allows."""
    return type(problem).__name__ == "ToolError" and str(getattr(problem, "kind", "")) == "VALIDATION"


needs_network = pytest.mark.skipif(NEEDS_NETWORK, reason="it needs a network; the gate has recorded answers for it")


def test_the_function_takes_exactly_the_inputs(function):
    parameters = inspect.signature(function).parameters
    assert sorted(parameters) == sorted(INPUTS)
    for name, parameter in parameters.items():
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY), f"{name} is given by name"
        has_default = parameter.default is not parameter.empty
        assert has_default == (name not in REQUIRED), f"{name}: a default is for what is not required"


def test_the_defaults_are_those_of_the_request(function):
    parameters = inspect.signature(function).parameters
    for name, default in DEFAULTS.items():
        if name in REQUIRED:
            continue
        written = parameters[name].default
        is_none_for_a_container = written is None and isinstance(default, (list, dict))
        assert written == default or is_none_for_a_container, name


@needs_network
@pytest.mark.parametrize(("arguments", "usual"), [(a, u) for _, a, u in CALLS], ids=[about for about, _, _ in CALLS])
def test_what_the_inputs_allow_is_answered_in_the_declared_shape(function, arguments, usual):
    try:
        value = call(function, arguments)
    except Exception as problem:
        if EXAMPLES or (not usual and is_refusal(problem)):
            return
        raise
    assert problems(value, OUTPUT) == []


@needs_network
@pytest.mark.parametrize(("arguments", "expected"), EXAMPLES)
def test_the_answer_is_the_one_that_the_request_shows(function, arguments, expected):
    assert call(function, arguments) == expected


DECIDED = len({json.dumps(expected, sort_keys=True) for _, expected in EXAMPLES}) > 1


@needs_network
@pytest.mark.skipif(DECIDED or not INPUTS, reason="examples decide, or there is nothing to ask")
def test_the_answer_has_to_do_with_the_question(function):
    answers = {}
    for arguments in [*(arguments for _, arguments, _ in CALLS), *(arguments for arguments, _ in EXAMPLES)]:
        question = json.dumps({**DEFAULTS, **arguments}, sort_keys=True)
        try:
            answers[question] = json.dumps(call(function, arguments), sort_keys=True)
        except Exception as problem:
            assert EXAMPLES or is_refusal(problem)
    is_only_an_example = EXAMPLES and len(answers) < 2
    why = "the answer is always the same; if that is right, examples that differ have to be added to the request"
    assert is_only_an_example or len(set(answers.values())) > 1, why
'''
