"""Tools in files, from the tree of a project through the whole pipeline."""

import textwrap

import pytest

from toolcrib import Crib
from toolcrib.model.errors import Kind

HEAD = """
tool_type: script
version: "1.0.0"
description: A sample.
category: deployment
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "toolcrib.toml").write_text('workspace = "work"\n')
    (tmp_path / "work").mkdir()
    (tmp_path / ".ai" / "tools" / "deployment").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def write(project):
    def write(name, text, head=HEAD):
        path = project / ".ai" / "tools" / "deployment" / name
        path.write_text(head.lstrip() + textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def call(project):
    async def call(name, /, *, grants=("fs.*", "shell.execute"), **arguments):
        async with Crib(project, grants=list(grants)) as crib:
            return await crib.call(name, arguments)

    return call


DEPLOY = """
tool_id: deploy
executor_id: subprocess
config:
  command: python
  args: [deploy.py]
  env: {LOG_LEVEL: INFO}
"""


@pytest.mark.spec("S3-62", "S3-30")
async def test_a_program_runs_in_the_folder_of_its_tool_beside_its_helpers(write, call):
    write("deploy.yaml", DEPLOY)
    write("deploy.py", "import os, sys\nprint(sys.argv[1:], os.environ['LOG_LEVEL'])\n", head="")
    result = await call("deploy")
    assert result.value == "[] INFO"
    assert "sandbox" in result.meta


@pytest.mark.spec("S3-14", "S3-55", "S3-64")
async def test_a_capability_that_was_not_granted_is_named_before_anything_runs(write, call, project):
    write("deploy.yaml", DEPLOY)
    write("deploy.py", f"open({str(project / 'work' / 'ran')!r}, 'w')\n", head="")
    result = await call("deploy", grants=["fs.*"])
    assert result.error.kind is Kind.CAPABILITY_MISSING
    assert "shell.execute" in result.error.message
    assert not (project / "work" / "ran").exists()


COUNTING = """
tool_id: flaky
executor_id: bash
requires: [fs.read, fs.write]
retry_policy: {{max_attempts: {attempts}, backoff_type: constant, initial_delay: 0}}
config:
  args: [-c, "echo x >> {note}; [[ $(wc -l < {note}) -ge 3 ]] && echo done"]
"""


@pytest.mark.spec("S3-35", "S3-56")
@pytest.mark.parametrize(("attempts", "tried"), [(5, 3), (2, 2)])
async def test_a_failing_program_is_tried_as_often_as_its_policy_says(write, call, project, attempts, tried):
    note = project / "work" / "note"
    write("flaky.yaml", COUNTING.format(attempts=attempts, note=note))
    result = await call("flaky")
    assert note.read_text().count("x") == tried
    assert result.ok is (tried == 3)


async def test_without_a_policy_a_failing_program_is_tried_once(write, call, project):
    note = project / "work" / "note"
    text = COUNTING.format(attempts=1, note=note)
    write("flaky.yaml", "\n".join(line for line in text.splitlines() if "retry_policy" not in line))
    assert (await call("flaky")).error.kind is Kind.PERMANENT
    assert note.read_text().count("x") == 1


@pytest.mark.spec("S3-34")
async def test_the_timeout_of_a_tool_ends_it(write, call):
    write("slow.yaml", "tool_id: slow\nexecutor_id: bash\ntimeout: 1\nconfig: {args: [-c, sleep 60]}\n")
    result = await call("slow")
    assert result.error.kind is Kind.TIMEOUT


@pytest.mark.spec("S3-34")
async def test_a_parameter_named_timeout_is_an_argument_and_no_limit(write, call):
    write(
        "patient.yaml",
        """
        tool_id: patient
        executor_id: bash
        config: {args: [-c, 'echo "$@"', sh]}
        parameters:
          - {name: timeout, type: integer}
          - {name: command, type: string}
        """,
    )
    assert (await call("patient", timeout=0, command="ls")).value == "--timeout 0 --command ls"


@pytest.mark.spec("S3-10")
async def test_a_tool_whose_executor_is_missing_is_refused_by_explain_too(write, project):
    write("lost.yaml", "tool_id: lost\nexecutor_id: no_such_runtime\n")
    async with Crib(project) as crib:
        assert (await crib.call("lost")).error.kind is Kind.EXECUTOR_NOT_FOUND
        refused = next(finding for finding in crib.explain("lost").findings if finding.gate == "prepare")
    assert "there is no executor 'no_such_runtime'" in refused.verdict.reason


async def test_a_command_line_is_screened_by_the_rules(write, call):
    write(
        "finder.yaml",
        """
        tool_id: finder
        executor_id: subprocess
        config: {command: "echo {what} | cat", shell: true}
        parameters:
          - {name: what, type: string, required: true}
        """,
    )
    assert (await call("finder", what="a  b")).value == "a  b"
    assert (await call("finder", what="x; reboot")).error.kind is Kind.BLOCKED


@pytest.mark.spec("S3-65", "S3-57")
async def test_the_primitive_is_there_for_whoever_was_granted_it(call):
    assert (await call("subprocess", command="echo", args=["hello"])).value == "hello"
    assert (await call("subprocess", command="rm", args=["-rf", "/"])).error.kind is Kind.BLOCKED
    assert (await call("subprocess", command="ls", shell=True)).error.kind is Kind.VALIDATION
