import asyncio
import random
import sys
import time
from pathlib import Path

import pytest

from toolcrib.ground.sandbox.host import Sandbox
from toolcrib.ground.sandbox.jobs import Program, PythonFile

if sys.platform != "linux":
    pytest.skip("the sandbox is proved where it gives its guarantees", allow_module_level=True)


@pytest.fixture
def sandbox():
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def run_python(sandbox, tmp_path):
    async def run(code, *, entry="main", seconds=10.0, **arguments):
        job = PythonFile(path=tmp_path / "sample.py", code=code.encode(), entry=entry, arguments=arguments)
        return await sandbox.run(job, deadline=time.monotonic() + seconds)

    return run


@pytest.fixture
def run_shell(sandbox, tmp_path):
    async def run(command, *, seconds=10.0, **limits):
        job = Program(argv=("/bin/sh", "-c", command), cwd=tmp_path)
        return await sandbox.run(job, deadline=time.monotonic() + seconds, **limits)

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
            await asyncio.sleep(0.005)

    return wait


@pytest.fixture
def open_descriptors():
    return lambda: sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.exists())
