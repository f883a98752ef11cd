import asyncio
import contextlib
import sys
from dataclasses import replace

import pytest

from toolcrib import Kind, Result, ToolError
from toolcrib.infra.egress.client import Egress

GREET = 'def main(name: str = "World") -> str:\n    return f"Hello, {name}!"\n'


def python(bench, code, **more):
    facts = {"language": "python", "convention": "keywords", **more}
    return bench.file("hello_world.py", code, facts.pop("executor", "python_runtime"), **facts)


@pytest.mark.spec("S3-11", "S3-58")
@pytest.mark.parametrize("executor", ["python_runtime", "python"])
async def test_a_python_file_is_called_with_its_arguments(bench, executor):
    tool = python(bench, GREET, executor=executor)
    assert await bench.value(tool) == "Hello, World!"
    assert await bench.value(tool, name="Ann") == "Hello, Ann!"


async def test_the_bytes_that_were_read_are_those_that_run(bench):
    tool = python(bench, GREET)
    (bench.folder / "hello_world.py").write_text("raise SystemExit('another file')")
    assert await bench.value(tool, name="Ann") == "Hello, Ann!"


async def test_an_entry_may_take_everything_at_once_beside_the_workspace(bench):
    code = "def execute(params, project_path): return [params, project_path]"
    tool = python(bench, code, convention="params", entry="execute")
    assert await bench.value(tool, a=1) == [{"a": 1}, str(bench.workspace)]


@pytest.mark.spec("S3-61")
async def test_a_file_that_reads_its_own_words_answers_by_printing(bench):
    code = "import sys\nprint(sys.argv[1:])"
    tool = python(bench, code, convention="argv", action="deploy", config={"args": ["-v"]})
    assert await bench.value(tool, name="Ann", force=True) == "['-v', 'deploy', '--name', 'Ann', '--force']"


async def test_a_file_that_prints_has_failed_by_its_exit_code(bench):
    tool = python(bench, "import sys; sys.exit('no such cluster')", convention="argv")
    outcome = await bench.call(tool)
    assert outcome.error.message == "hello_world ended with exit code 1: no such cluster"


async def test_variables_of_the_config_reach_a_python_file(bench):
    bench.variables["hello_world", "TOKEN"] = "abcd-1234"
    code = "import os\ndef main(who): return [os.environ.get(name) for name in ('A', 'TOKEN', 'HOST')]"
    parameters = {"type": "object", "properties": {"who": {"type": "string"}}}
    config = {"env": {"A": "for {who}", "TOKEN": "${TOKEN}"}}
    assert await bench.value(python(bench, code, config=config, parameters=parameters), who="Ann") == [
        "for Ann",
        "abcd-1234",
        None,
    ]


async def test_what_a_python_file_says_is_hidden_where_it_holds_a_variable(bench):
    bench.variables["hello_world", "TOKEN"] = "abcd-1234"
    code = "import os, sys\ndef main():\n    print(os.environ['TOKEN'], file=sys.stderr)\n    return 1"
    outcome = await bench.call(python(bench, code, config={"env": ["TOKEN"]}))
    assert outcome.meta["stderr"] == "***\n"


async def test_a_python_runtime_of_the_project_takes_the_place_of_ours(bench):
    bench.tool("python_runtime", None, kind="runtime", config={"command": "python", "args": ["-X", "dev"]}, requires=())
    code = "import sys\nprint(sys.flags.dev_mode, sys.argv[1:])"
    assert await bench.value(python(bench, code), name="Ann") == "True ['--name', 'Ann']"


async def test_a_command_of_its_own_makes_it_a_program_like_any_other(bench):
    config = {"command": "bash", "args": ["-c", "echo not python", "bash"]}
    with pytest.raises(ToolError, match="starts a command of its own"):
        bench.check(python(bench, GREET, config=config))
    assert await bench.value(python(bench, GREET, config=config, requires={"shell.execute"})) == "not python"


def test_a_file_whose_packages_are_not_installed_is_refused_with_the_cure(bench):
    code = f'# /// script\n# dependencies = ["left-pad>=1.0"]\n# ///\n{GREET}'
    with pytest.raises(ToolError, match="run: crib prepare hello_world") as caught:
        bench.check(python(bench, code))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


async def test_a_python_file_without_the_capability_starts_no_program(bench):
    code = "import subprocess\ndef main(): return subprocess.run(['/bin/true']).returncode"
    outcome = await bench.call(python(bench, code))
    assert outcome.error.kind is Kind.INTERNAL
    assert await bench.value(python(bench, code, requires={"shell.execute"})) == 0


# Calls of other tools


CALLERS = {
    "python": "import rye\ndef main(): return rye.execute('other', {'a': 1})",
    "javascript": "rye.execute('other', {a: 1}).then((value) => console.log(JSON.stringify(value)))",
    "bash": (
        'echo \'{"id": 1, "tool": "other", "arguments": {"a": 1}}\' >&$TOOLCRIB_CHANNEL\n'
        "read -r answer <&$TOOLCRIB_CHANNEL\n"
        'echo "$answer"'
    ),
}
FILES = {"python": ("c.py", "python_runtime"), "javascript": ("c.js", "node_runtime"), "bash": ("c.sh", "bash")}


def caller(bench, language, requires):
    name, executor = FILES[language]
    convention = "keywords" if language == "python" else "argv"
    schema = None if language == "python" else {}
    return bench.file(
        name,
        CALLERS[language],
        executor,
        language=language,
        convention=convention,
        requires=requires,
        output_schema=schema,
    )


@pytest.mark.parametrize("language", FILES)
async def test_a_script_that_may_calls_other_tools(bench, context, language):
    tool = caller(bench, language, {"rye.execute", "shell.execute"})
    called = []

    async def call(name, arguments=None, /, **more):
        called.append((name, arguments))
        return Result(value={"b": 2})

    outcome = await bench.runner.bind(tool).run({}, replace(context(tool), call=call))
    assert called == [("other", {"a": 1})]
    assert outcome.value in ({"b": 2}, {"id": 1, "ok": True, "value": {"b": 2}})


@pytest.mark.parametrize("language", FILES)
async def test_a_script_that_does_not_declare_it_calls_no_tool(bench, language):
    outcome = await bench.call(caller(bench, language, {"shell.execute"}))
    assert outcome.error is not None


async def test_the_calls_of_a_script_that_is_observed_are_among_its_effects(bench, context):
    bench.observe = True
    tool = caller(bench, "python", {"rye.execute"})

    async def call(name, arguments=None, /, **more):
        return Result(value=1)

    outcome = await bench.runner.bind(tool).run({}, replace(context(tool), call=call))
    assert {"act": "call", "what": "other", "denied": False} in outcome.meta["effects"]


# The network


@pytest.fixture
async def server():
    async def answer(reader, writer):
        with contextlib.closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            await writer.drain()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


FETCH = "import urllib.request\ndef main(port):\n    return urllib.request.urlopen(f'http://127.0.0.1:{port}/').read().decode()"


async def test_the_only_way_out_leads_through_the_guarded_proxy(bench, server):
    tool = python(bench, FETCH, requires={"net.http"})
    for private, expected in [((f"127.0.0.1:{server}",), "hello"), ((), None)]:
        egress = Egress(private=private)
        bench.egress = egress
        outcome = await bench.call(tool, port=server)
        await egress.close()
        assert outcome.value == expected


async def test_the_hosts_of_a_tool_narrow_its_network(bench, server):
    tool = python(bench, FETCH, requires={"net.http"}, hosts=("api.example.com",))
    bench.egress = Egress(private=(f"127.0.0.1:{server}",))
    outcome = await bench.call(tool, port=server)
    await bench.egress.close()
    assert "(HTTPError)" in outcome.error.message


async def test_where_an_observed_script_was_led_is_among_its_effects(bench, server):
    bench.observe = True
    bench.egress = Egress(private=(f"127.0.0.1:{server}",))
    outcome = await bench.call(python(bench, FETCH, requires={"net.http"}), port=server)
    await bench.egress.close()
    assert {"act": "connect", "what": f"127.0.0.1:{server}", "denied": False} in outcome.meta["effects"]


async def test_a_python_file_runs_in_the_interpreter_of_toolcrib(bench):
    assert await bench.value(python(bench, "import sys\ndef main(): return sys.executable")) == sys.executable
