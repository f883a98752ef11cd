"""Tools that executors run, made without a file where none is needed, and the runner that runs them."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from toolcrib import Call, Context, Tool
from toolcrib.features.python_files.runner import PythonFileRunner
from toolcrib.features.scripts.runner import ExecutorRunner
from toolcrib.infra.programs.child_channel import ChildChannel
from toolcrib.infra.sandbox.jobs import WorkspacePolicy
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.tool import Chained, Convention, Entry, Script

SPACES = ("project", "user", "system")
OPEN = {"type": "object", "properties": {}}


class _OfBothKinds:
    """Binds a plain file by one runner and what has an executor by the other, as a crib does."""

    kind = Script.kind

    def __init__(self, files, executor):
        self._files, self._executor = files, executor

    def bind(self, tool):
        return (self._files if isinstance(tool.run, Script) else self._executor).bind(tool)

    async def close(self):
        await self._files.close()
        await self._executor.close()


@pytest.fixture
def tools_folder(tmp_path):
    folder = tmp_path / "project" / ".ai" / "tools"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "project" / "work"
    folder.mkdir(parents=True)
    return folder


class Bench:
    """A few spaces of tools, and a runner over them."""

    def __init__(self, sandbox, workspace, folder):
        self.folder = folder
        self.workspace = workspace
        self.sandbox = sandbox
        self.variables = {}
        self.search_path = os.environ["PATH"]
        self.workspace_policy = WorkspacePolicy(workspace=workspace)
        self.tools = list(system_tools())
        self.disabled = {}
        self.egress = None
        self.observe = False

    def find(self, name, bundle):
        for space in SPACES[SPACES.index(bundle) :]:
            for tool in self.tools:
                if tool.bundle == space and name in {tool.name, tool.slug}:
                    return Entry(
                        tool=tool, enabled=tool.name not in self.disabled, reason=self.disabled.get(tool.name, "")
                    )
        return None

    @property
    def runner(self):
        """A runner of both kinds: of plain files, and of what has an executor."""
        return _OfBothKinds(self._files, self._executor)

    @property
    def _files(self):
        return PythonFileRunner(
            sandbox=self.sandbox,
            channel=lambda: ChildChannel(self.sandbox),
            workspace_policy=self.workspace_policy,
            observe=self.observe,
        )

    @property
    def _executor(self):
        return ExecutorRunner(
            sandbox=self.sandbox,
            workspace_policy=self.workspace_policy,
            find=self.find,
            egress=lambda: self.egress,
            jail=lambda: None,
            http=lambda: None,
            variable=lambda tool, name: self.variables.get((tool.name, name)),
            search_path=self.search_path,
            version="7.8.9",
            observe=self.observe,
        )

    def tool(self, name="sample", executor="subprocess", *, kind="script", bundle="project", config=None, **more):
        """A tool that only describes; it is in its space from now on."""
        requires = more.pop("requires", {"shell.execute"} if executor in {"subprocess", "bash"} else ())
        run = Chained(
            kind=kind,
            tool_type=kind,
            executor=executor,
            folder=more.pop("folder", self.folder),
            config=config or {},
            script=more.pop("script", None),
            action=more.pop("action", ""),
            hosts=more.pop("hosts", None),
        )
        facts = {"description": "A sample.", "parameters": OPEN, "bundle": bundle, **more}
        tool = Tool(name=name, run=run, requires=frozenset(requires), **facts)
        self.tools.insert(0, tool)
        return tool

    def file(self, name, code, executor, *, language, convention="argv", entry="main", **more):
        """A tool that is a file of code."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        script = Script(
            path=path, code=code.encode(), language=language, entry=entry, convention=Convention(convention)
        )
        return self.tool(path.stem.replace(".", "-"), executor, script=script, folder=path.parent, **more)

    def check(self, tool, **arguments):
        self.runner.bind(tool).check(arguments, Call(name=tool.name, arguments=arguments))

    async def call(self, tool, *, seconds=20.0, **arguments):
        """Check and run, as a pipeline does."""
        bound = self.runner.bind(tool)
        bound.check(arguments, Call(name=tool.name, arguments=arguments))
        return await bound.run(arguments, context_of(tool, seconds))

    async def value(self, tool, **arguments):
        outcome = await self.call(tool, **arguments)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def limit(self, **limits):
        self.workspace_policy = replace(self.workspace_policy, **limits)


def context_of(tool, seconds=20.0):
    return Context(
        tool=tool,
        call_id="call-1",
        caller="ann",
        mode="text",
        deadline=time.monotonic() + seconds,
        seconds=seconds,
        session=None,
        call=None,
        audit=lambda event, data=None: None,
    )


@pytest.fixture
def bench(sandbox, workspace, tools_folder):
    return Bench(sandbox, workspace, tools_folder)


@pytest.fixture(scope="session")
def context():
    return context_of


TELL = """\
import json, os, sys
print(json.dumps({"words": sys.argv[1:], "variables": dict(os.environ), "folder": os.getcwd()}))
"""
ANYTHING = {"type": "object"}


@pytest.fixture
def tell(bench):
    """A tool over a program that tells its words, its variables and its folder."""
    (bench.folder / "tell.py").write_text(TELL)

    def tell(name="sample", **more):
        config = {"command": "python", "args": ["tell.py"], **more.pop("config", {})}
        return bench.tool(name, config=config, output_schema=ANYTHING, **more)

    return tell
