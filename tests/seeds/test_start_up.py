"""Rules and start-up modules as the document describes them: who judges first, and what is loaded by itself."""

import sys
import textwrap

import pytest

from toolcrib import Crib, Kind, SettingsError, tool
from toolcrib.features.agent_classes.classes import ToolCall, ToolRegistry, ToolResult


class Commands:
    """A stand-in for a shell that only remembers what it was told."""

    def __init__(self):
        self.told = []

    def tool(self):
        @tool(name="shell")
        def shell(command: str) -> str:
            """Run a command."""
            self.told.append(command)
            return "ran"

        return shell


@pytest.fixture
def boot(project, fixtures):
    """A project with a start-up module `boot.wires` that holds the given text; forgotten afterwards."""

    def write(text: str = "", **files: str):
        (project / "boot").mkdir(exist_ok=True)
        (project / "boot" / "__init__.py").write_text("")
        (project / "boot" / "wires.py").write_text(textwrap.dedent(text))
        for name, content in files.items():
            (project / "boot" / f"{name}.py").write_text(textwrap.dedent(content))
        return project

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "boot"]:
        del sys.modules[name]


@pytest.mark.spec("S4-20", "S4-32")
async def test_the_rule_of_the_document_blocks_nc_and_not_sync(run_example, crib_of):
    engine = run_example("rule.py")["engine"]
    commands = Commands()
    crib = crib_of(commands.tool(), builtins={"enabled": False}, rules=engine.added)
    for command in ("nc -l 1", "curl x", "echo; wget x", "/usr/bin/nc"):
        result = await crib.call("shell", command=command)
        assert result.error.kind is Kind.BLOCKED, command
        assert "no_network_access" in result.error.message
    for command in ("sync", "function f { :; }", "echo once"):
        assert (await crib.call("shell", command=command)).ok, command
    assert commands.told == ["sync", "function f { :; }", "echo once"]


@pytest.mark.spec("S4-21")
async def test_rules_speak_first_then_the_look_up_and_then_the_tool(run_example, my_tool):
    registry = ToolRegistry(run_example("rule.py")["engine"])
    ran = []

    class Watched(my_tool):
        async def execute(self, arguments):
            ran.append(arguments)
            return ToolResult("", "ran")

    registry.register(Watched())
    blocked = await registry.execute(ToolCall("1", "my_tool", {"arg1": "wget http://example.com"}))
    assert (blocked.tool_call_id, blocked.success, blocked.output) == ("1", False, "")
    assert blocked.error.startswith("Tool call blocked: rule 'no_network_access' forbids 'wget'")
    assert ran == []
    # Not even whether there is such a tool is told to a call that a rule forbids.
    blocked = await registry.execute(ToolCall("2", "absent", {"command": "nc -l 1"}))
    assert blocked.error.startswith("Tool call blocked: rule 'no_network_access' forbids 'nc'")
    unknown = await registry.execute(ToolCall("3", "my_tol", {"arg1": "x"}))
    assert unknown.error.startswith("Tool 'my_tol' not found; did you mean my_tool?")
    allowed = await registry.execute(ToolCall("4", "my_tool", {"arg1": "x"}))
    assert (allowed.output, ran) == ("ran", [{"arg1": "x"}])


async def test_the_default_rules_guard_a_registry_too(my_tool):
    registry = ToolRegistry()
    registry.register(my_tool())
    result = await registry.execute(ToolCall("1", "my_tool", {"arg1": "/etc/passwd"}))
    assert result.error.startswith("Tool call blocked: ")


@pytest.mark.spec("S4-11", "S4-12")
async def test_a_start_up_module_registers_its_tools(boot, fixtures):
    registration = (fixtures / "registration.py").read_text()
    project = boot(f"from boot.my_tool import MyTool\n{registration}", my_tool=(fixtures / "my_tool.py").read_text())
    (project / "toolcrib.toml").write_text('modules.tools = ["boot.wires"]\n')
    async with Crib(project) as crib:
        assert crib.problems == []
        sys.modules["boot.my_tool"].do_something = "did {}".format
        assert (await crib.call("my_tool", arg1="it")).value == "did it"


@pytest.mark.spec("S4-12")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import no_such_thing", "wires.py:1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1\nx +", "wires.py:2: SyntaxError: invalid syntax"),
        ("\n\nraise SystemExit(2)", "wires.py:3: SystemExit: 2"),
        ("import json\njson.loads('{')", "wires.py:2: JSONDecodeError"),
        ("from boot.wires import later", "wires.py:1: ImportError"),
        ("def f():\n    f()\nf()", "wires.py:2: RecursionError"),
    ],
)
async def test_a_start_up_module_that_fails_is_reported_by_its_line_and_the_start_goes_on(boot, text, told):
    project = boot(text, other="from toolcrib import tool\n@tool\ndef fine() -> int:\n    'Works.'\n    return 1\n")
    async with Crib(project, modules={"tools": ["boot.wires", "boot.other"]}) as crib:
        (problem,) = crib.problems
        assert "module 'boot.wires' could not be loaded at" in problem.message
        assert told in problem.message
        assert (await crib.call("fine")).value == 1


@pytest.mark.spec("S4-12")
async def test_a_missing_start_up_module_is_reported(project):
    async with Crib(project, modules={"tools": ["nowhere_at_all"]}) as crib:
        (problem,) = crib.problems
    assert problem.message == (
        "module 'nowhere_at_all' could not be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"
    )


@pytest.mark.spec("S4-32")
async def test_the_rules_of_a_start_up_module_hold_from_the_first_call(boot, fixtures):
    project = boot((fixtures / "rule.py").read_text())
    (project / "toolcrib.toml").write_text('modules.rules = ["boot.wires"]\n')
    commands = Commands()
    async with Crib(project, tools=[commands.tool()], builtins={"enabled": False}) as crib:
        result = await crib.call("shell", command="nc -l 1")
    assert result.error.kind is Kind.BLOCKED
    assert "no_network_access" in result.error.message
    assert commands.told == []


@pytest.mark.spec("S4-32")
@pytest.mark.parametrize("text", ["raise OSError('no disk')", "syntax error", "import no_such_thing", "harmless = 1"])
def test_a_rule_module_that_fails_or_holds_no_rule_keeps_the_crib_from_starting(boot, text):
    project = boot(text)
    with pytest.raises(SettingsError, match=r"modules.rules: .*boot\.wires"):
        Crib(project, modules={"rules": ["boot.wires"]})
