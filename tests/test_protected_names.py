"""Secrets, repositories and what the host runs by itself are closed to tools, whichever way they come to them."""

import asyncio
import json
import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from toolcrib import Call, Crib, Kind, Tool, ToolError
from toolcrib.model.tool import Handler

PATIENCE = 60
GRANTS = ["fs.read", "fs.write", "shell.execute"]

# What none of them may write: it lies there, or not yet.
PLANTED = [
    *(".git/hooks/pre-commit", ".git/config", ".git/hooks/new/deeper", "sub/project/.git/hooks/x", "sub/.git"),
    *("fresh/.git/hooks/x", ".env", "sub/.env.local", "conftest.py", "fresh/conftest.py", ".husky/pre-commit"),
    *("site/evil.pth", "bare/HEAD", ".vscode/tasks.json", "deploy.pem"),
]
SECRETS = [".env", "sub/.env", "keys/id_rsa", "keys/server.pem"]

# The tools below try several paths in one call, each after what came of the others: they go on after a refusal and fail with the last.
PYTHON = """\
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "files"
__tool_description__ = "Write or read a file of the workspace"
__requires__ = ["fs.read", "fs.write"]

import os


def main(path: str, act: str) -> str:
    *others, last = path.split(",")
    outcomes = []
    for other in others:
        try:
            outcomes.append(attempt(other, act))
        except OSError:
            outcomes.append("refused")
    return "\\n".join([*outcomes, attempt(last, act)])


def attempt(path, act):
    place = os.path.join(os.environ["TOOLCRIB_WORKSPACE"], bytes.fromhex(path).decode())
    if act == "read":
        return open(place).read()
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w") as file:
        file.write("planted")
    return "written"
"""
NODE = """\
/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category files
 * @description Write or read a file of the workspace from Node
 * @requires [fs.read, fs.write]
 * @parameters [{name: path, type: string, required: true, description: p}, {name: act, type: string, required: true, description: a}]
 */
const fs = require('fs'), path = require('path');
const given = (name) => process.argv[process.argv.indexOf('--' + name) + 1];
const attempt = (name) => {
  const place = path.join(process.env.TOOLCRIB_WORKSPACE, Buffer.from(name, 'hex').toString());
  if (given('act') === 'read') return fs.readFileSync(place, 'utf8');
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.writeFileSync(place, 'planted');
  return 'written';
};
const others = given('path').split(','), last = others.pop();
for (const other of others) {
  try { console.log(attempt(other)); } catch { console.log('refused'); }
}
console.log(attempt(last));
"""
BASH = """\
#!/bin/bash
# version: 1.0.0
# tool_type: script
# executor_id: bash
# category: files
# description: Write or read a file of the workspace from Bash
# requires: [fs.read, fs.write, shell.execute]
# parameters: [{name: path, type: string, required: true, description: p}, {name: act, type: string, required: true, description: a}]
set -e
act=$4
attempt() {
  place=$TOOLCRIB_WORKSPACE/$(printf "$(printf %s "$1" | sed 's/../\\\\x&/g')")
  if [ "$act" = read ]; then cat "$place"; else mkdir -p "$(dirname "$place")" && echo planted > "$place" && echo written; fi
}
rest=$2
while [[ $rest == *,* ]]; do attempt "${rest%%,*}" || echo refused; rest=${rest#*,}; done
attempt "$rest"
"""
PYTHON_HANDLER = """
import os
def execute(args, context):
    *others, last = args["path"].split(",")
    outcomes = []
    for other in others:
        try:
            outcomes.append(attempt(other, args["act"]))
        except OSError:
            outcomes.append("refused")
    return {"ok": True, "data": {"text": "\\n".join([*outcomes, attempt(last, args["act"])])}}
def attempt(path, act):
    place = os.path.join(os.environ["TOOLCRIB_WORKSPACE"], bytes.fromhex(path).decode())
    if act == "read":
        return open(place).read()
    os.makedirs(os.path.dirname(place), exist_ok=True)
    open(place, "w").write("planted")
    return "written"
"""
NODE_HANDLER = """
import fs from 'node:fs';
import path from 'node:path';
export async function execute({ args }) {
  const others = args.path.split(','), last = others.pop(), outcomes = [];
  for (const other of others) {
    try { outcomes.push(attempt(other, args.act)); } catch { outcomes.push('refused'); }
  }
  return { ok: true, data: { text: [...outcomes, attempt(last, args.act)].join('\\n') } };
}
function attempt(name, act) {
  const place = path.join(process.env.TOOLCRIB_WORKSPACE, Buffer.from(name, 'hex').toString());
  if (act === 'read') return fs.readFileSync(place, 'utf8');
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.writeFileSync(place, 'planted');
  return 'written';
}
"""


@pytest.fixture
def root(tmp_path):
    files = {
        ".ai/tools/files/from-python.py": PYTHON,
        ".ai/tools/files/from-node.js": NODE,
        ".ai/tools/files/from-bash.sh": BASH,
        "toolcrib.toml": "",
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": "[core]\n",
        ".git/hooks/pre-commit.sample": "#!/bin/sh\n",
        "sub/project/.git/config": "[core]\n",
        "docs/note.txt": "a note",
        **dict.fromkeys(SECRETS, "canary-4711"),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
async def crib(root):
    async with Crib(root, environment={"PATH": os.environ["PATH"]}, grants={"*": GRANTS}) as crib:
        for name, language, file, code in (
            ("python_handler", "python", "handler.py", PYTHON_HANDLER),
            ("node_handler", "javascript", "handler.js", NODE_HANDLER),
        ):
            add_handler(crib, root, name, language, file, textwrap.dedent(code))
        yield crib


def add_handler(crib, root, name, language, file, code):
    folder = root / "tools" / name
    folder.mkdir(parents=True)
    (folder / file).write_text(code)
    run = Handler(
        root=root / "tools",
        folder=name,
        language=language,
        files={f"{name}/{file}": code.encode()},
        shared={},
        registry="1.0.0badcafe",
    )
    crib.add(
        Tool(
            name=name,
            description="d",
            parameters={"type": "object"},
            run=run,
            requires=frozenset({"fs.read", "fs.write"}),
        )
    )


async def by_tool(crib, name, path, act):
    # Written so that no rule reads the name: the sandbox alone has to keep it.
    return await crib.call(name, path=",".join(one.encode().hex() for one in path.split(",")), act=act)


async def by_primitive(crib, name, path, act):
    return await crib.call("filesystem", operation=act, path=path, **({} if act == "read" else {"content": "planted"}))


async def by_built_in(crib, name, path, act):
    return await crib.call(
        "read_file" if act == "read" else "write_file", path=path, **({} if act == "read" else {"content": "planted"})
    )


WAYS = {
    "from-python": by_tool,
    "from-node": by_tool,
    "from-bash": by_tool,
    "python_handler": by_tool,
    "node_handler": by_tool,
    "filesystem": by_primitive,
    "built in": by_built_in,
}


async def try_each(crib, way, paths, act):
    """What came of each path: `refused`, or what was read or written; the last must not be refused, so that all are tried."""
    if WAYS[way] is by_tool:
        results = [result := await by_tool(crib, way, ",".join(paths), act)]
        assert result.ok, result.error
        outcomes = (result.value["text"] if isinstance(result.value, dict) else result.value).splitlines()
        assert len(outcomes) == len(paths), outcomes
    else:
        results = [await WAYS[way](crib, way, path, act) for path in paths]
        assert results[-1].ok, results[-1].error
        outcomes = [repr(result.value) if result.ok else "refused" for result in results]
    assert "canary" not in repr(results)
    return dict(zip(paths, outcomes, strict=True))


STAND_INS = {".toolcrib", "bundles", "node_modules", "package.json", ".venv", "venv"}


def snapshot(root):
    """What lies there, but for what stands in for something while a job runs and a moment longer."""
    found = {}
    for folder, folders, files in os.walk(root):
        # Before they are entered: one that is removed at this moment is not a failure.
        folders[:] = [name for name in folders if name not in STAND_INS]
        for path in (Path(folder, name) for name in (*folders, *files) if name not in STAND_INS):
            found[str(path.relative_to(root))] = path.lstat().st_mode, path.read_bytes() if path.is_file() else b""
    return found


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_that_is_protected_is_written(crib, root, way):
    async with asyncio.timeout(PATIENCE):
        before = snapshot(root)
        outcomes = await try_each(crib, way, [*PLANTED, "docs/new.txt"], "write")
    assert {path for path, outcome in outcomes.items() if outcome != "refused"} == {"docs/new.txt"}
    changed = {path for path, found in snapshot(root).items() if before.get(path) != found} - {"docs/new.txt"}
    # Code makes the folders on the way itself; what Toolcrib writes for a caller leaves none.
    assert changed <= ({"fresh", "site", "bare"} if WAYS[way] is by_tool else set())
    assert before.keys() <= snapshot(root).keys()


@pytest.mark.parametrize("way", ["from-bash", "from-node"])
async def test_a_script_that_may_not_write_a_protected_path_is_told_which_and_the_cure(crib, way):
    result = await by_tool(crib, way, "sub/.env.local", "write")
    cure = "no tool may change 'sub/.env.local', unless workspace.open in toolcrib.toml opens it"
    assert result.error.cure.operator == cure


async def test_a_script_that_misses_a_module_too_is_told_of_both(crib, root):
    script = root / ".ai/tools/files/from-bash.sh"
    says = "touch $TOOLCRIB_WORKSPACE/.env.new || echo \"ModuleNotFoundError: No module named 'absent'\" >&2; exit 1"
    script.write_text(BASH.replace("set -e", says))
    operator = (await by_tool(crib, "from-bash", "x", "write")).error.cure.operator
    assert "crib prepare from-bash" in operator
    assert operator.endswith("no tool may change '.env.new', unless workspace.open in toolcrib.toml opens it")


@pytest.mark.parametrize("way", WAYS)
async def test_no_secret_is_read(crib, root, way):
    async with asyncio.timeout(PATIENCE):
        outcomes = await try_each(crib, way, [*SECRETS, "docs/note.txt"], "read")
    assert "a note" in outcomes.pop("docs/note.txt")
    assert outcomes == dict.fromkeys(SECRETS, "refused")


SINK = """\
__tool_type__ = "runtime"
__version__ = "1.0.0"
__executor_id__ = "python"
__category__ = "sinks"
__tool_description__ = "Write each event to the file that it names"
__requires__ = ["fs.read", "fs.write"]

import os


class PlantingSink:
    async def write(self, event: str) -> None:
        place = os.path.join(os.environ["TOOLCRIB_WORKSPACE"], event)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:
            file.write("planted")

    async def close(self) -> None:
        pass
"""
FILE_SINK = Path(__file__).parent / "seeds" / "fixtures" / "ai_tools" / "sinks" / "file_sink.py"


async def test_no_sink_writes_what_is_protected(crib, root):
    folder = root / ".ai" / "tools" / "sinks"
    folder.mkdir()
    (folder / "planting_sink.py").write_text(SINK)
    shutil.copy(FILE_SINK, folder)
    before = snapshot(root)
    async with asyncio.timeout(PATIENCE):
        for path in PLANTED:
            with pytest.raises(ToolError, match=r"protected|sensitive"):
                async with crib.sink("file_sink", path=path) as sink:
                    await sink.write("planted")
            with pytest.raises(ToolError, match="PermissionError"):
                async with crib.sink("planting_sink") as sink:
                    await sink.write(path)
            assert before.get(path) == snapshot(root).get(path), path
    changed = {place for place, found in snapshot(root).items() if before.get(place) != found}
    assert changed <= {"fresh", "site", "bare"}


@pytest.mark.parametrize("way", ["filesystem", "built in", "from-python"])
async def test_what_git_is_told_to_obey_is_not_written(crib, root, way):
    (root / ".git" / "config").write_text("[include]\n\tpath = ../team.settings\n[core]\n\thooksPath = team\n")
    (root / "sub" / "project" / ".git" / "config").write_text("[core]\n\thooksPath = tools/git\n")
    (root / ".git" / "hooks" / "pre-push").symlink_to("../../scripts/push")
    async with asyncio.timeout(PATIENCE):
        obeyed = ["team.settings", "team/pre-commit", "sub/project/tools/git/pre-commit", "scripts/push"]
        outcomes = await try_each(crib, way, [*obeyed, "sub/project/other.txt"], "write")
    assert {path for path, outcome in outcomes.items() if outcome != "refused"} == {"sub/project/other.txt"}
    assert [path for path in obeyed if (root / path).exists()] == []


GLOBAL = "[core]\n\thooksPath = .team-hooks\n\teditor = {0}/bin/editor --wait\n"
BY_GLOBAL = (".team-hooks/pre-commit", "sub/project/.team-hooks/x", "not/yet/.team-hooks/pre-push", "bin/editor")


@pytest.fixture
def global_settings(root, tmp_path_factory, monkeypatch):
    """Settings of the user that lead into the workspace."""
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(GLOBAL.format(root))
    monkeypatch.setenv("HOME", str(home))


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_settings_of_the_user_make_git_run_is_not_written(global_settings, crib, root, way):
    async with asyncio.timeout(PATIENCE):
        allowed = ["team-hooks/pre-commit", "bin/other", "sub/project/other.txt"]
        outcomes = await try_each(crib, way, [*BY_GLOBAL, *allowed], "write")
    assert [path for path, outcome in outcomes.items() if outcome != "refused"] == allowed
    assert [path for path in BY_GLOBAL if (root / path).exists()] == []


async def test_no_sink_writes_what_the_settings_of_the_user_make_git_run(global_settings, crib, root):
    folder = root / ".ai" / "tools" / "sinks"
    folder.mkdir()
    (folder / "planting_sink.py").write_text(SINK)
    shutil.copy(FILE_SINK, folder)
    async with asyncio.timeout(PATIENCE):
        for path in BY_GLOBAL:
            with pytest.raises(ToolError, match="protected"):
                async with crib.sink("file_sink", path=path) as sink:
                    await sink.write("planted")
            with pytest.raises(ToolError, match="PermissionError"):
                async with crib.sink("planting_sink") as sink:
                    await sink.write(path)
            assert not (root / path).exists()


@pytest.mark.parametrize("way", ["filesystem", "built in", "from-python"])
async def test_hooks_beside_a_nested_repository_are_not_written(crib, root, way):
    (root / "sub" / "project" / ".git" / "config").write_text("[core]\n\thooksPath = ../../hooks\n")
    async with asyncio.timeout(PATIENCE):
        assert not (await WAYS[way](crib, way, "hooks/pre-commit", "write")).ok
        assert not (root / "hooks" / "pre-commit").exists()
        assert (await WAYS[way](crib, way, "other/pre-commit", "write")).ok


async def test_a_script_is_told_why_and_what_opens_it(crib):
    error = (await by_tool(crib, "from-python", ".git/hooks/pre-commit", "write")).error
    assert "workspace.open" in error.message


async def confirmed(crib, command):
    """Run a command that needs confirmation, as a person confirms it."""
    given = {"command": command}
    asked = await crib.call("shell", given)
    assert asked.error.kind is Kind.CONFIRMATION_REQUIRED
    return await crib.call(Call(name="shell", arguments=given, confirmation=asked.error.details["confirmation"]))


@pytest.fixture
def run_in_shell(crib, root):
    """Run a script whose text no rule can read in the command."""

    async def run(text):
        (root / "script").write_text(text)
        async with asyncio.timeout(PATIENCE):
            return await confirmed(crib, "sh script")

    return run


async def test_a_shell_command_writes_and_reads_nothing_that_is_protected(run_in_shell, root):
    before = snapshot(root)
    text = "\n".join(
        [
            *(f"mkdir -p $(dirname {path}); echo planted > {path}" for path in PLANTED),
            *(f"cat {path}; cp {path} copy; ln {path} second; mv {path} moved" for path in SECRETS),
            "mv .git elsewhere; mkdir elsewhere/hooks; echo planted > elsewhere/hooks/pre-commit; mv elsewhere .git",
            "ln -s .git/hooks way; echo planted > way/pre-commit",
            "echo 'gitdir: docs' > docs/.git",
            "mkdir -p made/hooks; echo planted > made/hooks/x; mv made .git/modules; mv made .git; mv made/hooks .git/hooks",
            "chmod 777 .git/hooks/pre-commit.sample; rm -rf .git/config .env sub",
            "exit 0",
        ]
    )
    result = await run_in_shell(text)
    assert result.ok, result.error
    assert "canary" not in repr(result.value)
    after = snapshot(root)
    assert {path for path in before if before[path] != after.get(path)} <= set()
    made = {path for path in after.keys() - before.keys() if "copy" not in path}
    assert made <= {"script", "fresh", "site", "bare", "way", "made", "made/hooks", "made/hooks/x"}, made


async def test_a_shell_command_writes_nothing_that_the_settings_of_the_user_make_git_run(
    global_settings, run_in_shell, root
):
    text = "\n".join(f"mkdir -p $(dirname {path}); echo planted > {path}" for path in (*BY_GLOBAL, "bin/other"))
    links = "ln -s ../docs sub/.team-hooks; mkdir made; echo planted > made/pre-commit; mv made docs/.team-hooks"
    result = await run_in_shell(f"{text}\n{links}\nexit 0")
    assert result.ok, result.error
    assert (root / "bin" / "other").exists()
    for path in (*BY_GLOBAL, "sub/.team-hooks", "docs/.team-hooks"):
        assert not os.path.lexists(root / path), path


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
async def test_git_status_works_in_the_shell(root):
    shutil.rmtree(root / ".git")
    shutil.rmtree(root / "sub")
    subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=30)  # noqa: ASYNC221 - the user's own
    async with Crib(root, environment={"PATH": os.environ["PATH"]}, grants={"*": GRANTS}) as crib:
        result = await confirmed(crib, "git status --short docs && git diff --stat; git add docs || echo refused")
    assert result.ok, result.error
    assert result.value["stdout"] == "?? docs/\nrefused\n"


async def test_what_the_operator_opens_is_open(root):
    opened = [".env", ".git/hooks", "conftest.py"]
    async with Crib(
        root, environment={"PATH": os.environ["PATH"]}, grants={"*": GRANTS}, workspace={"open": opened}
    ) as crib:
        for name in ("from-python", "from-bash"):
            assert (await by_tool(crib, name, "sub/.env", "read")).value in {"canary-4711", "canary-4711\n"}
            for path in (".git/hooks/pre-commit", "conftest.py", "sub/.env"):
                assert (await by_tool(crib, name, path, "write")).ok
                (root / path).write_text("canary-4711")
            assert not (await by_tool(crib, name, ".git/config", "write")).ok
            assert not (await by_tool(crib, name, "sub/project/.git/hooks/x", "write")).ok
        assert (await crib.call("write_file", path="conftest.py", content="x")).ok
        assert (await crib.call("read_file", path=".env")).value == "canary-4711"


async def test_the_built_in_tool_asks_before_it_writes_what_the_host_runs_by_itself(root):
    async with Crib(root, environment={}, grants={"*": GRANTS}) as crib:
        for path in ("conftest.py", "sub/conftest.py", ".vscode/tasks.json", "docs/../.envrc"):
            refused = await crib.call("write_file", path=path, content="x")
            assert refused.error.kind is Kind.CONFIRMATION_REQUIRED, refused
            assert not (root / path).exists()
        token = refused.error.details["confirmation"]
        given = {"path": "docs/../.envrc", "content": "x"}
        confirmed = await crib.call(Call(name="write_file", arguments=given, confirmation=token))
        assert confirmed.ok, confirmed.error
        assert (await crib.call("read_file", path=".envrc")).value == "x"


async def test_doctor_shows_what_is_closed_and_what_was_opened(global_settings, root, capsys):
    from toolcrib.interfaces.cli.project_commands import report_health

    (root / "toolcrib.toml").write_text('workspace.open = [".env.test"]\n')
    crib = await asyncio.to_thread(Crib, root, environment={})
    await asyncio.to_thread(report_health, crib, everything=False, as_json=True)
    told = json.loads(capsys.readouterr().out)["protected"]
    assert ".env*" in told["neither read nor written"]
    assert ".git" in told["never written"]
    assert "conftest.py" in told["written if confirmed, never by files of code"]
    assert told["opened by workspace.open"] == [".env.test"]
    assert told["named by settings of git, by PATH or by links to secrets, never written"] == [
        "**/.team-hooks/",
        "bin/editor",
    ]


def test_a_way_out_of_the_workspace_cannot_be_opened(root):
    for pattern in ("/etc", "../x", "a/../../b", "."):
        with pytest.raises(ToolError, match=r"workspace\.open"):
            Crib(root, environment={}, workspace={"open": [pattern]})


def test_settings_of_a_nested_project_that_open_names_are_not_obeyed(root):
    from toolcrib.core.plugins import Plugins
    from toolcrib.infra.settings import find_project

    (root / "docs" / "toolcrib.toml").write_text('workspace.open = [".env"]\n')
    with pytest.raises(ToolError, match=r"sets workspace\.open inside the project"):
        find_project(Path(root, "docs"), lambda found, _: f"name {found}", Plugins().tables())
