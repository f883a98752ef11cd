"""The Crib connects the parts and lets go of them."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolcrib import Call, Crib, Kind, SettingsError, ToolError, tool
from toolcrib.core.journal import MemoryJournal
from toolcrib.features.agent_classes.classes import BaseTool, ToolResult, create_json_schema
from toolcrib.infra.storage import MemoryStore


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Shout(BaseTool):
    name = "shout"
    description = "Say it louder."
    parameters = create_json_schema({"text": {"type": "string", "description": "What to say"}}, ["text"])

    async def execute(self, arguments):
        return ToolResult(tool_call_id="", output=arguments["text"].upper())


async def test_functions_tools_and_agent_side_tools_are_registered_alike(crib_of):
    crib = crib_of(add, Shout())
    crib.add(tool(name="sub")(lambda a, b: a - b))
    assert (await crib.call("add", a=1, b=2)).value == 3
    assert (await crib.call("shout", text="hey")).value == "HEY"
    assert (await crib.call("sub", a=3, b=1)).value == 2
    with pytest.raises(ToolError) as caught:
        crib.add(add)
    assert caught.value.kind is Kind.CONFLICT


def launchers() -> set[int]:
    """The processes of ours that are launchers."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == os.getpid():
            found.add(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes through procfs")
@pytest.mark.usefixtures("cold_launchers")
def test_closing_ends_the_launcher_whichever_tool_started_it(project):
    (project / "tools" / "double.py").write_text('def double(n: int) -> int:\n    """Double."""\n    return 2 * n\n')
    before = launchers()
    with Crib(project, grants={"*": ["shell.execute"]}) as crib:
        assert crib.call_sync("shell", command="echo hi").value["stdout"] == "hi\n"
        assert launchers() > before
    assert launchers() == before
    with Crib(project) as crib:
        assert crib.call_sync("double", n=4).value == 8
    assert launchers() == before


async def test_nothing_is_made_on_disk_before_it_is_needed(crib_of, project):
    crib = crib_of(add, project=project)
    assert len(crib.tools) == 6
    assert crib.explain("add", a=1, b=2).allowed
    assert not (project / ".toolcrib").exists()


async def test_a_store_and_a_journal_can_be_handed_in(crib_of, project):
    store, journal = MemoryStore(), MemoryJournal()

    @tool
    def many() -> str:
        """Say much."""
        return "x" * 1_000

    crib = crib_of(many, project=project, store=store, journal=journal, calls={"result_bytes": 100})
    result = await crib.call("many")
    assert store.keys("results/")
    assert next(journal.read())["id"] == result.meta["callId"]
    assert not (project / ".toolcrib").exists()


def test_a_project_that_is_no_folder_is_refused_with_the_cure(tmp_path):
    with pytest.raises(SettingsError, match="crib init"):
        Crib(tmp_path / "nowhere")


async def test_a_folder_of_tools_that_was_named_and_is_not_there_is_reported(crib_of, project):
    (project / "toolcrib.toml").write_text('catalog.folders = ["tolls"]\n')
    assert "tolls is not a folder" in crib_of(project=project).problems[0].message
    (project / "toolcrib.toml").write_text("")
    (project / "tools").rmdir()
    assert crib_of(project=project).problems == []


async def test_a_function_that_one_module_imports_from_another_is_one_tool(crib_of, project):
    (project / "one_module.py").write_text(
        'from toolcrib import tool\n@tool\ndef shared(n: int) -> int:\n    """Share."""\n    return n\n'
    )
    (project / "two_module.py").write_text("from one_module import shared\n")
    crib = crib_of(project=project, modules={"tools": ["one_module", "two_module"]})
    assert crib.problems == []
    assert (await crib.call("shared", n=1)).value == 1


async def test_what_a_function_imports_when_it_is_called_is_found(crib_of, project):
    (project / "late_helper.py").write_text("VALUE = 7\n")
    (project / "late_module.py").write_text(
        "from toolcrib import tool\n@tool\ndef late() -> int:\n"
        '    """Import late."""\n    from late_helper import VALUE\n    return VALUE\n'
    )
    assert (await crib_of(project=project, modules={"tools": ["late_module"]}).call("late")).value == 7


async def test_rules_in_a_module_of_tools_are_not_passed_over_in_silence(crib_of, project):
    (project / "ruly_module.py").write_text(
        "from toolcrib import SafetyRule\nrule = SafetyRule(name='no', forbidden_patterns=['x'])\n"
    )
    crib = crib_of(project=project, modules={"tools": ["ruly_module"]})
    assert "name it in modules.rules too" in crib.problems[0].message
    assert crib_of(project=project, modules={"tools": ["ruly_module"], "rules": ["ruly_module"]}).problems == []


async def test_a_default_rule_can_be_left_out_by_a_setting(crib_of):
    call = Call(name="nobody", arguments={"path": "/etc/passwd"})
    assert (await crib_of().call(call)).error.kind is Kind.BLOCKED
    assert (await crib_of(safety_rules={"off": ["sensitive_files"]}).call(call)).error.kind is Kind.NOT_FOUND
    with pytest.raises(SettingsError, match="no default rule is called 'sensitive'"):
        crib_of(safety_rules={"off": ["sensitive"]})


async def test_a_tool_that_cannot_be_prepared_is_answered_and_not_raised(crib_of):
    @tool(parameters={"type": "object", "properties": {"x": {"$ref": "https://example.com/schema"}}})
    def bad(x) -> int:
        """Be bad."""
        return 1

    with pytest.raises(ToolError, match="ref"):
        crib_of(bad)


@pytest.mark.parametrize(
    "path",
    [
        "toolcrib.toml",
        "tools/evil.py",
        "tools/deep/evil.py",
        "TOOLCRIB.toml",
        "./tools/../toolcrib.toml",
        "own_module.py",
        "own_helper.py",
        "own_package/evil.py",
        "__pycache__/own_module.cpython-311.pyc",
        "link/evil.py",
        "not_there_yet.PY",
        "deep/new/package/__init__.py",
    ],
)
async def test_a_tool_cannot_write_what_would_run_or_be_obeyed_later(crib_of, project, path):
    (project / "toolcrib.toml").write_text('modules.tools = ["own_module"]\nmodules.rules = ["own_package.rules"]\n')
    (project / "own_helper.py").write_text("VALUE = 1\n")
    (project / "own_module.py").write_text("import own_helper\n")
    (project / "own_package").mkdir()
    (project / "own_package" / "rules.py").write_text(
        "from toolcrib import AuthRule\nrule = AuthRule(['write_file', 'read_file'])\n"
    )
    (project / "link").symlink_to("tools")
    before = {file: file.read_bytes() for file in project.rglob("*") if file.is_file()}
    crib = crib_of(project=project)
    result = await crib.call("write_file", path=path, content="grants.'*' = ['*']")
    assert result.error.kind is Kind.BLOCKED, result
    assert "not for tools to change" in result.error.message
    assert {file: file.read_bytes() for file in before} == before
    assert (await crib.call("read_file", path="toolcrib.toml")).ok
    assert (await crib.call("write_file", path="notes/today.md", content="fine")).ok
    for name in ("own_module", "own_helper", "own_package", "own_package.rules"):
        sys.modules.pop(name, None)


async def test_a_file_in_the_project_hides_no_module_of_others(crib_of, project):
    (project / "json.py").write_text("raise SystemExit('hijacked')\n")
    (project / "plain_module.py").write_text(
        "import json\nfrom toolcrib import tool\n@tool\ndef dump(n: int) -> str:\n"
        '    """Write JSON."""\n    return json.dumps(n)\n'
    )
    crib = crib_of(project=project, modules={"tools": ["plain_module"]})
    assert crib.problems == []
    assert (await crib.call("dump", n=1)).value == "1"


async def test_an_address_that_fetch_would_refuse_is_refused_before_it_runs(crib_of):
    crib = crib_of(grants={"*": ["net.http"]})
    for url in ("http://127.0.0.1:1/", "http://[::1]/", "ftp://example.com/"):
        refusal = crib.explain("fetch", url=url).refusal
        result = await crib.call("fetch", url=url)
        assert refusal.gate == result.error.details["gate"] == "prepare"
        assert refusal.verdict.kind is result.error.kind


@pytest.mark.parametrize("arguments", [1, "x", [1], [("a", 1)]])
async def test_arguments_that_are_no_object_are_refused_and_never_raised(crib_of, arguments):
    result = await crib_of(add).call("add", arguments)
    assert result.error.kind is Kind.VALIDATION


def test_a_function_in_place_of_the_list_of_tools_is_told(tmp_path):
    with pytest.raises(SettingsError, match=r"write Crib\(tools=\[…\]\)"):
        Crib(tools=add)


async def test_what_a_file_prints_is_told_beside_its_value(crib_of, project):
    (project / "tools" / "chatty.py").write_text(
        'import sys\ndef chatty(n: int) -> int:\n    """Talk."""\n    print("out")\n'
        '    print("err", file=sys.stderr)\n    return n\n'
    )
    result = await crib_of(project=project).call("chatty", n=1)
    assert result.value == 1
    assert result.meta["stdout"] == "out\n"
    assert result.meta["stderr"] == "err\n"


async def test_a_workspace_may_have_any_name(crib_of, tmp_path):
    root = tmp_path / "secret-plans"
    root.mkdir()
    (root / "notes.md").write_text("hello")
    (root / "secrets.yaml").write_text("no")
    crib = crib_of(project=root)
    assert (await crib.call("list_files", path=".")).ok
    assert (await crib.call("read_file", path="notes.md")).value == "hello"
    assert (await crib.call("read_file", path="secrets.yaml")).error.kind is Kind.BLOCKED


def test_plain_code_may_call_from_several_threads(project):
    (project / "tools" / "double.py").write_text("def double(number: int) -> int:\n    return 2 * number\n")
    with Crib(project) as crib, ThreadPoolExecutor(4) as threads:
        results = threads.map(lambda number: crib.call_sync("double", number=number).value, range(12))
        assert list(results) == [2 * number for number in range(12)]


def test_an_unknown_provider_is_refused_with_those_that_are():
    with pytest.raises(ToolError, match="there is no provider 'foo'; use openai, openai-responses, gemini"):
        Crib(tools=[add]).export("foo")


def test_a_session_in_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ToolError, match="there is no mode 'sms'; use text or voice"):
        Crib(tools=[add]).session(mode="sms")


async def test_async_code_closes_the_loop_of_plain_calls_from_threads(project):
    """The check for leaks fails this test if the loop stays open."""
    (project / "tools").mkdir(exist_ok=True)
    (project / "tools" / "double.py").write_text("def double(number: int) -> int:\n    return number * 2\n")
    async with Crib(project) as crib:
        assert (await asyncio.to_thread(crib.call_sync, "double", number=21)).value == 42
