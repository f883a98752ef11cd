"""Environments that files declare or that lie beside them."""

import importlib.util
import io
import json
import shutil
import sys
import tarfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib import Kind, ToolError
from toolcrib.infra.sandbox import environments
from toolcrib.infra.sandbox.jobs import PythonFile
from wheels import make_wheel

PATH = Path("/tools/sample.py")
INSTALLERS = [name for name in ("pip", "uv") if importlib.util.find_spec(name)]


def block(*lines, kind="script"):
    return "\n".join([f"# /// {kind}", *lines, "# ///"]) + "\n"


def read(code):
    return environments.read_requirements(PATH, code.encode())


# --- the block ----------------------------------------------------------------------------------------------------------


def test_a_block_names_packages_and_pythons():
    code = "#!/usr/bin/env python\n" + block(
        '# requires-python = ">=3.11"',
        "# dependencies = [",
        '#   "requests<3",',
        '#   "rich",',
        "# ]",
        "#",
        "# [tool.x]",
    )
    expected = environments.Requirements(dependencies=("requests<3", "rich"), python=">=3.11")
    assert read(code) == expected
    assert read(code.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 1\n",
        "# /// script\n# dependencies = []\n",
        "# /// script\n# ///\n",
        "# /// script\n\n# dependencies = []\n# ///\n",
        "# /// script\n#dependencies = []\n# ///\n",
        " # /// script\n# dependencies = []\n# ///\n",
        "# /// script \n# dependencies = []\n# ///\n",
        "# ///script\n# dependencies = []\n# ///\n",
        "# /// scripts\n# dependencies = []\n# ///\n",
        "# /// other\n# /// script\n# dependencies = []\n# ///\n",
    ],
)
def test_what_only_looks_like_a_block_is_a_comment(code):
    assert read(code) is None


def test_a_block_ends_at_the_last_closing_line_of_the_comment():
    code = '# /// script\n# dependencies = ["a"]\n# [tool.x]\n# text = """\n# ///\n# """\n# ///\nx = 1\n# ///\n'
    assert read(code) == environments.Requirements(dependencies=("a",))


def test_another_block_beside_is_left_alone():
    assert read(
        block("# not toml", kind="other") + "\n" + block('# dependencies = ["a"]')
    ) == environments.Requirements(dependencies=("a",))


def test_two_blocks_are_refused():
    with pytest.raises(ToolError, match="there are 2 blocks '# /// script'; write one"):
        read(block("# dependencies = []") + "\n" + block("# dependencies = []"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("# dependencies = [", "sample.py: # /// script:1"),
        ("# dependencies = 'a'", "dependencies: must be a list of texts"),
        ("# dependencies = [1]", "dependencies: must be a list of texts"),
        ("# requires-python = 3", "requires-python: 3 names no versions"),
        ("# requires-python = 'new'", "requires-python: 'new' names no versions"),
    ],
)
def test_a_block_that_cannot_be_read_is_told_with_its_place(line, words):
    with pytest.raises(ToolError, match=words.replace("(", r"\(")) as caught:
        read(block(line))
    assert caught.value.kind is Kind.VALIDATION


@pytest.mark.parametrize(
    "entry",
    [
        *("--index-url=https://evil.example", "-e .", "-r /etc/passwd", ".", "./x", "/tmp/x.whl", "x.tar.gz @ x"),
        *(
            "a @ https://evil.example/a.whl",
            "git+https://evil.example/a",
            "file:///a",
            "a @ file:///a",
            "a\nb",
            "a --pre",
        ),
        *(
            "",
            " ",
            "a;b\nc",
            "a==1 --hash=x",
            "a b",
            "a=1",
            "a[",
            "ä",
            "a\0",
            "https://evil.example/a-1-py3-none-any.whl",
        ),
    ],
)
def test_a_dependency_is_a_name_with_versions_and_nothing_else(entry):
    with pytest.raises(ToolError, match="is not a name with versions; write 'name>=1.0'"):
        read(block(f"# dependencies = {json.dumps([entry])}"))


@pytest.mark.parametrize(
    "entry",
    [
        "a",
        "A.b_c-d",
        "a>=1",
        "a >= 1.0, < 2",
        "a[x, y]==1.*",
        "a(>=1)",
        "a~=1.4.2",
        "a; python_version < '3.12'",
        "a!=1.0",
    ],
)
def test_every_way_to_name_versions_is_taken(entry):
    assert read(block(f"# dependencies = {json.dumps([entry])}")).dependencies == (entry,)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ("", True),
        (">=3.11", True),
        (">=3.12.1", True),
        (">3.12.1", False),
        ("<3.13", True),
        ("<=3.12", False),
        ("<=3.12.1", True),
        ("==3.12.*", True),
        ("==3.11.*", False),
        ("==3.12.1", True),
        ("==3.12", False),
        ("!=3.12.*", False),
        ("!=3.12.2", True),
        ("~=3.11", True),
        ("~=3.12.0", True),
        ("~=3.11.0", False),
        (">=3.11, <3.12", False),
        ("<4,>=3.9", True),
    ],
)
def test_whether_a_file_runs_on_a_python_is_told_from_its_versions(asked, allowed):
    assert environments.Requirements(python=asked).allows((3, 12, 1)) is allowed


# --- finding ------------------------------------------------------------------------------------------------------------


def make_environment(folder, program=None):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(program or Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return folder / "bin" / "python"


def find(path, code="", *, root):
    found = environments.find_interpreter(path, code.encode(), root=root, envs=root / "envs", search_path="")
    return None if found is None else found.executable


def test_a_file_without_an_environment_runs_on_our_own_python(tmp_path):
    assert find(tmp_path / "a.py", root=tmp_path) is None
    assert find(tmp_path / "a.py", block("# dependencies = []"), root=tmp_path) is None


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_the_nearest_environment_up_to_the_root_is_found(tmp_path, name):
    root = tmp_path / "root"
    folder = root / "x" / "y"
    folder.mkdir(parents=True)
    make_environment(tmp_path / name)
    assert find(folder / "a.py", root=root) is None
    outer = make_environment(root / name)
    assert find(folder / "a.py", root=root) == outer
    inner = make_environment(folder / name)
    assert find(folder / "a.py", root=root) == inner


def test_a_file_outside_of_the_root_finds_only_what_is_beside_it(tmp_path):
    make_environment(tmp_path / ".venv")
    (tmp_path / "x").mkdir()
    assert find(tmp_path / "x" / "a.py", root=tmp_path / "root") is None
    beside = make_environment(tmp_path / "x" / "venv")
    assert find(tmp_path / "x" / "a.py", root=tmp_path / "root") == beside


def test_a_folder_that_is_only_called_like_an_environment_is_none(tmp_path):
    (tmp_path / "venv").mkdir()
    assert find(tmp_path / "a.py", root=tmp_path) is None


@pytest.mark.parametrize("where", ["root/own", "root/.venv/bin", "beside"])
def test_an_environment_of_a_python_that_the_operator_has_not_installed_is_refused(tmp_path, where):
    own, trace = tmp_path / where / "python3", tmp_path / "trace"
    own.parent.mkdir(parents=True)
    own.write_text(f"#!/bin/sh\ntouch {trace}\n")
    own.chmod(0o755)
    (tmp_path / "root" / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    (tmp_path / "root" / ".venv" / "bin" / "python").symlink_to(own)
    (tmp_path / "root" / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(
        ToolError, match="from a Python that is on the operator's PATH, or .* run crib prepare"
    ) as caught:
        find(tmp_path / "root" / "a.py", root=tmp_path / "root")
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert not trace.exists()


@pytest.mark.parametrize("target", ["..", "../../elsewhere/.venv", "../data"])
def test_an_environment_that_leads_elsewhere_is_passed_over_for_the_next(tmp_path, target, caplog):
    root = tmp_path / "root"
    (root / "x").mkdir(parents=True)
    for folder in (root, tmp_path / "elsewhere" / ".venv", root / "data"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyvenv.cfg").write_text("")
    outer = make_environment(root / "venv")
    (root / "x" / ".venv").symlink_to(target)
    assert find(root / "x" / "a.py", root=root) == outer
    assert "is ignored; install it in the project itself" in caplog.text


def test_a_link_to_another_environment_of_the_project_is_followed(tmp_path):
    make_environment(tmp_path / "shared" / ".venv")
    (tmp_path / ".venv").symlink_to("shared/.venv")
    assert find(tmp_path / "a.py", root=tmp_path) == tmp_path / ".venv" / "bin" / "python"


def test_an_environment_whose_python_has_gone_is_told_with_the_cure(tmp_path):
    make_environment(tmp_path / ".venv", tmp_path / "gone" / "python3")
    with pytest.raises(ToolError, match="make its environment again"):
        find(tmp_path / "a.py", root=tmp_path)


def test_declared_packages_that_are_not_installed_are_told_with_the_cure(tmp_path):
    make_environment(tmp_path / ".venv")
    with pytest.raises(ToolError, match="are not installed yet; run: crib prepare get_weather") as caught:
        find(tmp_path / "get_weather.py", block('# dependencies = ["a"]'), root=tmp_path)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


# --- preparing ----------------------------------------------------------------------------------------------------------


def make_source(folder, trace, name="crib_source", version="1.0"):
    """A source package whose build leaves a trace."""
    files = {
        "setup.py": f"open({str(trace)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name={name!r})\n",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    make_wheel(folder)
    return folder


# An environment that brings a pip of its own takes seconds to make.
@pytest.fixture(params=[*INSTALLERS, pytest.param("own pip", marks=pytest.mark.soak)])
def installer(request, monkeypatch):
    if request.param != "uv":
        monkeypatch.setattr(environments, "_find_uv", lambda: None)
    if request.param == "own pip":
        monkeypatch.setattr(environments, "_has_pip", lambda: False)
    return request.param


async def test_a_file_runs_with_the_packages_that_it_declared(installer, wheels, tmp_path, policy):
    path, envs = tmp_path / "sample.py", tmp_path / "envs"
    code = (
        block('# dependencies = ["crib-sample>=1"]') + "import crib_sample\ndef main(): return crib_sample.ANSWER"
    ).encode()
    said = []
    python = environments.prepare(path, code, envs=envs, wheels=wheels, progress=said.append)
    interpreter = environments.find_interpreter(path, code, root=tmp_path, envs=envs, search_path="")
    assert interpreter.executable == python
    assert [entry.name for entry in envs.iterdir()] == [python.parent.parent.name]
    assert said[0].startswith("making an environment with ")
    assert "installing crib-sample>=1" in said
    sandbox = make_sandbox(workspace=tmp_path)
    job = PythonFile(path=path, code=code, entry="main", arguments={}, policy=policy, interpreter=interpreter)
    try:
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    finally:
        sandbox.close()
    assert json.loads(ended.result) == {"value": 42}


def test_packages_are_compiled_when_they_are_installed_since_the_sandbox_cannot_write_bytecode(
    installer, wheels, tmp_path
):
    code = block('# dependencies = ["crib-sample"]').encode()
    python = environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", wheels=wheels)
    (source,) = python.parent.parent.rglob("crib_sample.py")
    assert Path(importlib.util.cache_from_source(str(source))).is_file()


def test_no_code_of_a_package_runs_outside_the_sandbox_when_it_is_installed(installer, tmp_path):
    wheels, trace = tmp_path / "wheels", tmp_path / "trace"
    wheels.mkdir()
    act = f"open({str(trace)!r}, 'a').write('ran\\n')\n"
    startup = {"compileall.py": act, "crib.pth": f"import sys; {act}", "sitecustomize.py": act, "usercustomize.py": act}
    make_wheel(wheels, text=act, more=startup)
    code = block('# dependencies = ["crib-sample"]').encode()
    python = environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", wheels=wheels)
    assert "crib_sample 1.0" in environments.list_packages(python)
    environments.find_interpreter(tmp_path / "a.py", code, root=tmp_path, envs=tmp_path / "envs", search_path="")
    assert not trace.exists()


def test_a_package_that_puts_a_program_in_place_of_python_is_refused_and_never_started(
    installer, tmp_path, monkeypatch
):
    wheels, trace, envs = tmp_path / "wheels", tmp_path / "trace", tmp_path / "envs"
    wheels.mkdir()
    program = f"#!/bin/sh\necho ran >> {trace}\n"
    make_wheel(wheels, more={f"crib_sample-1.0.data/scripts/{name}": program for name in ("python", "python3")})
    # The Python that is chosen for the file is none that is known otherwise.
    own = environments.own_interpreter()
    monkeypatch.setattr(environments, "own_interpreter", lambda: replace(own, version=(3, 10, 0)))
    path, search_path = tmp_path / "a.py", str(own.program.resolve().parent)
    version = ".".join(map(str, own.version[:2]))
    code = block(f'# requires-python = "=={version}.*"', '# dependencies = ["crib-sample"]').encode()
    with pytest.raises(ToolError, match="in place of Python|reserved name `python"):
        environments.prepare(path, code, envs=envs, search_path=search_path, wheels=wheels)
    with pytest.raises(ToolError, match="not installed yet"):
        environments.find_interpreter(path, code, root=tmp_path, envs=envs, search_path=search_path)
    assert not trace.exists()


def test_a_package_that_would_have_to_be_built_is_refused_and_nothing_stays(installer, wheels, tmp_path):
    trace, envs = tmp_path / "trace", tmp_path / "envs"
    make_source(wheels, trace)
    code = block('# dependencies = ["crib-sample", "crib-source"]').encode()
    with pytest.raises(ToolError, match="its packages cannot be installed") as caught:
        environments.prepare(tmp_path / "a.py", code, envs=envs, wheels=wheels)
    assert caught.value.kind is Kind.PERMANENT
    assert "crib-source" in caught.value.message
    assert not trace.exists()
    assert list(envs.iterdir()) == []


@pytest.mark.skipif("uv" not in INSTALLERS, reason="pip reads no settings of a project")
def test_settings_of_the_project_do_not_reach_the_installer(wheels, tmp_path, monkeypatch):
    (tmp_path / "uv.toml").write_text("this is not a setting of the operator")
    monkeypatch.chdir(tmp_path)
    code = block('# dependencies = ["crib-sample"]').encode()
    assert environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", wheels=wheels).exists()


def test_preparing_twice_installs_once(wheels, tmp_path):
    code = block('# dependencies = ["crib-sample"]').encode()
    first = environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", wheels=wheels)
    said = []
    assert (
        environments.prepare(tmp_path / "b.py", code, envs=tmp_path / "envs", wheels=wheels, progress=said.append)
        == first
    )
    assert said == []


def test_packages_that_a_file_is_known_to_need_are_installed_and_found_without_a_block(wheels, tmp_path):
    path, envs = tmp_path / "a.py", tmp_path / "envs"
    asked = {"root": tmp_path, "envs": envs, "search_path": "", "packages": ("crib-sample",)}
    assert environments.find_interpreter(path, b"", **asked) is None
    python = environments.prepare(path, b"", envs=envs, wheels=wheels, packages=("crib-sample",))
    assert environments.find_interpreter(path, b"", **asked).executable == python
    declared = block("# dependencies = []").encode()
    assert environments.find_interpreter(path, declared, **asked) is None


def test_two_who_prepare_the_same_at_once_both_have_it(wheels, tmp_path):
    code = block('# dependencies = ["crib-sample"]').encode()
    found = []
    work = lambda: found.append(environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", wheels=wheels))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert len(found) == 2
    assert found[0] == found[1]
    assert len(list((tmp_path / "envs").iterdir())) == 1


def test_nothing_is_made_for_a_file_that_declares_nothing(tmp_path):
    for code in (b"x = 1", block("# dependencies = []").encode()):
        assert environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs") is None
    assert not (tmp_path / "envs").exists()


def test_an_installation_that_takes_too_long_is_ended_and_leaves_nothing(monkeypatch, tmp_path, marker, holders):
    slow = tmp_path / "uv"
    slow.write_text(f"#!/bin/sh\necho working; sleep {marker} & sleep {marker}\n")
    slow.chmod(0o755)
    monkeypatch.setattr(environments, "_find_uv", lambda: str(slow))
    code = block('# dependencies = ["a"]').encode()
    with pytest.raises(ToolError, match="took too long") as caught:
        environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", seconds=0.3)
    assert caught.value.kind is Kind.TIMEOUT
    assert "working" in caught.value.message
    assert list((tmp_path / "envs").iterdir()) == []
    assert holders() == []


def test_an_interrupted_installation_leaves_nothing(monkeypatch, tmp_path, marker, holders):
    slow = tmp_path / "uv"
    slow.write_text(f"#!/bin/sh\necho working; sleep {marker}\n")
    slow.chmod(0o755)
    monkeypatch.setattr(environments, "_find_uv", lambda: str(slow))

    def interrupt(line):
        if line == "working":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environments.prepare(
            tmp_path / "a.py", block('# dependencies = ["a"]').encode(), envs=tmp_path / "envs", progress=interrupt
        )
    assert list((tmp_path / "envs").iterdir()) == []
    assert holders() == []


def test_what_a_killed_process_left_behind_is_swept_after_a_day(wheels, tmp_path):
    import os

    envs = tmp_path / "envs"
    for name, hours in (("old", 25), ("new", 23)):
        (envs / f".making-{name}").mkdir(parents=True)
        moment = time.time() - hours * 3600
        os.utime(envs / f".making-{name}", (moment, moment))
    environments.prepare(
        tmp_path / "a.py", block('# dependencies = ["crib-sample"]').encode(), envs=envs, wheels=wheels
    )
    assert [entry.name for entry in envs.iterdir() if entry.name.startswith(".making")] == [".making-new"]


def test_a_file_that_needs_another_python_says_so_when_there_is_none(tmp_path):
    code = block('# requires-python = ">=3.99"').encode()
    with pytest.raises(ToolError, match="no Python on this machine is >=3.99; install one"):
        environments.prepare(tmp_path / "a.py", code, envs=tmp_path / "envs", search_path=str(tmp_path))
    with pytest.raises(ToolError, match="run: crib prepare a"):
        environments.find_interpreter(tmp_path / "a.py", code, root=tmp_path, envs=tmp_path / "envs", search_path="")


@pytest.fixture
def passing_on(tmp_path):
    """A python3.19 that only passes on to a Python in a folder that is on no search path."""
    behind = tmp_path / "versions" / "python3.19"
    behind.parent.mkdir()
    base = Path(sys.executable).resolve()
    said = {"version": [3, 19, 2], "base": "/", "own": [], "packages": []}
    behind.write_text(
        f'#!/bin/sh\ncase "$*" in *sysconfig*) echo \'{json.dumps(said)}\';; *) exec "{base}" "$@";; esac\n'
    )
    other = tmp_path / "bin" / "python3.19"
    other.parent.mkdir()
    making = f'mkdir -p "$5/bin"; ln -s "{behind}" "$5/bin/python"; touch "$5/pyvenv.cfg"'
    other.write_text(f'#!/bin/sh\ncase "$*" in *"-m venv"*) shift; {making};; *) exec "{behind}" "$@";; esac\n')
    for program in (behind, other):
        program.chmod(0o755)
    return other, behind


def test_a_file_that_needs_another_python_is_given_one_that_is_installed(tmp_path, monkeypatch, passing_on):
    other, behind = passing_on
    monkeypatch.setattr(environments, "_find_uv", lambda: None)
    monkeypatch.setattr(environments, "_has_pip", lambda: True)
    code, envs = block('# requires-python = "==3.19.*"').encode(), tmp_path / "envs"
    python = environments.prepare(tmp_path / "a.py", code, envs=envs, search_path=str(other.parent))
    assert python.exists()
    found = environments.find_interpreter(tmp_path / "a.py", code, root=tmp_path, envs=envs, search_path="")
    assert (found.executable, found.program) == (python, behind)


def test_a_python_that_took_the_place_of_the_chosen_one_is_refused(tmp_path, monkeypatch, passing_on):
    other, behind = passing_on
    monkeypatch.setattr(environments, "_find_uv", lambda: None)
    monkeypatch.setattr(environments, "_has_pip", lambda: True)
    code, envs = block('# requires-python = "==3.19.*"').encode(), tmp_path / "envs"
    python = environments.prepare(tmp_path / "a.py", code, envs=envs, search_path=str(other.parent))
    python.unlink()
    python.symlink_to(shutil.copy(behind, tmp_path / "python3.19"))
    with pytest.raises(ToolError, match="a Python that is on the operator's PATH"):
        environments.find_interpreter(tmp_path / "a.py", code, root=tmp_path, envs=envs, search_path=str(other.parent))


def test_no_other_python_is_looked_for_than_along_the_path_that_is_handed_in(tmp_path, monkeypatch, passing_on):
    monkeypatch.setenv("PATH", str(passing_on[0].parent))
    with pytest.raises(ToolError, match="no Python on this machine is ==3.19"):
        environments.prepare(
            tmp_path / "a.py", block('# requires-python = "==3.19.*"').encode(), envs=tmp_path / "envs"
        )
