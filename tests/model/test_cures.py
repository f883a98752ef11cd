"""A cure is a value of its own: each reader of an error is told what that reader can do, and nothing is rewritten on the way."""

import ast
import json
import pickle
import re
from pathlib import Path

import pytest
from source_texts import messages_of, syntax_of
from tests.adoption.test_cures import CANDIDATE, joined_source, named_commands

import toolcrib
from toolcrib import Cure, Kind, Reader, SettingsError, ToolError
from toolcrib.model.errors import ASK_THE_OPERATOR
from toolcrib.toolkit.http.problems import Refusal

SOURCE = Path(toolcrib.__file__).parent
GOLDEN = Path(__file__).parents[1] / "pins" / "golden"
BUILD = Cure("run: crib build", "ask the operator to build it", model="use another tool", searcher="search for another")


def test_each_reader_is_told_what_that_reader_can_do() -> None:
    error = ToolError(Kind.DISABLED, "x is not built", cure=BUILD)
    assert {reader: error.told_to(reader).message for reader in Reader} == {
        Reader.OPERATOR: "x is not built; run: crib build",
        Reader.CLIENT: "x is not built; ask the operator to build it",
        Reader.MODEL: "x is not built; use another tool",
        Reader.SEARCHER: "x is not built; search for another",
        Reader.ADMINISTRATOR: "x is not built; run: crib build",
    }
    listing = ToolError(Kind.NOT_FOUND, "x", cure=Cure("crib list", "GET /crib/tools"), details={"where": "file"})
    assert listing.told_to(Reader.ADMINISTRATOR).details == {"where": "file", "cure": "GET /crib/tools"}
    assert str(error) == error.message == "x is not built; run: crib build"
    assert error.told_to(Reader.CLIENT).details["cure"] == "ask the operator to build it"


def test_a_cure_for_the_operator_alone_sends_others_to_the_operator() -> None:
    error = ToolError(Kind.VALIDATION, "x is wrong", cure=Cure("run: crib check"))
    for reader in set(Reader) - {Reader.OPERATOR, Reader.ADMINISTRATOR}:
        assert error.told_to(reader).message == f"x is wrong; {ASK_THE_OPERATOR}"


def test_a_plain_text_is_a_cure_for_everybody_and_an_error_without_one_stays_as_it_is() -> None:
    plain, bare = ToolError(Kind.VALIDATION, "x", cure="wait"), ToolError(Kind.VALIDATION, "x")
    for reader in Reader:
        assert plain.told_to(reader).message == "x; wait"
        assert bare.told_to(reader) is bare


def test_two_cures_are_told_one_behind_the_other_and_each_sentence_once() -> None:
    both = Cure("run: crib check").then(BUILD).then(Cure("run: crib doctor"))
    error = ToolError(Kind.VALIDATION, "x", cure=both)
    assert error.message == "x; run: crib check; run: crib build; run: crib doctor"
    assert error.told_to(Reader.CLIENT).message == "x; ask the operator; ask the operator to build it"


def test_nothing_else_of_an_error_changes_for_a_reader_but_where_it_was_decided() -> None:
    error = ToolError(
        Kind.TRANSIENT,
        "x",
        cure=BUILD,
        retryable=True,
        partial_side_effects=True,
        details={"a": 1, "where": "/srv/shop/toolcrib.toml"},
        value=5,
    )
    told = error.told_to(Reader.CLIENT)
    assert (told.kind, told.retryable, told.partial_side_effects, told.value) == (Kind.TRANSIENT, True, True, 5)
    assert dict(told.details) == {"a": 1, "cure": "ask the operator to build it"}


def test_an_error_keeps_its_type_and_its_cure_when_it_is_given_a_place_or_pickled() -> None:
    refusal = Refusal(421, Kind.HOST_NOT_ALLOWED, "no", cure=BUILD)
    placed = refusal.replace(reason=f"here: {refusal.reason}")
    assert (type(placed), placed.status, placed.message) == (Refusal, 421, "here: no; run: crib build")
    revived = pickle.loads(pickle.dumps(placed))
    assert (type(revived), revived.status, revived.cure, revived.message) == (Refusal, 421, BUILD, placed.message)


@pytest.mark.parametrize("reader", sorted(set(Reader) - {Reader.OPERATOR, Reader.ADMINISTRATOR}))
def test_what_is_wrong_with_the_settings_is_for_the_operator(reader: Reader) -> None:
    error = SettingsError("/srv/shop/.toolcrib/key: others can read the key", cure=Cure("run chmod 600"))
    assert error.told_to(Reader.OPERATOR) is error
    assert error.told_to(reader).message == "the server is not set up for this; ask the operator"
    assert "/srv" not in json.dumps(error.told_to(reader).to_json())


# What only a person on the machine of the project can do.
FOR_OPERATORS = re.compile(r"\btoolcrib\.toml\b|(?<!\S)--grant\b|\bsee the log\b")
# The same without what stands before it, which an escaped character may be in the source.
FOR_OPERATORS_IN_SOURCE = re.compile(r"toolcrib\.toml|--grant|see the log")
# Calls whose words reach nobody else.
TOLD_TO_OPERATORS = {"Cure", "SettingsError", "WrongUseError", "complain", "say", "example"}
# Modules that talk to the person who types a command, and files that hold no messages of errors.
LOCAL = re.compile(
    r"interfaces/cli/|toolkit/cli/|client/|/(?:commands|terminal|settings|health_report|addition|bundle_files|brief|delivery)\.py$"
    r"|features/depots/|features/scripts/(?:facade|observation|program_files)\.py$|infra/settings\.py$|interfaces/mcp/stdio"
    r"|features/\w+/__init__\.py$|features/\w+/endpoints\.py$|toolkit/http/endpoint\.py$"
)
# Texts about files that `crib check` reports, and what a running child or a session says of itself.
REPORTED = {
    "core/file_source.py",
    "core/results.py",
    "core/sources.py",
    "crib.py",
    "features/bundles/archive.py",
    "features/ecosystems/valves.py",
    "features/folders/registry.py",
    "features/folders/source.py",
    "features/requests/format.py",
    "features/sql_tools/database.py",
    "infra/sandbox/child/framework_object.py",
    "infra/sandbox/interpreters.py",
    "infra/secrets/lookup.py",
    "interfaces/http/overview_endpoints.py",
    "lib/http_auth/declaration.py",
    "lib/python_source.py",
}


def test_what_only_the_operator_can_do_is_said_in_a_cure() -> None:
    loose = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if LOCAL.search(name) or name in REPORTED:
            continue
        source = joined_source(path)
        if not CANDIDATE.search(source) and not FOR_OPERATORS_IN_SOURCE.search(source):
            continue
        nodes = syntax_of(path)
        told = {
            line
            for node in nodes
            if isinstance(node, ast.Call) and _name_of(node.func) in TOLD_TO_OPERATORS
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        # A text with a name of its own that is a cure later on.
        named = {
            node.lineno
            for node in nodes
            if isinstance(node, ast.Assign) and all(_name_of(target) in {"cure", "look"} for target in node.targets)
        }
        loose += [
            f"{name}:{line}: {text}"
            for line, text in messages_of(path)
            if (named_commands(text) or FOR_OPERATORS.search(text)) and line not in told and not _is_near(line, named)
        ]
    assert loose == []


def _is_near(line: int, starts: set[int]) -> bool:
    """Whether the line belongs to a statement of a few lines that starts at one of these."""
    return any(start <= line <= start + 3 for start in starts)


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_every_path_that_a_cure_names_exists() -> None:
    paths = json.loads((GOLDEN / "openapi.json").read_text("utf-8"))["paths"]
    patterns = {re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))): item for path, item in paths.items()}
    named = [
        (found[1].lower(), found[2])
        for path in sorted(SOURCE.rglob("*.py"))
        if "with: " in joined_source(path)
        for _, text in messages_of(path)
        for found in re.finditer(r"with: (GET|POST|PUT|DELETE) (/[\w/]+)", text)
    ]
    assert len(named) >= 4
    for method, path in named:
        assert any(pattern.fullmatch(path) and method in item for pattern, item in patterns.items()), (method, path)
