"""What a program may touch, seen from inside of it."""

import pytest


def bash(bench, line, **more):
    return bench.tool(config={"command": "bash", "args": ["-c", line]}, **more)


@pytest.fixture
async def walled(bench):
    await bench.sandbox.learn()
    if "fs" not in bench.sandbox.report("program")["guarantees"]:
        pytest.skip("this machine cannot keep files closed")
    return bench


@pytest.mark.parametrize("path", ["{work}/note", "/etc/shadow", "{project}/secret"])
async def test_a_program_reads_nothing_that_it_does_not_declare(walled, path):
    (walled.workspace / "note").write_text("x")
    (walled.workspace.parent / "secret").write_text("x")
    path = path.format(work=walled.workspace, project=walled.workspace.parent)
    outcome = await walled.call(bash(walled, f"cat '{path}'"))
    assert "Permission denied" in outcome.error.message or "No such file" in outcome.error.message


async def test_a_program_reads_and_writes_the_workspace_where_it_declares_so(walled):
    (walled.workspace / "note").write_text("x")
    line = f"cat '{walled.workspace}/note' && echo y > '{walled.workspace}/made'"
    assert (await walled.call(bash(walled, line, requires={"shell.execute", "fs.read"}))).error is not None
    assert await walled.value(bash(walled, line, requires={"shell.execute", "fs.read", "fs.write"})) == "x"
    assert (walled.workspace / "made").read_text() == "y\n"


async def test_a_program_cannot_change_its_own_file_or_its_neighbours(walled):
    tool = walled.file("greet.sh", "echo evil >> $0", "bash", language="bash", requires={"shell.execute", "fs.write"})
    assert (await walled.call(tool)).error is not None
    assert (walled.folder / "greet.sh").read_text() == "echo evil >> $0"


async def test_a_node_script_without_the_capability_starts_no_program(walled):
    code = "require('node:child_process').execFileSync('/bin/true'); console.log('started')"
    tool = walled.file("starter.js", code, "node_runtime", language="javascript")
    assert (await walled.call(tool)).error is not None
    allowed = walled.file("starter.js", code, "node_runtime", language="javascript", requires={"shell.execute"})
    assert await walled.value(allowed) == "started"


async def test_a_program_without_a_network_reaches_no_host(walled):
    line = "exec 3<>/dev/tcp/127.0.0.1/1 || echo refused"
    assert await walled.value(bash(walled, line)) == "refused"
