"""A Python file in a worker."""

import importlib
import json
import sys
import time
from dataclasses import replace

import pytest
from sandboxes import make_sandbox

from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox.child.neighbours import Neighbours
from toolcrib.infra.sandbox.jobs import PythonFile


@pytest.fixture(scope="module")
def sandbox():
    """One for all tests of this file, as in a host."""
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


def value_of(ended):
    return json.loads(ended.result)["value"]


def error_of(ended):
    return json.loads(ended.result)["error"]


async def test_the_entry_function_is_called_with_the_arguments(run_python):
    ended = await run_python("def main(a, b=2, **more): return [a, b, more]", a={"x": [1, None]}, c=2**70)
    assert value_of(ended) == [{"x": [1, None]}, 2, {"c": 2**70}]
    assert ended.exit_code == 0


async def test_what_a_script_prints_is_not_its_result(run_python):
    ended = await run_python(
        "import sys\ndef main():\n    print('{\"value\": 2}'); print('e', file=sys.stderr); return 1"
    )
    assert value_of(ended) == 1
    assert ended.stdout == b'{"value": 2}\n'
    assert ended.stderr == b"e\n"


async def test_a_coroutine_function_is_awaited(run_python):
    code = "import asyncio\nasync def main(x):\n    await asyncio.sleep(0.001)\n    return x"
    assert value_of(await run_python(code, x=3)) == 3


async def test_a_file_is_a_module_of_its_own_name(run_python, tmp_path):
    ended = await run_python(
        "import sys\ndef main(): return [__name__, __file__, sys.argv, sys.modules[__name__].__file__]"
    )
    path = str(tmp_path / "sample.py")
    assert value_of(ended) == ["sample", path, [path], path]


async def test_a_file_can_import_its_neighbours_and_leaves_no_cache_behind(run_python, tmp_path):
    (tmp_path / "helper.py").write_text("ANSWER = 42")
    assert value_of(await run_python("from helper import ANSWER\ndef main(): return ANSWER")) == 42
    assert [file.name for file in tmp_path.iterdir()] == ["helper.py"]


# A module that is loaded, one that is not, one in C, one of another system, and installed ones.
TAKEN = ("json", "colorsys", "_struct", "msvcrt", "encodings", "orjson", "toolcrib")


async def test_files_beside_a_file_take_the_name_of_no_module_that_is_installed(run_python, tmp_path):
    for name in TAKEN:
        (tmp_path / f"{name}.py").write_text("STOLEN = True")
        (tmp_path / f"{name}.so").write_bytes(b"")
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "__init__.py").write_text("STOLEN = True")
    code = (
        "import importlib\n"
        "def main(names):\n"
        "    found = {}\n"
        "    for name in names:\n"
        "        try:\n"
        "            found[name] = hasattr(importlib.import_module(name), 'STOLEN')\n"
        "        except ModuleNotFoundError:\n"
        "            found[name] = None\n"
        "    return found"
    )
    ended = await run_python(code, names=[*TAKEN, "html"])
    expected = {**dict.fromkeys((*TAKEN, "html"), False), "msvcrt": None}
    assert value_of(ended) == expected


async def test_a_file_beside_a_file_does_not_take_the_name_of_a_package_without_init(run_python, tmp_path):
    installed = tmp_path / "installed"
    (installed / "spread" / "part").mkdir(parents=True)
    (installed / "spread" / "part" / "__init__.py").write_text("WORD = 'installed'")
    (tmp_path / "spread.py").write_text("raise SystemExit")
    code = f"import sys\nsys.path.append({str(installed)!r})\nfrom spread import part\ndef main(): return part.WORD"
    assert value_of(await run_python(code)) == "installed"


async def test_a_file_that_is_called_like_a_module_can_import_it(run_python):
    for name in ("json", "orjson"):
        code = f"import {name}\ndef main(): return {name}.loads('[1]')"
        assert value_of(await run_python(code, file_name=f"{name}.py")) == [1]


async def test_hidden_files_are_not_imported_and_not_read(run_python, tmp_path, policy):
    (tmp_path / "helper.py").write_text("ANSWER = 42")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("ANSWER = 42")
    code = (
        "import importlib, pathlib, sys\n"
        "def main():\n"
        "    said = []\n"
        "    for before in (False, True):\n"
        "        sys.path[:0] = [str(pathlib.Path(__file__).parent)] if before else []\n"
        "        for name in ('helper', 'kit'):\n"
        "            try:\n"
        "                said.append(hasattr(importlib.import_module(name), 'ANSWER'))\n"
        "            except (ImportError, PermissionError) as problem:\n"
        "                said.append(type(problem).__name__)\n"
        "    return said"
    )
    hidden = replace(policy, hidden=(tmp_path / "helper.py", tmp_path / "kit"))
    ended = await run_python(code, within=hidden)
    assert value_of(ended) == ["ModuleNotFoundError", "ModuleNotFoundError", "PermissionError", False]
    assert value_of(await run_python(code)) == [True] * 4


async def test_a_file_can_import_what_is_installed(run_python):
    ended = await run_python("import orjson, toolcrib\ndef main(): return toolcrib.__version__")
    import toolcrib

    assert value_of(ended) == toolcrib.__version__


async def test_a_file_does_not_see_the_folders_of_the_host(run_python, tmp_path_factory, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path_factory.mktemp("hosts_own")))
    ended = await run_python("import sys\ndef main(): return sys.path")
    assert sys.path[0] not in value_of(ended)


@pytest.mark.parametrize("name", ["json", "signal", "types", "sample.old"])
async def test_a_file_may_be_called_like_a_module_that_is_there_already(sandbox, tmp_path, policy, name):
    code = b"import json\ndef main(): return [json.dumps(1), __name__]"
    job = PythonFile(path=tmp_path / f"{name}.py", code=code, entry="main", arguments={}, policy=policy)
    assert value_of(await sandbox.run(job, deadline=time.monotonic() + 60)) == ["1", name]


async def test_the_bytes_that_were_read_run_and_not_the_file(run_python, tmp_path):
    (tmp_path / "sample.py").write_text("def main(): return 'changed'")
    assert value_of(await run_python("def main(): return 'as read'")) == "as read"


async def test_a_file_in_another_encoding_runs(sandbox, tmp_path, policy):
    code = "# -*- coding: latin-1 -*-\ndef main(): return 'é'".encode("latin-1")
    job = PythonFile(path=tmp_path / "sample.py", code=code, entry="main", arguments={}, policy=policy)
    assert value_of(await sandbox.run(job, deadline=time.monotonic() + 60)) == "é"


async def test_common_objects_become_plain_values(run_python):
    ended = await run_python(
        "import dataclasses, datetime, enum, pathlib\n"
        "class Colour(enum.Enum):\n    RED = 'red'\n"
        "@dataclasses.dataclass\nclass Point:\n    x: int\n    place: pathlib.Path\n"
        "def main():\n"
        "    return {'colour': Colour.RED, 'point': Point(1, pathlib.Path('/a')), 'set': {3, 1}, 'pair': (1, 2),\n"
        "            'mixed': sorted(map(str, {1, 'a'})), 'day': datetime.date(2025, 1, 2),\n"
        "            'time': datetime.datetime(2025, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)}\n"
    )
    assert value_of(ended) == {
        "colour": "red",
        "point": {"x": 1, "place": "/a"},
        "set": [1, 3],
        "pair": [1, 2],
        "mixed": ["1", "a"],
        "day": "2025-01-02",
        "time": "2025-01-02T03:04:00+00:00",
    }


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def main(): return object()", "a object has no JSON form; return plain values"),
        ("def main(): return {'a': [1, {2: len}]}", "a[1]['2']: a builtin_function_or_method has no JSON form"),
        ("def main():\n    while True: yield 1", "a generator of more than 100,000 items; return fewer"),
        ("def main(): return range(10 ** 9)", "a range of more than 100,000 items"),
        ("async def main():\n    while True: yield 1", "a generator of more than 100,000 items"),
        ("def main(): return [1.0, float('nan')]", "[1]: a float of nan has no JSON form; return None or a text"),
        ("def main(): return '\\ud800'", "a str with a lone surrogate has no JSON form"),
        ("def main(): return 10 ** 5000", "integer string conversion"),
        ("def main():\n    a = []\n    a.append(a)\n    return a", "contains itself, or is nested too deeply"),
        ("def main():\n    a = []\n    for _ in range(100_000): a = [a]\n    return a", "nested too deeply"),
        ("def main(): return {(1, 2): 3}", "a tuple as a key has no JSON form"),
        ("def main(): return {1: 2, '1': 3}", "two keys of a dict are both written '1'"),
        ("def main(): return open('/dev/null')", "a TextIOWrapper has no JSON form"),
        ("class A: ...\ndef main(): return A()", "a A has no JSON form"),
        ("def main(): return ValueError('x')", "a ValueError has no JSON form"),
    ],
)
async def test_a_result_without_a_json_form_is_an_error_that_says_why(run_python, code, words):
    assert words in error_of(await run_python(code))["message"]


async def test_an_exception_comes_with_its_type_its_message_and_the_lines_that_ran(run_python, tmp_path):
    (tmp_path / "sample.py").write_text("another\ntext\naltogether")
    error = error_of(await run_python("def main():\n    inner()\ndef inner():\n    raise KeyError('k')  # here"))
    assert (error["type"], error["message"]) == ("KeyError", "'k'")
    assert "raise KeyError('k')  # here" in error["traceback"]
    assert error["traceback"].count('File "') == 2


@pytest.mark.parametrize(
    ("code", "type_name"),
    [
        ("def main(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("def main(): return main()", "RecursionError"),
        ("def other(): pass", "LookupError"),
        ("main = 3", "LookupError"),
        ("def main(needed): pass", "ArgumentsError"),
        ("def main(): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("async def main(): raise OSError(5, 'x')", "OSError"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\ndef main(): raise E", "E"),
        (
            "class E(Exception):\n    @property\n    def kind(self): raise ValueError\nclass ToolError(E): pass\ndef main(): raise ToolError",
            "ToolError",
        ),
    ],
)
async def test_every_exception_of_a_script_reaches_the_host_as_an_error(run_python, code, type_name):
    ended = await run_python(code)
    assert error_of(ended)["type"] == type_name
    assert ended.exit_code == 1


@pytest.mark.parametrize(("call", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("exit('no')", 1), ("quit(0)", 0)])
async def test_a_script_that_exits_is_told_as_such(run_python, call, code):
    assert error_of(await run_python(f"import sys\ndef main(): {call}"))["exit"] == code


async def test_a_script_that_ends_its_process_gives_no_result(run_python):
    ended = await run_python("import os\ndef main(): os._exit(0)")
    assert (ended.exit_code, ended.result) == (0, None)


async def test_a_script_that_crashes_is_told_by_its_signal(run_python):
    ended = await run_python("import os\ndef main(): os.kill(os.getpid(), 11)")
    assert (ended.exit_code, ended.signal, ended.result) == (None, 11, None)


async def test_a_script_that_closes_its_streams_still_gives_its_result(run_python):
    ended = await run_python(
        "import os, sys\ndef main():\n    print(1)\n    os.close(1); os.close(2); sys.stdin.close()\n    return 1"
    )
    assert value_of(ended) == 1


async def test_what_a_forked_child_of_a_script_returns_is_not_the_result(run_python):
    ended = await run_python(
        "import os\ndef main():\n    if os.fork() == 0: return 'child'\n    os.wait()\n    return 'parent'"
    )
    assert value_of(ended) == "parent"


async def test_threads_and_exit_hooks_of_a_script_come_to_their_end(run_python, tmp_path):
    await run_python(
        "import atexit, threading, time\n"
        "def main():\n"
        "    atexit.register(lambda: open('hook', 'w').close())\n"
        "    threading.Thread(target=lambda: (time.sleep(0.05), open('thread', 'w').close())).start()\n"
    )
    assert {file.name for file in tmp_path.iterdir()} == {"hook", "thread"}


async def test_a_result_beyond_the_limit_ends_the_job(sandbox, tmp_path, policy):
    code = b"import time\ndef main(): return 'x' * 2_000_000"
    job = PythonFile(path=tmp_path / "sample.py", code=code, entry="main", arguments={}, policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 60, max_result=1_000_000)
    assert ended.result_too_long
    assert ended.result is None
    assert ended.gone
    whole = await sandbox.run(job, deadline=time.monotonic() + 60, max_result=2_100_000)
    assert len(value_of(whole)) == 2_000_000


async def test_a_script_that_floods_its_result_is_not_waited_for(run_python):
    ended = await run_python(
        "import os, time\n"
        "def main():\n"
        "    pipe = max(int(name) for name in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{name}'))\n"
        "    while True: os.write(pipe, bytes(1_000_000))\n",
        seconds=60,
    )
    assert ended.result_too_long
    assert not ended.timed_out
    assert ended.killed == 1


async def test_a_job_of_megabytes_arrives_whole(run_python):
    text = "é" * 3_000_000
    assert value_of(await run_python("def main(text): return len(text)", text=text)) == len(text)


@pytest.mark.parametrize("argument", [object(), float("nan"), {1, 2}], ids=["object", "NaN", "set"])
async def test_arguments_that_are_not_json_are_refused_before_anything_starts(tmp_path, policy, argument):
    job = PythonFile(
        path=tmp_path / "sample.py",
        code=b"def main(x): return x",
        entry="main",
        arguments={"x": argument},
        policy=policy,
    )
    sandbox = make_sandbox()
    with pytest.raises(ToolError) as caught:
        await sandbox.run(job, deadline=time.monotonic() + 60)
    assert caught.value.kind is Kind.VALIDATION
    assert sandbox._launcher is None


async def test_facts_of_a_tool_error_survive(run_python):
    ended = await run_python(
        "from toolcrib.model.errors import Kind, ToolError\n"
        "def main(): raise ToolError(Kind.RATE_LIMIT, 'later', retryable=True, details={'a': 1}, value=object())"
    )
    error = error_of(ended)
    assert error["message"] == "later"
    assert error["tool_error"] == {
        "kind": "RATE_LIMIT",
        "retryable": True,
        "partial_side_effects": False,
        "details": {"a": 1},
    }


def test_a_hidden_file_is_not_imported_as_part_of_a_package_either(tmp_path, monkeypatch):
    hidden = ["plain.py", "below/part.py", "package/__init__.py", "both/__init__.py", "whole"]
    for name in (*hidden[:-1], "both.py", "whole/part.py", "below/own.py", "deep/below/own.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    Neighbours(str(tmp_path), [str(tmp_path / name) for name in hidden]).install()
    for name in ("plain", "below.part", "package", "both", "whole", "whole.part"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    for name in ("below.own", "deep.below.own"):
        importlib.import_module(name)
