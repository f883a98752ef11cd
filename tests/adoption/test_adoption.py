"""Files as users write them: each gives what its author expects, or is refused with the reason, and is never silently wrong.

README.md in this folder says how a case is written. `make judges ARGS=corpus` plays all of them (ADOPTION is `all`), and fetches what
those of other frameworks import. The quick suite plays every fourth; of those that need packages the tools have to be found, and are
not called.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from toolcrib import Call, Crib, Kind, Result, Tool, ToolError
from toolcrib.__main__ import main

HERE = Path(__file__).parent
ALL = os.environ.get("ADOPTION") == "all"
# The import paths of agent code are ours where a project has none of its own.
OURS = {"toolcrib", "tool", "core"}
GRANTS = ["fs.*", "shell.execute"]
# Importing a framework for the first time can take half a minute on a busy machine, which is the usual limit of a call.
FRAMEWORK_CALLS = {"timeout_ms": 240_000}
# What an installer says when the registry does not answer, which says nothing about Toolcrib.
UNREACHABLE = ("connection", "timed out", "name resolution", "unreachable", "failed to fetch", "server error")


@dataclass(frozen=True)
class Case:
    """One file or project with what its author expects of it."""

    place: Path
    expected: dict[str, Any]

    @property
    def name(self) -> str:
        """Its place in this folder."""
        return str(self.place.relative_to(HERE))

    @property
    def needs_packages(self) -> bool:
        """Whether a Python file of it imports what neither Python nor the case itself has."""
        files = (
            list(self.place.rglob("*.py"))
            if self.place.is_dir()
            else [self.place]
            if self.place.suffix == ".py"
            else []
        )
        own = {path.stem for path in files} | {path.parent.name for path in files}
        return bool(set().union(*map(imported, files)) - own - OURS - set(sys.stdlib_module_names))

    def lay_out(self, project: Path) -> None:
        """Put the file where a user would, into tools/; a folder is a project already."""
        if self.place.is_dir():
            shutil.copytree(self.place / "project", project, dirs_exist_ok=True)
        else:
            (project / "tools").mkdir()
            shutil.copy(self.place, project / "tools")
            if (data := self.place.parent / "data").is_dir():
                # Beside the file, as its owner has it.
                shutil.copytree(data, project / "tools" / "data")
                shutil.copytree(data, project / "data")


def imported(path: Path) -> set[str]:
    """The top-level names of what a Python file imports."""
    names: set[str] = set()
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return names
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def cases() -> list[Case]:
    """Every case of this folder, or every fourth."""
    found = []
    for path in sorted(HERE.rglob("*expect.toml"))[:: 1 if ALL else 4]:
        place = path.parent if path.name == "expect.toml" else path.with_name(path.name.removesuffix(".expect.toml"))
        found.append(Case(place, tomllib.loads(path.read_text("utf-8"))))
    return found


@dataclass
class Played:
    """What the product made of a case."""

    tools: list[Tool] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    results: list[tuple[dict[str, Any], Result]] = field(default_factory=list)
    request: dict[str, Any] | None = None

    @property
    def refusals(self) -> list[str]:
        """Everything that was said against the case, at load and at the calls."""
        return self.said + [result.error.message for _, result in self.results if result.error]

    @property
    def wrong(self) -> list[str]:
        """The calls that did not give what the author expects."""
        return [f"{call} gave {shown(result)}" for call, result in self.results if not as_expected(call, result)]

    @property
    def silently_wrong(self) -> list[str]:
        """The calls that succeeded with something that the author does not expect."""
        return [
            f"{call} gave {shown(result)}"
            for call, result in self.results
            if result.ok and not as_expected(call, result)
        ]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
def test_a_file_of_a_user_is_right_or_refused_with_the_reason(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case.lay_out(tmp_path)
    if case.needs_packages and not ALL:
        check_found(case, tmp_path)
        return
    played = play(case, tmp_path)
    assert not played.silently_wrong
    outcome = case.expected["outcome"]
    is_right = not problems_of(case, played)
    if outcome == "right":
        assert is_right, (problems_of(case, played), played.said)
    elif outcome == "refused":
        assert not [shown(result) for _, result in played.results if result.ok], "a call of a refused file succeeded"
    if outcome == "refused" or (outcome == "right-or-refused" and not is_right):
        assert names_one_of(case.expected["reason_words"], played.refusals), (
            problems_of(case, played),
            played.refusals,
        )
    if is_right and outcome != "refused" and (words := case.expected.get("warn_words")):
        assert names_one_of(words, played.said), played.said


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name)
        for case in cases()
        if case.name.startswith("formats/") and "warn_words" in case.expected and case.expected["outcome"] != "refused"
    ],
)
def test_a_spelling_that_is_taken_with_a_warning_is_refused_by_strict_mode(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    case.lay_out(tmp_path)
    words = ["check"]
    if any(tmp_path.glob("tools/*/schema.json")):
        words = ["build"]
    elif folder := case.expected.get("bundle"):
        words = ["bundle", "load", folder]
    elif document := case.expected.get("request"):
        words = ["request", "submit", document]
    assert main([*words, "-C", str(tmp_path), "--strict"]) != 0
    said = case.expected.get("strict_words", case.expected["warn_words"])
    assert names_one_of(said, ["".join(capfd.readouterr())])


def check_found(case: Case, project: Path) -> None:
    """Where packages cannot be fetched, the tools have at least to be there under their names, or to be refused with the reason."""
    with Crib(project) as crib:
        found = {entry.tool.name: entry.tool for entry in crib.entries if entry.tool.bundle != "builtin"}
        said = [problem.message for problem in crib.problems]
    wanted = {call["tool"] for call in case.expected.get("call", []) if "tool" in call}
    problems = problems_of(replace(case, expected={**case.expected, "call": []}), Played(tools=list(found.values())))
    # A sub-command goes by the name of its program too.
    names = found.keys() | {getattr(tool.run, "action", "") for tool in found.values()}
    is_found = bool(found) and not problems and (wanted <= names or len(found) == 1)
    if case.expected["outcome"] == "right":
        assert is_found, (sorted(found), problems, said)
    elif not is_found:
        assert names_one_of(case.expected["reason_words"], said), (sorted(found), problems, said)


def play(case: Case, project: Path) -> Played:
    """Do with the case what its author would: build, load or file it, then make the calls."""
    played = Played()
    if any(project.glob("tools/*/schema.json")):
        played.said += command("build", "-C", str(project))
    if folder := case.expected.get("bundle"):
        played.said += command("bundle", "load", "-C", str(project), str(project / folder))
    if document := case.expected.get("request"):
        played.said += command("request", "submit", "-C", str(project), str(project / document))
    # Programs of a shell run only where the operator grants it, as the owner of such a file does.
    with Crib(project, grants={"*": GRANTS}, calls=FRAMEWORK_CALLS if case.needs_packages else {}) as crib:
        played.tools = [entry.tool for entry in crib.entries if entry.tool.bundle != "builtin"]
        played.said += [problem.message for problem in crib.problems]
        played.said += [line for tool in played.tools for line in crib.warnings(tool)]
        if case.needs_packages:
            install_packages(crib, played.tools)
        played.results = [(call, make(crib, played.tools, call)) for call in case.expected.get("call", [])]
        if document:
            played.request = next((found.to_json() for found in crib.requests.list()), None)
    return played


def install_packages(crib: Crib, tools: list[Tool]) -> None:
    """Install what the tools need; where the registry does not answer, the case is skipped."""
    try:
        for tool in tools:
            crib.prepare(tool.name)
    except ToolError as problem:
        if problem.kind is Kind.TIMEOUT or any(sign in problem.message.lower() for sign in UNREACHABLE):
            pytest.skip(f"its packages cannot be fetched: {problem.message[-300:]}")
        raise


def command(*words: str) -> list[str]:
    """What a command of ours said."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        main(words)
    return [out.getvalue(), err.getvalue()]


def make(crib: Crib, own: list[Tool], call: dict[str, Any]) -> Result:
    """Make one call as an agent would; where the file has one tool, that is meant."""
    name = call.get("tool") or (own[0].name if own else "?")
    if len(own) == 1 and crib.find(name) is None:
        name = own[0].name
    # A sub-command goes by the name of its program too.
    named = [tool.name for tool in own if getattr(tool.run, "action", "") == name]
    name = named[0] if named and crib.find(name) is None else name
    first = json.loads(call["arguments_json"]) if "arguments_json" in call else call.get("arguments", {})
    spellings = [first, *map(json.loads, call.get("also_arguments_json", []))]
    entry = crib.find(name)
    # Names that are ours to choose: the spelling that the schema takes is meant.
    schema = {} if entry is None else dict(entry.tool.parameters)
    taken = [arguments for arguments in spellings if jsonschema_rs.is_valid(schema, arguments)]
    arguments = (taken or spellings)[0]
    if not call.get("session"):
        return crib.call_sync(name, arguments)
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.append(message)

    result = crib.call_sync(Call(name=name, arguments=arguments, session=crib.session(send=hear)))
    assert heard, "the client heard nothing"
    return result


def problems_of(case: Case, played: Played) -> list[str]:
    """In what the product did not do as the author expects."""
    problems = list(played.wrong)
    if "request" in case.expected:
        problems += request_problems(case.expected.get("request_values", {}), played.request)
    elif not played.tools and (case.expected.get("call") or case.expected["outcome"] != "right"):
        problems.append("no tool was found")
    for wanted in case.expected.get("tool", []):
        found = next((tool for tool in played.tools if tool.name == wanted["name"]), None)
        if found is None:
            problems.append(f"there is no tool {wanted['name']}")
            continue
        schema: dict[str, Any] = dict(found.parameters)
        if sorted(schema.get("properties", {})) != sorted(wanted["properties"]):
            problems.append(f"{wanted['name']} takes {sorted(schema.get('properties', {}))}")
        if sorted(schema.get("required", [])) != sorted(wanted["required"]):
            problems.append(f"{wanted['name']} requires {schema.get('required', [])}")
    return problems


def request_problems(wanted: dict[str, Any], filed: dict[str, Any] | None) -> list[str]:
    """In what a filed request is not the one that was written."""
    if filed is None:
        return ["no request was filed"]
    return [
        f"{key}: {filed.get(key)!r}"
        for key in ("id", "name", "priority")
        if key in wanted and filed.get(key) != wanted[key]
    ]


def as_expected(call: dict[str, Any], result: Result) -> bool:
    """Whether a call gave what its author expects."""
    if result.ok and any(same(result.value, json.loads(other)) for other in call.get("also_value_json", [])):
        return True
    if "error_words" in call:
        return result.error is not None and names_one_of(call["error_words"], [result.error.message])
    if not result.ok:
        return False
    if "text" in call:
        return isinstance(result.value, str) and result.value.strip() == call["text"].strip()
    value = json.loads(call["value_json"]) if "value_json" in call else call.get("value")
    return same(result.value, value) or (isinstance(result.value, str) and same(read_text(result.value), value))


def read_text(text: str) -> object:
    """The JSON that a text is: a function that returns json.dumps(…) gives its caller just that text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def same(given: object, expected: object) -> bool:
    """Whether two JSON values are equal; 1 and 1.0 are, 1 and true are not."""
    if isinstance(given, dict) and isinstance(expected, dict):
        return given.keys() == expected.keys() and all(same(given[key], expected[key]) for key in given)
    if isinstance(given, list) and isinstance(expected, list):
        return len(given) == len(expected) and all(map(same, given, expected))
    return isinstance(given, bool) == isinstance(expected, bool) and given == expected


def names_one_of(words: list[str], lines: list[str]) -> bool:
    """Whether one of the lines has one of the words in it."""
    text = "\n".join(lines).casefold()
    return any(word.casefold() in text for word in words)


def shown(result: Result) -> str:
    """A result in one line."""
    return f"success {result.value!r}" if result.error is None else f"{result.error.kind}: {result.error.message}"
