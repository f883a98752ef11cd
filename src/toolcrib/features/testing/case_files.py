"""Find, read and record the cases of a tool: examples in its documentation, and case files in JSON or YAML.

Files are parsed strictly, because an unknown key may be a misspelled expectation. An example that cannot run becomes a
failing case.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import orjson

from toolcrib.features.folders.documentation import Absent, doc_examples, failure_modes
from toolcrib.features.testing.cases import FAILS, SENDING, Case, FakeContext
from toolcrib.infra.files import durable, make_folder, read_small
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, check_plain, decode, read_json
from toolcrib.lib.names import did_you_mean
from toolcrib.lib.positions import Lines
from toolcrib.lib.schema import compile_schema, fill_defaults
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.lib.yaml import read_yaml
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import MODES, Handler

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from toolcrib.features.folders.documentation import DocExample
    from toolcrib.lib.positions import Steps
    from toolcrib.model.tool import Tool

DOCUMENT = "doc.md"
FAILURE_MODES = "Failure Modes"
# The client that provokes each of these errors.
CAUSES: dict[str, FakeContext] = {
    Kind.SESSION_INACTIVE: FakeContext(is_active=False),
    Kind.CONFIRMATION_REQUIRED: FakeContext(confirm=False),
    Kind.TRANSIENT: FakeContext(send=FAILS),
}
T = TypeVar("T")
JSON_ENDING = ".json"
NAMES = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
CASE = ("name", "arguments", "context", "expect")
CONTEXT = ("clientId", "mode", "session", "send", "confirm")
SESSION = ("isActive", "state")
EXPECT: dict[str, type] = {
    "ok": bool,
    "value": object,
    "contains": object,
    "error": dict,
    "intents": list,
    "sent": list,
    "audit": list,
}
ERROR: dict[str, type] = {"type": str, "message_contains": str, "retryable": bool, "partialSideEffects": bool}
AUDIT: dict[str, type] = {"event": str, "data": dict}
BESIDE_A_TOOL = "cases"
IN_A_PROJECT = ("tests", "cases")
ENDINGS = (".json", ".yaml")


def find_cases(tool: Tool, root: Path | None = None) -> list[Case]:
    """All cases of a tool, documented ones first; places are relative to the project folder `root`."""
    recorded = [case for file in _files(tool, root) for case in read_file(file)]
    return [replace(case, place=from_root(root, case.place)) for case in (*documented_cases(tool), *recorded)]


def load_cases(path: str | Path) -> list[Case]:
    """The cases of a file; raises ToolError with all its problems, one per line with place and cure."""
    document = read_small(Path(path), MAX_DEFINITION_BYTES)
    if document is None:
        problem = "there is no such file" if not os.path.lexists(path) else "is not a file that can be read"
        cure = f"write cases into a file of at most {MAX_DEFINITION_BYTES} bytes"
        raise ToolError(Kind.VALIDATION, f"{path}: {problem}; {cure}")
    return read_cases(document, str(path))


def read_cases(document: bytes, place: str) -> list[Case]:
    """The cases of a document: JSON if its place ends in .json, else YAML."""
    value, line_of = _read(document, place)
    reader = _Reader(place, line_of)
    found: dict[str, Case] = {}
    for number, item in enumerate(reader.items(value, ())):
        case = _case(reader, item, (number,))
        if case.name in found:
            reader.refuse((number, "name"), f"the name {case.name[:80]!r} stands twice; rename one of the cases")
        if case.name:
            found[case.name] = case
    reader.close()
    return list(found.values())


def read_file(file: Path) -> list[Case]:
    """The cases of a file; each problem becomes a failing case."""
    try:
        return load_cases(file)
    except ToolError as error:
        problems = error.details.get("problems") or [(error.details.get("line", 1), error.message)]
        return [_unreadable(file, line, problem) for line, problem in cast("list[tuple[int, str]]", problems)]


def documented_cases(tool: Tool) -> Iterator[Case]:
    """One case for each documented example."""
    if isinstance(tool.run, Handler):
        yield from _cases_of_document(tool, tool.run)
        return
    place = "" if tool.origin is None else str(tool.origin)
    for number, arguments in enumerate(tool.examples, 1):
        problem = _misfit(tool, arguments)
        yield Case(name=f"example {number}", place=place, arguments=arguments, problem=problem, is_documented=True)


def from_root(root: Path | None, place: str) -> str:
    """A place relative to the project folder."""
    return place if root is None else place.removeprefix(f"{root}{os.sep}")


def _cases_of_document(tool: Tool, handler: Handler) -> Iterator[Case]:
    file = handler.root / handler.folder / DOCUMENT
    written = handler.files.get(f"{handler.folder}/{DOCUMENT}")
    text = tool.documentation if written is None else decode(written, str(file))
    for example in doc_examples(text):
        yield _case_of_example(tool, example, f"{file}:{example.line}")
    for mode in failure_modes(text):
        if not mode.known:
            hint = did_you_mean(mode.name, Kind) or f"use one of {', '.join(Kind)}"
            problem = f"{mode.name[:80]!r} is not a type of error; {hint}"
            yield Case(name=FAILURE_MODES, place=f"{file}:{mode.line}", problem=problem)


def _case_of_example(tool: Tool, example: DocExample, place: str) -> Case:
    """The case of an example; the documented result has to be contained in the real one."""
    if example.arguments is None or example.problem:
        return Case(name=example.title, place=place, problem=example.problem)
    expect: dict[str, object] = {}
    if example.expected is not Absent:
        expect["contains"] = example.expected
    if example.expected_error:
        expect["error"] = {"type": example.expected_error}
    is_about_arguments = example.expected_error == Kind.VALIDATION
    return Case(
        name=example.title,
        place=place,
        arguments=example.arguments,
        context=CAUSES.get(example.expected_error, FakeContext()),
        expect=expect,
        problem="" if is_about_arguments else _misfit(tool, example.arguments),
        is_documented=True,
    )


def _misfit(tool: Tool, arguments: object) -> str:
    """Why the arguments do not match the schema of the tool; empty if they do."""
    try:
        fill, validator = fill_defaults(tool.parameters), compile_schema(tool.parameters)
        filled = fill(arguments) if fill is not None and isinstance(arguments, dict) else arguments
        if validator.is_valid(filled):
            return ""
        problems = explain_problems(validator, filled, tool.parameters)
    except (ToolError, ValueError, TypeError) as problem:
        problems = [str(problem)]
    return f"the arguments do not fit the schema of {tool.name}: {'; '.join(problems)}; correct the example"


def _read(document: bytes, place: str) -> tuple[object, Callable[[Steps], int]]:
    """The value of a document, and a function that gives the line of each part."""
    if not place.endswith(JSON_ENDING):
        written = read_yaml(document, place)
        return written.value, written.line
    text = decode(document, place)
    value = read_json(text, place=place)
    check_plain(value, place=place)

    return value, Lines(text).line


@dataclass(frozen=True, slots=True)
class _Reader:
    """A strict reader of one document that collects all problems; invalid values are replaced by placeholders."""

    place: str
    line_of: Callable[[Steps], int]
    problems: list[tuple[int, str]] = field(default_factory=list)

    def refuse(self, at: Steps, message: str) -> None:
        """Record a problem at a place."""
        self.problems.append((self.line_of(at), message))

    def close(self) -> None:
        """Raise ToolError if there are problems."""
        if not self.problems:
            return
        told = [f"{self.place}:{line}: {message}" for line, message in self.problems]
        raise ToolError(Kind.VALIDATION, "\n".join(told), details={"problems": self.problems})

    def fields(self, value: object, at: Steps, known: Collection[str]) -> dict[str, object]:
        """The known keys of an object; any other key is a problem."""
        found: dict[str, object] = self.typed(value, at, dict)
        for key in found:
            if key not in known:
                hint = did_you_mean(key, known) or f"known are {', '.join(known)}"
                self.refuse((*at, key), f"unknown key {key[:80]!r}; {hint}")
        return {key: found[key] for key in found if key in known}

    def items(self, value: object, at: Steps) -> list[object]:
        """The items of a list."""
        if isinstance(value, list):
            return value
        self.refuse(at, 'a file of cases is a list; write [{"name": …, "arguments": …, "expect": …}, …]')
        return []

    def typed(self, value: object, at: Steps, kind: type[T]) -> T:
        """The value, if it has the expected type."""
        if isinstance(value, kind):
            return value
        self.refuse(at, f"{at[-1]} is {NAMES[kind]}, not {_kind_of(value)}; correct it")
        return kind()

    def word(self, value: object, at: Steps, known: Collection[str]) -> str:
        """One of the known words."""
        if isinstance(value, str) and value in known:
            return value
        hint = did_you_mean(str(value)[:80], known) or f"write one of {', '.join(sorted(known))}"
        self.refuse(at, f"{at[-1]} is {str(value)[:80]!r}; {hint}")
        return next(iter(known))


def _case(reader: _Reader, value: object, at: Steps) -> Case:
    """The case; without a name if it is invalid."""
    if not isinstance(value, dict):
        reader.refuse(at, 'a case is an object; write {"name": …, "arguments": …, "expect": …}')
        return Case(name="")
    fields = reader.fields(value, at, CASE)
    return Case(
        name=_name(reader, fields.get("name"), (*at, "name")),
        arguments=reader.typed(fields.get("arguments", {}), (*at, "arguments"), dict),
        context=_context(reader, fields.get("context", {}), (*at, "context")),
        expect=_expectation(reader, fields, (*at, "expect")),
        place=f"{reader.place}:{reader.line_of(at)}",
    )


def _name(reader: _Reader, name: object, at: Steps) -> str:
    if isinstance(name, str) and name.strip():
        return name
    reader.refuse(at, 'a case has a name that says what it shows; write "name": "…"')
    return ""


def _context(reader: _Reader, value: object, at: Steps) -> FakeContext:
    fields = reader.fields(value, at, CONTEXT)
    session = reader.fields(fields.get("session", {}), (*at, "session"), SESSION)
    given: dict[str, object] = {}
    if "mode" in fields:
        given["mode"] = reader.word(fields["mode"], (*at, "mode"), MODES)
    if "send" in fields:
        given["send"] = reader.word(fields["send"], (*at, "send"), SENDING)
    if "clientId" in fields:
        given["client_id"] = reader.typed(fields["clientId"], (*at, "clientId"), str)
    if "confirm" in fields:
        given["confirm"] = reader.typed(fields["confirm"], (*at, "confirm"), bool)
    if "isActive" in session:
        given["is_active"] = reader.typed(session["isActive"], (*at, "session", "isActive"), bool)
    if "state" in session:
        given["state"] = reader.typed(session["state"], (*at, "session", "state"), dict)
    return FakeContext(**given)  # type: ignore[arg-type]  # each value was checked above


def _expectation(reader: _Reader, fields: Mapping[str, object], at: Steps) -> dict[str, object]:
    if not fields.get("expect"):
        name = str(fields.get("name", "the case"))[:80]
        reader.refuse(at, f'{name!r} expects nothing; write "expect": {{"ok": true}} or more')
        return {}
    expect = reader.fields(fields["expect"], at, EXPECT)
    for key, value in expect.items():
        reader.typed(value, (*at, key), EXPECT[key])
    if "error" in expect and expect.get("ok") is True:
        reader.refuse((*at, "ok"), "a call that is ok has no error; remove one of the two")
    if isinstance(expect.get("error"), dict):
        _check_fields(reader, expect["error"], (*at, "error"), ERROR)
    for number, line in enumerate(_list(expect.get("audit"))):
        _check_fields(reader, line, (*at, "audit", number), AUDIT)
    return expect


def _check_fields(reader: _Reader, value: object, at: Steps, known: Mapping[str, type]) -> None:
    for key, found in reader.fields(value, at, known).items():
        if key == "type" and isinstance(found, str):
            reader.word(found, (*at, key), tuple(map(str, Kind)))
        else:
            reader.typed(found, (*at, key), known[key])


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    return NAMES.get(type(value), "a number")


def _unreadable(file: Path, line: int, problem: str) -> Case:
    place = f"{file}:{line}"
    return Case(name=file.name, place=place, problem=problem.removeprefix(f"{place}: "))


def _files(tool: Tool, root: Path | None) -> Iterator[Path]:
    """The existing case files of the tool."""
    stems = []
    if isinstance(tool.run, Handler):
        stems.append(tool.run.root / tool.run.folder / BESIDE_A_TOOL)
    if root is not None:
        stems += [root.joinpath(*IN_A_PROJECT, name) for name in dict.fromkeys((tool.name, tool.slug))]
    for stem in stems:
        for ending in ENDINGS:
            file = stem.parent / f"{stem.name}{ending}"
            # A link or folder of that name is reported, too.
            if os.path.lexists(file):
                yield file


# Two cases that are recorded at the same time must not overwrite each other.
_WRITING = threading.Lock()


def record_case(tool: Tool, root: Path | None, case: Mapping[str, object]) -> str:
    """Add a case to the file `tests/cases/SLUG.json`; returns its path.

    Raises ToolError for an invalid case, and for a name that is taken.
    """
    if root is None:
        raise ToolError(
            Kind.CONFLICT, "there is no project to write a case into", cure=Cure("make one with: crib init")
        )
    file = root.joinpath(*IN_A_PROJECT, f"{tool.slug}{JSON_ENDING}")
    with _WRITING:
        before = read_small(file, MAX_DEFINITION_BYTES)
        cases = [] if before is None else orjson.loads(before) if before.strip() else []
        document = orjson.dumps([*cases, dict(case)], option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if len(document) > MAX_DEFINITION_BYTES:
            message = f"{file.name}: larger than {MAX_DEFINITION_BYTES} bytes with this case; record a smaller one"
            raise ToolError(Kind.LIMIT_EXCEEDED, message)
        read_cases(document, str(file.relative_to(root)))
        make_folder(file.parent)
        durable.replace(file, document)
    return str(file.relative_to(root))
