"""Modules of the host program: their tools and rules are found, and what is broken is named by its line."""

import sys
import textwrap
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.functions.host_modules import load_file, load_module, rules_in, tools_in

GOOD = '''
from toolcrib import tool

@tool
def good() -> int:
    """Works."""
    return 1
'''


@pytest.fixture
def folder(tmp_path):
    """A folder of modules that are forgotten afterwards."""
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    return path


def problem_of(load, *arguments) -> str:
    with pytest.raises(ToolError) as caught:
        load(*arguments)
    assert caught.value.kind is Kind.VALIDATION
    return caught.value.message


def test_a_module_finds_its_neighbours_and_hides_no_others_afterwards(folder):
    write(folder, "crib_neighbour", "number = 7")
    write(folder, "crib_main", "import crib_neighbour\nnumber = crib_neighbour.number")
    before = list(sys.path)
    assert load_module("crib_main", folder).number == 7
    assert sys.path == [*before, str(folder)]
    sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("\nraise ValueError('why')", 2, "ValueError: why"),
        ("x = (", 1, "SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit('bye')", 2, "SystemExit: bye"),
        ("import json\n\njson.loads('[')", 3, "JSONDecodeError"),
        ("import crib_broken\ncrib_broken.later", 2, "AttributeError"),
        ("from crib_broken import later", 1, "ImportError: cannot import name 'later'"),
        ("import asyncio\nraise asyncio.CancelledError", 2, "CancelledError"),
        ("raise BaseExceptionGroup('x', [KeyboardInterrupt()])", 1, "BaseExceptionGroup"),
    ],
)
def test_a_module_that_fails_is_reported_by_file_and_line(folder, text, line, told):
    path = write(folder, "crib_broken", text)
    message = problem_of(load_module, "crib_broken", folder)
    assert message.startswith(f"module 'crib_broken' could not be loaded at {path}:{line}: {told}")
    assert "crib_broken" not in sys.modules
    message = problem_of(load_file, path)
    assert message.startswith(f"{path} could not be loaded at {path}:{line}:")
    assert not [name for name in sys.modules if name.startswith("toolcrib_file_crib_broken")]


def test_a_failure_in_a_neighbour_is_reported_where_it_happens(folder):
    inner = write(folder, "crib_inner", "\n\n1 / 0")
    write(folder, "crib_outer", "import crib_inner")
    message = problem_of(load_module, "crib_outer", folder)
    assert f"at {inner}:3: ZeroDivisionError" in message


def test_a_circle_of_modules_that_python_cannot_close_is_reported(folder):
    one = write(folder, "crib_one", "from crib_two import b\na = 1")
    two = write(folder, "crib_two", "from crib_one import a\nb = 1")
    message = problem_of(load_module, "crib_one", folder)
    assert f"at {two}:1: ImportError" in message
    assert "circular import" in message
    one.write_text("import crib_two\na = 1")
    two.write_text("import crib_one\nb = 1")
    assert load_module("crib_one", folder).a == 1


def test_an_interruption_by_the_user_is_not_taken_for_a_broken_module(folder):
    path = write(folder, "crib_stopped", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_module("crib_stopped", folder)
    with pytest.raises(KeyboardInterrupt):
        load_file(path)


@pytest.mark.parametrize("name", ["", ".", "..x", "a b", "no.such.module", "crib_absent"])
def test_a_name_that_leads_to_no_module_is_reported(folder, name):
    assert problem_of(load_module, name, folder).startswith(f"module {name!r} could not be loaded")


def test_a_file_that_is_no_python_is_reported(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    assert "rename it" in problem_of(load_file, tmp_path / "notes.txt")
    assert "FileNotFoundError" in problem_of(load_file, tmp_path / "absent.py")


def test_a_module_of_the_project_that_another_one_hides_is_refused(folder):
    other = folder / "other"
    other.mkdir()
    first = write(folder, "crib_shared", "who = 'first'")
    second = write(other, "crib_shared", "who = 'second'")
    assert load_module("crib_shared", folder).who == "first"
    with pytest.raises(ToolError) as caught:
        load_module("crib_shared", other)
    assert caught.value.kind is Kind.CONFLICT
    assert caught.value.message == f"module 'crib_shared': {second} is hidden by {first}; rename it"
    hidden = write(folder, "json", "x = 1")
    with pytest.raises(ToolError, match=f"{hidden} is hidden by .*json/__init__.py"):
        load_module("json", folder)


def test_one_broken_tool_does_not_hide_the_others(folder):
    path = write(
        folder,
        "crib_mixed",
        GOOD
        + '''
from tool.bases import BaseTool, create_json_schema
from core.types import ToolResult

class Base(BaseTool):
    name = "fine"
    description = "Works."
    parameters = create_json_schema({})
    async def execute(self, arguments):
        return ToolResult("", "fine")

class Fine(Base):
    name = "fine"

class NoSchema(Base):
    name = "no_schema"
    @property
    def parameters(self):
        return {}["schema"]

class Unfinished(BaseTool):
    name = "unfinished"

class NeedsMore(Base):
    def __init__(self, key):
        self.key = key

class Crashing(Base):
    def __init__(self):
        raise SystemError("at home")

@tool
def starry(*args):
    """Cannot be called by name."""
''',
    )
    module = load_module("crib_mixed", folder)
    tools, problems = tools_in(module)
    assert sorted(tool.name for tool in tools) == ["fine", "good"]
    told = "\n".join(problem.message for problem in problems)
    assert len(problems) == 5, told
    for words in (
        "NoSchema could not be loaded at",
        "KeyError",
        "Unfinished",
        "abstract",
        "NeedsMore",
        "SystemError: at home",
        "*args",
    ):
        assert words in told
    assert f"{path}:" in told


def test_a_tool_is_found_once_however_many_names_it_goes_by(folder):
    write(
        folder,
        "crib_names",
        GOOD
        + """
from tool.bases import BaseTool, create_json_schema
from tool.index import ToolRegistry

class Sample(BaseTool):
    name = "sample"
    description = "Works."
    parameters = create_json_schema({})
    async def execute(self, arguments): ...

class Other(Sample):
    name = "other"

also = good
sample = same = Sample()
registry = ToolRegistry()
registry.register(sample)
registry.register(Other())
""",
    )
    tools, problems = tools_in(load_module("crib_names", folder))
    assert problems == []
    assert sorted(tool.name for tool in tools) == ["good", "other", "sample"]


def test_things_that_cannot_say_what_they_are_are_passed_over(folder):
    write(
        folder,
        "crib_strange",
        GOOD
        + """
class Request:
    @property
    def __class__(self):
        raise RuntimeError("no request at the moment")
    def __getattr__(self, name):
        raise RuntimeError("no request at the moment")

request = Request()
from unittest.mock import MagicMock
mock = MagicMock()
""",
    )
    module = load_module("crib_strange", folder)
    tools, problems = tools_in(module)
    assert ([tool.name for tool in tools], problems) == (["good"], [])
    rules_in(module)


def test_rules_are_found_by_themselves_and_in_an_engine_each_once(folder):
    write(
        folder,
        "crib_rules",
        """
        from core.rules import AuthRule, RuleEngine, SafetyRule

        engine = RuleEngine()
        first = SafetyRule("first", ["x"])
        engine.add_rule(first)
        engine.add_rule(SafetyRule("second", ["y"]))

        class Own:
            name = "own"
            def concerns(self, tool): return True
            def __call__(self, tool, call): raise NotImplementedError

        own = Own()
        """,
    )
    assert sorted(rule.name for rule in rules_in(load_module("crib_rules", folder))) == ["first", "own", "second"]


def test_a_file_is_run_with_its_neighbours_and_its_classes_know_their_module(tmp_path):
    write(tmp_path, "crib_beside", "number = 3")
    path = write(
        tmp_path,
        "crib_run_me",
        """
        import pickle
        from dataclasses import dataclass
        from crib_beside import number
        from tool.bases import BaseTool

        @dataclass
        class Fact:
            number: "int"

        copied = pickle.loads(pickle.dumps(Fact(number)))
        """,
    )
    assert load_file(path).copied.number == 3
    del sys.modules["crib_beside"], sys.modules["toolcrib_file_crib_run_me"]
