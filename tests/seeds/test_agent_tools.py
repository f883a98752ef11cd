"""A tool written as a class, the registry, calls and results: the document's examples run as they stand."""

import ast
import copy
import logging
import pickle
import subprocess
import sys
import textwrap

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.agent_classes.classes import (
    BaseTool,
    DuplicateToolError,
    ToolCall,
    ToolRegistry,
    ToolResult,
    create_json_schema,
)
from toolcrib.features.agent_classes.import_paths import document_imports

ARGUMENT = {"arg1": {"type": "string", "description": "First argument"}}


def a_call(name="my_tool", **arguments) -> ToolCall:
    return ToolCall(id="call-1", name=name, arguments=arguments)


def a_tool(answer=None, *, named="sample", schema=None, description="What it does") -> BaseTool:
    """A tool whose `execute` does what the given function does."""

    class Sample(BaseTool):
        name = named
        parameters = create_json_schema({}) if schema is None else schema

        async def execute(self, arguments):
            return ToolResult("", "done") if answer is None else answer(arguments)

    Sample.description = description  # type: ignore[method-assign]
    Sample.__abstractmethods__ = frozenset()
    return Sample()  # type: ignore[abstract]


@pytest.mark.spec("S4-09", "S4-11")
async def test_the_class_of_the_document_is_usable_once_it_is_registered(run_example, my_tool):
    registry = run_example("registration.py", MyTool=my_tool)["registry"]
    assert registry.list() == ["my_tool"]
    assert registry.count() == 1
    assert registry.has("my_tool")
    assert isinstance(registry.get("my_tool"), my_tool)
    assert await registry.execute(a_call(arg1="x")) == ToolResult("call-1", "expected: x", None, True)


@pytest.mark.spec("S4-17", "S4-28")
async def test_an_execute_that_raises_gives_a_failed_result_and_the_log_has_the_details(run_example, caplog):
    registry = ToolRegistry()
    registry.register(run_example("my_tool.py")["MyTool"]())
    result = await registry.execute(a_call(arg1="x"))
    assert (result.tool_call_id, result.success, result.output) == ("call-1", False, "")
    assert result.error == "my_tool failed unexpectedly (NameError); the log has the details"
    logged = "".join(record.exc_text or "" for record in caplog.records if record.levelno == logging.ERROR)
    assert "name 'do_something' is not defined" in logged
    assert "my_tool.py" in logged


@pytest.mark.parametrize("problem", [SystemExit(3), KeyError("x"), StopIteration(), RecursionError(), MemoryError()])
async def test_every_exception_of_execute_stays_inside(problem):
    def fail(arguments):
        raise problem

    result = await a_tool(fail).call(a_call("sample"))
    assert not result.success
    assert result.error


@pytest.mark.spec("S4-11", "S4-25")
def test_the_test_file_of_the_document_passes_under_pytest(fixtures, tmp_path):
    # Run as its reader would run it: in a folder of their own, with the plug-in that an installation registers.
    for name in ("my_tool.py", "test_my_tool.py"):
        (tmp_path / name).write_bytes((fixtures / name).read_bytes())
    (tmp_path / "conftest.py").write_text(
        textwrap.dedent("""
            import builtins
            import my_tool

            my_tool.do_something = lambda text: f"expected {text}"
            builtins.MyTool = my_tool.MyTool
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-o", "asyncio_mode=strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


@pytest.mark.spec("S4-25")
async def test_a_tool_can_be_called_by_itself_away_from_every_registry(my_tool):
    result = await my_tool().call(ToolCall(id="test-1", name="my_tool", arguments={"arg1": "value"}))
    assert result.success
    assert "expected" in result.output
    assert result.tool_call_id == "test-1"


async def test_a_tool_called_by_itself_is_still_checked():
    schema = create_json_schema(ARGUMENT, ["arg1"])
    result = await a_tool(schema=schema).call(a_call("sample", arg1=3))
    assert not result.success
    assert "Invalid arguments for sample: arg1" in result.error
    result = await a_tool(schema={"type": "string"}).call(a_call("sample"))
    assert not result.success
    assert 'parameters.type must be "object"' in result.error
    result = await a_tool().call(a_call("other"))
    assert "'other' not found" in result.error


async def test_a_tool_whose_properties_raise_fails_in_its_result_when_called_by_itself():
    class Moody(BaseTool):
        name = "moody"
        description = "Has no schema to show"

        @property
        def parameters(self):
            return {}["schema"]

        async def execute(self, arguments):
            return ToolResult("", "")

    result = await Moody().call(a_call("moody"))
    assert not result.success
    assert "Moody cannot be used: 'schema'" in result.error


@pytest.mark.spec("S4-09")
@pytest.mark.parametrize("missing", ["name", "description", "parameters", "execute"])
def test_a_class_without_one_of_its_members_is_refused(missing):
    async def execute(self, arguments):
        return ToolResult("", "")

    members = {"name": "x", "description": "x", "parameters": create_json_schema({}), "execute": execute}
    del members[missing]
    with pytest.raises(TypeError, match=missing):
        ToolRegistry().register(type("Partial", (BaseTool,), members)())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (BaseTool, "register\\(MyTool\\(\\)\\)"),
        (print, "register\\(MyTool\\(\\)\\)"),
        (a_tool(named=7), "name and description must be texts"),
        (a_tool(description=None), "name and description must be texts"),
        (a_tool(named="no good"), "letters, digits"),
        (a_tool(schema={"type": "object", "properties": []}), "properties must be an object"),
        (a_tool(schema={"type": "object", "required": "arg1"}), "parameters"),
        (a_tool(schema={"type": "object", "properties": {}, "$ref": "https://example.com/x"}), "parameters"),
    ],
)
def test_what_could_never_be_called_is_refused_at_registration(wrong, words):
    registry = ToolRegistry()
    with pytest.raises(ToolError, match=words):
        registry.register(wrong)
    assert registry.count() == 0


def test_a_class_that_was_typed_in_at_a_prompt_can_be_registered():
    code = """
        import asyncio
        from toolcrib.features.agent_classes.classes import *

        class Typed(BaseTool):
            name = "typed"
            description = "Typed in"
            parameters = create_json_schema({})
            async def execute(self, arguments):
                return ToolResult("", "works")

        print(asyncio.run(Typed().call(ToolCall("1", "typed", {}))).output)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.stdout == "works\n", ended.stderr


@pytest.mark.spec("S4-10")
def test_the_helper_makes_an_object_schema():
    made = create_json_schema(properties=ARGUMENT, required=["arg1"])
    assert made == {"type": "object", "properties": ARGUMENT, "required": ["arg1"]}
    assert create_json_schema({}) == {"type": "object", "properties": {}, "required": []}


@pytest.mark.spec("S4-35")
async def test_an_equal_schema_written_by_hand_is_accepted_too():
    by_hand = {"type": "object", "properties": copy.deepcopy(ARGUMENT), "required": ["arg1"]}
    registry = ToolRegistry()
    registry.register(a_tool(schema=by_hand))
    assert (await registry.execute(a_call("sample", arg1="x"))).success
    assert not (await registry.execute(a_call("sample"))).success
    registry.register(a_tool(named="bare", schema={"type": "object"}))
    # The author left the schema open, so what it does not name is handed on.
    assert (await registry.execute(a_call("bare", anything=1))).success


@pytest.mark.spec("S4-13")
@pytest.mark.parametrize(
    "schema", [{}, {"type": "string"}, {"type": ["object"]}, {"properties": ARGUMENT}, [], None, "x"]
)
def test_parameters_that_are_no_object_are_refused_by_the_name_of_the_rule(schema):
    tool = a_tool()
    type(tool).parameters = schema
    with pytest.raises(ToolError, match=r"tool .sample.: parameters\.type must be .object."):
        ToolRegistry().register(tool)


@pytest.mark.spec("S4-14", "S4-27")
def test_a_property_without_type_or_description_is_named_with_what_it_lacks():
    properties = {"one": {"type": "string"}, "two": {"description": "x"}, "three": True, "four": dict(ARGUMENT["arg1"])}
    with pytest.raises(ToolError) as caught:
        ToolRegistry().register(a_tool(schema=create_json_schema(properties)))
    assert caught.value.message == (
        "tool 'sample': property 'one' has no description; property 'two' has no type; property 'three' has no type; "
        "property 'three' has no description; each property needs type and description"
    )


@pytest.mark.spec("S4-15")
def test_models_are_offered_the_form_that_they_expect(my_tool):
    registry = ToolRegistry()
    registry.register(my_tool())
    assert registry.definitions() == [
        {
            "type": "function",
            "function": {
                "name": "my_tool",
                "description": "What my tool does",
                "parameters": {"type": "object", "properties": ARGUMENT, "required": ["arg1"]},
            },
        }
    ]


@pytest.mark.spec("S4-15")
async def test_a_tool_is_found_by_the_name_that_the_model_was_shown():
    registry = ToolRegistry()
    registry.register(a_tool(named="größe"))
    (definition,) = registry.definitions()
    shown = definition["function"]["name"]
    assert shown.isascii()
    assert (await registry.execute(a_call(shown))).output == "done"


@pytest.mark.spec("S4-16")
def test_both_forms_of_a_result_can_be_written_as_in_the_document(run_example, fixtures):
    names = run_example("results.py")
    written = ast.parse((fixtures / "results.py").read_text()).body
    forms = [eval(ast.unparse(line), names) for line in written if isinstance(line, ast.Expr)]
    assert forms == [
        ToolResult("call-123", "Result data here", None, True),
        ToolResult("call-123", "", "What went wrong", False),
    ]
    assert forms[0].tool_call_id == "call-123"


@pytest.mark.spec("S4-16")
async def test_a_result_carries_the_id_of_its_call_and_output_only_where_there_is_some():
    registry = ToolRegistry()
    for name, answer in {
        "text": ToolResult("", "Result data here"),
        "other_id": ToolResult("call-123", "data"),
        "data": ToolResult("", {"a": [1, None]}),
        "nothing": ToolResult("", None),
        "failing": ToolResult("", "", error="What went wrong", success=False),
        "halfway": ToolResult("", "the first half", error="What went wrong", success=False),
        "silent": ToolResult("", success=False),
    }.items():
        registry.register(a_tool(lambda _, answer=answer: answer, named=name))
    told = {name: await registry.execute(a_call(name)) for name in registry.list()}
    assert {result.tool_call_id for result in told.values()} == {"call-1"}
    assert {name: (result.output, result.error, result.success) for name, result in told.items()} == {
        "text": ("Result data here", None, True),
        "other_id": ("data", None, True),
        "data": ('{"a":[1,null]}', None, True),
        "nothing": ("", None, True),
        "failing": ("", "What went wrong", False),
        "halfway": ("the first half", "What went wrong", False),
        "silent": ("", "the tool failed", False),
    }


async def test_an_output_that_is_too_long_says_that_it_was_cut():
    result = await a_tool(lambda _: ToolResult("", "x" * 300_000)).call(a_call("sample"))
    assert result.success
    assert result.output == "x" * 2_000 + "\n[cut: 2000 of 300000 letters]"


@pytest.mark.spec("S4-33")
@pytest.mark.parametrize(("answer", "kind"), [("text", "str"), (None, "NoneType"), ({"output": "x"}, "dict")])
async def test_an_execute_that_returns_something_else_fails_by_tool_and_type(answer, kind):
    result = await a_tool(lambda _: answer).call(a_call("sample"))
    assert (result.success, result.output) == (False, "")
    assert result.error == f"sample returned a {kind}; execute must return a ToolResult"


@pytest.mark.spec("S4-33")
async def test_an_execute_that_is_not_async_still_answers():
    class Plain(BaseTool):
        name, description, parameters = "plain", "Not async", create_json_schema({})

        def execute(self, arguments):
            return ToolResult("", "fine")

    assert (await Plain().call(a_call("plain"))).output == "fine"


@pytest.mark.spec("S4-22")
async def test_every_call_of_a_turn_has_its_own_result_and_one_that_fails_stops_no_other():
    registry = ToolRegistry()
    registry.register(a_tool())

    def fail(arguments):
        raise OSError("gone")

    registry.register(a_tool(fail, named="failing"))
    calls = [
        ToolCall(f"call-{number}", name, {}) for number, name in enumerate(["sample", "failing", "absent", "sample"])
    ]
    results = await registry.execute_all(calls)
    assert [(result.tool_call_id, result.success) for result in results] == [
        ("call-0", True),
        ("call-1", False),
        ("call-2", False),
        ("call-3", True),
    ]
    assert await registry.execute_all([]) == []


@pytest.mark.spec("S4-30")
@pytest.mark.parametrize(("first", "second"), [("my_tool", "my_tool"), ("my_tool", "my-tool")])
async def test_a_name_that_is_taken_is_refused_and_the_first_tool_stays(first, second):
    registry = ToolRegistry()
    registry.register(a_tool(named=first))
    with pytest.raises(ValueError, match=f"Tool '{second}' is already registered") as caught:
        registry.register(a_tool(lambda _: ToolResult("", "second"), named=second))
    assert isinstance(caught.value, ToolError)
    assert caught.value.kind is Kind.CONFLICT
    assert registry.list() == [first]
    assert (await registry.execute(a_call(first))).output == "done"
    assert registry.unregister(first)
    registry.register(a_tool(named=second))


def test_the_refusal_of_a_duplicate_survives_a_pickle():
    error = pickle.loads(pickle.dumps(DuplicateToolError("taken")))
    assert (type(error), error.kind, error.message) == (DuplicateToolError, Kind.CONFLICT, "taken")


async def test_a_tool_that_was_unregistered_is_gone():
    registry = ToolRegistry()
    registry.register(a_tool())
    registry.register(a_tool(named="other"))
    assert registry.unregister("sample")
    assert not registry.unregister("sample")
    assert registry.get("sample") is None
    assert "not found" in (await registry.execute(a_call("sample"))).error
    registry.clear()
    assert (registry.count(), registry.list(), registry.definitions()) == (0, [], [])


@pytest.mark.parametrize("arguments", [None, "text", [1], 3, {"arg1": object()}, {1: 2}, {"arg1": "\ud800"}])
async def test_arguments_that_are_none_become_a_failed_result(my_tool, arguments):
    registry = ToolRegistry()
    registry.register(my_tool())
    result = await registry.execute(ToolCall("1", "my_tool", arguments))
    assert not result.success
    assert "Invalid arguments for my_tool" in result.error


@pytest.mark.parametrize("name", ["", "absent", "a/b@c", "x" * 100_000, "\ud800", "my_tool\0", None, 5])
async def test_an_unknown_name_becomes_a_failed_result(my_tool, name):
    registry = ToolRegistry()
    registry.register(my_tool())
    result = await registry.execute(ToolCall("1", name, {"arg1": "x"}))
    assert not result.success
    assert len(result.error) < 1_000


def test_arguments_may_be_called_like_anything():
    schema = create_json_schema(
        {name: {"type": "string", "description": name} for name in ("self", "arguments", "tool")}
    )

    async def main():
        tool = a_tool(lambda arguments: ToolResult("", sorted(arguments)), schema=schema)
        return await tool.call(a_call("sample", self="a", arguments="b", tool="c"))

    import asyncio

    assert asyncio.run(main()).output == '["arguments","self","tool"]'


@pytest.mark.spec("S4-29")
def test_a_result_reaches_the_conversation_as_a_tool_message():
    assert ToolResult("call-1", "42 files").to_message() == {
        "role": "tool",
        "tool_call_id": "call-1",
        "content": "42 files",
    }
    assert ToolResult("call-1", {"a": 1}).to_message()["content"] == '{"a":1}'
    assert ToolResult("call-1", {2**70}).to_message()["content"] == str({2**70})
    failed = ToolResult("call-1", "", error="What went wrong", success=False)
    assert failed.to_message()["content"] == "Error: What went wrong"
    failed = ToolResult("call-1", "half", error="What went wrong", success=False)
    assert failed.to_message()["content"] == "Error: What went wrong\nhalf"


@pytest.mark.spec("S4-29")
async def test_the_limit_of_steps_is_visible_before_and_when_it_is_reached(crib_of):
    from toolcrib import Call

    def step() -> str:
        """Take a step."""
        return "taken"

    crib = crib_of(step, calls={"max_steps": 2})
    session = crib.session()
    assert session.max_calls == 2
    taken = [await crib.call(Call(name="step", session=session)) for _ in range(3)]
    assert [result.meta.get("steps") for result in taken[:2]] == [{"used": 1, "max": 2}, {"used": 2, "max": 2}]
    assert taken[2].error.kind is Kind.BUDGET_EXCEEDED
    assert "the session has made all of its 2 calls" in taken[2].error.message


@pytest.mark.spec("S4-24")
async def test_every_execution_is_logged_with_start_and_end_and_without_what_was_passed(my_tool, caplog):
    registry = ToolRegistry()
    registry.register(my_tool())
    with caplog.at_level(logging.INFO, logger="toolcrib"):
        await registry.execute(a_call(arg1="hunter2"))
        await registry.execute(a_call())
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "call call-1: my_tool starts for local"
    assert lines[1].startswith("call call-1: my_tool succeeded after ")
    assert lines[2].endswith(": VALIDATION")
    assert "hunter2" not in caplog.text


@pytest.mark.spec("S4-08")
async def test_a_tool_for_a_database_is_added_without_touching_the_core(project):
    (project / "tools" / "search_books.py").write_text(
        textwrap.dedent('''
            import sqlite3

            def search_books(word: str) -> list[str]:
                """Search the titles of the books."""
                with sqlite3.connect(":memory:") as base:
                    base.execute("create table books (title text)")
                    base.execute("insert into books values ('The Odyssey'), ('Iliad')")
                    found = base.execute("select title from books where title like ?", (f"%{word}%",))
                    return [title for (title,) in found]
        ''')
    )
    async with Crib(project) as crib:
        result = await crib.call("search_books", word="Ody")
    assert result.value == ["The Odyssey"], result.error


def test_the_examples_leave_no_import_path_behind(run_example):
    # Under pytest the plug-in offers them all the time, so only a fresh interpreter can tell.
    code = f"""
        import runpy, sys
        from toolcrib.features.agent_classes.import_paths import document_imports
        before = set(sys.meta_path)
        with document_imports():
            runpy.run_path({str(run_example.__code__.co_filename)!r}.replace("conftest.py", "fixtures/my_tool.py"))
        assert not [name for name in sys.modules if name.partition(".")[0] in ("core", "tool")]
        assert set(sys.meta_path) == before
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=30, check=True)


def test_the_imports_of_the_document_are_the_same_classes_everywhere():
    with document_imports():
        from core.types import ToolResult as shown  # type: ignore[import-not-found]
        from tool.bases import BaseTool as base  # type: ignore[import-not-found]
    assert shown is ToolResult
    assert base is BaseTool
