"""Run plain Python files and built packages, each call in a sandboxed child process of its own."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.core.plugins import later
from toolcrib.infra.programs import (
    MAX_RESULT_BYTES,
    open_envelope,
    package_files,
    refuse_changed_package,
    returned_value,
    run_in_slot,
    to_outcome,
)
from toolcrib.infra.sandbox.host import kill_time
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, PythonFile, build_policy, python_runtime
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Script
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from toolcrib.infra.programs.child_channel import ChildChannel
    from toolcrib.infra.sandbox.host import Sandbox
    from toolcrib.infra.sandbox.jobs import CompletedJob, SandboxPolicy, WorkspacePolicy
    from toolcrib.infra.secrets.grants import GrantedVariables
    from toolcrib.infra.secrets.secret import Masking
    from toolcrib.lib.run_part import RunPart
    from toolcrib.model.call import Call, Context
    from toolcrib.model.protocols import Bound
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Tool

# Loaded on first use: only approvals need it.
script_parts: Callable[[Script, Path, tuple[Path, ...]], Iterable[RunPart]] = later(
    "toolcrib.infra.programs.code_parts:script_parts"
)
PYTHON = "python"
SECONDS_WITHOUT_CONTEXT = 30.0


class PythonFileRunner:
    """Runs tools that are a Python file, or a package of such files, and nothing else."""

    kind = Script.kind

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        channel: Callable[[], ChildChannel],
        workspace_policy: WorkspacePolicy,
        variables: Callable[[], GrantedVariables] | None = None,
        hidden: Callable[[Tool], tuple[Path, ...]] = lambda _: (),
        observe: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._channel = channel
        self._workspace_policy = workspace_policy
        self._variables = variables
        self._hidden = hidden
        self._observe = observe

    def bind(self, tool: Tool) -> Bound:
        """Take the file's bytes as they were read."""
        if not isinstance(tool.run, Script):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and no plain Python file")
        runtime = (tool.run.path.absolute().parent, *python_runtime())
        policy = partial(self._policy, tool, runtime)
        workspace = self._workspace_policy.workspace
        return _BoundFile(tool, tool.run, self._sandbox, self._channel, policy, workspace, self._variables)

    def _policy(self, tool: Tool, runtime: tuple[Path, ...]) -> SandboxPolicy:
        """The policy of a call now: which files are hidden may change between calls."""
        hidden = self._hidden(tool)
        return build_policy(tool.requires, self._workspace_policy, runtime, hidden=hidden, observe=self._observe)

    async def close(self) -> None:
        """No-op: each call ends its own process."""


class _BoundFile:
    """One file and the sandbox that it runs in."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self,
        tool: Tool,
        script: Script,
        sandbox: Sandbox,
        channel: Callable[[], ChildChannel],
        policy: Callable[[], SandboxPolicy],
        workspace: Path,
        variables: Callable[[], GrantedVariables] | None,
    ) -> None:
        self._tool = tool
        self._script = script
        self._sandbox = sandbox
        self._channel = channel
        self._policy = policy
        self._workspace = workspace
        self._variables = variables

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse an unknown language, and a machine that cannot sandbox the script."""
        if self._script.language != PYTHON:
            message = f"{self._script.path}: no runner for {self._script.language!r}; scripts are written in {PYTHON!r}"
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, message)
        self._sandbox.check(self._policy())

    def preview(self, arguments: dict[str, object], call: Call) -> Iterable[RunPart]:
        """The bytes that were read, and what the file imports beside it."""
        return script_parts(self._script, self._workspace, self._policy().hidden)

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Call the script's entry function in a process of its own."""
        if context is None:
            strike, seconds = time.monotonic() + SECONDS_WITHOUT_CONTEXT, SECONDS_WITHOUT_CONTEXT
        else:
            strike, seconds = kill_time(context.deadline, context.grace), context.seconds
        script, masking = self._script, None
        granted: dict[str, str] = {}
        if self._variables is not None:
            granted, masking = self._variables().of(self._tool, script.code)
        job = PythonFile(
            path=script.path,
            code=script.code,
            entry=script.entry,
            arguments=arguments,
            policy=self._policy(),
            convention=script.convention,
            imports=script.imports,
            project=self._workspace,
            environment={**granted, **CLEAN_ENVIRONMENT},
            files=package_files(script),
            channel=context is not None and context.client is not None,
            streams=context is not None and context.send_chunk is not None,
            joins_text=joins_text(self._tool.output_schema),
        )
        if script.files:
            await refuse_changed_package(self._tool, script, self._sandbox, job)
        if context is None or context.client is None:
            ended = await run_in_slot(self._sandbox, job, deadline=strike, max_result=MAX_RESULT_BYTES)
        else:
            ended = await self._channel().run(job, context, strike, max_result=MAX_RESULT_BYTES)
        meta: dict[str, object] = {"sandbox": self._sandbox.report_on(job)}
        outcome = to_outcome(ended, meta, lambda: self._value(job, ended, seconds, masking))
        return outcome if masking is None else masking.hide_outcome(outcome)

    def _value(self, job: PythonFile, ended: CompletedJob, seconds: float, masking: Masking | None) -> object:
        return open_envelope(self._tool, self._script, returned_value(self._tool, job, ended, seconds, masking))
