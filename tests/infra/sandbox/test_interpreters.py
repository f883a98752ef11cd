"""The Pythons that run files, and what their launchers have ready."""

import json
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.channel import ORDER_BYTES, is_harmless, to_order
from toolcrib.infra.sandbox import host
from toolcrib.infra.sandbox.interpreters import own_interpreter, read_interpreter
from toolcrib.infra.sandbox.jobs import PythonFile

BASE = Path(sys.executable).resolve()
PACKAGES = f"lib/python{sysconfig.get_python_version()}/site-packages"


def make_environment(folder, program=BASE):
    """What python -m venv makes, as far as it is read."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(program)
    (folder / "pyvenv.cfg").write_text(f"home = {program.parent}\ninclude-system-site-packages = false\n")
    (folder / PACKAGES).mkdir(parents=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def sandbox():
    sandbox = host.Sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def run(sandbox, tmp_path, policy):
    async def run(code, *, sandbox=sandbox, interpreter=None, imports=(), **arguments):
        job = PythonFile(
            path=tmp_path / "sample.py",
            code=code.encode(),
            entry="main",
            arguments=arguments,
            policy=policy,
            interpreter=interpreter,
            imports=imports,
        )
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
        answer = json.loads(ended.result)
        assert "value" in answer, answer
        return answer["value"]

    return run


# --- environments -------------------------------------------------------------------------------------------------------


async def test_a_file_imports_from_the_environment_that_it_has_to_itself(run, tmp_path):
    python = make_environment(tmp_path / "venv")
    (tmp_path / "venv" / PACKAGES / "only_here.py").write_text("ANSWER = 42")
    code = "import only_here, sys\ndef main(): return [only_here.ANSWER, sys.executable, sys.prefix]"
    assert await run(code, interpreter=read_interpreter(python)) == [42, str(python), str(tmp_path / "venv")]


async def test_a_file_in_an_environment_does_not_see_the_packages_of_toolcrib(run, tmp_path):
    python = make_environment(tmp_path / "venv")
    code = "import importlib.util\ndef main(): return importlib.util.find_spec('orjson') is None"
    assert await run(code, interpreter=read_interpreter(python)) is True
    assert await run(code) is False


async def test_a_file_in_an_environment_without_toolcrib_imports_what_it_writes_tools_with(run, tmp_path):
    python = make_environment(tmp_path / "venv")
    code = (
        "from toolcrib import Kind, ToolError, tool\n"
        "@tool(confirm=True)\n"
        "def main(x: int): return [x, str(Kind.CONFLICT), ToolError.__module__]\n"
    )
    assert await run(code, interpreter=read_interpreter(python), x=1) == [1, "CONFLICT", "toolcrib.handler"]
    assert await run(code, x=1) == [1, "CONFLICT", "toolcrib.model.errors"]


async def test_nothing_that_lies_in_an_environment_runs_outside_of_the_sandbox(sandbox, run, tmp_path):
    python = make_environment(tmp_path / "venv")
    packages, trace = tmp_path / "venv" / PACKAGES, tmp_path / "trace"
    (packages / "hook.pth").write_text(f"import os; open({str(trace)!r}, 'w').close()\n")
    (packages / "sitecustomize.py").write_text(f"open({str(trace)!r}, 'w').close()")
    (tmp_path / "venv" / "bin" / "python3").write_text(f"#!/bin/sh\ntouch {trace}\n")
    (tmp_path / "venv" / "bin" / "python3").chmod(0o755)
    assert await run("def main(): return 1", interpreter=read_interpreter(python)) == 1
    assert not trace.exists()


async def test_an_interpreter_in_the_workspace_is_never_started(tmp_path, policy):
    trace = tmp_path / "trace"
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {trace}\n")
    python.chmod(0o755)
    chosen = replace(own_interpreter(), program=python)
    job = PythonFile(path=tmp_path / "a.py", code=b"", entry="main", arguments={}, policy=policy, interpreter=chosen)
    sandbox = host.Sandbox(workspace=tmp_path)
    with pytest.raises(ToolError, match="lies in the workspace, where tools write; install that Python") as caught:
        await sandbox.run(job, deadline=time.monotonic() + 60)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert not trace.exists()


@pytest.mark.parametrize("name", ["python3", "python", "python3.12", "python3.12t", "true"])
def test_an_environment_that_leads_to_what_is_not_on_the_search_path_is_refused_without_starting_it(tmp_path, name):
    trace = tmp_path / "trace"
    program = tmp_path / "elsewhere" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    python = make_environment(tmp_path / "venv", program)
    for search_path in ("", str(tmp_path), f"{tmp_path}/elsewhere/..", "/usr/bin", "elsewhere", ".", ":"):
        with pytest.raises(ToolError, match="which the operator has not installed") as caught:
            read_interpreter(python, search_path=search_path)
        assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert not trace.exists()


def test_a_program_of_the_search_path_that_is_no_python_is_refused_without_starting_it(tmp_path):
    true = Path(shutil.which("true")).resolve()
    with pytest.raises(ToolError, match="which the operator has not installed"):
        read_interpreter(make_environment(tmp_path / "venv", true), search_path=str(true.parent))


def test_a_relative_search_path_leads_to_nothing(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    python = make_environment(tmp_path / "venv", program)
    assert "does not say which Python it is" in str(refused(python, str(program.parent)))
    for search_path in ("bin", "./bin", ".:bin:"):
        assert "which the operator has not installed" in str(refused(python, search_path))


def refused(python, search_path):
    with pytest.raises(ToolError) as caught:
        read_interpreter(python, search_path=search_path)
    return caught.value


@pytest.mark.parametrize("name", ["python3", "python", "python3.11", "python3.13"])
def test_an_environment_of_any_python_along_the_search_path_is_taken(tmp_path, name):
    real, linked = tmp_path / "real" / "interpreter", tmp_path / "bin" / name
    real.parent.mkdir()
    linked.parent.mkdir()
    real.write_text(f'#!/bin/sh\nexec {BASE} "$@"\n')
    real.chmod(0o755)
    linked.symlink_to(real)
    python = make_environment(tmp_path / "venv", real)
    found = read_interpreter(python, search_path=f"/usr/bin:{linked.parent}")
    assert (found.program, found.executable) == (real, python)


def test_our_own_python_needs_no_search_path(tmp_path):
    assert read_interpreter(make_environment(tmp_path / "venv")).program == BASE


def test_a_loop_of_links_is_no_interpreter(tmp_path):
    python = make_environment(tmp_path / "venv", Path("python"))
    with pytest.raises(ToolError, match="there is no interpreter at"):
        read_interpreter(python)


def test_an_interpreter_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ToolError, match="there is no interpreter at .*; make its environment again"):
        read_interpreter(make_environment(tmp_path / "venv", tmp_path / "gone" / "python3"))


@pytest.mark.parametrize("version", ["3.10", "3.8"])
def test_an_interpreter_that_is_too_old_is_refused_with_the_cure(version, tmp_path):
    said = json.dumps({"version": [*map(int, version.split(".")), 1], "base": "/", "own": [], "packages": []})
    old = tmp_path / "bin" / f"python{version}"
    old.parent.mkdir()
    old.write_text(f"#!/bin/sh\necho '{said}'\n")
    old.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        read_interpreter(old, search_path=str(old.parent))
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert f"is Python {version}.1, and scripts need 3.11 or newer; make it again with a newer Python" in str(
        caught.value
    )


@pytest.mark.parametrize("says", ["nonsense", "[]", '{"version": 3}', "{}", ""])
def test_an_interpreter_that_says_nothing_sensible_is_refused(says, tmp_path):
    odd = tmp_path / "bin" / "python3"
    odd.parent.mkdir()
    odd.write_text(f"#!/bin/sh\necho '{says}'\n")
    odd.chmod(0o755)
    with pytest.raises(ToolError, match="does not say which Python it is"):
        read_interpreter(odd, search_path=str(odd.parent))


def test_path_files_of_an_environment_add_folders_and_their_code_stays_unread(tmp_path):
    python = make_environment(tmp_path / "venv")
    packages = tmp_path / "venv" / PACKAGES
    (packages / "more").mkdir()
    (packages / "a.pth").write_text(f"# note\nimport sys\nmore\n{packages}/no/such/folder\n\0\n\n")
    assert read_interpreter(python).packages == (str(packages), str(packages / "more"))


@pytest.mark.parametrize("line", ["/", "{home}", "{home}/project", "../../../..", "link", "link/..", "more/../link"])
def test_what_leads_out_of_an_environment_is_none_of_its_packages(tmp_path, line):
    python = make_environment(tmp_path / "venv")
    packages = tmp_path / "venv" / PACKAGES
    (tmp_path / "project").mkdir()
    (packages / "more").mkdir()
    (packages / "link").symlink_to(tmp_path / "project")
    (packages / "a.pth").write_text(f"{line.format(home=tmp_path)}\n")
    assert read_interpreter(python).packages == (str(packages),)


def test_packages_that_are_a_link_out_of_the_environment_are_none(tmp_path):
    python = make_environment(tmp_path / "venv")
    (tmp_path / "venv" / PACKAGES).rmdir()
    (tmp_path / "venv" / PACKAGES).symlink_to(tmp_path)
    assert read_interpreter(python).packages == ()


def test_only_so_many_lines_of_path_files_are_read(tmp_path):
    python = make_environment(tmp_path / "venv")
    packages = tmp_path / "venv" / PACKAGES
    for number in range(1_100):
        (packages / f"x{number}").mkdir()
    (packages / "a.pth").write_text("".join(f"x{number}\n" for number in range(1_100)))
    assert len(read_interpreter(python).packages) == 1_001
    (packages / "a.pth").write_text("x1\n" + "#" * 64_000)
    assert len(read_interpreter(python).packages) == 1


def test_settings_of_an_environment_that_never_end_are_not_read(tmp_path):
    python = make_environment(tmp_path / "venv")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("x = 1\n" * 10_000)
    assert read_interpreter(python).prefix != tmp_path / "venv"


def test_an_environment_that_sees_the_system_sees_it_behind_its_own_packages(tmp_path):
    python = make_environment(tmp_path / "venv")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("Include-System-Site-Packages = TRUE\nnoise\n")
    packages = read_interpreter(python).packages
    assert packages[0] == str(tmp_path / "venv" / PACKAGES)
    assert len(packages) > 1


@pytest.fixture
def another_python():
    others = (shutil.which(f"python3.{minor}") for minor in range(11, 20) if minor != sys.version_info.minor)
    for found in filter(None, others):
        asked = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, check=False)
        if asked.returncode == 0:
            return Path(asked.stdout.decode().strip())
    pytest.skip("there is only one Python here")


async def test_another_version_of_python_runs_files_too(run, another_python):
    code = "import sys\nasync def main(x): return [sys.version_info[1], x]"
    interpreter = read_interpreter(another_python, search_path=str(another_python.parent))
    value = await run(code, interpreter=interpreter, x=1)
    assert value == [interpreter.version[1], 1]
    assert value[0] != sys.version_info.minor


@pytest.mark.usefixtures("cold_launchers")
async def test_only_a_handful_of_launchers_stays_and_the_one_that_was_idle_longest_goes(run, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "MAX_LAUNCHERS", 2)
    sandbox = host.Sandbox()
    programs = []
    for number in range(4):
        copied = tmp_path / str(number) / "bin" / "python3"
        copied.parent.mkdir(parents=True)
        copied.write_text(f'#!/bin/sh\nexec {BASE} "$@"\n')
        copied.chmod(0o755)
        programs.append(copied)
    try:
        processes = []
        for program in programs:
            interpreter = read_interpreter(program, search_path=str(program.parent))
            assert await run("def main(): return 1", interpreter=interpreter, sandbox=sandbox) == 1
            processes.append(sandbox._launchers.find(program, sandbox._findings.generation).pid)
        assert [sandbox._launchers.find(program, sandbox._findings.generation) is not None for program in programs] == [
            False,
            False,
            True,
            True,
        ]
        assert [Path(f"/proc/{process}").exists() for process in processes] == [False, False, True, True]
    finally:
        sandbox.close()
    assert not any(Path(f"/proc/{process}").exists() for process in processes)


def test_our_own_interpreter_is_the_one_that_runs_here():
    own = own_interpreter()
    assert (own.program, own.version) == (Path(sys.executable), sys.version_info[:3])


# --- what is ready ------------------------------------------------------------------------------------------------------

STATE = """
import os, signal, sys, locale, threading, pkgutil, importlib, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
for name in ("toolcrib", "toolcrib.infra", "toolcrib.infra.sandbox", "toolcrib.infra.sandbox.child"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
from toolcrib.infra.channel import is_harmless

def state():
    status = open("/proc/self/status").read()
    mask = os.umask(0); os.umask(mask)
    return {
        "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
        "descriptors": sorted(name for name in os.listdir("/proc/self/fd") if os.path.islink("/proc/self/fd/" + name)),
        "signals": [line for line in status.splitlines() if line.startswith("Sig") and not line.startswith("SigQ")],
        "handlers": [str(signal.getsignal(number)) for number in range(1, 32)],
        "environment": dict(os.environ), "cwd": os.getcwd(), "umask": mask, "path": list(sys.path),
        "hooks": [id(sys.excepthook), id(sys.displayhook), id(sys.stdout), id(sys.stderr), id(sys.stdin)],
        "locale": locale.setlocale(locale.LC_ALL), "recursion": sys.getrecursionlimit(),
    }

def modules():
    for top in sorted(sys.stdlib_module_names):
        if not is_harmless(top):
            continue
        yield top
        try:
            package = importlib.import_module(top)
        except Exception:
            continue
        for found in pkgutil.walk_packages(getattr(package, "__path__", []), top + ".", onerror=lambda name: None):
            if is_harmless(found.name):
                yield found.name

before, count, printed = state(), 0, sys.stdout
for name in modules():
    try:
        importlib.import_module(name)
    except Exception:
        continue
    count += 1
    after = state()
    changed = [key for key in before if before[key] != after[key]]
    if changed:
        print(name, [(key, before[key], after[key]) for key in changed], file=printed)
        before = after
print(count)
"""


def test_every_module_that_may_be_ready_leaves_the_process_as_it_was():
    source = Path(__file__).parents[3] / "src"
    asked = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", STATE, str(source)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={},
        check=False,
        timeout=50,
    )
    *changed, count = asked.stdout.decode().splitlines()
    assert changed == []
    assert int(count) > 300
    assert asked.stderr == b""


@pytest.mark.parametrize(
    "name",
    [
        *("antigravity", "this", "tkinter", "idlelib.run", "test.support", "readline", "ensurepip", "venv"),
        *("orjson", "yaml", "sample", "_thread", "json._x", "unittest.test", "json.__main__", "__main__"),
        *("", ".", "json.", ".json", "json..x", "json tool", "os;x", "jsön", "json\n", "json\0"),
    ],
)
def test_what_has_effects_or_is_not_of_the_standard_library_is_never_ready(name):
    assert not is_harmless(name)
    assert to_order([name]) == b"."


def test_a_request_is_short_for_any_number_of_imports():
    order = to_order(["json", *(f"concurrent.futures.x{number:030}" for number in range(10_000))])
    assert order.startswith(b". json ")
    assert len(order) <= ORDER_BYTES


def test_files_that_make_names_up_do_not_fill_the_launcher():
    code = (
        "from toolcrib.infra.sandbox.child import python_file\n"
        "for number in range(0, 20_000, 50):\n"
        "    python_file.preload(b'.' + b''.join(b' json.x%d' % (number + step) for step in range(50)))\n"
        "print(len(python_file._tried), python_file.MAX_TRIED)\n"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=50)
    tried, most = map(int, asked.stdout.split())
    assert most <= tried < most + 64


@pytest.mark.usefixtures("cold_launchers")
async def test_modules_that_one_file_imports_are_there_for_the_next(run):
    code = "import sys\nthere = 'decimal' in sys.modules\ndef main(): return there"
    fresh = host.Sandbox()
    try:
        assert await run(code, sandbox=fresh) is False
        assert await run(code, sandbox=fresh, imports=("decimal", "orjson", "this", "no.such")) is True
        assert await run(code, sandbox=fresh) is True
        loaded = "import sys\nthere = [name in sys.modules for name in ('orjson', 'this')]\ndef main(): return there"
        assert await run(loaded, sandbox=fresh) == [False, False]
    finally:
        fresh.close()


async def test_random_numbers_of_two_calls_differ_though_their_module_was_ready(run):
    code = "import random, uuid\ndef main(): return [random.random(), str(uuid.uuid4())]"
    answers = [await run(code, imports=("random", "uuid")) for _ in range(3)]
    assert len({value for answer in answers for value in answer}) == 6


async def test_a_launcher_keeps_no_descriptor_of_an_order(run, sandbox):
    def count():
        try:
            return len(list(Path(f"/proc/{sandbox._launcher.pid}/fd").iterdir()))
        except PermissionError:
            pytest.skip("only root sees into a launcher")

    await run("def main(): return 1", imports=("json", "asyncio", "decimal"))
    before = count()
    for _ in range(5):
        await run("def main(): return 1", imports=("json", "asyncio", "decimal"))
    assert count() <= before + 1  # the line to a process that waits for the next
