"""`crib check` and `crib doctor` end with 1 where a tool could not run on this machine, and name the file and what mends it."""

import json
import os
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib import Crib
from toolcrib.interfaces.cli import project_commands

SCRIPT = """\
tool_id: {name}
tool_type: script
version: "1.0.0"
description: "Do something useful for a person"
executor_id: {executor}
category: jobs
requires: {requires}
config:
{config}
parameters:
  - name: word
    type: string
    description: A word
    required: true
"""


@pytest.fixture
def broken(project, monkeypatch, cli, tmp_path_factory):
    """Run `check` and `doctor` in a project: their exit codes, which must be the same, and the problems that they name."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    (project / "toolcrib.toml").write_text(
        'builtins.enabled = false\n[grants]\n"*" = ["fs.*", "net.http", "shell.execute"]\n'
    )

    def run() -> tuple[int, list[str]]:
        checked = cli("check", "--json")
        cured = cli("doctor", "--json")
        problems = json.loads(checked.out)["problems"]
        assert (cured.code, json.loads(cured.out)["problems"]) == (checked.code, problems)
        return checked.code, problems

    return run


def write_script(project: Path, name: str, *, executor: str = "subprocess", requires: str = "[]", config: str) -> None:
    folder = project / ".ai" / "tools" / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    text = SCRIPT.format(name=name, executor=executor, requires=requires, config=config)
    (folder / f"{name}.yaml").write_text(text)


def write_tool(project: Path, name: str, code: str) -> None:
    (project / "tools" / name).write_text(code)


def test_a_project_in_order_ends_well(broken, project):
    write_tool(project, "double.py", 'def double(n: int) -> int:\n    """Double."""\n    return 2 * n\n')
    assert broken() == (0, [])


def test_no_node(broken, project, monkeypatch):
    monkeypatch.setenv("PATH", str(project))
    monkeypatch.setattr("toolcrib.infra.programs.executables._packaged_node", lambda: None)
    write_tool(project, "double.js", "/** Double. */\nexport function double({ n }) { return n * 2; }\n")
    cure = "install Node, or the extra toolcrib[node]"
    assert broken() == (1, [f"tools/double.js:1: the command 'node' was not found; {cure}"])


def test_no_program(broken, project):
    write_script(project, "deploy", requires="[shell.execute]", config="  command: no-such-program")
    code, (problem,) = broken()
    assert (
        code,
        problem.startswith(".ai/tools/jobs/deploy.yaml:1: the command 'no-such-program' was not found; "),
    ) == (1, True)


def test_an_unknown_executor(broken, project):
    write_script(project, "deploy", executor="pyhton_runtime", config="  command: echo")
    code, (problem,) = broken()
    assert code == 1
    assert problem.startswith(
        ".ai/tools/jobs/deploy.yaml:1: deploy: there is no executor 'pyhton_runtime' in its space or below; name one"
    )


def test_a_misspelt_slot(broken, project):
    write_script(project, "deploy", requires="[shell.execute]", config='  command: echo\n  args: ["{wrod}"]')
    code, (problem,) = broken()
    assert code == 1
    assert problem.startswith(
        ".ai/tools/jobs/deploy.yaml:1: config.args: {wrod} is neither a parameter nor a name of the platform; declare"
    )


def test_a_misspelt_slot_of_a_request(broken, project):
    config = '  method: GET\n  url: "https://api.example.com/{wrod}"'
    write_script(project, "ask", executor="http_client", requires="[net.http]", config=config)
    code, (problem,) = broken()
    assert code == 1
    assert ".ai/tools/jobs/ask.yaml:10: config.url: {wrod} is neither a parameter nor a name" in problem


def test_a_missing_secret(broken, project):
    config = '  method: GET\n  url: "https://api.example.com/{word}?key=${secret:SHOP_KEY}"'
    write_script(project, "ask", executor="http_client", requires="[net.http]", config=config)
    cure = 'set it, or run: crib secret set SHOP_KEY; and add "ask:SHOP_KEY" to access.variables in toolcrib.toml'
    assert broken() == (1, [f".ai/tools/jobs/ask.yaml:1: it needs the variable or secret SHOP_KEY; {cure}"])


def test_all_that_a_tool_lacks(broken, project, cli):
    (project / "toolcrib.toml").write_text('builtins.enabled = false\n[http_tools]\nhosts = ["other.example"]\n')
    config = '  method: GET\n  url: "https://api.example.com/{word}"\n  headers:\n    X-Key: ${secret:SHOP_KEY}'
    write_script(project, "ask", executor="http_client", requires="[net.http, mail.send]", config=config)
    place = ".ai/tools/jobs/ask.yaml:1: "
    code, problems = broken()
    assert (code, [problem.removeprefix(place).partition(";")[0] for problem in problems]) == (
        1,
        [
            "it needs the variable or secret SHOP_KEY",
            "api.example.com is not among the allowed hosts (other.example)",
            "ask requires mail.send, net.http, which is not granted",
        ],
    )
    explained = " ".join(cli("explain", "ask", "word=a").out.split())
    assert "ask requires mail.send, net.http, which is not granted" in explained
    assert "ask:SHOP_KEY" in explained
    assert 'add "api.example.com" to' in explained


def test_a_missing_variable(broken, project):
    write_tool(
        project, "price.py", 'import os\n\n\ndef price() -> str:\n    """Price."""\n    return os.environ["SHOP_KEY"]\n'
    )
    code, (problem,) = broken()
    assert (code, problem.partition(";")[0]) == (1, "tools/price.py:4: it needs the variable or secret SHOP_KEY")


def test_a_package_that_is_declared_and_not_installed(broken, project, cli):
    block = '# /// script\n# dependencies = ["nobody-has-this"]\n# ///\n'
    write_tool(project, "plot.py", block + 'def plot() -> str:\n    """Plot."""\n    return ""\n')
    assert broken() == (1, ["tools/plot.py:4: it needs packages that are not installed; run: crib prepare plot"])
    assert "the packages that it declares are not installed yet; run: crib prepare plot" in cli("call", "plot").err


def test_a_package_that_is_imported_and_not_installed(broken, project, cli):
    code = 'import os\n\nimport nobody_has_this.inside\nimport neighbour\n\n\ndef plot() -> str:\n    """Plot."""\n    return os.sep\n'
    write_tool(project, "plot.py", code)
    write_tool(project, "neighbour.py", 'def neighbour() -> str:\n    """Stand by."""\n    return ""\n')
    cure = "declare its package in a block '# /// script' of the file, then run: crib prepare plot"
    needs = f"the Python module nobody_has_this, which is not installed for it; {cure}"
    assert broken() == (1, [f"tools/plot.py:7: it needs {needs}"])
    # What the other commands say of it is the same.
    prepared = cli("prepare", "plot")
    assert (prepared.code, prepared.err) == (1, f"crib: plot declares nothing to install, and it needs {needs}\n")
    called = cli("call", "plot")
    assert (called.code, cure in called.err) == (1, True)


def test_a_guarantee_of_the_sandbox_that_is_missing_is_told_once_for_all_tools(project, capsys):
    for name in ("one", "two"):
        write_tool(project, f"{name}.py", f'def {name}() -> str:\n    """Say {name} word."""\n    return ""\n')
    with Crib(project, builtins={"enabled": False}) as crib:
        crib._resources.lend(sandbox=crib._resources.own(make_sandbox(require=("weightlessness",))))
        for report in (project_commands.check_tools, project_commands.report_health):
            options = (
                {"names": [], "strict": False} if report is project_commands.check_tools else {"everything": False}
            )
            assert report(crib, **options, as_json=True) == 1
            (problem,) = json.loads(capsys.readouterr().out)["problems"]
            assert problem.startswith(
                "tools/one.py:1, tools/two.py:1: the sandbox cannot guarantee weightlessness on this system; the operator may"
            )


def test_a_folder_of_our_own_data_that_cannot_be_used(broken, project):
    (project / ".toolcrib").write_text("")
    code, (problem,) = broken()
    assert code == 1
    assert problem == (
        ".toolcrib is not a folder, so nothing can be kept there; move it away, or set project.data_dir in toolcrib.toml "
        "to a folder outside the project that can be written"
    )


def test_a_folder_of_our_own_data_that_cannot_be_written(broken, project, monkeypatch, tmp_path_factory):
    # Whoever runs the tests may write everywhere, so the system is asked in their place.
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: not Path(path).is_relative_to(project) and real(path, mode, **more)
    )
    (project / ".toolcrib").mkdir()
    code, (problem,) = broken()
    assert code == 1
    assert problem.startswith(
        ".toolcrib cannot be written, so no call, token or result can be kept; make it writable, or set "
    )
    elsewhere = tmp_path_factory.mktemp("data") / "crib"
    (project / "toolcrib.toml").write_text(f'builtins.enabled = false\nproject.data_dir = "{elsewhere}"\n')
    assert broken() == (0, [])


def test_a_file_that_cannot_be_read(broken, project):
    (project / "tools" / "gone.py").symlink_to("/nowhere")
    (project / "tools" / "latin.py").write_bytes(b'def latin():\n    "\xff"\n')
    code, problems = broken()
    assert code == 1
    assert problems == [
        "tools/gone.py: No such file or directory; fix it or move it away",
        "tools/latin.py: not UTF-8 at byte 18; save it as UTF-8",
    ]


def test_a_disabled_tool_need_not_run(broken, project):
    write_script(project, "deploy", executor="pyhton_runtime", config="  command: echo")
    (project / "toolcrib.toml").write_text('builtins.enabled = false\ncatalog.disabled = ["deploy"]\n')
    assert broken() == (0, [])


def test_a_tool_without_its_grants_is_a_decision_and_no_problem(broken, project):
    write_script(project, "deploy", requires="[shell.execute]", config="  command: echo")
    assert broken() == (0, [])


def test_a_grant_that_is_too_wide_is_shown_and_one_that_means_nothing_is_a_problem(broken, project, cli):
    (project / "toolcrib.toml").write_text(
        'builtins.enabled = false\n[grants]\n"*" = ["fs.*", "net.*", "shell.execute"]\n'
    )
    assert broken() == (0, [])
    wide = (
        'grants."*" in toolcrib.toml: every tool may use net.http and shell.execute, also built-in ones and every file that is added '
        "later; grant it to tools by name instead"
    )
    assert f"warning:  {wide}" in cli("doctor").out
    assert f"warning: {wide}" in cli("check").out
    (project / "toolcrib.toml").write_text('builtins.enabled = false\n[grants]\ndeplyo = ["shell.execute"]\n')
    write_script(project, "deploy", requires="[shell.execute]", config="  command: echo")
    assert broken() == (1, ['grants."deplyo" in toolcrib.toml: there is no such tool; did you mean deploy?'])


def test_show_says_how_often_a_tool_is_tried(project, cli, monkeypatch):
    monkeypatch.chdir(project)
    write_tool(project, "double.py", 'def double(n: int) -> int:\n    """Double."""\n    return 2 * n\n')
    write_script(project, "deploy", config="  command: echo\nretry_policy: {max_attempts: 3, initial_delay: 1}")
    assert "\ntried:              once\n" in cli("show", "double").out
    assert (
        "\ntried:              up to 3 times (exponential: 1 s, 2 s), as long as the error may pass; once in voice mode\n"
        in cli("show", "deploy").out
    )
    assert "because it is idempotent" in cli("show", "read_file").out
