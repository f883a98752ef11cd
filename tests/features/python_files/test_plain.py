from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaks import examples
from toolcrib import Cost, Kind, Tool, ToolError
from toolcrib.features.python_files.format import PlainFile
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.tool import Chained, Origin, Script

PATH = Path("tools/weather.py")


def read(text: str | bytes, path: Path = PATH) -> Tool:
    code = text if isinstance(text, bytes) else dedent(text).encode()
    (made,) = PlainFile().read(path, code)
    return made


def refusal(text: str | bytes, path: Path = PATH) -> str:
    with pytest.raises(ToolError) as caught:
        read(text, path)
    assert caught.value.message.startswith(str(path))
    return caught.value.message


def hint(text: str, before: str = "") -> tuple[dict[str, object], tuple[str, ...]]:
    made = read(f"{before}\ndef weather(x: {text}):\n    'Look.'\n")
    check_parameters(made.parameters, "plain")
    return made.parameters["properties"]["x"], made.warnings  # type: ignore[index]


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


class TestWhichFilesAreRead:
    @pytest.mark.parametrize("name", ["weather.py", "get-weather.py", "wetter_ä.py", "tests.py"])
    def test_a_python_file_is(self, name):
        assert PlainFile().reads(Path("tools") / name)

    @pytest.mark.parametrize(
        "name", ["_helper.py", ".hidden.py", "__init__.py", "test_weather.py", "conftest.py", "setup.py", "weather.pyc", "weather"]
    )  # fmt: skip
    def test_another_file_is_not(self, name):
        assert not PlainFile().reads(Path("tools") / name)


class TestWhatAFileSays:
    def test_a_function_is_read_from_its_syntax(self):
        code = dedent(
            '''
            """The module."""
            from typing import Literal

            async def weather(city: str, days: int = 3, *, unit: Literal["c", "f"] = "c") -> dict[str, float]:
                """Look up the weather.

                It asks a station nearby.

                Args:
                    city: The city.
                """
            '''
        ).encode()
        wanted = Tool(
            name="weather",
            description="Look up the weather.",
            documentation="It asks a station nearby.",
            parameters={
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city."},
                    "days": {"type": "integer", "default": 3},
                    "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
            output_schema={"type": "object", "additionalProperties": {"type": "number"}},
            run=Script(path=PATH, code=code, language="python", entry="weather", imports=("typing",)),
            source_type="file",
            origin=Origin(place="tools/weather.py", line=5),
        )
        assert vars(read(code)) == vars(wanted)
        assert read(code).warnings == ()

    def test_the_bytes_that_were_read_are_the_bytes_that_run(self):
        code = b"\xef\xbb\xbfdef weather():\r\n    'Look.'\r\n"
        assert read(code).run.code == code  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("text", "entry"),
        [
            ("def weather(): ...\ndef run(): ...\ndef other(): ...", "weather"),
            ("def run(): ...\ndef other(): ...", "run"),
            ("def _hidden(): ...\ndef other(): ...", "other"),
            ("class A:\n    def weather(self): ...\ndef other(): ...", "other"),
        ],
    )
    def test_the_public_function_is_the_one_named_like_the_file_else_run_else_the_only_one(self, text, entry):
        made = read(text)
        assert made.run.entry == entry  # type: ignore[union-attr]
        assert made.name == "weather"

    def test_a_file_with_a_dash_holds_a_function_with_an_underscore(self):
        made = read("def get_weather(): ...\ndef other(): ...", Path("tools/get-weather.py"))
        assert made.name == "get-weather"
        assert made.run.entry == "get_weather"  # type: ignore[union-attr]

    def test_of_two_functions_of_one_name_the_last_counts(self):
        made = read("def weather(a): ...\ndef weather(b): ...")
        assert list(made.parameters["properties"]) == ["b"]  # type: ignore[call-overload]

    def test_several_candidates_are_listed(self):
        assert refusal("def a(): ...\ndef b(): ...") == (
            "tools/weather.py:1: which function is the tool? found a, b; "
            'name one `weather` or `run`, begin the others with \'_\', or write __tools__ = ["a", "b"]'
        )

    def test_a_file_without_a_public_function_is_refused_with_the_cure(self):
        assert "tools/weather.py:1: no public function; write `def weather(…):`" in refusal("x = 1\ndef _f(): ...")
        assert "only the class Kit; write `def weather(…):` that uses it" in refusal("class Kit:\n    def a(self): ...")
        assert "no public function" in refusal("")

    def test_the_description_comes_from_the_function_else_the_module_else_the_name(self):
        assert read("'The module.'\ndef weather(): 'The function.'").description == "The function."
        assert read("'The module.'\ndef weather(): ...").description == "The module."
        made = read("def weather(): ...")
        assert made.description == "Weather"
        assert made.warnings == ("tools/weather.py:1: nothing describes weather; write a docstring",)

    def test_other_named_arguments_leave_the_schema_open_as_far_as_their_hint(self):
        assert read("def weather(**others: int): 'Look.'").parameters["additionalProperties"] == INTEGER
        made = read("def weather(**others): 'Look.'")
        assert made.parameters["additionalProperties"] is True

    def test_parameters_that_python_gives_by_position_have_a_name_like_any_other(self):
        made = read("def weather(a: str, /, b: int = 1, *days: int): 'Look.'").parameters
        assert made["properties"] == {
            "a": STRING,
            "b": {"type": "integer", "default": 1},
            "days": {"type": "array", "items": INTEGER},
        }
        assert made["required"] == ["a"]

    def test_named_others_are_parameters(self):
        text = "class Rest(TypedDict, total=False):\n    day: int\ndef weather(a: str, **rest: Unpack[Rest]): 'Look.'"
        made = read(text).parameters
        assert made["properties"] == {"a": STRING, "day": INTEGER}
        assert (made["required"], made["additionalProperties"]) == (["a"], False)

    @pytest.mark.parametrize(
        ("text", "schema"),
        [
            ("Args:\n        x (int, optional): It.", {"type": "integer", "description": "It."}),
            ("Args:\n        x (list of str): It.", {"type": "array", "items": STRING, "description": "It."}),
            (":param str x: It.", {"type": "string", "description": "It."}),
            (":param x: It.\n    :type x: dict[str, int] or None", None),
            ("Parameters\n    ----------\n    x : {'a', 'b'}, default 'a'\n        It.", {"type": "string", "enum": ["a", "b"], "description": "It."}),
        ],
    )  # fmt: skip
    def test_a_docstring_gives_the_type_that_a_hint_does_not(self, text, schema):
        made = read(f'def weather(x):\n    """Look.\n\n    {text}\n    """')
        mapping = {"type": "object", "additionalProperties": INTEGER}
        wanted = schema or {"anyOf": [mapping, {"type": "null"}], "description": "It."}
        assert made.parameters["properties"] == {"x": wanted}
        assert made.warnings == ()

    @pytest.mark.parametrize(
        ("default", "schema"),
        [
            ("3", {"type": "number", "default": 3}),
            ("True", {"type": "boolean", "default": True}),
            ("'a'", {"type": "string", "default": "a"}),
            ("[]", {"type": "array", "default": []}),
        ],
    )
    def test_a_default_gives_the_type_that_nothing_else_does(self, default, schema):
        made = read(f"def weather(x={default}): 'Look.'")
        assert (made.parameters["properties"], made.warnings) == ({"x": schema}, ())

    @pytest.mark.parametrize(
        ("text", "schema"),
        [
            ("x: int = -3", {"type": "integer", "default": -3}),
            ("x: list[str] = ['a']", {"type": "array", "items": STRING, "default": ["a"]}),
            ("x: tuple[int, ...] = (1, 2)", {"type": "array", "items": INTEGER, "default": [1, 2]}),
            ("x: dict = {'a': None}", {"type": "object", "default": {"a": None}}),
            ("x: int = None", {"type": ["integer", "null"], "default": None}),
            ("x: int = 'no'", INTEGER),
            ("x: int = compute()", INTEGER),
            ("x: float = 1e999", {"type": "number"}),
            ("x: int = 0xffffffffffffffffff", INTEGER),
            ("x: str = '\\ud800'", STRING),
            ("x: set = {1}", {"type": "array", "uniqueItems": True}),
            ("x: Mode = Mode.FAST", {"type": "string", "enum": ["fast", "slow"], "default": "fast"}),
            ("x: Path = Path('a')", {"type": "string", "default": "a"}),
            ("x: object = [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", {}),
        ],
    )
    def test_a_default_is_taken_over_if_it_is_a_literal_that_fits(self, text, schema):
        before = "import enum\nfrom pathlib import Path\nclass Mode(enum.Enum):\n    FAST = 'fast'\n    SLOW = 'slow'\n"
        made = read(f"{before}def weather({text}):\n    'Look.'")
        assert made.parameters["properties"] == {"x": schema}
        assert made.parameters["required"] == []


class TestWhatAHintMeans:
    @pytest.mark.parametrize(
        ("text", "schema"),
        [
            ("str", STRING),
            ("'str'", STRING),
            ("int", INTEGER),
            ("float", {"type": "number"}),
            ("bool", {"type": "boolean"}),
            ("None", {"type": "null"}),
            ("Any", {}),
            ("typing.Any", {}),
            ("list", {"type": "array"}),
            ("list[int]", {"type": "array", "items": INTEGER}),
            ("t.List['int']", {"type": "array", "items": INTEGER}),
            ("Sequence[int]", {"type": "array", "items": INTEGER}),
            ("set[int]", {"type": "array", "uniqueItems": True, "items": INTEGER}),
            ("tuple[int, str]", {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "items": False}),
            ("dict[str, int]", {"type": "object", "additionalProperties": INTEGER}),
            ("dict[str, Any]", {"type": "object"}),
            ("collections.abc.Mapping[str, int]", {"type": "object", "additionalProperties": INTEGER}),
            ("Optional[int]", {"type": ["integer", "null"]}),
            ("typing.Optional[int]", {"type": ["integer", "null"]}),
            ("Union[int, str]", {"type": ["integer", "string"]}),
            ("int | str | None", {"type": ["integer", "string", "null"]}),
            ("Literal['a', 1, True, None, -2]", {"enum": ["a", 1, True, None, -2]}),
            ("Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
            ("Annotated[int, Field(ge=1), 'How many.']", {"type": "integer", "minimum": 1, "description": "How many."}),
            ("Mode", {"type": "string", "enum": ["a", "b"]}),
            (
                "list[Mode] | None",
                {"anyOf": [{"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, {"type": "null"}]},
            ),
            (
                "Where",
                {
                    "type": "object",
                    "properties": {"name": STRING, "city": STRING, "code": INTEGER},
                    "required": ["name", "city"],
                    "additionalProperties": False,
                },
            ),
        ],
    )
    def test_a_plain_hint_is_understood_by_its_name(self, text, schema):
        before = dedent(
            """
            import collections.abc
            import typing
            import typing as t
            from typing import Any, Annotated, Literal, Mapping, Optional, Required, Sequence, TypedDict, Union
            Mode = Literal["a", "b"]
            class Named(TypedDict):
                name: str
            class Where(Named, total=False):
                city: Required[str]
                code: "int"
            """
        )
        assert hint(text, before) == (schema, ())

    @pytest.mark.parametrize(
        ("text", "schema", "words"),
        [
            ("Frame", {}, "the hint Frame cannot be read without running the file, so any JSON is accepted there and converted when the file runs; define it in this file"),
            ("list[pandas.Frame]", {"type": "array"}, "the hint pandas.Frame cannot be read"),
            ("Thing", {}, "Thing cannot be made from JSON, so a call that gives it fails; make it a dataclass"),
            ("f()", {}, "the hint f() cannot be read"),
            ("'not a hint'", {}, "cannot be read"),
            ("Loop", {"type": "array"}, "Loop inside of Loop cannot be read"),
            ("mine.Optional[int]", {}, "cannot be read"),
        ],
    )  # fmt: skip
    def test_a_hint_that_only_running_code_knows_comes_with_a_warning(self, text, schema, words):
        before = dedent(
            """
            import pandas, mine
            from pandas import Frame
            Loop = list["Loop"]
            class Thing:
                def __init__(self, x: int): ...
            """
        )
        found, warnings = hint(text, before)
        assert found == schema
        assert len(warnings) == 1
        assert ": parameter x: " in warnings[0]
        assert words in warnings[0]

    def test_a_missing_hint_accepts_any_value_and_warns(self):
        made = read("def weather(x): 'Look.'")
        assert made.parameters["properties"] == {"x": {}}
        assert made.warnings == (
            "tools/weather.py:1: parameter x: has no type hint, so any value is accepted; add one",
        )

    def test_an_answer_is_what_its_objects_are_written_as(self):
        made = read("from pathlib import Path\ndef weather() -> list[Path]: 'Look.'")
        assert made.output_schema == {"type": "array", "items": STRING}
        assert read("import decimal\ndef weather() -> decimal.Decimal: 'Look.'").output_schema["type"] == "string"
        assert read("def weather() -> AsyncIterator[int]: 'Look.'").output_schema == {"type": "array", "items": INTEGER}

    def test_an_answer_that_only_running_code_knows_has_no_schema_and_no_warning(self):
        made = read("from x import Y\ndef weather() -> list[Y]: 'Look.'")
        assert made.output_schema is None
        assert made.warnings == ()
        assert read("def weather() -> None: 'Look.'").output_schema == {"type": "null"}

    def test_a_context_is_refused_with_the_cure(self):
        text = "from toolcrib import Context\ndef weather(x: Context): ..."
        assert "parameter x: a file runs in a process of its own and gets no Context" in refusal(text)

    def test_a_mapping_without_text_for_keys_is_refused(self):
        assert "parameter x: the keys of a JSON object are text" in refusal("def weather(x: dict[bool, str]): ...")


class TestHostileFiles:
    def test_nothing_of_a_file_runs_when_it_is_read(self, tmp_path):
        marker = tmp_path / "marker"
        act = f"open({str(marker)!r}, 'w').close()"
        read(
            f"""
            import os
            {act}
            def mark(*args, **kwargs):
                {act}
                return mark
            class Meta(type):
                def __new__(cls, *args):
                    {act}
            class Shape(metaclass=Meta):
                x: int = {act}
                {act}
            def __getattr__(name):
                {act}
            Alias = {act}
            @(lambda f: {act})
            def weather(a={act}, b: {act} = 1, c: "{act}" = 2, d: list[{act}] = [{act}], e: Alias = 3, f: Shape = 4, *, g: int = {act}) -> {act}:
                "Look."
            """
        )
        assert not marker.exists()

    @pytest.mark.parametrize("base", ["BaseTool", "bases.BaseTool", "tool.bases.BaseTool"])
    def test_a_base_tool_is_refused_with_the_cure(self, base):
        message = refusal(f"from tool.bases import BaseTool\nclass Mine({base}): ...\ndef weather(): ...")
        assert message.startswith("tools/weather.py:2: Mine is a BaseTool")
        assert message.endswith("name its module in modules.tools of toolcrib.toml, or use `crib run FILE`")

    def test_a_syntax_error_is_reported_with_its_line(self):
        assert refusal("x = 1\ndef weather(:\n").startswith("tools/weather.py:2: invalid syntax")

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (b"#" * 256_001, "larger than 256,000 bytes"),
            (b"x = '\xff'", "not UTF-8 at byte 5"),
            (b"def weather(): ...\0", "holds a NUL byte"),
            (b"# -*- coding: utf-7 -*-\ndef weather(): ...", "declares the encoding 'utf-7'"),
            (b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\ndef weather(): ...", "declares the encoding 'latin-1'"),
            (b"x = " + b"(" * 5_000 + b")" * 5_000, "too many nested parentheses"),
            (b"x = " + b"-" * 200_000 + b"1", "nested too deeply"),
            (b"x = " + b"a + " * 60_000 + b"a", "nested too deeply"),
            (b"x = a" + b".a" * 100_000, "nested too deeply"),
            (b"if a: ...\n" + b"elif a: ...\n" * 15_000, "nested too deeply"),
            (b"def weather(x: " + b"a | " * 50_000 + b"a): ...", "nested too deeply"),
            (b"def weather(x: a" + b".b" * 900 + b"): ...", "nested too deeply"),
            (b"def weather(x: " + b"list[" * 100 + b"int" + b"]" * 100 + b"): ...", "unfolds to too many types"),
            (b"def weather(" + b",".join(b"a%d: int = 1" % i for i in range(9_000)) + b"): ...", "unfolds to too many types"),
            (b"def weather(" + b",".join(b"a%d=1" % i for i in range(9_000)) + b"): ...", "larger than 64,000 bytes"),
        ],
    )  # fmt: skip
    def test_a_file_past_the_limits_is_refused(self, code, words):
        assert words in refusal(code)

    def test_a_declared_utf_8_is_fine(self):
        assert read(b"# -*- coding: UTF-8 -*-\ndef weather(): 'Look.'").description == "Look."

    def test_a_small_file_cannot_unfold_into_a_huge_schema(self):
        rungs = "\n".join(
            f"class D{i}(TypedDict):\n    a: D{i + 1}\n    b: D{i + 1}\n    c: D{i + 1}" for i in range(18)
        )
        assert "unfolds to too many types" in refusal(f"{rungs}\nD18 = int\ndef weather(x: D0): ...")
        alias = f"Long = Literal[{'x' * 9_000!r}]"
        parameters = ", ".join(f"a{i}: Long" for i in range(100))
        assert "larger than 64,000 bytes" in refusal(f"{alias}\ndef weather({parameters}): ...")

    def test_bases_that_turn_in_a_circle_or_multiply_are_read_once(self):
        text = "class A(B, TypedDict):\n    a: int\nclass B(A, TypedDict):\n    b: int\ndef weather(x: A): 'Look.'"
        schema = read(text).parameters["properties"]["x"]  # type: ignore[index]
        assert list(schema["properties"]) == ["b", "a"]
        many = "class C0(TypedDict):\n    a: int\n" + "".join(
            f"class C{i}(C{i - 1}, C{i - 1}, TypedDict): ...\n" for i in range(1, 60)
        )
        read(f"{many}def weather(x: C59): 'Look.'")

    def test_lone_surrogates_do_not_reach_a_model(self):
        made = read("def weather(x: str):\n    '''Look \\ud800.\n\n    Args:\n        x: A \\ud800.\n    '''")
        (made.description + str(made.parameters)).encode()

    def test_a_name_that_is_no_tool_name_is_refused_with_the_file(self):
        assert "use 1 to 64 letters" in refusal("def run(): ...", Path("tools/we ather.py"))

    def test_odd_escapes_in_a_file_raise_no_warning(self):
        assert read(b"def weather(x: str = '\\d'): 'Look.'").parameters["properties"] == {
            "x": {"type": "string", "default": "\\d"}
        }

    @given(
        st.lists(
            st.sampled_from(
                ["def ", "weather", "(", ")", ":", "\n", "    ", "x", "int", "[", "]", "|", "'", ",", "=", "class ", "A", "...",
                 "TypedDict", "Literal", "*", "/", "->", "None", "@", "1", "\\", "Optional", "async ", ".", "\ud7ff", "Enum"]
            ),
            max_size=40,
        )
    )  # fmt: skip
    @settings(max_examples=examples(300))
    def test_any_file_is_a_tool_or_is_refused(self, words):
        try:
            made = read("".join(words).encode())
        except ToolError as error:
            message = error.message
        else:
            check_schema(made.parameters, "parameters")
            check_schema(made.output_schema or {}, "answer")
            message = str(PATH)
        assert message.startswith(str(PATH))

    @given(st.binary(max_size=60))
    @settings(max_examples=examples(200))
    def test_any_bytes_are_refused_with_a_message(self, code):
        with pytest.raises(ToolError) as caught:
            PlainFile().read(PATH, code)
        assert caught.value.kind in (Kind.VALIDATION, Kind.LIMIT_EXCEEDED)


def read_all(text: str, path: Path = PATH) -> dict[str, Tool]:
    return {made.name: made for made in PlainFile().read(path, dedent(text).encode())}


class TestSeveralTools:
    def test_a_file_says_which_functions_are_tools(self):
        made = read_all('__tools__ = ["a", "b"]\ndef a(x: int): "A."\ndef b(): "B."\ndef c(): "C."')
        assert {name: tool.run.entry for name, tool in made.items()} == {"a": "a", "b": "b"}  # type: ignore[union-attr]
        assert [tool.description for tool in made.values()] == ["A.", "B."]
        assert not any(tool.warnings for tool in made.values())

    def test_a_decorator_on_each_says_so_too(self):
        text = """
            import toolcrib
            from toolcrib import tool as offered
            @offered
            def a(): "A."
            @toolcrib.tool(name="bee", confirm=True)
            def b(): "B."
            def helper(): "C."
        """
        made = read_all(text)
        assert {name: tool.requires_confirmation for name, tool in made.items()} == {"a": False, "bee": True}

    def test_functions_with_a_docstring_are_meant_where_nothing_is_said(self):
        made = read_all('def a(): "A."\ndef b(): "B."; c()\ndef c(): ...')
        assert list(made) == ["a", "b"]
        assert made["a"].warnings == ('tools/weather.py:1: a, b are taken for tools; say so: __tools__ = ["a", "b"]',)

    def test_beside_them_so_is_one_that_nothing_in_the_file_uses(self):
        assert list(read_all('def a(): "A."\ndef b(): ...')) == ["a", "b"]

    def test_beside_the_function_of_the_files_name_one_that_is_used_is_a_helper(self):
        made = read_all('def weather(): return helper()\ndef helper(): "B."\ndef other(): "C."')
        assert list(made) == ["weather", "other"]

    def test_the_main_of_a_program_is_no_tool(self):
        made = read_all('def a(): "A."\ndef main(argv=None): "Run."\nif __name__ == "__main__": main()')
        assert {name: tool.run.entry for name, tool in made.items()} == {"weather": "a"}  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("listed", "words"),
        [
            ("names()", "weather.py:1: __tools__: write a list of the names of functions, such as"),
            ("[]", "write a list of the names of functions"),
            ("['a', 'nope']", "nope is not a public function of this file; it has a"),
        ],
    )
    def test_a_list_that_cannot_be_obeyed_is_refused(self, listed, words):
        assert words in refusal(f"__tools__ = {listed}\ndef a(): ...")

    def test_a_function_that_is_defined_twice_comes_with_a_warning(self):
        made = read("def weather(a: int): 'Old.'\ndef weather(b: int): 'New.'")
        assert "tools/weather.py:2: weather is defined twice, at line 1 too; the last one counts" in made.warnings[0]


class TestWhatTheDecoratorDeclares:
    def test_its_literals_are_read(self):
        made = read(
            """
            from toolcrib import Cost, RetryPolicy, SideEffects, tool

            @tool(name="pay", description="Pay.", version="2.0.0", confirm=True, side_effects=SideEffects.WRITES, tags=["money"],
                  timeout=1.5, calls_per_minute=6, retry=RetryPolicy(max_attempts=2), cost=Cost(per_invocation=0.1),
                  requires=["net.http"], modes=["text"], behaviour="action", idempotent=True)
            def weather(n: int) -> int:
                return n
            """
        )
        assert (made.name, made.description, made.version) == ("pay", "Pay.", "2.0.0")
        assert (made.requires_confirmation, made.side_effects, made.behaviour) == (True, "writes", "action")
        assert (made.limits.timeout_ms, made.limits.calls_per_minute) == (1500, 6)
        assert made.limits.retry is not None
        assert made.cost is not None
        assert (made.requires, made.modes, made.tags) == (frozenset({"net.http"}), frozenset({"text"}), ("money",))
        assert isinstance(made.run, Chained)

    @pytest.mark.parametrize("cost", ["0.1", "{'per_invocation': 0.1}", "Cost(per_invocation=0.1)"])
    def test_a_number_is_the_price_of_one_call(self, cost):
        made = read(f"from toolcrib import Cost, tool\n@tool(cost={cost})\ndef weather(n: int) -> int:\n    return n")
        assert made.cost == Cost(per_invocation=0.1)

    def test_schemas_of_its_own_replace_those_of_the_signature(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
        made = read(f"from toolcrib import tool\n@tool(parameters={schema})\ndef weather(n): 'Look.'")
        assert made.parameters == schema

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ("confirm=ASK", "weather.py:2: @tool(confirm=…): is not a literal, and nothing of the file is run"),
            ("confirm='no'", "@tool(confirm='no'): write True or False"),
            ("bundle='other'", "bundle is not an option of a file; it has name, title, description"),
            ("'pay'", "takes its options by name; write @tool(name=…)"),
            ("**more", "takes its options by name"),
            ("timeout=-1", "timeout_ms must be greater than 0"),
            ("timeout='soon'", "weather.py:3: @tool(timeout='soon'): write seconds, such as 30"),
            ("cost='cheap'", "@tool(cost='cheap'): write the price of one call in USD, such as 0.01, or Cost("),
            ("cost=-0.01", "cost must be numbers that are not negative"),
            ("retry=3", "@tool(retry=3): write RetryPolicy(max_attempts=3)"),
            ("tags='money'", "tags is a list of words; write ['money']"),
            ("requires=['everything']", "@tool(requires=…): 'everything': write dotted names"),
            ("retry=RetryPolicy(max_attempts=0)", "max_attempts must be at least 1"),
            ("parameters={'type': 'string'}", "must say"),
            ("modes=['smell']", "write one or more of"),
        ],
    )
    def test_what_cannot_be_obeyed_is_refused(self, options, words):
        assert words in refusal(
            f"from toolcrib import tool\n@tool({options})\ndef weather(n: int) -> int:\n    return n"
        )

    def test_a_decorator_of_that_name_that_is_not_ours_is_refused(self):
        message = refusal("from elsewhere import tool\n@tool(confirm=True)\ndef weather(): ...")
        assert (
            "what @tool(…) declares is not read, as it is not toolcrib's; write: from toolcrib import tool" in message
        )

    def test_a_decorator_with_another_name_declares_nothing(self):
        assert read("import functools\n@functools.lru_cache(maxsize=1)\ndef weather(): 'Look.'").description == "Look."

    def test_the_schema_of_the_answer_is_taken_and_checked(self):
        text = "from toolcrib import tool\n@tool(output_schema=%s)\ndef weather() -> int: 'Look.'"
        assert read(text % "{'type': 'string'}").output_schema == STRING
        assert "@tool(output_schema=…)" in refusal(text % "{'type': 'strin'}")

    def test_a_bare_decorator_declares_nothing(self):
        assert read("from toolcrib import tool\n@tool\ndef pay(n: int) -> int:\n    return n").name == "weather"


def test_a_file_with_packages_of_its_own_runs_where_they_are_installed():
    text = '# /// script\n# dependencies = ["left-pad"]\n# ///\ndef weather(): "Look."'
    assert isinstance(read(text).run, Chained)
    assert isinstance(read("def weather(): 'Look.'").run, Script)


@pytest.mark.parametrize(
    ("body", "prints"),
    [
        ("print(1)", True),
        ("if True:\n        print(1)\n        return", True),
        ("print(1)\n    return None", True),
        ("def inner():\n        return 2\n    print(inner())", True),
        ("print(lambda: 2)", True),
        ("print(1)\n    return 2", False),
        ("if True:\n        return 2\n    print(1)", False),
        ("print(1)\n    yield 2", False),
    ],
)
def test_a_function_that_prints_and_returns_nothing_answers_by_what_it_prints(body, prints):
    made = read(f"def weather() -> None:\n    'Look.'\n    {body}\n")
    assert isinstance(made.run, Chained) is prints
    assert made.output_schema == (None if prints else {"type": "null"})
    if prints:
        script = read("def weather(): 'Look.'\n# print(\n").run.script
        assert made.run == Chained(
            kind=script.kind,
            tool_type="file",
            executor="python_runtime",
            folder=PATH.parent,
            script=made.run.script,
        )
    assert read("def weather() -> int:\n    'Look.'\n    print(1)\n").output_schema == INTEGER


def test_overloads_are_not_the_function():
    text = "from typing import overload\n@overload\ndef weather(a: int): ...\n@overload\ndef weather(a: str): ...\ndef weather(a: str = ''): 'Look.'\n"
    made = read(text)
    assert made.parameters["properties"] == {"a": {**STRING, "default": ""}}
    assert made.warnings == ()


def test_a_part_of_a_package_is_refused_with_the_cure():
    message = refusal("from .formatting import euro\ndef weather(): ...")
    assert message == (
        "tools/weather.py:1: from .formatting import euro is a relative import, and a file here is no part of a package; "
        "put what it needs beside it and write: from formatting import euro"
    )
