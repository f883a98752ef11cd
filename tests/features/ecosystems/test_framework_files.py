"""Files of other frameworks are tools as they are; small stand-ins for the frameworks lie beside them, so that nothing is installed."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest

from toolcrib import Crib, Tool, ToolError
from toolcrib.features.ecosystems.format import FrameworkFile
from toolcrib.model.tool import Chained

# Each hides the function that it is given, as the real ones do in one version or another.
STAND_INS = {
    "langchain_core/tools.py": """
        class Made:
            def __init__(self, function): self._hidden = lambda: function
        def tool(*given, **words):
            return Made(given[0]) if given and callable(given[0]) else Made
        class BaseTool:
            def __init__(self, **fields): self.__dict__.update(fields)
        class StructuredTool:
            from_function = classmethod(lambda cls, *_, **__: cls())
        class ToolException(Exception): ...
        class InjectedToolArg: ...
    """,
    "fastmcp/__init__.py": """
        class Context: ...
        class FastMCP:
            def __init__(self, *_, **__): ...
            def tool(self, *given, **words):
                return object() if given and callable(given[0]) else lambda function: object()
            def run(self): raise SystemExit("a server was started")
    """,
    "smolagents/__init__.py": """
        class Tool:
            def __init__(self, *_, **__): self.is_initialized = False
            def setup(self): self.is_initialized = True
        def tool(function): return Tool()
    """,
    "agents/__init__.py": """
        class RunContextWrapper: __class_getitem__ = classmethod(lambda cls, _: cls)
        def function_tool(*given, **words):
            return object() if given else lambda function: object()
    """,
    "mcp/__init__.py": "",
    "mcp/types.py": """
        class Tool:
            def __init__(self, **fields): self.__dict__.update(fields)
        class TextContent(Tool): ...
    """,
    "mcp/server.py": """
        class Server:
            def __init__(self, name): ...
            def list_tools(self): return lambda function: None
            call_tool = list_tools
    """,
    "pydantic_ai/__init__.py": """
        class RunContext: __class_getitem__ = classmethod(lambda cls, _: cls)
        class ModelRetry(Exception): ...
        class Agent:
            def __init__(self, *_, **__): ...
            def tool(self, function): return function
            tool_plain = tool
        class Tool:
            def __init__(self, *_, **__): ...
        class FunctionToolset(Agent): ...
    """,
}


def project_of(folder: Path, **files: str) -> Path:
    """A project whose tools are these files, with the stand-ins beside them."""
    for name, text in {**STAND_INS, **{name.replace("__", "."): text for name, text in files.items()}}.items():
        path = folder / "tools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch() if path.parent.name != "tools" else None
        path.write_text(dedent(text), "utf-8")
    return folder


@pytest.fixture
def crib_of(tmp_path):
    """Open a Crib over files."""
    with ExitStack() as opened:
        yield lambda **files: opened.enter_context(Crib(project_of(tmp_path, **files)))


def own(crib: Crib) -> dict[str, Tool]:
    return {entry.tool.name: entry.tool for entry in crib.entries if entry.tool.bundle == "tools"}


def read(text: str, name: str = "helper.py") -> list[Tool]:
    return list(FrameworkFile().read(Path("tools") / name, dedent(text).encode()))


def refusal(text: str) -> str:
    with pytest.raises(ToolError) as caught:
        read(text)
    return caught.value.message


def value_of(crib: Crib, name: str, /, **arguments: object) -> object:
    result = crib.call_sync(name, arguments)
    assert result.error is None, result.error
    return result.value


def error_of(crib: Crib, name: str, /, **arguments: object) -> str:
    result = crib.call_sync(name, arguments)
    assert result.error is not None, result.value
    return result.error.message


def test_functions_below_a_decorator_run_though_the_framework_hides_them(crib_of):
    crib = crib_of(
        words__py='''
        import functools
        from langchain_core.tools import tool

        def twice(function):
            @functools.wraps(function)
            def both(*given, **named): return function(*given, **named) * 2
            return both

        @tool
        @twice
        def shout(text: str) -> str:
            """Write in capitals."""
            return text.upper()

        @tool("quiet-words", return_direct=True)
        async def quiet(text: str, times: int = 1) -> str:
            """Write in small letters."""
            return text.lower() * times
        '''
    )
    assert own(crib).keys() == {"shout", "quiet-words"}
    assert value_of(crib, "shout", text="a") == "AA"
    assert value_of(crib, "quiet-words", text="A", times=3) == "aaa"
    assert "times" in error_of(crib, "quiet-words", text="A", times="x")


def test_nothing_of_a_file_runs_before_it_is_called(crib_of, tmp_path):
    crib = crib_of(
        made__py=f'''
        from langchain_core.tools import tool
        open({str(tmp_path / "ran")!r}, "w").close()
        @tool
        def look() -> str:
            """Look."""
            return "seen"
        '''
    )
    assert own(crib).keys() == {"look"}
    assert not (tmp_path / "ran").exists()


def test_the_object_that_the_file_makes_answers_with_its_own_state(crib_of):
    crib = crib_of(
        lookup__py="""
        from langchain_core.tools import BaseTool

        class Lookup(BaseTool):
            name: str = "lookup"
            description: str = "Price of an article."
            prices: dict

            def _run(self, article: str, run_manager=None) -> float:
                return self.prices[article]

        tools = [Lookup(prices={"A": 2.5})]
        tools[0].prices["B"] = 4.0
        """
    )
    assert own(crib)["lookup"].parameters["required"] == ["article"]
    assert value_of(crib, "lookup", article="B") == 4.0


def test_a_class_that_cannot_be_made_is_refused_with_what_is_missing():
    message = refusal(
        """
        from langchain_core.tools import BaseTool
        class Lookup(BaseTool):
            name: str = "lookup"
            description: str = "Price of an article."
            prices: dict
            def _run(self, article: str) -> float:
                return self.prices[article]
        """
    )
    assert message == (
        "tools/helper.py:3: Lookup is made with prices, and the file makes none; "
        "add a line such as lookup = Lookup(prices=…), or give them defaults"
    )


def test_two_objects_of_one_name_are_told_apart_or_refused():
    message = refusal(
        """
        from smolagents import Tool
        class Shout(Tool):
            name = "shout"
            description = "Shout."
            inputs = {"text": {"type": "string", "description": "What."}}
            output_type = "string"
            def forward(self, text):
                return text
        first = Shout()
        second = Shout()
        """
    )
    assert message == "tools/helper.py:11: there is another tool shout; name them apart"


def test_a_class_of_smolagents_is_set_up_before_its_first_call(crib_of):
    crib = crib_of(
        grade__py="""
        from smolagents import Tool
        class Grade(Tool):
            name = "grade"
            description = "Turn points into a letter."
            inputs = {
                "points": {"type": "number", "description": "Points."},
                "bonus": {"type": "number", "description": "More.", "nullable": True},
            }
            output_type = "string"
            def setup(self):
                self.letters = "AB"
                self.is_initialized = True
            def forward(self, points, bonus=None):
                return self.letters[0] if points + (bonus or 0) > 50 else self.letters[1]
        """
    )
    assert own(crib)["grade"].parameters == {
        "type": "object",
        "properties": {
            "points": {"type": "number", "description": "Points."},
            "bonus": {"type": ["number", "null"], "description": "More."},
        },
        "required": ["points"],
        "additionalProperties": False,
    }
    assert value_of(crib, "grade", points=50) == "B"
    assert value_of(crib, "grade", points=50, bonus=1) == "A"


def test_a_server_module_is_not_started_and_what_its_context_is_told_is_dropped(crib_of):
    crib = crib_of(
        server__py='''
        from fastmcp import Context, FastMCP
        mcp = FastMCP("stock")

        @mcp.tool(name="level", annotations={"readOnlyHint": True})
        async def stock_level(item: str, ctx: Context, least: int = 5) -> dict:
            """How many there are."""
            await ctx.info("looking")
            await ctx.report_progress(1, 2)
            return {"item": item, "low": least > 3}

        def double(number: int) -> int:
            """Double it."""
            return number * 2

        mcp.tool(double, name="twice")

        if __name__ == "__main__":
            mcp.run()
        '''
    )
    tools = own(crib)
    assert tools.keys() == {"level", "twice"}
    assert list(tools["level"].parameters["properties"]) == ["item", "least"]
    assert tools["level"].side_effects == "read_only"
    assert value_of(crib, "level", item="lamp") == {"item": "lamp", "low": True}
    assert value_of(crib, "twice", number=4) == 8
    assert "ctx" in error_of(crib, "level", item="lamp", ctx={})


@pytest.mark.parametrize(
    ("head", "parameter", "use", "reason"),
    [
        (
            "from langchain_core.tools import InjectedToolArg, tool\nfrom typing import Annotated\n@tool",
            "user: Annotated[str, InjectedToolArg]",
            "user",
            "user (InjectedToolArg) is injected by LangChain",
        ),
        (
            "from fastmcp import Context, FastMCP\nmcp = FastMCP('x')\n@mcp.tool",
            "ctx: Context",
            "ctx.sample('x')",
            "ctx (Context) is injected by FastMCP, and work uses ctx.sample",
        ),
        (
            "from agents import RunContextWrapper, function_tool\n@function_tool",
            "wrapper: RunContextWrapper[int]",
            "wrapper.context",
            "wrapper (RunContextWrapper) is injected by openai-agents, and work uses wrapper.context",
        ),
        (
            "from pydantic_ai import Agent, RunContext\nagent = Agent('test')\n@agent.tool",
            "ctx: RunContext[int]",
            "ctx.deps",
            "ctx (RunContext[int]) is injected by pydantic-ai, and work uses ctx.deps",
        ),
    ],
)
def test_what_a_framework_injects_no_model_gives(head, parameter, use, reason):
    message = refusal(f"{head}\ndef work({parameter}, limit: int) -> str:\n    'Work.'\n    return {use}\n")
    assert reason in message
    assert "no model may give it" in message
    (tool,) = read(f"{head}\ndef work({parameter}, limit: int) -> str:\n    'Work.'\n    return ''\n")
    assert list(tool.parameters["properties"]) == ["limit"]  # type: ignore[call-overload]


def test_methods_of_open_webui_are_tools_and_one_that_needs_its_user_is_a_problem(crib_of):
    crib = crib_of(
        names__py='''
        """
        title: Names
        """
        class Tools:
            class Valves:
                end = "."
            def initials(self, name: str, __event_emitter__=None) -> str:
                """
                Initials of a name.
                :param name: The name.
                """
                __event_emitter__({"type": "status"})
                return "".join(part[0] for part in name.split()) + self.valves.end
            def me(self, __user__: dict) -> str:
                """Who asks."""
                return __user__["name"]
            def _hidden(self): ...
        '''
    )
    assert own(crib).keys() == {"initials"}
    assert value_of(crib, "initials", name="Ada Lovelace") == "AL."
    assert [problem.message.partition(": ")[2] for problem in crib.problems] == [
        (
            "__user__ (__user__) is injected by Open WebUI; no model may give it and nothing here can, "
            "so take it out of me, or give it a default"
        )
    ]
    assert "__user__" in error_of(crib, "me", __user__={"name": "root"})


SERVER = """
from mcp import types
from mcp.server import Server
from pydantic import BaseModel
server = Server("sums")
class Pair(BaseModel):
    a: int
    b: int
SCHEMA = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
@server.list_tools()
async def tools_of_mine() -> list[types.Tool]:
    return LISTED
@server.call_tool()
async def dispatch(name: str, arguments: dict):
    if name == "half":
        return [types.TextContent(type="text", text=str(arguments["x"] / 2))]
    if name == "both":
        return [types.TextContent(type="text", text="a"), types.TextContent(type="text", text="b")]
    raise ValueError(f"no tool {name}")
async def main():
    raise SystemExit("a server was started")
if __name__ == "__main__":
    main()
"""


def test_tools_that_a_low_level_server_writes_out_are_answered_by_its_one_function(crib_of):
    listed = """[
        types.Tool(name="half", description="Half of it", inputSchema=SCHEMA),
        types.Tool(name="both", inputSchema={"type": "object"}),
        types.Tool(name="none", description="Nothing", inputSchema={"type": "object"}),
    ]"""
    # The stand-in lies beside the file, and the real package comes before it.
    first = "import sys\nsys.path.insert(0, __file__.rpartition('/')[0])\n"
    without_pydantic = SERVER.replace("from pydantic import BaseModel", "class BaseModel: ...")
    crib = crib_of(sums__py=first + without_pydantic.replace("LISTED", listed))
    assert own(crib)["half"].parameters["required"] == ["x"]
    assert value_of(crib, "half", x=3) == "1.5"
    assert value_of(crib, "both") == ["a", "b"]
    assert "no tool none" in error_of(crib, "none")
    assert "x is missing" in error_of(crib, "half")


def test_a_low_level_server_may_take_its_schemas_from_pydantic():
    (tool,) = read(SERVER.replace("LISTED", '[types.Tool(name="sum", inputSchema=Pair.model_json_schema())]'))
    assert (tool.name, tool.parameters["required"]) == ("sum", ["a", "b"])
    assert isinstance(tool.run, Chained)
    assert tool.run.script is not None
    assert tool.run.script.packages == ("mcp<2", "pydantic")


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ("[make(n) for n in range(3)]", "is not one list of tools that is written out"),
        ("[types.Tool(name=NAME, inputSchema={})]", "what it says of a tool is computed"),
        ('[types.Tool(name="x", inputSchema=load("x.json"))]', "what it says of a tool is computed"),
    ],
)
def test_a_low_level_server_whose_tools_are_computed_is_refused_with_line_and_cure(listed, reason):
    message = refusal(SERVER.replace("LISTED", listed))
    assert reason in message
    assert "inputSchema={…}) with literals, or each as a function below @mcp.tool() of FastMCP" in message
    assert re.match(r"\S+\.py:\d+: ", message)


def test_what_an_author_raises_for_the_model_arrives_in_their_words(crib_of):
    crib = crib_of(
        ship__py='''
        from langchain_core.tools import ToolException, tool
        @tool
        def ship(country: str) -> str:
            """Ship."""
            raise ToolException(f"we do not ship to {country}")
        ''',
        key__py='''
        from pydantic_ai import Agent
        raise RuntimeError("OPENAI_API_KEY is not set")
        agent = Agent("openai")
        @agent.tool_plain
        def vat(net: float) -> float:
            """Add VAT."""
            return net
        ''',
    )
    assert error_of(crib, "ship", country="AQ") == "we do not ship to AQ"
    assert error_of(crib, "vat", net=1) == "key.py cannot be loaded: RuntimeError: OPENAI_API_KEY is not set"


def test_a_default_that_is_a_field_means_its_default(crib_of):
    pytest.importorskip("pydantic")
    crib = crib_of(
        many__py='''
        from fastmcp import FastMCP
        from pydantic import Field
        mcp = FastMCP("x")
        @mcp.tool
        def many(text: str = Field(description="What"), times: int = Field(default=2, ge=1), more: list[str] = Field(default_factory=list)) -> str:
            """Repeat."""
            return text * times + "".join(more)
        '''
    )
    assert own(crib)["many"].parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What"},
            "times": {"type": "integer", "minimum": 1, "default": 2},
            "more": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert value_of(crib, "many", text="a") == "aa"
    assert value_of(crib, "many", text="a", times=1, more=["b"]) == "ab"
    assert "times" in error_of(crib, "many", text="a", times=0)


def test_content_and_artifact_gives_the_content(crib_of):
    crib = crib_of(
        pair__py='''
        from langchain_core.tools import tool
        @tool(response_format="content_and_artifact")
        def pair(count: int):
            """Count."""
            return f"{count} numbers", list(range(count))
        '''
    )
    assert value_of(crib, "pair", count=2) == "2 numbers"


def test_a_module_that_a_later_version_dropped_is_cured_by_a_pin(crib_of):
    crib = crib_of(
        bmi__py='''
        from mcp.server.fastmcp import FastMCP
        mcp = FastMCP("bmi")
        @mcp.tool()
        def bmi(kg: float) -> float:
            """BMI."""
            return kg
        ''',
        **{"mcp/server.py": ""},
    )
    message = error_of(crib, "bmi", kg=81)
    assert "mcp.server" in message
    assert "pin mcp<2 in a block '# /// script' of the file, then run: crib prepare bmi" in message


@pytest.mark.parametrize(
    ("head", "packages"),
    [
        ("from langchain_core.tools import tool\nimport pydantic\n", ("langchain-core", "pydantic")),
        ("from mcp.server.fastmcp import FastMCP\nfrom langchain.tools import tool\n", ("langchain", "mcp<2")),
        ("# /// script\n# dependencies = []\n# ///\nfrom langchain_core.tools import tool\n", ()),
    ],
)
def test_a_file_that_declares_no_packages_needs_those_of_its_frameworks(head, packages):
    (tool,) = read(f"{head}@tool\ndef work() -> str:\n    'Work.'\n")
    assert isinstance(tool.run, Chained)
    assert tool.run.script is not None
    assert tool.run.script.packages == packages


def test_the_head_of_an_open_webui_file_lists_its_packages():
    head = '"""\ntitle: A\nrequirements: httpx, yfinance>=0.2\n"""\nimport pydantic\n'
    (tool,) = read(f"{head}class Tools:\n    def work(self) -> str:\n        'Work.'\n")
    assert isinstance(tool.run, Chained)
    assert tool.run.script is not None
    assert tool.run.script.packages == ("httpx", "pydantic", "yfinance>=0.2")


def test_a_framework_that_is_missing_is_cured_by_prepare(tmp_path):
    (tmp_path / "tools").mkdir()
    text = "from smolagents import tool\n@tool\ndef work() -> str:\n    'Work.'\n"
    (tmp_path / "tools" / "a.py").write_text(text)
    with Crib(tmp_path) as crib:
        message = error_of(crib, "work")
    assert "run: crib prepare work (it installs smolagents;" in message


def test_tools_that_only_running_code_shows_are_refused_with_where_they_are():
    message = refusal(
        """
        from fastmcp import FastMCP
        def make_server():
            mcp = FastMCP("x")
            @mcp.tool
            def inner() -> str:
                'Inner.'
            return mcp
        """
    )
    assert message == (
        "tools/helper.py:3: its tools are made inside of make_server, so only a call would show them; move them out of it"
    )


def test_a_tool_class_inside_of_a_function_is_refused_with_where_it_is():
    message = refusal(
        """
        from langchain_core.tools import BaseTool
        def make_tool(name: str):
            class Inner(BaseTool):
                name: str = "inner"
                def _run(self, text: str) -> str:
                    return text
            return Inner()
        """
    )
    assert message.startswith(
        "tools/helper.py:3: its tools are made inside of make_tool, so only a call would show them"
    )


def test_a_function_that_only_uses_a_framework_is_left_to_the_reader_of_plain_files(crib_of):
    crib = crib_of(
        plain__py='''
        def plain(text: str) -> str:
            """Use one inside."""
            import langchain_core.tools
            return text
        '''
    )
    assert value_of(crib, "plain", text="a") == "a"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("is_enabled=False", "is switched off in the file (is_enabled=False)"),
        ("is_enabled=lambda *_: True", "is_enabled of work decides at run time whether it is a tool; take it out"),
        ("name_override=make()", "name_override of work is computed; write it as a text"),
    ],
)
def test_what_is_switched_off_or_computed_is_refused(words, reason):
    text = f"from agents import function_tool\n@function_tool({words})\ndef work() -> str:\n    'Work.'\n"
    assert reason in refusal(text)


@pytest.mark.parametrize(
    ("words", "asks"), [("", False), ("needs_approval=True", True), ("needs_approval=decide", True)]
)
def test_a_tool_that_asks_for_approval_asks_for_confirmation(words, asks):
    (tool,) = read(f"from agents import function_tool\n@function_tool({words})\ndef work() -> str:\n    'Work.'\n")
    assert tool.requires_confirmation is asks


class TestDefinitions:
    FUNCTION = "def find(order, limit=3):\n    return [order] * limit\n"

    def test_functions_answer_the_definitions_beside_them(self, crib_of):
        definition = {"name": "find", "description": "Find.", "parameters": {"type": "OBJECT", "properties": {
            "order": {"type": "STRING"}, "limit": {"type": "INTEGER", "nullable": True}}, "required": ["order"]}}  # fmt: skip
        crib = crib_of(orders__py=self.FUNCTION, orders__json=json.dumps({"function_declarations": [definition]}))
        assert own(crib)["find"].parameters["properties"]["limit"] == {"type": ["integer", "null"]}  # type: ignore[index]
        assert value_of(crib, "find", order="A", limit=2) == ["A", "A"]
        assert crib.problems == []

    def test_an_edit_of_the_functions_is_seen_at_the_next_call(self, crib_of, tmp_path):
        definition = {"type": "function", "name": "find", "parameters": {"type": "object", "properties": {"order": {}}}}
        crib = crib_of(orders__py=self.FUNCTION, orders__json=json.dumps([definition]))
        assert value_of(crib, "find", order="A") == ["A", "A", "A"]
        (tmp_path / "tools" / "orders.py").write_text("def find(order):\n    return 'other'\n")
        assert value_of(crib, "find", order="A") == "other"
        (tmp_path / "tools" / "orders.py").unlink()
        assert "write def find(…) in orders.py beside it" in error_of(crib, "find", order="A")

    def test_a_function_that_takes_a_dict_gets_all_of_it(self, crib_of):
        definition = {"name": "swap", "input_schema": {"type": "object", "properties": {"from": {"type": "string"}}}}
        text = "def swap(tool_input: dict):\n    return tool_input['from']\n"
        crib = crib_of(money__py=text, money__json=json.dumps({"tools": [definition]}))
        assert value_of(crib, "swap", **{"from": "EUR"}) == "EUR"

    def test_definitions_inside_of_the_file_name_its_functions(self, crib_of):
        crib = crib_of(
            loop__py="""
            TOOLS = [{"type": "function", "function": {"name": "area", "description": "Area.", "parameters": {
                "type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]}}}]
            def area(side):
                return side * side
            def run_conversation(prompt):
                raise SystemExit
            """
        )
        assert own(crib).keys() == {"area"}
        assert value_of(crib, "area", side=3) == 9

    def test_what_differs_from_its_function_is_refused(self, crib_of):
        definition = {"name": "find", "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}}}
        crib = crib_of(orders__py=self.FUNCTION, orders__json=json.dumps([definition]))
        assert own(crib) == {}
        assert "find does not take number; find needs order, which the definition does not have" in error_of(
            crib, "find"
        )


@pytest.mark.parametrize(
    "text",
    [
        "from langchain_core.tools import tool\n" + "@tool\n" * 2_000 + "def a(): 'A.'\n",
        "from langchain_core.tools import tool\nx = " + "(" * 90 + "1" + ")" * 90 + "\n@tool\ndef a(x: x): 'A.'\n",
        "from fastmcp import FastMCP\n"
        + "\n".join(f"m{n} = m{n + 1}" for n in range(500))
        + "\n@m0.tool\ndef a(): 'A.'\n",
        "from langchain_core.tools import BaseTool\nclass A(B): ...\nclass B(A, BaseTool):\n    def _run(self): ...\n",
        "from pydantic_ai import Agent\na = Agent(tools=a)\nb = Agent(tools=[" + "a," * 5_000 + "])\n",
        "from smolagents import Tool\nclass A(Tool):\n    inputs = {'a': {'type': 1}}\n    def forward(self, a): ...\n",
    ],
)
def test_hostile_files_are_read_or_refused_within_bounds(text):
    problem = None
    try:
        read(text)
    except ToolError as error:
        problem = error
    assert problem is None or problem.message.startswith("tools/helper.py:")
