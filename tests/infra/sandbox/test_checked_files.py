"""A job finds in its files what stood there when they were checked, even if the files changed on disk."""

import json
import time

import pytest

from toolcrib.infra.sandbox.jobs import Program, PythonFile, WorkspacePolicy, build_policy, python_runtime

TELL = """
import os
def main(paths):
    return {path: open(path).read() if os.path.exists(path) else None for path in paths}
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a on disk")
    (folder / "b.txt").write_text("b on disk")
    return folder


@pytest.fixture
def policy(folder):
    return build_policy((), WorkspacePolicy(workspace=folder), (folder, *python_runtime()))


@pytest.fixture
def read(sandbox, folder, policy):
    """What a Python file reads at these paths, with some of them checked."""

    async def read(files, *names):
        arguments = {"paths": [str(folder / name) for name in names]}
        job = PythonFile(
            path=folder / "x.py",
            code=TELL.encode(),
            entry="main",
            arguments=arguments,
            policy=policy,
            files={folder / name: content for name, content in files.items()},
        )
        ended = await sandbox.run(job, deadline=time.monotonic() + 60)
        return list(json.loads(ended.result)["value"].values())

    return read


async def test_each_of_several_files_holds_what_was_checked(read):
    files = {"a.txt": b"a as checked", "b.txt": b""}
    assert await read(files, "a.txt", "b.txt") == ["a as checked", ""]


async def test_a_file_that_is_not_there_is_left_alone(read, folder):
    assert await read({"gone.txt": b"as checked", "a.txt": b"a"}, "gone.txt", "a.txt") == [None, "a"]
    assert not (folder / "gone.txt").exists()


async def test_what_was_not_checked_is_what_lies_on_disk(read):
    assert await read({"a.txt": b"a"}, "b.txt") == ["b on disk"]


async def test_many_and_large_files_find_room(read, folder):
    files = {f"{number}.bin": bytes([65 + number % 26]) * (number * 397) for number in range(150)}
    for name in files:
        (folder / name).write_text("on disk")
    assert await read(files, *files) == [content.decode() for content in files.values()]


async def test_a_program_finds_them_too_and_the_disk_keeps_its_own(sandbox, folder, policy):
    job = Program(
        argv=("/bin/cat", "a.txt", "b.txt"),
        cwd=folder,
        policy=build_policy(["shell.execute"], WorkspacePolicy(workspace=folder), (folder,)),
        files={folder / "b.txt": b"b as checked", folder / "a.txt": b"a as checked, "},
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert ended.stdout == b"a as checked, b as checked"
    assert [(folder / name).read_text() for name in ("a.txt", "b.txt")] == ["a on disk", "b on disk"]


async def test_a_job_that_may_write_around_them_cannot_change_them(sandbox, folder):
    code = """
def main(path):
    try:
        open(path, "w").write("changed")
    except OSError as problem:
        return problem.errno
"""
    job = PythonFile(
        path=folder / "x.py",
        code=code.encode(),
        entry="main",
        arguments={"path": str(folder / "a.txt")},
        policy=build_policy(["fs.read", "fs.write"], WorkspacePolicy(workspace=folder), python_runtime()),
        files={folder / "a.txt": b"checked"},
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert json.loads(ended.result) == {"value": 30}
    assert (folder / "a.txt").read_text() == "a on disk"
    assert (folder / "a.txt").stat().st_mode & 0o777 == 0o644


LOOK = """
import os
def main(folder):
    def read(name):
        try:
            return open(os.path.join(folder, name)).read()
        except PermissionError:
            return None
    return {os.path.join(place, name): read(os.path.join(place, name))
            for place, _, names in os.walk(folder) for name in names}
"""


async def test_of_a_listed_folder_every_name_is_seen_and_only_those_files_are_read_that_are_named(sandbox, folder):
    (folder / "below").mkdir()
    (folder / "below" / "c.txt").write_text("c on disk")
    (folder / "below" / ".d").write_text("d on disk")
    policy = build_policy(
        (),
        WorkspacePolicy(workspace=folder),
        (folder / "a.txt", folder / "below" / "c.txt", *python_runtime()),
        listed=(folder,),
    )
    job = PythonFile(
        path=folder / "x.py", code=LOOK.encode(), entry="main", arguments={"folder": str(folder)}, policy=policy
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    assert json.loads(ended.result)["value"] == {
        str(folder / "a.txt"): "a on disk",
        str(folder / "b.txt"): None,
        str(folder / "below" / "c.txt"): "c on disk",
        str(folder / "below" / ".d"): None,
    }


def test_a_folder_that_may_be_read_anyway_is_not_only_listed(folder):
    workspace_policy = WorkspacePolicy(workspace=folder)
    assert build_policy((), workspace_policy, (folder / "a.txt",), listed=(folder,)).listed == (folder,)
    assert build_policy((), workspace_policy, (folder,), listed=(folder,)).listed == ()
    assert build_policy(["fs.read"], workspace_policy, (), listed=(folder,)).listed == ()
