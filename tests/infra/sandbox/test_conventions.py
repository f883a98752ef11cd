"""How a Python file takes its arguments and gives its answer."""

import json
import time

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.model.tool import Convention

DECORATED = """
import functools
def twice(function):
    @functools.wraps(function)
    def call(*arguments): return function(*arguments)
    return call
@twice
def execute(params, project_path): return project_path
"""

FILE_SINK = """
import json
from pathlib import Path
from typing import Optional

class FileSink:
    def __init__(self, path: str, format: str = "jsonl", flush_every: int = 10):
        self.path = Path(path)
        self.format = format
        self.file_handle: Optional[str] = None

    async def write(self, event: str) -> None:
        if not self.file_handle:
            self.file_handle = open(self.path, "a", encoding="utf-8")
        if self.format == "jsonl":
            try:
                self.file_handle.write(json.dumps(json.loads(event)) + "\\n")
            except json.JSONDecodeError:
                self.file_handle.write(event + "\\n")
        else:
            self.file_handle.write(event + "\\n")
"""


@pytest.fixture(scope="module")
def sandbox():
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def run(sandbox, tmp_path, policy):
    async def run(code, convention, *, entry="main", arguments=(), talk=None, **more):
        job = PythonFile(
            path=tmp_path / "sample.py",
            code=code.encode(),
            entry=entry,
            arguments=dict(arguments),
            policy=policy,
            convention=convention,
            channel=talk is not None,
            **more,
        )
        return await sandbox.run(job, deadline=time.monotonic() + 60, talk=talk)

    return run


def value_of(ended):
    return json.loads(ended.result)["value"]


def error_of(ended):
    return json.loads(ended.result)["error"]


async def test_the_time_zone_of_a_job_is_the_one_in_its_variables(run):
    code = "import time\ndef main(): return time.tzname[0]"
    assert value_of(await run(code, Convention.KEYWORDS, environment={"TZ": "XYZ-3"})) == "XYZ"
    assert value_of(await run(code, Convention.KEYWORDS, environment={})) != "XYZ"


# --- params -------------------------------------------------------------------------------------------------------------


async def test_params_come_as_one_mapping(run):
    ended = await run("def execute(params): return params", Convention.PARAMS, entry="execute", arguments={"a": 1})
    assert value_of(ended) == {"a": 1}


@pytest.mark.parametrize(
    "code",
    [
        "def execute(params, project_path): return project_path",
        "async def execute(params, project_path='x', more=1): return project_path",
        DECORATED,
        "class A:\n    def run(self, params, project_path): return project_path\nexecute = A().run",
    ],
)
async def test_an_entry_that_takes_two_gets_the_project_besides(run, code, tmp_path):
    ended = await run(code, Convention.PARAMS, entry="execute", project=tmp_path.parent)
    assert value_of(ended) == str(tmp_path.parent)
    ended = await run(code, Convention.PARAMS, entry="execute")
    assert value_of(ended) == str(tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "def execute(params, **more): return more",
        "class A:\n    def run(self, params): return {}\nexecute = A().run",
        "class A:\n    def __call__(self, params): return {}\nexecute = A()",
        "execute = dict",
    ],
)
async def test_an_entry_that_takes_one_gets_the_arguments_alone(run, code):
    assert value_of(await run(code, Convention.PARAMS, entry="execute")) == {}


# --- argv ---------------------------------------------------------------------------------------------------------------


async def test_a_file_that_reads_its_own_words_runs_as_main(run, tmp_path):
    code = (
        "import argparse, sys\n"
        "if __name__ == '__main__':\n"
        "    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--name')\n"
        "    print('Hello,', parser.parse_args().name, sys.argv[0], sys.modules['__main__'].__file__)\n"
    )
    ended = await run(code, Convention.ARGV, argv=("--name", "Ann"))
    path = str(tmp_path / "sample.py")
    assert ended.stdout.decode() == f"Hello, Ann {path} {path}\n"
    assert (ended.exit_code, ended.result) == (0, None)


@pytest.mark.parametrize(
    ("statement", "code", "stderr"),
    [
        ("sys.exit()", 0, b""),
        ("sys.exit(0)", 0, b""),
        ("sys.exit(3)", 3, b""),
        ("sys.exit(-1)", 255, b""),
        ("sys.exit(True)", 1, b""),
        ("sys.exit('no such thing')", 1, b"no such thing\n"),
        ("pass", 0, b""),
    ],
)
async def test_the_exit_code_of_a_file_is_the_one_an_interpreter_gives(run, statement, code, stderr):
    ended = await run(f"import sys\nprint('out')\n{statement}", Convention.ARGV)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (code, b"out\n", stderr)


async def test_an_exception_of_a_file_is_shown_as_an_interpreter_shows_it(run, tmp_path):
    ended = await run("def inner():\n    raise KeyError('k')  # here\ninner()", Convention.ARGV)
    assert ended.exit_code == 1
    path = tmp_path / "sample.py"
    lines = ended.stderr.decode().splitlines()
    assert lines[:3] == ["Traceback (most recent call last):", f'  File "{path}", line 3, in <module>', "    inner()"]
    assert "    raise KeyError('k')  # here" in lines
    assert lines[-1] == "KeyError: 'k'"


async def test_a_file_with_a_hook_for_its_exceptions_is_heard(run):
    code = "import sys\nsys.excepthook = lambda kind, problem, trace: print('hooked', kind.__name__)\n1 / 0"
    ended = await run(code, Convention.ARGV)
    assert (ended.exit_code, ended.stdout) == (1, b"hooked ZeroDivisionError\n")


async def test_a_file_that_is_not_python_fails_with_the_line(run):
    ended = await run("def (:", Convention.ARGV)
    assert ended.exit_code == 1
    assert b"SyntaxError" in ended.stderr


# --- sinks --------------------------------------------------------------------------------------------------------------


def writing(*events, close=True):
    answers = []

    async def talk(lines):
        for event in events:
            await lines.write({"event": event})
            answers.append(await lines.read())
        if close:
            await lines.write({"close": True})
            answers.append(await lines.read())

    return talk, answers


@pytest.mark.spec("S3-42", "S3-66")
@pytest.mark.parametrize(
    ("form", "text"), [("jsonl", '{"a": 1}\nnot json\n'), ("text", '{"a":1}\nnot json\n')], ids=["jsonl", "text"]
)
async def test_a_sink_without_a_close_has_everything_on_disk_afterwards(run, tmp_path, form, text):
    talk, answers = writing('{"a":1}', "not json")
    target = tmp_path / "events"
    arguments = {"path": str(target), "format": form}
    ended = await run(FILE_SINK, Convention.SINK, entry="FileSink", arguments=arguments, talk=talk)
    assert answers == [{"ok": True}] * 3
    assert (value_of(ended), ended.exit_code) == (None, 0)
    assert target.read_text() == text


async def test_a_sink_is_closed_when_the_channel_ends_without_a_word(run, tmp_path):
    talk, _ = writing("one", close=False)
    arguments = {"path": str(tmp_path / "events")}
    ended = await run(FILE_SINK, Convention.SINK, entry="FileSink", arguments=arguments, talk=talk)
    assert ended.exit_code == 0
    assert (tmp_path / "events").read_text() == "one\n"


@pytest.mark.parametrize("word", ["async def", "def"])
async def test_a_sink_that_can_be_closed_closes_itself(run, tmp_path, word):
    code = (
        "class Sink:\n"
        f"    {word} write(self, event): self.last = event\n"
        f"    {word} close(self): open('closed', 'w').write(self.last)\n"
    )
    talk, answers = writing("one", "two")
    await run(code, Convention.SINK, entry="Sink", talk=talk)
    assert answers == [{"ok": True}] * 3
    assert (tmp_path / "closed").read_text() == "two"


async def test_files_that_a_sink_keeps_in_lists_mappings_and_slots_are_closed_too(run, tmp_path):
    code = (
        "class Sink:\n"
        "    __slots__ = ('one', 'many', 'named', 'unset')\n"
        "    def __init__(self):\n"
        "        self.one = open('a', 'w'); self.many = [open('b', 'w'), 1]; self.named = {'c': open('c', 'w')}\n"
        "    def write(self, event):\n"
        "        for file in (self.one, self.many[0], self.named['c']): file.write(event)\n"
    )
    talk, _ = writing("x")
    ended = await run(code, Convention.SINK, entry="Sink", talk=talk)
    assert ended.exit_code == 0
    assert [(tmp_path / name).read_text() for name in "abc"] == ["x"] * 3


async def test_an_event_that_a_sink_cannot_write_is_answered_so_and_the_next_one_is_written(run):
    code = "class Sink:\n    def write(self, event):\n        if event == 'bad': raise ValueError('no')\n"
    talk, answers = writing("good", "bad", "good")
    ended = await run(code, Convention.SINK, entry="Sink", talk=talk)
    assert answers == [{"ok": True}, {"ok": False, "error": "ValueError: no"}, {"ok": True}, {"ok": True}]
    assert ended.exit_code == 0


async def test_a_sink_that_cannot_be_closed_says_so(run):
    code = "class Sink:\n    def write(self, event): pass\n    def close(self): raise OSError('disk full')\n"
    talk, answers = writing("x")
    ended = await run(code, Convention.SINK, entry="Sink", talk=talk)
    assert answers[-1] == {"ok": False, "error": "OSError: disk full"}
    assert error_of(ended)["message"] == "disk full"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("Sink = 3", "there is no class named Sink with a method write"),
        ("class Sink: pass", "there is no class named Sink with a method write"),
        ("def Sink(): pass", "there is no class named Sink with a method write"),
    ],
)
async def test_what_is_no_sink_is_told_so(run, code, words):
    talk, _ = writing()
    assert words in error_of(await run(code, Convention.SINK, entry="Sink", talk=talk))["message"]


async def test_a_sink_that_is_called_like_a_function_is_told_so(run):
    code = "class Sink:\n    def write(self, event): pass"
    assert "needs a channel" in error_of(await run(code, Convention.SINK, entry="Sink"))["message"]
