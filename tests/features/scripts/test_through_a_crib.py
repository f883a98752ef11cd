"""Tools in files, from the tree of a project through the whole pipeline."""

import json
import os
import shutil
import textwrap
import time

import pytest

from toolcrib import Call, Crib, Kind

HEAD = """
tool_type: script
version: "1.0.0"
description: A sample.
category: deployment
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "toolcrib.toml").write_text('workspace.folder = "work"\n')
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
        async with Crib(project, grants={"*": list(grants)}) as crib:
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


ENGINE = '#!/bin/sh\nfor word; do last=$word; done\necho "docker: $1 $last"\n'
FOUR = {
    "programs.yaml": HEAD
    + "tool_id: programs\nexecutor_id: subprocess\nconfig: {command: bash, args: [-c, echo bash]}\n",
    "contained.yaml": HEAD + "tool_id: contained\nexecutor_id: docker\nconfig: {image: alpine, command: greet}\n",
    "pythonic.py": """
        __version__ = "1.0.0"
        __tool_type__ = "script"
        __executor_id__ = "python_runtime"
        __category__ = "deployment"
        __tool_description__ = "A sample."
        def main(): return "python"
        """,
    "nodeish.js": """
        // @version 1.0.0
        // @tool_type script
        // @executor_id node_runtime
        // @category deployment
        // @description A sample.
        console.log("node")
        """,
}


@pytest.fixture
def four(write, project, monkeypatch):
    """A file for each of the four executors, and a stand-in for Docker on the search path."""
    for name, text in FOUR.items():
        write(name, text.lstrip("\n"), head="")
    engine = project.parent / f"{project.name}-engine"
    engine.mkdir()
    (engine / "docker").write_text(ENGINE)
    (engine / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
    return engine


@pytest.mark.spec("S3-11")
async def test_each_of_the_four_executors_runs_the_tool_of_a_file(four, project):
    async with Crib(project, grants={"*": ["fs.*", "shell.execute"]}) as crib:
        results = {name: await crib.call(name) for name in ("programs", "contained", "pythonic", "nodeish")}
        kinds = {name: crib.find(name).tool.kind for name in results}
    assert {name: result.value or str(result.error) for name, result in results.items()} == {
        "programs": "bash",
        "contained": "docker: run greet",
        "pythonic": "python",
        "nodeish": "node",
    }
    assert kinds == {"programs": "subprocess", "contained": "docker", "pythonic": "script", "nodeish": "script"}


@pytest.mark.spec("S3-11")
async def test_where_an_engine_is_missing_its_tools_say_so_and_others_run(four, project, monkeypatch):
    (four / "docker").unlink()
    (four / "bash").symlink_to(shutil.which("bash"))
    monkeypatch.setenv("PATH", str(four))
    async with Crib(project, grants={"*": ["fs.*", "shell.execute"]}) as crib:
        missing = (await crib.call("contained")).error
        others = [(await crib.call(name)).value for name in ("programs", "pythonic")]
    assert missing.kind is Kind.EXECUTOR_NOT_FOUND
    assert "the command 'docker' was not found; install Docker or Podman" in missing.message
    assert others == ["bash", "python"]


ECHO = """
tool_id: echoes
executor_id: bash
config: {args: [-c, 'echo "$*"', sh]}
"""


@pytest.mark.spec("S3-19")
async def test_a_parameter_that_does_not_say_whether_it_is_required_may_be_left_out(write, call):
    parameters = "parameters:\n  - {name: city, type: string, description: Where}\n"
    write("echoes.yaml", ECHO + parameters)
    assert (await call("echoes")).value == ""
    assert (await call("echoes", city="Oslo")).value == "--city Oslo"
    write("echoes.yaml", ECHO + parameters.replace("}", ", required: true}"))
    refused = (await call("echoes")).error
    assert refused.kind is Kind.VALIDATION
    assert "city" in refused.message


@pytest.mark.spec("S3-27")
async def test_what_a_tool_declares_as_its_outputs_is_offered_and_held_against_its_answer(write, call, project):
    schema = {"type": "object", "properties": {"word": {"enum": ["good"]}}, "required": ["word"]}
    says = ECHO.replace('echo "$*"', 'printf %s "{\\"word\\": \\"$2\\"}"')
    write("echoes.yaml", f"{says}outputs: {json.dumps(schema)}\n")
    assert (await call("echoes", word="good")).value == {"word": "good"}
    refused = (await call("echoes", word="bad")).error
    assert refused.kind is Kind.OUTPUT_INVALID
    assert "good" in refused.message
    async with Crib(project, grants={"echoes": ["shell.execute"]}) as crib:
        (offered,) = [found.definition for found in crib.export("mcp") if found.definition["name"] == "echoes"]
    assert offered["outputSchema"] == schema


ACTIONS = """
tool_id: service
actions:
  deploy:
    description: Deploy it.
    parameters: [{name: replicas, type: integer, required: true, description: How many}]
  rollback:
    description: Roll it back.
    parameters: [{name: version, type: string, description: To which}]
"""


@pytest.mark.spec("S3-28")
@pytest.mark.parametrize(
    "runs",
    [
        "executor_id: bash\nconfig: {args: [-c, 'echo \"$*\"', sh]}\n",
        "executor_id: subprocess\nconfig: {command: echo}\n",
        "executor_id: subprocess\nconfig: {command: 'echo', shell: true}\n",
        "executor_id: subprocess\nconfig: {command: 'cat - | echo', shell: true}\n",
    ],
    ids=["runtime", "program", "command line", "pipeline"],
)
async def test_each_action_runs_with_its_name_and_its_own_parameters(write, call, runs):
    write("service.yaml", ACTIONS + runs)
    assert (await call("service-deploy", replicas=3)).value == "deploy --replicas 3"
    assert (await call("service-rollback", version="1.2")).value == "rollback --version 1.2"
    assert (await call("service-rollback")).value == "rollback"
    assert (await call("service-deploy", version="1.2")).error.kind is Kind.VALIDATION
    assert (await call("service-scale")).error.kind is Kind.NOT_FOUND


COUNTING = """
tool_id: flaky
executor_id: bash
requires: [fs.read, fs.write]
retry_policy: {{max_attempts: {attempts}, backoff_type: constant, initial_delay: 0}}
config:
  args: [-c, "echo x >> '{note}'; [[ $(wc -l < '{note}') -ge 3 ]] && echo done"]
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
    assert (await call("finder", what="x; reboot")).value == "x; reboot"
    write(
        "runner.yaml",
        """
        tool_id: runner
        executor_id: subprocess
        config: {command: "echo {what} | sh", shell: true}
        parameters:
          - {name: what, type: string, required: true}
        """,
    )
    assert (await call("runner", what="x; reboot")).error.kind is Kind.BLOCKED


@pytest.mark.spec("S3-65", "S3-57")
async def test_the_primitive_is_there_for_a_tool_that_was_granted_it(call):
    assert (await call("subprocess", command="echo", args=["hello"])).value == "hello"
    assert (await call("subprocess", command="rm", args=["-rf", "/"])).error.kind is Kind.BLOCKED
    assert (await call("subprocess", command="ls", shell=True)).error.kind is Kind.VALIDATION


STAMPED = """
__tool_description__ = "A sample."
__tool_type__ = "script"
__version__ = "1.0.0"
__executor_id__ = "python_runtime"
__category__ = "deployment"
{more}
{code}
"""


@pytest.fixture
def script(write):
    def script(name, code, more=""):
        return write(name, STAMPED.format(code=textwrap.dedent(code), more=more).lstrip(), head="")

    return script


@pytest.fixture
def slow_call(script, write, project):
    """Calls a tool that sleeps, once the sandbox was probed, so that the time of the probe is not measured."""

    async def slow_call(language, limit):
        script("quick.py", "def main(): return 1")
        script("slow_python.py", "import time\ndef main(): time.sleep(60)", f"__timeout__ = {limit}")
        bash = "tool_id: slow-bash\nexecutor_id: bash\ntimeout: {}\nconfig: {{args: [-c, sleep 60]}}\n"
        write("slow-bash.yaml", bash.format(limit))
        async with Crib(project, grants={"*": ["shell.execute"]}) as crib:
            assert (await crib.call("quick")).value == 1
            return await crib.call(f"slow-{language}")

    return slow_call


@pytest.mark.spec("S3-34")
@pytest.mark.parametrize("language", ["python", "bash"])
async def test_a_tool_has_all_the_time_that_it_declares(slow_call, language):
    result = await slow_call(language, 1)
    assert result.error.kind is Kind.TIMEOUT
    assert result.error.message.endswith("ran longer than 1 s; its processes were killed")
    assert result.meta["durationMs"] >= 1000


class Listening:
    """A runner that takes note of the context of a call."""

    is_async = checks = False
    wants_context = True
    function = None

    def bind(self, tool):
        return self

    def check(self, arguments, call):
        """Nothing is wrong with it."""

    def run(self, arguments, context):
        self.context = context
        return 1


@pytest.mark.parametrize(("seconds", "grace"), [(None, 0.5), (60, 0.5), (30.2, 0.2), (10, 0.0)])
async def test_the_answer_may_come_behind_the_tools_own_limit_and_never_behind_its_callers(
    script, project, seconds, grace
):
    script("quick.py", "def main(): return 1", "__timeout__ = 30")
    listening = Listening()
    async with Crib(project) as crib:
        crib._pipeline._runners = {"script": listening}
        deadline = None if seconds is None else time.monotonic() + seconds
        assert (await crib.call(Call(name="quick", deadline=deadline))).value == 1
    assert listening.context.grace == pytest.approx(grace, abs=0.1)


FLAKY = """
import os
def main():
    with open({note!r}, "a") as file:
        file.write("x")
    with open({note!r}) as file:
        tries = len(file.read())
    if tries < 3:
        {failure}
    return tries
"""


@pytest.mark.spec("S3-35", "S3-56")
@pytest.mark.parametrize("failure", ["raise ConnectionError", "raise SystemExit(1)", "os._exit(3)"])
async def test_a_failing_python_file_is_tried_as_often_as_its_policy_says(script, call, project, failure):
    note = str(project / "work" / "note")
    policy = '__requires__ = ["fs.read", "fs.write"]\n__retry_policy__ = {"max_attempts": 3, "initial_delay": 0}'
    script("flaky.py", FLAKY.format(note=note, failure=failure), policy)
    result = await call("flaky")
    assert (result.error, result.value) == (None, 3)
    assert result.meta["attempts"] == 3
