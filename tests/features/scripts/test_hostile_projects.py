"""Projects whose authors mean harm: what lies in them, links and all, is never started by the host and opens nothing."""

import os
import sys
import sysconfig
import threading
from pathlib import Path

import pytest

from toolcrib import Crib, Kind, ToolError

BASE = Path(sys.executable).resolve()
PACKAGES = Path("lib", f"python{sysconfig.get_python_version()}", "site-packages")
GREET = "def main(): return 'Hello!'\n"
READ = """
def main(path: str):
    try:
        return open(path).read()
    except OSError as problem:
        return type(problem).__name__
"""
READ_IN_NODE = """
try { console.log(require('node:fs').readFileSync(process.argv[3], 'utf8')) } catch (problem) { console.log(problem.code) }
"""


@pytest.fixture
def secret(tmp_path):
    """Something of the operator's that no tool was given."""
    path = tmp_path / "operator" / "secret"
    path.parent.mkdir()
    path.write_text("swordfish")
    return path


@pytest.fixture
def promptly():
    """Do something that might hang; it has a few seconds."""

    def promptly(do):
        ended = []

        def work():
            try:
                ended.append(do())
            except ToolError as problem:
                ended.append(problem)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(25)
        assert ended, "it hangs"
        return ended[0]

    return promptly


def make_environment(folder, program=BASE):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(program)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / PACKAGES).mkdir(parents=True)
    return folder


def python(bench, code, **more):
    return bench.file("n/sample.py", code, "python_runtime", language="python", convention="keywords", **more)


def javascript(bench, code=READ_IN_NODE):
    return bench.file("n/sample.js", code, "node_runtime", language="javascript")


def plant(path, trace):
    """A program that leaves a trace where it runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {trace}\n")
    path.chmod(0o755)
    return path


# --- nothing of a project is started ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["python3", "proj/python3", "proj/.ai/tools/x/.venv/bin/python3"])
async def test_a_cloned_repository_runs_nothing_when_its_tools_are_explained(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    trace, project = tmp_path / "trace", tmp_path / "repo" / "proj"
    folder = project / ".ai" / "tools" / "x"
    evil = plant(tmp_path / "repo" / place, trace)
    (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / ".venv" / "bin" / "python").symlink_to(os.path.relpath(evil, folder / ".venv" / "bin"))
    (project / "toolcrib.toml").write_text("")
    (folder / "greet.py").write_text(
        '__tool_type__ = "script"\n__executor_id__ = "python_runtime"\n__version__ = "1.0.0"\n__category__ = "x"\n'
        f'__tool_description__ = "Greet."\n{GREET}'
    )
    async with Crib(project) as crib:
        explained = str(crib.explain("greet"))
        result = await crib.call("greet", {})
    assert not trace.exists()
    assert result.error.kind is Kind.EXECUTOR_NOT_FOUND
    assert "a Python that is on the operator's PATH" in result.error.message
    assert "a Python that is on the operator's PATH" in explained


def test_a_python_that_lies_in_the_workspace_is_none_of_the_operators_even_on_their_path(bench, tmp_path):
    trace = tmp_path / "trace"
    evil = plant(bench.workspace / "bin" / "python3", trace)
    bench.search_path = f"{evil.parent}:{bench.search_path}"
    make_environment(bench.folder / "n" / ".venv", evil)
    with pytest.raises(ToolError, match="a Python that is on the operator's PATH"):
        bench.check(python(bench, GREET))
    assert not trace.exists()


def test_only_the_path_that_was_handed_in_says_what_the_operator_has_installed(bench, tmp_path, monkeypatch):
    trace = tmp_path / "trace"
    other = plant(tmp_path / "elsewhere" / "python3", trace)
    monkeypatch.setenv("PATH", f"{other.parent}:{bench.search_path}")
    make_environment(bench.folder / "n" / ".venv", other)
    with pytest.raises(ToolError, match="a Python that is on the operator's PATH"):
        bench.check(python(bench, GREET))
    assert not trace.exists()


# --- nothing of a project opens the disk --------------------------------------------------------------------------------


async def test_modules_that_lead_out_of_the_project_open_nothing(bench, secret):
    for target in (Path("/"), secret.parent):
        (bench.folder / "n").mkdir(exist_ok=True)
        (bench.folder / "n" / "node_modules").symlink_to(target)
        assert "swordfish" not in str(await bench.value(javascript(bench), path=str(secret)))
        (bench.folder / "n" / "node_modules").unlink()


async def test_modules_that_lead_to_another_folder_of_the_project_do_not_open_it(bench, workspace):
    (workspace / "data").write_text("swordfish")
    (bench.folder / "n").mkdir()
    (bench.folder / "n" / "node_modules").symlink_to(workspace)
    assert "swordfish" not in str(await bench.value(javascript(bench), path=str(workspace / "data")))


@pytest.mark.parametrize("target", [Path("/"), None])
async def test_a_path_file_opens_nothing_outside_of_its_environment(bench, secret, target):
    environment = make_environment(bench.folder / "n" / ".venv")
    (environment / PACKAGES / "x.pth").write_text(f"{target or secret.parent}\n")
    assert await bench.value(python(bench, READ), path=str(secret)) == "PermissionError"


@pytest.mark.parametrize("place", [PACKAGES, PACKAGES.parent, Path("lib")])
async def test_packages_that_lead_out_of_their_environment_open_nothing(bench, secret, place):
    environment = make_environment(bench.folder / "n" / ".venv")
    outside = secret.parent / PACKAGES.relative_to(place)
    outside.mkdir(parents=True, exist_ok=True)
    (environment / place).rename(environment / "moved")
    (environment / place).symlink_to(secret.parent)
    (outside / "found").write_text("swordfish")
    assert await bench.value(python(bench, READ), path=str(outside / "found")) == "PermissionError"
    assert await bench.value(python(bench, READ), path=str(secret)) == "PermissionError"


async def test_an_environment_that_leads_out_of_the_project_is_passed_over(bench, secret):
    make_environment(secret.parent / "venv")
    (bench.folder / "n").mkdir()
    (bench.folder / "n" / ".venv").symlink_to(secret.parent / "venv")
    (secret.parent / "venv" / "private").write_text("swordfish")
    path = str(secret.parent / "venv" / "private")
    assert await bench.value(python(bench, READ), path=path) == "PermissionError"
    assert "swordfish" not in str(await bench.value(javascript(bench), path=path))


@pytest.mark.parametrize("place", ["node_modules/.bin/x", ".venv/bin/x", "x"])
async def test_a_link_to_a_program_opens_nothing_around_it(bench, secret, place, tmp_path):
    outside = tmp_path / "operator" / "bin" / "x"
    outside.parent.mkdir()
    outside.write_text('#!/bin/sh\ncat "$0" "$@" 2> /dev/null; echo ended\n')
    outside.chmod(0o755)
    (tmp_path / "operator" / "lib").mkdir()
    (tmp_path / "operator" / "lib" / "private").write_text("swordfish")
    make_environment(bench.folder / ".venv")
    (bench.folder / place).parent.mkdir(parents=True, exist_ok=True)
    (bench.folder / place).symlink_to(outside)
    tool = bench.tool(
        config={"command": "./x" if place == "x" else "x", "args": [str(tmp_path / "operator/lib/private")]}
    )
    with pytest.raises(ToolError, match="was not found") as caught:
        await bench.call(tool)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


async def test_a_program_that_only_its_author_names_opens_itself_alone(bench, tmp_path):
    outside = tmp_path / "operator" / "bin" / "x"
    outside.parent.mkdir(parents=True)
    outside.write_text('#!/bin/sh\ncat "$@" 2> /dev/null; echo ended\n')
    outside.chmod(0o755)
    (tmp_path / "operator" / "lib").mkdir()
    (tmp_path / "operator" / "lib" / "private").write_text("swordfish")
    tool = bench.tool(config={"command": str(outside), "args": [str(tmp_path / "operator/lib/private")]})
    assert await bench.value(tool) == "ended"
    bench.search_path = f"{outside.parent}:{bench.search_path}"
    assert "swordfish" in await bench.value(tool)


async def test_a_mark_in_the_project_does_not_make_an_environment_of_it(bench, workspace):
    (workspace / "data").write_text("swordfish")
    project = bench.folder.parent.parent
    (project / "pyvenv.cfg").write_text("")
    (project / "bin").mkdir()
    (project / "bin" / "x").symlink_to("/bin/cat")
    outcome = await bench.call(bench.tool(config={"command": "../../bin/x", "args": [str(workspace / "data")]}))
    assert "swordfish" not in str(outcome)


# --- nothing of a project holds the host up -----------------------------------------------------------------------------


def hang(path, how):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(path)
    elif how == "endless":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.name)


HOW = pytest.mark.parametrize("how", ["pipe", "endless", "loop"])


@HOW
def test_what_only_passes_for_a_package_is_passed_over(bench, promptly, how):
    hang(bench.folder / "package.json", how)
    tool = javascript(bench, "require('node:os')")
    assert promptly(lambda: bench.check(tool)) is None


@HOW
def test_what_only_passes_for_a_path_file_is_passed_over(bench, promptly, how):
    environment = make_environment(bench.folder / "n" / ".venv")
    hang(environment / PACKAGES / "x.pth", how)
    assert promptly(lambda: bench.check(python(bench, GREET))) is None


@HOW
def test_what_only_passes_for_the_settings_of_an_environment_makes_none(bench, promptly, how):
    environment = make_environment(bench.folder / "n" / ".venv")
    hang(environment / "pyvenv.cfg", how)
    assert promptly(lambda: bench.check(python(bench, GREET))) is None
    assert promptly(lambda: bench.check(javascript(bench))) is None


@HOW
def test_what_took_the_place_of_a_script_is_refused(bench, promptly, how):
    tool = bench.file("greet.sh", "echo", "bash", language="bash")
    hang(bench.folder / "greet.sh", how)
    problem = promptly(lambda: bench.check(tool))
    assert problem.kind is Kind.NOT_FOUND
    assert "greet.sh cannot be read any more" in problem.message


@HOW
def test_what_only_passes_for_a_program_is_not_found(bench, promptly, how):
    hang(bench.folder / "x", how)
    problem = promptly(lambda: bench.check(bench.tool(config={"command": "./x"})))
    assert problem.kind is Kind.EXECUTOR_NOT_FOUND
