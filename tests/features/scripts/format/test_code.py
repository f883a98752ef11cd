"""How a file of code is entered, what its signature says, and what else is known of it."""

from pathlib import Path

import pytest

from toolcrib.model.tool import Convention, Script

HEAD = """
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "ops"
__tool_description__ = "Do it; fails if it cannot."
__timeout__ = 30
__documentation__ = {"examples": ["Do it"]}
"""
ONE = '__parameters__ = [{"name": "x", "type": "integer", "required": True, "description": "X", "minimum": 0}]\n'
GUARD = "if __name__ == '__main__':\n    main()\n"
SINK = "class Sink:\n    def __init__(self, path: str, every: int = 3): ...\n    async def write(self, event: str) -> None: ...\n"
OPEN = {"type": "object"}


@pytest.fixture
def code(load):
    def code(text: str, name: str = "ops/do-it.py"):
        (tool,) = load(name, HEAD + text)
        return tool

    return code


def entered(tool) -> tuple[str, str]:
    return tool.run.script.convention, tool.run.script.entry


class TestTheEntry:
    @pytest.mark.parametrize(
        ("text", "convention", "entry"),
        [
            ("def main(): ...\n", "keywords", "main"),
            ("def main(x: int): ...\n", "keywords", "main"),
            ("async def main(x: int): ...\n", "keywords", "main"),
            ("def main(**others): ...\n", "keywords", "main"),
            (ONE + "def main(x): ...\n", "keywords", "main"),
            (ONE + "def main(**others): ...\n", "keywords", "main"),
            (ONE + "def main(x): ...\n" + GUARD, "keywords", "main"),
            ("def main(): ...\n" + GUARD, "keywords", "main"),
            (ONE + "def main(): ...\n", "keywords", "main"),
            (ONE + "def main(): ...\n" + GUARD, "argv", ""),
            (ONE + "def main(): ...\nif '__main__' == __name__: main()\n", "argv", ""),
            (ONE + "def main(argv=None): ...\n" + GUARD, "argv", ""),
            ("def main(argv=None): ...\n" + GUARD, "argv", ""),
            ("def main(*args): ...\n" + GUARD, "argv", ""),
            ("def execute(params): ...\n", "params", "execute"),
            (ONE + "def execute(params): ...\n", "params", "execute"),
            (ONE + "def execute(params): ...\ndef main(): ...\n" + GUARD, "params", "execute"),
            ("def execute(params): ...\ndef main(): ...\n" + GUARD, "params", "execute"),
            (ONE + "def execute(params): ...\ndef main(x): ...\n", "keywords", "main"),
            ("", "argv", ""),
            (ONE + "print(1)\n", "argv", ""),
            ("def helper(x): ...\n", "argv", ""),
            ("class A:\n    def main(self): ...\n", "argv", ""),
            (SINK, "sink", "Sink"),
            (SINK + "def main(): ...\n", "keywords", "main"),
            (SINK + "def execute(params): ...\n", "params", "execute"),
            ("class A:\n    def write(self, event): ...\n", "argv", ""),
            ("class A:\n    async def write(self): ...\n", "argv", ""),
            ("class A:\n    async def write(self, event, more): ...\n", "argv", ""),
        ],
    )
    def test_is_chosen_by_what_the_file_offers(self, text, convention, entry, code):
        assert entered(code(text)) == (convention, entry)

    @pytest.mark.parametrize(
        ("text", "convention", "entry"),
        [
            ("from impl import main\n", "keywords", "main"),
            ("from impl import run as main\n", "keywords", "main"),
            ("main = lambda **others: others\n", "keywords", "main"),
            ("import impl\nmain = impl.run\n", "keywords", "main"),
            ("from functools import partial\nmain = partial(print, 1)\n", "keywords", "main"),
            ("from impl import execute\n", "params", "execute"),
            ("from impl import main\nmain()\n", "argv", ""),
            ("from impl import main\n" + GUARD, "argv", ""),
            ("import main\n", "argv", ""),
            ("main = 1\n", "argv", ""),
        ],
    )
    def test_may_come_from_elsewhere_where_nothing_else_would_run(self, text, convention, entry, code):
        tool = code(text)
        assert entered(tool) == (convention, entry)
        assert tool.parameters == OPEN

    def test_another_name_for_a_function_has_its_signature(self, code):
        tool = code("def run(x: int): ...\nmain = run\n")
        assert (entered(tool), tool.parameters["required"]) == (("keywords", "main"), ["x"])

    def test_what_comes_from_elsewhere_takes_what_is_declared(self, code):
        assert code(ONE + "from impl import main\n").parameters["required"] == ["x"]

    NOTHING = ".ai/tools/ops/do-it.py:1: nothing in the file runs, so a call of it does nothing; write def main(…)"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "'Text.'\nimport os\nX = 1\nX += 1\nY: int = 2\n",
            "def helper(x): ...\nclass A:\n    async def write(self): ...\n",
            "try:\n    import a\nexcept ImportError:\n    a = None\nif True:\n    import b\nelse:\n    b = None\n",
        ],
    )
    def test_a_file_that_would_do_nothing_comes_with_a_warning(self, text, code):
        assert self.NOTHING in code(text).warnings

    @pytest.mark.parametrize(
        "text",
        ["print(1)\n", "def main(): ...\n", "from a import main\n", "for x in y: ...\n", SINK, GUARD, "if x:\n    run()\n"],
    )  # fmt: skip
    def test_a_file_that_does_something_comes_with_none(self, text, code):
        assert self.NOTHING not in code(text).warnings

    def test_what_another_runtime_makes_of_a_file_is_its_own_business(self, load):
        (tool,) = load("ops/do-it.py", HEAD.replace("python_runtime", "my_tests") + "def test_it(): ...\n")
        assert self.NOTHING not in tool.warnings

    def test_the_script_is_the_very_bytes_that_were_read(self, load):
        text = (HEAD + "def main(): ...\n").replace("\n", "\r\n").encode()
        (tool,) = load("ops/do-it.py", text)
        assert tool.run.script == Script(
            path=Path(".ai/tools/ops/do-it.py"),
            code=text,
            language="python",
            entry="main",
            convention=Convention.KEYWORDS,
        )
        assert tool.run.folder == Path(".ai/tools/ops")

    @pytest.mark.spec("S3-40")
    @pytest.mark.parametrize(
        ("name", "language"), [("do-it.js", "javascript"), ("do-it.mjs", "javascript"), ("do-it.sh", "bash")]
    )
    def test_other_languages_are_programs(self, name, language, load):
        facts = ["version: 1.0.0", "tool_type: script", "executor_id: x", "category: ops", "description: D"]
        lines = [f" * @{fact.replace(':', '', 1)}\n" for fact in facts]
        text = (
            "/**\n" + "".join(lines) + " */\n" if language == "javascript" else "".join(f"# {fact}\n" for fact in facts)
        )
        (tool,) = load(f"ops/{name}", text)
        assert (tool.run.script.language, *entered(tool)) == (language, "argv", "")
        assert tool.parameters == OPEN

    def test_the_imports_of_the_first_level_are_named_once_each(self, code):
        text = (
            "from __future__ import annotations\nimport os, json\nimport os.path as p\nfrom a.b import c\nfrom . import d\n"
            "from .e import f\nimport json\ndef main():\n    import g\nif True:\n    import h\n"
        )
        assert code(text).run.script.imports == ("os", "json", "os.path", "a.b")

    def test_at_most_a_hundred_imports_are_named(self, code):
        assert len(code("".join(f"import m{n}\n" for n in range(300))).run.script.imports) == 100


class TestTheSignature:
    @pytest.mark.spec("S3-39")
    def test_says_what_is_taken_and_given_if_nothing_else_does(self, code):
        tool = code(
            'def main(name: str = "World", *, n: int) -> str:\n    """Greet.\n\n    Args:\n        n: How often\n    """\n'
        )
        assert tool.parameters == {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "World"},
                "n": {"description": "How often", "type": "integer"},
            },
            "required": ["n"],
            "additionalProperties": False,
        }
        assert tool.output_schema == {"type": "string"}
        assert tool.metadata["docstring"] == "Greet.\n\nArgs:\n    n: How often"
        assert tool.warnings == ()

    @pytest.mark.parametrize("text", ["def execute(params): ...\n", "", "def main(argv): ...\n" + GUARD])
    def test_that_cannot_be_read_leaves_the_arguments_open(self, text, code):
        assert code(text).parameters == OPEN

    def test_gives_way_to_what_is_declared(self, code):
        tool = code(ONE + "def main(x: str) -> int: ...\n")
        assert tool.parameters["properties"]["x"]["type"] == "integer"
        assert tool.output_schema == {"type": "integer"}
        assert code('__outputs__ = {"type": "string"}\ndef main(x: str) -> int: ...\n').output_schema == {
            "type": "string"
        }

    def test_that_does_not_take_what_is_declared_comes_with_a_warning(self, code):
        tool = code(ONE + "def main(y, z=1): ...\n")
        assert [warning.removeprefix(".ai/tools/ops/do-it.py:") for warning in tool.warnings] == [
            "10: main does not take x, so calls that give it fail; add it to the function",
            "10: main demands y, which a call may leave out; give it a default",
        ]

    @pytest.mark.parametrize(
        ("text", "convention", "names"),
        [
            ("def execute(url, tool): ...", "keywords", ["url", "tool"]),
            ("def execute(url: str): ...", "keywords", ["url"]),
            ("def execute(params): ...", "params", None),
            ("def execute(params, project_path): ...", "params", None),
            ("def execute(params: dict, timeout=3): ...", "params", None),
            ("def execute(url, project_path): ...", "keywords", ["url"]),
            ("def execute(data: list): ...", "keywords", ["data"]),
            ("def execute(*, url): ...", "keywords", ["url"]),
            ("def execute(**params): ...", "keywords", []),
            ("def execute(): ...", "keywords", []),
            ("def main(): ...", "keywords", []),
            ("def main(params: dict): ...", "params", None),
            ("from typing import TypedDict\nclass P(TypedDict):\n    url: str\ndef execute(params: P): ...", "params", ["url"]),
            (f"{ONE}def execute(x, y=1): ...", "keywords", ["x"]),
            (f"{ONE}def execute(params): ...", "params", ["x"]),
            (f"{ONE}def execute(anything): ...", "params", ["x"]),
            (f"{ONE}def main(args): ...", "params", ["x"]),
        ],
    )  # fmt: skip
    def test_arguments_bind_one_by_one_or_all_at_once(self, code, text, convention, names):
        tool = code(f"{text}\n")
        assert tool.run.script.convention == convention
        properties = tool.parameters.get("properties")
        assert (None if properties is None else list(properties)) == names

    def test_what_is_not_understood_comes_with_a_warning(self, code):
        assert code("def main(x): ...\n").warnings == (
            ".ai/tools/ops/do-it.py:9: parameter x: has no type hint, so any value is accepted; add one",
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("from toolcrib import Context\ndef main(x: Context): ...\n", "10: main: parameter x: a file runs in a process of its own"),
            (f"{SINK}{SINK.replace('Sink', 'Other')}", "1: which class is the sink? found Sink, Other; begin the names of the others with '_'"),
        ],
    )  # fmt: skip
    def test_that_cannot_be_called_is_refused(self, text, message, problems):
        assert problems("ops/do-it.py", HEAD + text)[0].startswith(message)

    def test_one_that_unfolds_without_end_is_refused(self, problems):
        names = "".join(f"A{n + 1} = dict[str, list[A{n}] | dict[str, A{n}]]\n" for n in range(12))
        (message,) = problems("ops/do-it.py", f"{HEAD}A0 = int\n{names}def main(x: A12): ...\n")
        assert message.startswith("22: main: parameter x: unfolds to too many types; make it smaller")


class TestSinks:
    @pytest.mark.spec("S3-42")
    def test_are_made_from_the_arguments_of_their_class(self, code):
        tool = code(SINK)
        assert tool.kind == "sink"
        assert tool.parameters["properties"] == {"path": {"type": "string"}, "every": {"type": "integer", "default": 3}}
        assert tool.parameters["required"] == ["path"]
        assert tool.output_schema is None

    def test_one_without_an_own_way_to_be_made_takes_anything(self, code):
        assert code("class S:\n    async def write(self, event): ...\n").parameters == OPEN

    def test_of_several_classes_the_public_one_counts(self, code):
        assert entered(code(SINK.replace("Sink", "_Base") + SINK)) == ("sink", "Sink")


class TestLibraries:
    @pytest.mark.spec("S3-60")
    def test_are_loaded_and_listed_with_any_content(self, load):
        text = HEAD.replace('"python"\n', '"library"\n').replace('"python_runtime"', "None") + "def main(*a): ...\n"
        (tool,) = load("ops/do-it.py", text)
        assert (tool.kind, tool.run.executor) == ("library", None)
        assert tool.run.script.code == text.encode()


class TestActions:
    ACTIONS = '__actions__ = {"roll-back": {"description": "R", "parameters": [{"name": "x", "type": "integer"}]}, "plain": {"description": "P"}}\n'

    @pytest.mark.parametrize(
        ("text", "first", "second"),
        [
            ("def roll_back(x): ...\ndef plain(y: str): ...\n", ("keywords", "roll_back"), ("keywords", "plain")),
            ("def main(action, x=1): ...\n", ("keywords", "main"), ("keywords", "main")),
            ("def main(x): ...\n", ("argv", ""), ("argv", "")),
            ("def plain(): ...\ndef main(*, action): ...\n", ("keywords", "main"), ("keywords", "plain")),
            ("def execute(params): ...\n", ("argv", ""), ("argv", "")),
        ],
    )
    def test_are_functions_of_their_name_or_told_to_main(self, text, first, second, load):
        found = load("ops/do-it.py", HEAD + self.ACTIONS + text)
        assert [entered(tool) for tool in found] == [first, second]
        assert [tool.run.action for tool in found] == ["roll-back", "plain"]

    def test_without_a_function_come_with_a_warning(self, load):
        warning = (
            ".ai/tools/ops/do-it.py:9: __actions__.{}: nothing runs the action, so a call of it does nothing; "
            "write def {}(…), or def main(action, …)"
        )
        tool, _ = load("ops/do-it.py", HEAD + self.ACTIONS + "def plain(): ...\n")
        assert warning.format("roll-back", "roll_back") in tool.warnings
        assert warning.format("plain", "plain") not in tool.warnings
        tool, other = load("ops/do-it.py", HEAD + self.ACTIONS + "from impl import roll_back, plain\n")
        assert [entered(tool), entered(other)] == [("keywords", "roll_back"), ("keywords", "plain")]
        assert not any("nothing runs" in text for text in tool.warnings)
        tool, _ = load("ops/do-it.py", HEAD + self.ACTIONS + "import sys\nprint(sys.argv)\n")
        assert not any("nothing runs" in text for text in tool.warnings)

    def test_take_what_their_function_takes_but_the_action(self, load):
        _, plain = load("ops/do-it.py", HEAD + self.ACTIONS + "def main(action: str, y: int = 1): ...\n")
        assert plain.parameters["properties"] == {"y": {"type": "integer", "default": 1}}
        _, plain = load("ops/do-it.py", HEAD + self.ACTIONS + "print(1)\n")
        assert plain.parameters == OPEN
