"""No job writes what git or the host runs by itself, and none reads or writes a secret, by any system call."""

import asyncio
import json
import os
import shutil
import subprocess
import time

import pytest

from toolcrib import ToolError
from toolcrib.infra.files import protected_files
from toolcrib.infra.sandbox.jobs import PythonFile
from toolcrib.lib.protected_names import CLOSED, TABLE

KEPT = {
    ".env": "TOKEN=canary-4711",
    ".git/config": "[core]\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/hooks/pre-commit.sample": "#!/bin/sh\n",
    ".git/modules/sub/config": "[core]\n",
    ".git/worktrees/w/config.worktree": "",
    ".git/worktrees/w/commondir": "../..\n",
    "conftest.py": "",
    ".vscode/tasks.json": "{}",
    "project/.git/config": "[core]\n",
    "project/.env.local": "TOKEN=canary-4711",
    "bare/HEAD": "ref: refs/heads/main\n",
    "bare/config": "[core]\n\tbare = true\n",
    "bare/objects/ab/cd": "",
    "bare/refs/x": "",
    ".git/index": "DIRC",
    ".git/objects/ab/cd": "",
    ".git/refs/heads/secret": "",
    "keys/server.key": "canary-4711",
    "keys/id_rsa": "canary-4711",
    "keys/.ssh/known": "canary-4711",
}
OPEN = ("note.txt", "project/code.py", "objects/config")


@pytest.fixture
def workspace(workspace):
    for path, text in {**KEPT, **dict.fromkeys(OPEN, "open")}.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    (workspace / "folder").mkdir()
    (workspace / "folder" / "harmless").write_text("harmless")
    return workspace


@pytest.fixture
def seen(workspace):
    """What lies in the workspace: each path with what it is, its mode and what it holds."""

    def look():
        return {
            str(path.relative_to(workspace)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in workspace.rglob("*")
        }

    return look


@pytest.fixture
def both(confine):
    return confine("fs.read", "fs.write")


# Names that no job makes, replaces, renames or removes; most of them do not exist yet.
NAMES = [
    *(".env", ".env.production", "sub/.env", "id_ed25519", "deploy.pem", "sub/credentials.json", ".npmrc", ".ssh"),
    *(".git/hooks/pre-commit", ".git/config", ".git/config.lock", ".git/config.worktree", ".git/commondir"),
    *(".git/hooks/pre-commit.sample", ".git/modules/sub/config", ".git/modules/sub/hooks/post-checkout"),
    *(".git/modules/new/config", ".git/worktrees/w/config.worktree", ".git/worktrees/w/commondir"),
    *(".git/worktrees/w/gitdir", ".git/rebase-merge/git-rebase-todo", "project/.git/hooks/x", "project/.git/config"),
    *("sub/.git", "sub/.GIT", "sub/.g\u200cit", "git~1", "bare/config", "bare/hooks/post-update", "new/HEAD"),
    *(".git/index", ".git/COMMIT_EDITMSG", ".git/sequencer", ".git/refs/heads/main", "bare/HEAD", "bare/index"),
    *(".husky/pre-commit", ".githooks/pre-push", ".vscode/tasks.json", ".idea/workspace.xml", ".envrc"),
    *("evil.pth", "conftest.py", "sub/deep/conftest.py", "Conftest.PY", "sitecustomize.py", "usercustomize.py"),
]
ACTS = {
    "write": "open(path, 'w').write('planted')",
    "append": "open(path, 'a').write('planted')",
    "update": "open(path, 'r+').write('planted')",
    "exclusive": "os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
    "relative": "os.close(os.open(os.path.basename(path), os.O_CREAT | os.O_WRONLY, dir_fd=os.open(os.path.dirname(path), os.O_PATH)))",
    "crossing": "open(ws + '/folder/../' + path[len(ws):], 'w').write('planted')",
    "folder": "os.mkdir(path)",
    "folders": "os.makedirs(path + '/a/b')",
    "empty": "os.truncate(path, 0)",
    "pipe": "os.mkfifo(path)",
    "node": "os.mknod(path)",
    "link": "os.link(ws + '/folder/harmless', path)",
    "symbolic link": "os.symlink(ws + '/folder/harmless', path)",
    "renamed file": "os.rename(ws + '/folder/harmless', path)",
    "renamed folder": "os.rename(ws + '/folder', path)",
    "replaced": "os.replace(ws + '/note.txt', path)",
    "through a link": "os.symlink(path, ws + '/link'); open(ws + '/link', 'w').write('planted')",
    "through a folder's link": "os.symlink(os.path.dirname(path), ws + '/link'); open(ws + '/link/' + os.path.basename(path), 'w')",
    "removed": "os.unlink(path)",
    "removed folder": "import shutil; shutil.rmtree(path)",
    "mode": "os.chmod(path, 0o777)",
    "mode of what is open": "os.fchmod(os.open(path, os.O_RDONLY), 0o777)",
    "second name": "os.link(path, ws + '/second'); open(ws + '/second', 'w').write('planted')",
    "moved away": "os.rename(path, ws + '/moved')",
    "exchanged": "import ctypes; ctypes.CDLL(None).renameat2(-100, path.encode(), -100, (ws + '/note.txt').encode(), 2)",
}


def prepare(workspace, name):
    """Make the folder that a name would lie in, unless the folder itself is what is protected."""
    path = workspace / name
    if not path.parent.exists() and not {".husky", ".githooks", ".idea", "hooks"} & set(path.parts):
        path.parent.mkdir(parents=True)
    return path


def changed(before, after):
    """What is there no more, is new or is another; a link with a harmless name may be left behind, and leads nowhere that could be written."""
    return {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)} - {"link"}


async def test_a_protected_name_is_made_changed_and_removed_by_no_call(attempt, both, workspace, seen):
    paths = [prepare(workspace, name) for name in NAMES]
    before = seen()
    # The one link that may be left behind would be in the way of the next name.
    start = "os.path.lexists(ws + '/link') and os.unlink(ws + '/link')"
    acts = [f"path = {str(path)!r}; {start}; {act}" for path in paths for act in ACTS.values()]
    assert len(await attempt(acts, both, ws=workspace, seconds=50)) == len(NAMES) * len(ACTS)
    assert changed(before, seen()) == set()


async def test_a_repository_that_is_there_is_neither_replaced_nor_removed(attempt, both, workspace, seen):
    before = seen()
    for path in (".git", "bare"):
        await attempt(list(ACTS.values()), both, path=workspace / path, ws=workspace)
    assert changed(before, seen()) == set()


async def test_ordinary_files_are_changed_by_every_call(attempt, both, workspace):
    path = workspace / "sub" / "file.txt"
    path.parent.mkdir()
    acts = [
        "open(path, 'w').write('one'); assert open(path).read() == 'one'",
        "open(path, 'a').write('two'); assert open(path).read() == 'onetwo'",
        "open(path, 'r+').write('x'); assert open(path).read() == 'xnetwo'",
        "os.truncate(path, 2); assert open(path).read() == 'xn'",
        "os.chmod(path, 0o640); assert os.stat(path).st_mode & 0o777 == 0o640",
        "file = open(path); os.fchmod(file.fileno(), 0o600); assert os.stat(path).st_mode & 0o777 == 0o600",
        "os.link(path, path + '2'); assert os.stat(path).st_nlink == 2",
        "os.symlink('file.txt', path + '3'); assert open(path + '3').read() == 'xn'",
        "open(path + '3', 'w').write('y'); assert open(path).read() == 'y'",
        "os.rename(path + '2', path + '4'); assert not os.path.exists(path + '2')",
        "os.replace(path + '4', path); assert open(path).read() == 'y'",
        "os.umask(0o027); os.mkdir(path + 'd', 0o777); assert os.stat(path + 'd').st_mode & 0o777 == 0o750",
        "open(path + 'd/x', 'x').close(); assert os.stat(path + 'd/x').st_mode & 0o777 == 0o640",
        "os.mkfifo(path + 'p'); os.unlink(path + 'p')",
        "os.unlink(path + 'd/x'); os.rmdir(path + 'd')",
        "file = tempfile.TemporaryFile(dir=ws); file.write(b'x'); file.close()",
        "folder = os.open(ws, os.O_RDONLY); os.close(os.open('rel', os.O_CREAT | os.O_WRONLY, dir_fd=folder)); os.unlink('rel', dir_fd=folder)",
        "os.chdir(ws); open('here', 'w').write('x'); os.rename('here', 'sub/there'); os.unlink('sub/there')",
        "os.dup2(os.open(path, os.O_WRONLY), 99); open('/dev/fd/99', 'w').write('z'); assert open(path).read() == 'z'",
        "open('/dev/null', 'w').write('x')",
        "open(os.environ['TMPDIR'] + '/x', 'w').write('x'); os.truncate(os.environ['TMPDIR'] + '/x', 0); os.chmod(os.environ['TMPDIR'] + '/x', 0o600)",
        "os.rename(path + 'e', path + 'f') if os.mkdir(path + 'e') else os.rename(path + 'e', path + 'f/')",
        "os.mkdir(path + 'g'); import ctypes; assert not ctypes.CDLL(None).renameat2(-100, path.encode(), -100, (path + 'g').encode(), 2); os.rmdir(path)",
        "os.rename(path + 'g', path)",
        "os.makedirs(ws + '/.git', exist_ok=True)",
        "os.mkdir(ws + '/secrets'); open(ws + '/secrets/read_secret.py', 'w').close(); os.mkdir(ws + '/HEAD')",
        "open(ws + '/.env.example', 'w').close(); open(ws + '/config', 'w').close(); os.mkdir(ws + '/hooks')",
    ]
    outcomes = await attempt(acts, both, path=path, ws=workspace)
    assert dict(zip(acts, outcomes, strict=True)) == dict.fromkeys(acts, "done")


ERRORS = {
    "open(ws + '/folder/none/x', 'w')": "ENOENT",
    "os.mkdir(ws + '/folder')": "EEXIST",
    "os.rmdir(ws + '/folder')": "ENOTEMPTY",
    "os.rmdir(ws + '/project')": "EBUSY",
    "os.unlink(ws + '/none')": "ENOENT",
    "os.rename(ws + '/none', ws + '/other')": "ENOENT",
    "open(ws + '/folder', 'w')": "EISDIR",
    "open(ws + '/file/x', 'w')": "ENOTDIR",
    "os.open(ws + '/file', os.O_CREAT | os.O_EXCL | os.O_WRONLY)": "EEXIST",
    "os.rename('/etc/hostname', ws + '/x')": "EXDEV",
    "os.link('/etc/hostname', ws + '/x')": "EXDEV",
    "open('/etc/new', 'w')": "EROFS",
    "os.mkdir('/etc/new')": "EROFS",
}


async def test_who_may_only_write_reads_nothing_by_opening_it_for_both(attempt, confine, workspace):
    acts = {
        "open(ws + '/note.txt', 'w').close()": "done",
        "open(ws + '/note.txt', 'r+')": "EACCES",
        "open(ws + '/new.txt', 'w+')": "EACCES",
        "open(ws + '/note.txt')": "EACCES",
    }
    outcomes = await attempt(list(acts), confine("fs.write"), ws=workspace)
    assert dict(zip(acts, outcomes, strict=True)) == acts


async def test_a_file_grows_no_larger_than_the_job_may_make_it(attempt, confine, workspace):
    policy = confine("fs.read", "fs.write", disk_bytes=1_000_000)
    acts = {
        "os.truncate(ws + '/note.txt', 900_000)": "done",
        "os.truncate(ws + '/note.txt', 1_100_000)": "EFBIG",
    }
    outcomes = await attempt(list(acts), policy, ws=workspace)
    assert dict(zip(acts, outcomes, strict=True)) == acts


async def test_a_program_that_was_just_written_can_be_started(run_shell, confine):
    policy = confine("fs.read", "fs.write", "shell.execute")
    command = (
        "cd workspace; for n in $(seq 50); do echo '#!/bin/sh' > run$n; chmod +x run$n; ./run$n || echo failed; done"
    )
    ended = await run_shell(command, within=policy, seconds=30)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, b"", b"")


async def test_a_named_pipe_waits_for_its_reader(run_shell, confine):
    command = (
        "cd workspace; mkfifo first second; (cat first > one) & echo early > first; wait; cat one;"
        " (sleep 0.3; cat second) & echo late > second; wait; echo end"
    )
    ended = await run_shell(command, within=confine("fs.read", "fs.write", "shell.execute"), seconds=20)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, b"early\nlate\nend\n", b"")


async def test_a_call_that_fails_says_why(attempt, both, workspace):
    outcomes = await attempt(list(ERRORS), both, ws=workspace)
    assert dict(zip(ERRORS, outcomes, strict=True)) == ERRORS


@pytest.mark.parametrize(
    "act",
    [
        "os.rename(ws + '/.git', ws + '/elsewhere')",
        "os.rename(ws + '/project/.git', ws + '/elsewhere')",
        "os.rename(ws + '/.git/modules', ws + '/elsewhere')",
        "os.rename(ws + '/folder', ws + '/.git/modules/folder')",
        "os.rename(ws + '/folder', ws + '/bare/folder')",
        "os.rename(ws + '/project', ws + '/node_modules')",
        "import shutil; shutil.rmtree(ws + '/.git/hooks')",
    ],
)
async def test_no_folder_that_holds_what_is_protected_is_moved(attempt, both, workspace, seen, act):
    before = seen()
    assert set(await attempt([act], both, ws=workspace)) <= {"EPERM", "EBUSY"}
    assert seen() == before


SECRETS = [path for path in KEPT if "canary" in KEPT[path]]
READS = {
    "read": "seen.append(open(path).read())",
    "second name": "os.link(path, ws + '/second'); seen.append(open(ws + '/second').read())",
    "renamed": "os.rename(path, ws + '/moved'); seen.append(open(ws + '/moved').read())",
    "through a link": "os.symlink(path, ws + '/link'); seen.append(open(ws + '/link').read())",
    "through the process": "seen.append(open('/proc/self/root' + path).read())",
    "through the folder": "os.rename(os.path.dirname(path), ws + '/moved'); seen.append(open(ws + '/moved/' + os.path.basename(path)).read())",
}


@pytest.mark.parametrize("requires", [("fs.read",), ("fs.read", "fs.write"), ("fs.write",)])
@pytest.mark.parametrize("path", SECRETS)
async def test_a_secret_is_read_by_no_call(sandbox, tmp_path, confine, workspace, path, requires):
    code = "\n".join(
        [
            "import os",
            "def main(path, ws):",
            "    seen = []",
            *(
                f"    try:\n        {act}\n    except OSError as problem: seen.append(str(problem))"
                for act in READS.values()
            ),
            "    return seen",
        ]
    )
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=code.encode(),
        entry="main",
        arguments={"path": str(workspace / path), "ws": str(workspace)},
        policy=confine(*requires),
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 60)
    told = json.loads(ended.result)["value"]
    assert len(told) == len(READS)
    assert "canary" not in ended.result.decode()
    assert (workspace / path).read_text() == KEPT[path]


async def test_a_link_with_a_secret_name_does_not_show_what_it_leads_to(attempt, confine, workspace):
    (workspace / "shared").write_text("canary-4711")
    (workspace / "app").mkdir()
    (workspace / "app" / ".env").symlink_to("../shared")
    acts = [f"open(ws + '/{name}').read()" for name in ("app/.env", "shared", "note.txt")]
    assert await attempt(acts, confine("fs.read"), ws=workspace) == ["EACCES", "EACCES", "done"]


async def test_what_a_link_with_a_secret_name_leads_to_later_is_closed_too(attempt, both, workspace):
    for folder in ("app", "one", "two", "three"):
        (workspace / folder).mkdir()
    (workspace / "one" / "values").write_text("canary-4711")
    (workspace / "current").symlink_to("one")
    (workspace / "app" / ".env").symlink_to("../current/values")
    read = [f"open(ws + '/{name}/values').read()" for name in ("one", "two")]
    lead_away = "os.unlink(ws + '/current'); os.symlink('three', ws + '/current')"
    assert await attempt([lead_away, *read], both, ws=workspace) == ["EPERM", "EACCES", "ENOENT"]
    (workspace / "current").unlink()
    (workspace / "current").symlink_to("two")
    (workspace / "two" / "values").write_text("canary-4711")
    assert await attempt([lead_away, *read], both, ws=workspace) == ["EPERM", "done", "EACCES"]


async def test_what_the_host_makes_between_two_jobs_is_closed_to_the_second(attempt, confine, workspace):
    policy = confine("fs.read")
    act = "open(ws + '/new/.env').read()"
    assert await attempt([act], policy, ws=workspace) == ["ENOENT"]
    (workspace / "new").mkdir()
    assert await attempt([act], policy, ws=workspace) == ["ENOENT"]
    (workspace / "new" / ".env").write_text("canary-4711")
    assert await attempt([act], policy, ws=workspace) == ["EACCES"]
    (workspace / "new" / ".env").unlink()
    assert await attempt([act], policy, ws=workspace) == ["ENOENT"]


async def test_what_the_host_replaces_while_a_job_runs_ends_it(sandbox, tmp_path, confine, workspace, eventually):
    code = (
        "import time\n"
        "def main(path, ready):\n"
        "    open(ready, 'w').close()\n"
        "    while True:\n"
        "        try:\n            if 'canary' in open(path).read(): return 'seen'\n"
        "        except OSError: pass\n"
        "        time.sleep(0.001)\n"
    )
    ready, secret = workspace / "ready", workspace / ".env"
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=code.encode(),
        entry="main",
        arguments={"path": str(secret), "ready": str(ready)},
        policy=confine("fs.read", "fs.write"),
    )
    running = asyncio.ensure_future(sandbox.run(job, deadline=time.monotonic() + 60))
    await eventually(ready.exists)
    (workspace / "draft").write_text("TOKEN=canary-4711")
    (workspace / "draft").rename(secret)
    assert (await running).exceeded == "isolation"


async def test_what_the_operator_opened_is_open_and_nothing_else(attempt, confine, workspace):
    policy = confine("fs.read", "fs.write", opened=(".env.local", ".git/hooks", ".vscode/*.json", "sub"))
    acts = {
        "open(ws + '/project/.env.local').read()": "done",
        "open(ws + '/.env').read()": "EACCES",
        "open(ws + '/.git/hooks/pre-commit', 'w').close()": "done",
        "open(ws + '/.git/config', 'w').close()": "EPERM",
        "open(ws + '/project/.git/hooks', 'w').close()": "EPERM",
        "open(ws + '/.vscode/settings.json', 'w').close()": "done",
        "open(ws + '/.vscode/x.sh', 'w').close()": "EPERM",
        "os.makedirs(ws + '/sub/.git/hooks'); open(ws + '/sub/conftest.py', 'w').close()": "done",
    }
    outcomes = await attempt(list(acts), policy, ws=workspace)
    assert dict(zip(acts, outcomes, strict=True)) == acts


async def test_a_process_that_is_asked_to_end_can_still_tidy_up(run_python, workspace, confine):
    code = (
        "import os, signal, sys, time\n"
        "def main(path):\n"
        "    def tidy(*_):\n"
        "        os.unlink(path)\n"
        "        open(path + '.tidied', 'w').close()\n"
        "        os._exit(0)\n"
        "    signal.signal(signal.SIGTERM, tidy)\n"
        "    open(path, 'w').close()\n"
        "    time.sleep(60)\n"
    )
    path = workspace / "half-done"
    ended = await run_python(code, seconds=3.0, within=confine("fs.read", "fs.write"), path=str(path))
    assert ended.timed_out
    assert not path.exists()
    assert (workspace / "half-done.tidied").exists()


HOOK_FOLDERS = {
    "a setting": (".git/config", "[core]\n\thooksPath = tools/git\n"),
    "a setting in quotes": (".git/config", '[core]\nHooksPath="./tools/git/"\n'),
    "a setting of a worktree": (".git/config.worktree", "[core]\n\thookspath = tools/git\n"),
}


@pytest.mark.parametrize(("file", "text"), HOOK_FOLDERS.values(), ids=HOOK_FOLDERS)
async def test_a_folder_that_git_was_told_to_run_hooks_from_is_closed(attempt, both, workspace, file, text):
    (workspace / file).write_text(text)
    (workspace / "tools" / "git").mkdir(parents=True)
    acts = {
        "open(ws + '/tools/git/pre-commit', 'w')": "EPERM",
        "os.rename(ws + '/tools/git', ws + '/gone')": "EPERM",
        "os.rename(ws + '/tools', ws + '/gone')": "EPERM",
        "open(ws + '/tools/other', 'w')": "done",
    }
    assert dict(zip(acts, await attempt(list(acts), both, ws=workspace), strict=True)) == acts


async def test_an_empty_folder_on_the_way_to_hooks_is_made_and_removed_but_nothing_takes_its_place(
    attempt, both, workspace
):
    (workspace / ".git" / "config").write_text("[core]\n\thooksPath = tools/git\n")
    acts = {
        "os.mkdir(ws + '/tools')": "done",
        "open(ws + '/tools/git', 'w')": "EPERM",
        "os.rmdir(ws + '/tools')": "done",
        "os.symlink('folder', ws + '/tools')": "EPERM",
        "os.rename(ws + '/folder', ws + '/tools')": "EPERM",
        "os.mkdir(ws + '/tools'); os.mkdir(ws + '/tools/git')": "EPERM",
    }
    assert dict(zip(acts, await attempt(list(acts), both, ws=workspace), strict=True)) == acts


async def test_a_hook_that_is_a_link_and_a_link_on_the_way_to_hooks_are_closed(attempt, both, workspace):
    (workspace / "scripts").mkdir()
    (workspace / "scripts" / "lint").write_text("#!/bin/sh\n")
    (workspace / ".git" / "hooks" / "pre-commit").symlink_to("../../scripts/lint")
    (workspace / "way").symlink_to("folder")
    (workspace / "project" / ".git" / "config").write_text("[core]\n\thooksPath = ../way\n")
    acts = {
        "open(ws + '/scripts/lint', 'w')": "EPERM",
        "os.chmod(ws + '/scripts/lint', 0o777)": "EPERM",
        "os.rename(ws + '/note.txt', ws + '/scripts/lint')": "EPERM",
        "os.unlink(ws + '/way')": "EPERM",
        "os.rename(ws + '/note.txt', ws + '/way')": "EPERM",
        "open(ws + '/way/pre-commit', 'w')": "EPERM",
        "open(ws + '/scripts/other', 'w')": "done",
    }
    assert dict(zip(acts, await attempt(list(acts), both, ws=workspace), strict=True)) == acts


async def test_a_folder_that_stands_in_for_the_hooks_by_a_link_is_closed(attempt, both, workspace):
    shutil.rmtree(workspace / ".git" / "hooks")
    (workspace / "scripts").mkdir()
    (workspace / ".git" / "hooks").symlink_to("../scripts")
    acts = ["open(ws + '/scripts/pre-commit', 'w')", "open(ws + '/.git/hooks/pre-commit', 'w')", "open(ws + '/x', 'w')"]
    assert await attempt(acts, both, ws=workspace) == ["EPERM", "EPERM", "done"]


async def test_the_hooks_of_a_linked_worktree_are_closed(attempt, both, workspace):
    shutil.move(workspace / ".git", workspace / "main")
    (workspace / ".git").write_text("gitdir: main/worktrees/w\n")
    (workspace / "main" / "config").write_text("[core]\nhooksPath = team\n")
    (workspace / "team").mkdir()
    acts = [f"open(ws + '/{path}', 'w')" for path in ("team/pre-commit", "main/config", "main/hooks/x", ".git", "free")]
    assert await attempt(acts, both, ws=workspace) == ["EPERM", "EPERM", "EPERM", "EPERM", "done"]


OBEYED = {
    "included settings": (".git/config", "[include]\n\tpath = ../team/settings\n", "team/settings"),
    "settings that are included there": (
        ".git/config",
        '[includeIf "gitdir:**"] path=../first ; ours\n',
        "team/settings",
    ),
    "a program that lists changes": (
        ".git/config",
        "[core]\n\tfsmonitor = ./team/settings --all # ours\n",
        "team/settings",
    ),
    "a program by its path": (".git/config", '[difftool "ours"]\n\tpath = "team/settings"\n', "team/settings"),
    "hooks of a nested repository": ("project/.git/config", "[core]\nhooksPath = tools\n", "project/tools/pre-commit"),
    "hooks of a nested repository beside it": (
        "project/.git/config",
        "[core]\nhooksPath = ../tools\n",
        "tools/pre-commit",
    ),
    "hooks of the repository around": ("../.git/config", "[core]\nhooksPath = workspace/tools\n", "tools/pre-commit"),
}


@pytest.mark.parametrize(("file", "text", "path"), OBEYED.values(), ids=OBEYED)
async def test_what_git_is_told_to_obey_is_read_and_not_written(attempt, both, workspace, file, text, path):
    files = {file: text, "first": "[include]\npath = team/settings\n[core]\nfsmonitor = true\n", path: "there"}
    for place, content in files.items():
        (workspace / place).parent.mkdir(parents=True, exist_ok=True)
        (workspace / place).write_text(content)
    acts = {
        f"open(ws + '/{path}', 'w')": "EPERM",
        f"os.rename(ws + '/note.txt', ws + '/{path}')": "EPERM",
        f"os.rename(os.path.dirname(ws + '/{path}'), ws + '/gone')": "EPERM",
        f"open(ws + '/{path}').read()": "done",
        "open(ws + '/true', 'w')": "done",
        "open(ws + '/other', 'w')": "done",
    }
    assert dict(zip(acts, await attempt(list(acts), both, ws=workspace), strict=True)) == acts


def test_settings_that_include_each_other_are_read_once(workspace):
    (workspace / ".git" / "config").write_text("[include]\npath = ../a\n")
    (workspace / "a").write_text("[include]\npath = b\n" * 2_000)
    (workspace / "b").write_text("[include]\npath = a\npath = b\n[core]\nhooksPath = tools\n" * 2_000)
    assert set(protected_files.ProtectedFiles(workspace).find_git_paths()) >= {"a", "b", "tools/"}


RACE = """
import ctypes, os, sys, threading
def main(ws, rounds):
    sys.setswitchinterval(0.00001)
    done = threading.Event()
    libc = ctypes.CDLL(None, use_errno=True)
    names = [os.fsencode(ws + "/" + name) for name in ("harmless", ".git/hooks/pre-commit")]
    size = max(map(len, names)) + 1
    buffer = ctypes.create_string_buffer(names[0], size)
    scratch = os.fsencode(os.environ["TMPDIR"] + "/x")
    def flip():
        texts = [ctypes.create_string_buffer(name, size) for name in (*names, scratch)]
        while not done.is_set():
            for text in texts:
                ctypes.memmove(buffer, text, size)
    threads = [threading.Thread(target=flip) for _ in range(2)]
    for thread in threads: thread.start()
    made = 0
    for _ in range(rounds):
        for call in (
            lambda: libc.open(buffer, os.O_CREAT | os.O_WRONLY, 0o755),
            lambda: libc.mkdir(buffer, 0o755),
            lambda: libc.rename(os.fsencode(ws + "/note.txt"), buffer),
            lambda: libc.symlink(b"x", buffer),
            lambda: libc.chmod(buffer, 0o777),
        ):
            made += call() >= 0
        if os.path.lexists(names[1]): break
        for path in (names[0], scratch):
            try: os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            except OSError: pass
        if not os.path.exists(ws + "/note.txt"): open(ws + "/note.txt", "w").close()
    done.set()
    for thread in threads: thread.join()
    return [made, os.path.lexists(names[1])]
"""


async def test_a_path_that_changes_while_it_is_judged_leads_nowhere_else(sandbox, tmp_path, both, workspace):
    job = PythonFile(
        path=tmp_path / "tool" / "sample.py",
        code=RACE.encode(),
        entry="main",
        arguments={"ws": str(workspace), "rounds": 100},
        policy=both,
    )
    ended = await sandbox.run(job, deadline=time.monotonic() + 30)
    made, planted = json.loads(ended.result)["value"]
    assert made > 0
    assert not planted
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()


MOVES_FOLDER = """
import os
def main(ws, rounds):
    os.mkdir(ws + "/new")
    for _ in range(rounds):
        try:
            os.rename(ws + "/moved", ws + "/new/HEAD")
            os.rename(ws + "/new/HEAD", ws + "/moved")
        except OSError: pass
        if os.path.isfile(ws + "/new/HEAD"): break
    os.mkdir(ws + "/done")
    return "planted" if os.path.isfile(ws + "/new/HEAD") else "kept"
"""
EXCHANGES = """
import ctypes, os
def main(ws, rounds):
    made = 0
    for _ in range(rounds * 100):
        try: os.mkdir(ws + "/moved")
        except OSError: pass
        made += ctypes.CDLL(None).renameat2(-100, os.fsencode(ws + "/moved"), -100, os.fsencode(ws + "/note.txt"), 2) == 0
        if os.path.exists(ws + "/done"): break
    return "exchanged" if made else "nothing was exchanged"
"""


async def test_a_folder_that_another_job_exchanges_for_a_file_marks_no_repository(sandbox, tmp_path, both, workspace):
    jobs = [
        PythonFile(
            path=tmp_path / "tool" / "sample.py",
            code=code.encode(),
            entry="main",
            arguments={"ws": str(workspace), "rounds": 500},
            policy=both,
        )
        for code in (MOVES_FOLDER, EXCHANGES)
    ]
    ended = await asyncio.gather(*(sandbox.run(job, deadline=time.monotonic() + 30) for job in jobs))
    assert [json.loads(each.result)["value"] for each in ended] == ["kept", "exchanged"]


@pytest.fixture
def git(workspace):
    """Run git as the user does, in a fresh repository with one commit."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    shutil.rmtree(workspace)
    environment = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent), "GIT_EDITOR": "true"}

    def run(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", *identity, *words]
        subprocess.run(command, cwd=workspace.parent, env=environment, check=True, timeout=30)

    run("init", "-q", "-b", "main", str(workspace))
    (workspace / "file").write_text("one")
    run("-C", "workspace", "add", "file")
    run("-C", "workspace", "commit", "-q", "-m", "first")
    return run


AS_SOMEBODY = "cd workspace && export HOME=$TMPDIR GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"


async def test_git_reads_a_repository_and_makes_and_changes_none(run_shell, confine, git, workspace, seen):
    before = seen()
    command = (
        f"{AS_SOMEBODY} && echo two > file && git status --short && git diff --stat && git log --format=%s && git stash list"
        " && git show --stat --format=%s && git blame -s file && git fsck && git status --short --branch"
        " && rm file; git checkout -q file; git add .; git commit -qm second; git config core.fsmonitor ./evil;"
        " git init -q new; git init -q --bare new.git; git clone -q . copy; rmdir new new.git copy; true"
    )
    ended = await run_shell(command, within=confine("fs.read", "fs.write", "shell.execute"), seconds=30)
    assert ended.stdout.decode().split("\n")[0] == " M file", ended.stderr
    assert b"## main" in ended.stdout
    assert {path for path in changed(before, seen()) if path.startswith(".git") or path.endswith("HEAD")} == set()


COMMITTING = (
    *(".git/objects", ".git/refs", ".git/logs", ".git/packed-refs*", ".git/*HEAD*", ".git/index*", ".git/*_EDITMSG"),
    *(".git/MERGE_*", ".git/AUTO_MERGE*", ".git/gc.*"),
)


async def test_git_commits_where_the_operator_opened_what_it_writes(run_shell, confine, git, workspace):
    command = (
        f"{AS_SOMEBODY} && echo x > x && git status --short && git add x && git commit -qm second && git switch -qc topic"
        " && git mv x y && git commit -qam third && git switch -q main && git merge -q topic"
        " && git log --format=%s && git gc -q && git fsck && git status --short --branch; git config core.fsmonitor ./evil"
    )
    policy = confine("fs.read", "fs.write", "shell.execute", opened=COMMITTING)
    ended = await run_shell(command, within=policy, seconds=30)
    assert ended.stdout.decode().split("\n")[:5] == ["?? x", "third", "second", "first", "## main"], ended.stderr
    assert "fsmonitor" not in (workspace / ".git" / "config").read_text()


async def test_an_index_that_names_a_hook_is_not_put_in_the_place_of_the_real_one(attempt, both, git, workspace):
    """Git would write the hook when the user restores files, because it trusts its own index."""
    (workspace / "xgit").mkdir()
    (workspace / "xgit" / "post-checkout").write_text("#!/bin/sh\ntouch planted\n")
    (workspace / "xgit" / "post-checkout").chmod(0o755)
    git("-C", "workspace", "add", "xgit")
    index = (workspace / ".git" / "index").read_bytes()
    git("-C", "workspace", "rm", "-q", "-f", "--cached", "xgit/post-checkout")
    path = b"xgit/post-checkout\0"
    assert path in index
    (workspace / "index").write_bytes(index.replace(path, b".git/post-checkout\0"))
    acts = [
        "os.rename(ws + '/index', ws + '/.git/index')",
        "open(ws + '/.git/index', 'wb').write(open(ws + '/index', 'rb').read())",
        "os.symlink(ws + '/index', ws + '/.git/index.new'); os.rename(ws + '/.git/index.new', ws + '/.git/index')",
    ]
    assert await attempt(acts, both, ws=workspace) == ["EPERM"] * len(acts)
    git("-C", "workspace", "restore", ".")
    assert not (workspace / ".git" / "post-checkout").exists()


def test_secrets_are_found_at_every_depth_and_not_in_what_is_installed(workspace):
    for folder in ("node_modules/x", ".venv/lib", "deep/er/still"):
        (workspace / folder).mkdir(parents=True)
        (workspace / folder / ".env").write_text("x")
    found = {str(path.relative_to(workspace)) for path in protected_files.ProtectedFiles(workspace).find_secrets()}
    assert found == {
        *(".env", "project/.env.local", "keys/server.key", "keys/id_rsa", "keys/.ssh", "deep/er/still/.env"),
    }
    assert protected_files.ProtectedFiles(workspace, (".env", "keys")).find_secrets() == (
        workspace / "project" / ".env.local",
    )


def test_every_closed_name_of_the_table_is_found(workspace):
    shutil.rmtree(workspace)
    paths = [workspace / "deep" / name.replace("*", "x") for name in TABLE[CLOSED]]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("canary-4711")
    assert set(protected_files.ProtectedFiles(workspace).find_secrets()) == set(paths)


def test_passwords_beside_the_settings_of_a_repository_are_found(workspace):
    for path in (".git/credentials", "project/.git/.git-credentials", ".git/refs/heads/secret"):
        (workspace / path).write_text("https://name:canary-4711@example.org")
    found = {str(path.relative_to(workspace)) for path in protected_files.ProtectedFiles(workspace).find_secrets()}
    assert {path for path in found if ".git" in path} == {".git/credentials", "project/.git/.git-credentials"}


def test_a_folder_that_cannot_be_looked_into_is_closed_as_a_whole(workspace, monkeypatch):
    hidden = str(workspace / "keys")
    monkeypatch.setattr(protected_files.os, "access", lambda path, mode: path != hidden)
    assert set(protected_files.ProtectedFiles(workspace).find_secrets()) == {
        *(workspace / ".env", workspace / "project" / ".env.local", workspace / "keys"),
    }


def test_a_workspace_with_too_much_in_it_to_be_sure_is_refused(workspace, monkeypatch):
    monkeypatch.setattr(protected_files, "MAX_ENTRIES", 10)
    with pytest.raises(ToolError, match="too many files .* set workspace.folder to a smaller one"):
        protected_files.ProtectedFiles(workspace).find_secrets()
    monkeypatch.setattr(protected_files, "MAX_ENTRIES", 10_000)
    monkeypatch.setattr(protected_files, "MAX_SECRETS", 2)
    with pytest.raises(ToolError, match="too many secrets"):
        protected_files.ProtectedFiles(workspace).find_secrets()


def test_a_folder_that_changed_is_looked_at_again(workspace, monkeypatch):
    secrets = protected_files.ProtectedFiles(workspace)
    old = time.time_ns() + 10**9
    monkeypatch.setattr(protected_files.time, "time_ns", lambda: old)  # everything has settled
    before = secrets.find_secrets()
    (workspace / "folder" / ".env").write_text("x")
    os.utime(workspace / "folder", (0, 0))  # which changes the time of the content alone
    assert set(secrets.find_secrets()) - set(before) == {workspace / "folder" / ".env"}
    # Two changes within one tick of the file system's clock look like one.
    seen = (workspace / "folder").stat().st_ctime_ns
    (workspace / "folder" / ".env").unlink()
    while (workspace / "folder").stat().st_ctime_ns == seen:
        (workspace / "folder" / "other").touch()
        (workspace / "folder" / "other").unlink()
    assert set(secrets.find_secrets()) == set(before)
