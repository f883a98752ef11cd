import asyncio
import contextlib
import json
import random
import sys
import time
from pathlib import Path

import pytest
from sandboxes import make_sandbox

from toolcrib.infra.sandbox.jobs import (
    Program,
    PythonFile,
    SandboxPolicy,
    WorkspacePolicy,
    build_policy,
    python_runtime,
)

if sys.platform != "linux":
    pytest.skip("the sandbox is proved where it gives its guarantees", allow_module_level=True)


@pytest.fixture
def sandbox():
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def policy(tmp_path):
    """Wide ones: what a job is kept from is not the matter of most tests."""
    return SandboxPolicy(read=(Path("/"),), write=(tmp_path,), programs=True)


@pytest.fixture
def run_python(sandbox, tmp_path, policy):
    async def run(code, *, entry="main", seconds=10.0, within=policy, file_name="sample.py", **arguments):
        path = tmp_path / file_name
        job = PythonFile(path=path, code=code.encode(), entry=entry, arguments=arguments, policy=within)
        return await sandbox.run(job, deadline=time.monotonic() + seconds)

    return run


@pytest.fixture
def run_shell(sandbox, tmp_path, policy):
    async def run(command, *, seconds=10.0, within=policy, **limits):
        job = Program(argv=("/bin/sh", "-c", command), cwd=tmp_path, policy=within)
        return await sandbox.run(job, deadline=time.monotonic() + seconds, **limits)

    return run


@pytest.fixture
def workspace(tmp_path):
    """What `fs.read` and `fs.write` are about; the tool itself lies elsewhere."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "file").write_text("of the workspace")
    return folder


@pytest.fixture
def confine(tmp_path, workspace):
    """The walls of a tool that requires so much and no more."""
    own = tmp_path / "tool"
    own.mkdir()
    (own / "file").write_text("of the tool")

    def make(*requires, observe=False, **workspace_policy):
        known = WorkspacePolicy(workspace=workspace, **workspace_policy)
        return build_policy(requires, known, (own, *python_runtime()), observe=observe)

    return make


ATTEMPTS = """
import errno, json, os, socket, sys, tempfile
def main(acts, names):
    outcomes = []
    for act in acts:
        try:
            exec(act, {**globals(), **names})
        except OSError as problem:
            outcomes.append(errno.errorcode.get(problem.errno, str(problem)))
        except Exception as problem:
            outcomes.append(f"{type(problem).__name__}: {problem}")
        else:
            outcomes.append("done")
    return outcomes
"""


@pytest.fixture
def attempt(sandbox, tmp_path):
    """Let a job try acts, written in Python; what each came to: `done` or the name of the error."""

    @contextlib.asynccontextmanager
    async def no_proxy(listener):
        yield

    async def run(acts, policy, *, seconds=20.0, **names):
        job = PythonFile(
            path=tmp_path / "tool" / "sample.py",
            code=ATTEMPTS.encode(),
            entry="main",
            arguments={"acts": acts, "names": {name: str(value) for name, value in names.items()}},
            policy=policy,
        )
        proxy = no_proxy if policy.network else None
        ended = await sandbox.run(job, deadline=time.monotonic() + seconds, proxy=proxy)
        assert ended.result is not None, ended
        return json.loads(ended.result)["value"]

    return run


@pytest.fixture
def marker():
    """A number of seconds that no other `sleep` of this machine sleeps."""
    return f"{random.SystemRandom().randint(3000, 9000)}.{random.SystemRandom().randint(10**8, 10**9)}"


@pytest.fixture
def holders(marker):
    """The processes that have the marker among their arguments."""

    def find():
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                if marker.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    return find


@pytest.fixture
def eventually():
    """Wait, bounded, until something holds."""

    async def wait(condition, seconds=10.0):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "it never came to be"
            await asyncio.sleep(0.02)  # a look at every process of the machine takes milliseconds of computing

    return wait


@pytest.fixture
def open_descriptors():
    return lambda: sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.exists())
