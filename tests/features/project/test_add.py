"""`crib add`: a file lands in its place and it is said what it became, or nothing is copied and it is said why."""

from __future__ import annotations

import json
import os
import shutil
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Crib

ROOT = Path(__file__).parents[3]
GREET = '''def greet(name: str, times: int = 1) -> str:
    """Greet a person."""
    return name * times
'''
SLUG = '''__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "text"
__tool_description__ = "Make a slug"


def main(title: str) -> str:
    """Make a slug."""
    return title.lower()
'''
AddCommand = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "toolcrib.toml").write_text("")
    return folder


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


@pytest.fixture
def add(project: Path, cli: Callable[..., Any]) -> AddCommand:
    def run(*words: object) -> tuple[int, str, str]:
        ended = cli("add", "-C", str(project), *map(str, words))
        return ended.code, ended.out, ended.err

    return run


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def files_of(project: Path) -> list[str]:
    found = (path.relative_to(project) for path in project.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.parts[0] != ".toolcrib" and path.name != "toolcrib.toml")


def test_a_plain_file_becomes_a_tool_that_can_be_called(add: AddCommand, project: Path, given: Path) -> None:
    code, out, _ = add(write(given / "greet.py", GREET))
    assert code == 0
    assert out == "tools/greet.py is the tool greet (script), which takes name, times; nothing is missing\n"
    with Crib(project) as crib:
        assert crib.call_sync("greet", name="Ada", times=2).value == "AdaAda"


def test_a_file_with_metadata_goes_into_the_tree_of_scripts_by_its_category(
    add: AddCommand, project: Path, given: Path
) -> None:
    code, out, _ = add(write(given / "slug.py", SLUG))
    assert code == 0
    assert out.startswith(".ai/tools/text/slug.py is the tool slug (script), which takes title")
    assert files_of(project) == [".ai/tools/text/slug.py"]
    with Crib(project) as crib:
        assert not crib.problems
        assert crib.find("slug") is not None


def test_a_file_with_metadata_and_no_category_is_told_what_to_write(
    add: AddCommand, project: Path, given: Path
) -> None:
    code, _, err = add(write(given / "slug.py", SLUG.replace('__category__ = "text"\n', "")))
    assert code == 1
    assert '__category__ = "general"' in err
    assert files_of(project) == []


def test_a_category_leads_nowhere_out_of_the_tree(add: AddCommand, project: Path, given: Path) -> None:
    code, _, err = add(write(given / "slug.py", SLUG.replace('"text"', '"../../etc"')))
    assert code == 1
    assert "__category__" in err
    assert files_of(project) == []


def test_a_variable_that_is_not_granted_is_missing(add: AddCommand, given: Path) -> None:
    config = {"url": "https://api.example.com/${API_KEY}", "method": "GET"}
    names = {"tool_id": "get-rates", "tool_type": "http", "executor_id": "http_client", "category": "net"}
    document = {**names, "version": "1.0.0", "description": "Get the rates", "config": config}
    code, out, err = add("--json", write(given / "get-rates.json", json.dumps(document)))
    assert code == 0, err
    (facts,) = json.loads(out)
    assert facts["file"] == ".ai/tools/net/get-rates.json"
    assert any(line.startswith("the variable or secret API_KEY; ") for line in facts["missing"])


def test_a_document_brings_the_program_that_it_describes(add: AddCommand, project: Path) -> None:
    scripts = ROOT / "examples/scripts/.ai/tools"
    code, out, err = add(*sorted(scripts.glob("numbers/*")), scripts / "runtimes/awk_runtime.yaml")
    assert code == 0, err
    assert "is the tool fibonacci" in out
    assert files_of(project) == [
        ".ai/tools/numbers/fibonacci.awk",
        ".ai/tools/numbers/fibonacci.yaml",
        ".ai/tools/runtimes/awk_runtime.yaml",
    ]


def test_a_tool_folder_is_copied_whole_and_has_to_be_built(add: AddCommand, project: Path) -> None:
    code, out, err = add(f"{ROOT / 'examples/folders/tools/refund-order'}/")
    assert code == 0, err
    assert out.startswith("tools/refund-order is the tool refund_order (handler), which takes order_id, amount; ")
    assert "run: crib build" in out
    names = ("doc.md", "doc_summary.md", "handler.py", "schema.json")
    assert files_of(project) == [f"tools/refund-order/{name}" for name in names]


def test_a_link_in_a_tool_folder_is_not_followed(add: AddCommand, project: Path, given: Path) -> None:
    shutil.copytree(ROOT / "examples/folders/tools/order-status", given / "order-status")
    (given / "key.txt").write_text("my own key")
    (given / "order-status" / "notes.txt").symlink_to(given / "key.txt")
    code, _, said = add(given / "order-status")
    assert code == 1
    assert "order-status/notes.txt: it is a symbolic link; put the file itself there" in said
    assert not (project / "tools").exists()


@pytest.mark.parametrize("name", [".env", "conftest.py", ".vscode/tasks.json", "sub/.ENV", "server.pem", "sub/HEAD"])
def test_a_tool_folder_brings_no_secret_and_nothing_that_the_host_runs_by_itself(
    add: AddCommand, project: Path, given: Path, name: str
) -> None:
    shutil.copytree(ROOT / "examples/folders/tools/order-status", given / "order-status")
    (given / "order-status" / name).parent.mkdir(exist_ok=True)
    (given / "order-status" / name).write_text("print(1)\n")
    code, _, said = add(given / "order-status")
    assert code == 1
    assert f"order-status/{name}: it is a secret, or something that git, a shell or an editor runs by itself" in said
    assert not (project / "tools").exists()


def test_a_file_that_pytest_runs_by_itself_is_no_tool(add: AddCommand, project: Path, given: Path) -> None:
    (given / "conftest.py").write_text(GREET)
    code, _, said = add(given / "conftest.py")
    assert code == 1
    assert "conftest.py: it is a secret, or something that git" in said
    assert not (project / "tools").exists()


def test_what_is_missing_is_said_with_its_cure(
    add: AddCommand, given: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    block = '# /// script\n# dependencies = ["nobody-has-this"]\n# ///\n__requires__ = ["net.http"]\n'
    _, out, _ = add("--json", write(given / "fetch_page.py", block + GREET.replace("greet", "fetch_page")))
    (facts,) = json.loads(out)
    assert facts["name"] == "fetch_page"
    assert facts["parameters"] == ["name", "times"]
    assert [line.partition(";")[0] for line in facts["missing"]] == [
        "the grant of net.http",
        "packages that are not installed",
    ]
    assert facts["missing"][1].endswith("crib prepare fetch_page")


def test_a_javascript_file_needs_node(add: AddCommand, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(given))
    monkeypatch.setattr("toolcrib.infra.programs.executables._packaged_node", lambda: None)
    code, out, _ = add(write(given / "double.js", "/** Double. */\nexport function main({ n }) { return n * 2; }\n"))
    assert code == 0
    assert "it needs something to run it: the command 'node' was not found; install Node, or the extra " in out


def test_nothing_is_overwritten_unless_that_is_asked_for(add: AddCommand, project: Path, given: Path) -> None:
    path = write(given / "greet.py", GREET)
    add(path)
    write(path, GREET.replace("name * times", "'new'"))
    code, out, err = add(path)
    assert (code, out) == (1, "")
    assert f"tools/greet.py is there already; to replace it write: crib add --replace {path}" in err
    assert (project / "tools/greet.py").read_text() == GREET
    assert add("--replace", path)[0] == 0
    assert "'new'" in (project / "tools/greet.py").read_text()


def test_replacing_a_link_leaves_the_file_it_leads_to(add: AddCommand, project: Path, given: Path) -> None:
    other = write(given / "other.txt", "mine")
    (project / "tools").mkdir()
    (project / "tools/greet.py").symlink_to(other)
    assert add(write(given / "greet.py", GREET))[0] == 1
    assert add("--replace", given / "greet.py")[0] == 0
    assert other.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("broken.py", "def broken(:\n", "broken.py:1"),
        ("empty.py", "", "no public function"),
        ("backup", "#!/usr/bin/env bash\necho hi\n", "its name has no suffix"),
        ("notes.md", "# Notes", "no tool was found in it"),
        ("package.json", "{}", "belongs to the project"),
        ("request.yaml", "tool_request:\n  name: x\n", "crib request submit"),
        ("weather.json", '{"slug": "w", "argSchema": {}}', "impl is missing"),
        ("large.py", "#" * 300_000, "larger than"),
    ],
)
def test_what_is_no_tool_is_refused_with_the_reason_and_nothing_is_copied(
    add: AddCommand, project: Path, given: Path, name: str, text: str, reason: str
) -> None:
    code, out, err = add(write(given / "greet.py", GREET), write(given / name, text))
    assert (code, out) == (1, "")
    assert reason in err
    assert str(given / name) in err
    # The file as it was named: a command that is copied from the message finds it.
    assert "crib-add-" not in err
    assert err.endswith("crib: nothing was copied\n")
    assert files_of(project) == []


def test_folders_and_pipes_that_are_no_tools_are_refused(add: AddCommand, project: Path, given: Path) -> None:
    os.mkfifo(given / "pipe.py")
    assert "not a regular file" in add(given / "pipe.py")[2]
    assert "schema.json is missing" in add(given)[2]
    assert f"crib bundle load {ROOT / 'examples/http'}" in add(ROOT / "examples/http")[2]
    assert "No such file" in add(given / "absent.py")[2]
    assert files_of(project) == []


def test_a_broken_tool_folder_is_refused_with_what_a_build_would_say(
    add: AddCommand, project: Path, given: Path
) -> None:
    folder = given / "refund-order"
    shutil.copytree(ROOT / "examples/folders/tools/refund-order", folder)
    (folder / "handler.py").unlink()
    code, _, err = add(folder)
    assert code == 1
    assert "handler" in err
    assert files_of(project) == []


def test_adding_runs_nothing_of_the_file(add: AddCommand, given: Path) -> None:
    trace = given / "trace"
    assert add(write(given / "greet.py", f"open({str(trace)!r}, 'w')\n{GREET}"))[0] == 0
    assert not trace.exists()


def test_packages_of_the_projects_own_environment_are_not_missing(project: Path, given: Path, add: AddCommand) -> None:
    text = "from fastmcp import FastMCP\nmcp = FastMCP()\n@mcp.tool\ndef half(x: int) -> float:\n    'Half.'\n    return x / 2\n"
    file = write(given / "half.py", text)
    assert "packages that are not installed; run: crib prepare half" in add(file)[1]
    venv.create(project / ".venv", symlinks=True, with_pip=False)
    code, out, _ = add("--replace", file)
    assert (code, "packages" in out) == (0, False)


def test_a_refusal_is_one_sentence_that_names_the_file_as_it_was_named(add, given):
    file = given / "tasks.js"
    file.write_text("exports.list = () => [];\nexports.find = (a) => a;\n")
    code, out, err = add(file)
    assert (code, out) == (1, "")
    first, last = err.splitlines()
    assert first == (
        f"crib: {file}:1: which function is the tool? it exports list, find; "
        "call one of them main, export it as the default, or list them in __tools__"
    )
    assert last == "crib: nothing was copied"


SERVER = """from fastmcp import FastMCP

mcp = FastMCP("Texts")


@mcp.tool
def echo(text: str) -> str:
    'Echo a text.'
    return text


@mcp.tool(enabled=False)
def hidden() -> str:
    'Not offered.'
    return "no"
"""


def test_one_tool_that_cannot_be_offered_does_not_keep_the_others_of_its_file_away(add, given, project):
    (given / "texts.py").write_text(SERVER)
    code, out, _ = add(given / "texts.py")
    assert code == 0
    assert "tools/texts.py is the tool echo" in out
    assert "warning: tools/texts.py:13: hidden is switched off in the file (enabled=False)" in out
    assert (project / "tools" / "texts.py").read_text() == SERVER


def test_a_package_of_node_that_is_not_there_is_missing(add, given):
    (given / "report.cjs").write_text(
        "const { program } = require('commander');\nprogram.argument('<city>');\nprogram.parse();\n"
    )
    _, out, _ = add(given / "report.cjs")
    assert "it needs the Node package commander, which is not installed near it; run: npm install commander" in out


def test_programs_that_no_format_reads_are_named_and_what_is_broken_is_named_once(project, cli):
    (project / "tools").mkdir()
    (project / "tools" / "sum.rb").write_text("puts 1")
    (project / "tools" / "tasks.js").write_text("exports.list = () => [];\nexports.find = (a) => a;\n")
    lines = cli("check", "-C", str(project)).out.splitlines()
    assert [line for line in lines if "sum.rb" in line] == [
        "ignored: tools/sum.rb: files of this kind are not tools; describe it in a .yaml file beside it, or move it to another folder"
    ]
    (line,) = [line for line in lines if "tasks.js" in line]
    assert line.startswith("problem: tools/tasks.js:1: which function is the tool?")
