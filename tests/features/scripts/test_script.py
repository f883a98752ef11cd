import asyncio
import logging
import time
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from sample_tools import host_tool
from toolcrib import Call, Kind, Tool, ToolError
from toolcrib.infra.programs import MAX_RESULT_BYTES
from toolcrib.model.tool import Script


@pytest.fixture
def bind(bench, tmp_path):
    def bind(code, *, language="python", entry="main", requires=()):
        script = Script(path=tmp_path / "sample.py", code=code.encode(), language=language, entry=entry)
        tool = Tool(
            name="sample",
            description="A sample.",
            parameters={"type": "object"},
            run=script,
            requires=frozenset(requires),
        )
        return tool, bench.runner.bind(tool)

    return bind


@pytest.fixture
def run(bind, context):
    async def run(code, arguments=None, *, seconds=10.0, **how):
        tool, bound = bind(code, **how)
        return await bound.run(arguments or {}, context(tool, seconds))

    return run


async def test_a_script_runs_in_the_sandbox_and_gives_its_value(run, sandbox):
    outcome = await run("def main(city): return {'city': city}", {"city": "Bern"})
    assert outcome.value == {"city": "Bern"}
    assert outcome.error is None
    assert outcome.meta == {"sandbox": sandbox.report()}


async def test_what_a_script_says_on_stderr_is_kept_beside_the_value(run):
    outcome = await run("import sys\ndef main():\n    print('x' * 3000 + ' careful', file=sys.stderr)\n    return 1")
    assert outcome.value == 1
    assert outcome.meta["stderr"].endswith(" careful\n")
    assert len(outcome.meta["stderr"]) == 2000


async def test_a_script_that_runs_too_long_is_killed_and_the_limit_is_named(run):
    outcome = await run("import time\ndef main(): time.sleep(60)", seconds=0.4)
    assert outcome.error.kind is Kind.TIMEOUT
    assert outcome.error.message == "sample ran longer than 0.4 s; its processes were killed"
    assert outcome.error.partial_side_effects
    assert "sandbox" in outcome.meta


async def test_an_exception_is_told_in_a_sentence_and_its_traceback_is_logged(run, caplog):
    with caplog.at_level(logging.WARNING, "toolcrib.runners"):
        outcome = await run("def main(): return {}['missing']")
    assert outcome.error.kind is Kind.INTERNAL
    assert outcome.error.message == "sample failed unexpectedly (KeyError); the log has the details"
    assert outcome.error.partial_side_effects
    assert "Traceback" not in outcome.error.message
    assert "line 1, in main" in caplog.text


async def test_a_tool_error_of_a_script_is_taken_at_its_word(run):
    outcome = await run(
        "from toolcrib.model.errors import Kind, ToolError\n"
        "def main(): raise ToolError(Kind.NOT_FOUND, 'no such city', details={'city': 'X'}, value=[1])"
    )
    error = outcome.error
    assert (error.kind, error.message, error.partial_side_effects) == (Kind.NOT_FOUND, "no such city", False)
    assert error.details == {"city": "X"}
    assert outcome.value == [1]


async def test_an_error_that_may_be_repeated_says_so(run):
    code = (
        "class ToolError(Exception):\n    kind = 'TRANSIENT'\n    retryable = True\ndef main(): raise ToolError('busy')"
    )
    outcome = await run(code)
    assert (outcome.error.kind, outcome.error.message) == (Kind.TRANSIENT, "busy")
    assert outcome.error.retryable
    assert outcome.meta["sandbox"]


@pytest.mark.parametrize("kind", ["'NO_SUCH_KIND'", "['TIMEOUT']", "None"])
async def test_a_kind_of_error_that_does_not_exist_is_internal(run, kind):
    outcome = await run(f"class ToolError(Exception):\n    kind = {kind}\ndef main(): raise ToolError('odd')")
    assert (outcome.error.kind, outcome.error.message) == (Kind.INTERNAL, "odd")


@pytest.mark.parametrize("code", [0, 3])
async def test_a_script_that_exits_has_failed(run, code):
    outcome = await run(f"import sys\ndef main(): sys.exit({code})")
    assert outcome.error.message == f"sample ended itself with exit code {code}; return a value from main"


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("os._exit(4)", "ended with exit code 4 before it returned a result"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL before it returned a result"),
        ("os.kill(os.getpid(), 40)", "was ended by signal 40 before it returned a result"),
    ],
)
async def test_a_script_that_ends_without_a_result_has_failed(run, ending, words):
    outcome = await run(f"import os\ndef main(): {ending}")
    assert outcome.error.kind is Kind.INTERNAL
    assert words in outcome.error.message


@pytest.mark.parametrize(
    "garbage",
    [
        b"not json",
        b'{"value": 1}{"value": 2}',
        b'{"value": NaN}',
        b'{"value": 1, "error": 2}',
        b"[1]",
        b'{"error": 5}',
        b'{"other": 5}',
        b'{"value": "\\ud800"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
async def test_garbage_where_the_result_goes_is_refused(run, garbage):
    outcome = await run(
        "import os, ast\n"
        "def main(garbage):\n"
        "    pipes = [int(n) for n in os.listdir('/proc/self/fd') if int(n) > 2]\n"
        "    for pipe in pipes:\n"
        "        try: os.write(pipe, ast.literal_eval(garbage))\n"
        "        except OSError: pass\n"
        "    os._exit(0)\n",
        {"garbage": repr(garbage)},
    )
    assert outcome.error.kind is Kind.OUTPUT_INVALID
    assert "gave an answer that cannot be read" in outcome.error.message


async def test_a_huge_result_is_refused_with_the_limit(run):
    outcome = await run(f"def main(): return 'x' * {MAX_RESULT_BYTES}")
    assert outcome.error.kind is Kind.LIMIT_EXCEEDED
    assert str(MAX_RESULT_BYTES) in outcome.error.message


async def test_a_script_whose_folder_is_gone_is_told_as_such(bench, context):
    script = Script(path=Path("/no/such/folder/x.py"), code=b"def x(): return 1", language="python", entry="x")
    tool = Tool(name="x", description="", parameters={"type": "object"}, run=script)
    outcome = await bench.runner.bind(tool).run({}, context(tool, 5))
    assert "could not be started" in outcome.error.message
    assert not outcome.error.partial_side_effects


def test_a_language_without_a_runner_is_refused_before_anything_runs(bind):
    _, bound = bind("", language="cobol")
    with pytest.raises(ToolError, match=r"sample\.py: no runner for 'cobol'") as caught:
        bound.check({}, Call(name="sample"))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


def test_a_machine_that_cannot_keep_a_script_in_refuses_before_anything_runs(bench, tmp_path):
    bench.sandbox = make_sandbox(require=("weightlessness",))
    script = Script(path=tmp_path / "x.py", code=b"", language="python", entry="x")
    tool = Tool(name="x", description="", parameters={"type": "object"}, run=script)
    with pytest.raises(ToolError, match="cannot guarantee weightlessness") as caught:
        bench.runner.bind(tool).check({}, Call(name="x"))
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


def test_functions_are_not_taken(bench):
    with pytest.raises(ToolError, match="x is a function and no executor runs it"):
        bench.runner.bind(host_tool("x"))


async def test_a_cancelled_call_goes_on_only_when_the_script_is_gone(bench, bind, context):
    note = bench.workspace / "pid"
    code = f"import os, time\ndef main():\n    open({str(note)!r}, 'w').write(str(os.getpid()))\n    time.sleep(60)"
    tool, bound = bind(code, requires={"fs.write"})
    task = asyncio.ensure_future(bound.run({}, context(tool, 60)))
    until = time.monotonic() + 25
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < until
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{note.read_text()}").exists()
