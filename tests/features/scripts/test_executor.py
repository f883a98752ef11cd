import pytest

from toolcrib import Kind, ToolError


@pytest.mark.spec("S3-60")
def test_a_library_is_listed_and_never_run(bench):
    tool = bench.tool("shared", None, kind="library")
    with pytest.raises(ToolError, match="shared is a library; it is listed and never run") as caught:
        bench.check(tool)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


def test_a_sink_is_written_to_and_not_called(bench):
    with pytest.raises(ToolError, match="file_sink is not directly invocable; use it as a sink"):
        bench.check(bench.tool("file_sink", "python", kind="sink"))


@pytest.mark.spec("S3-10", "S3-11")
async def test_what_nothing_runs_leaves_other_tools_alone(bench, tell):
    broken, good = bench.tool("broken", "no_such_runtime"), tell("good")
    with pytest.raises(ToolError) as caught:
        bench.check(broken)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert (await bench.value(good, a="1"))["words"] == ["--a", "1"]


async def test_an_edited_executor_counts_at_the_next_call_of_a_bound_tool(bench, context):
    old = bench.tool("base", None, kind="runtime", config={"command": "bash", "args": ["-c", "echo old"]}, requires=())
    tool = bench.tool(executor="base", requires={"shell.execute"})
    bound = bench.runner.bind(tool)
    assert (await bound.run({}, context(tool))).value == "old"
    bench.tools.remove(old)
    bench.tool("base", None, kind="runtime", config={"command": "bash", "args": ["-c", "echo new"]}, requires=())
    assert (await bound.run({}, context(tool))).value == "new"


async def test_a_tool_that_is_not_called_has_nothing_to_run_with(bench):
    with pytest.raises(ToolError, match="sample runs only in a call"):
        await bench.runner.bind(bench.tool(config={"command": "bash"})).run({}, None)
