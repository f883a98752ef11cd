"""Whether importing a candidate does nothing but define, and whether what it defines is what was read in its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.builder.gate.interface import default_problem
from toolcrib.builder.gate.nouns import Check, complain
from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.builder.gate.probing import Probed, Raised
    from toolcrib.model.toolrequest import ToolRequest

SHOWN_LETTERS = 200
BY_NAME = frozenset({"POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"})
# How Python itself puts it.
RELATIVE = "attempted relative import"
MAY_IMPORT = "import what Python brings with it, or modules that lie beside it in the package"


def check_import(probed: Probed, request: ToolRequest, line: int) -> list[Complaint]:
    """What the import of a candidate left, printed or raised; `line` is where its text defines the function."""
    entry = f"{request.name}.py"
    found = [complain(Check.IMPORT, text) for text in _import_problems(probed, entry)]
    if probed.function is not None:
        problems = _function_problems(probed.function, request, line)
        found += [complain(Check.INTERFACE, f"{entry}: {text}") for text in problems]
    return found


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
    name, entry = request.function, f"{request.name}.py"
    if found.get("kind") != "function":
        yield f"after the import {name} is a {found.get('kind')} and no function; define it as a plain def"
        return
    if (found.get("file"), found.get("line")) != (entry, line):
        place = f"{found.get('file')}:{found.get('line')}"
        yield f"after the import {name} is the function at {place} and not the one at line {line}; define it once"
    parameters = found.get("parameters")
    if not isinstance(parameters, list) or not all(isinstance(known, Mapping) for known in parameters):
        yield f"the signature of {name} cannot be read; remove the decorator that hides it"
        return
    yield from _parameter_problems({str(known.get("name")): known for known in parameters}, request)


def _parameter_problems(parameters: Mapping[str, Mapping[str, object]], request: ToolRequest) -> Iterator[str]:
    """What only shows at run time: a decorator that changes the signature, a default that is computed."""
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
        elif "default" in known and (problem := default_problem(given, known["default"])):
            yield f"{name}: {problem}"
