"""Store which examples of tools failed when they were last tried, so that no model is shown them.

One file holds the arguments of failing examples by the content hash of the tool, so that a changed tool starts without any.
It is only used to leave bad examples out of what models get.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.infra.files import OPEN_FOLDER, durable, make_folder
from toolcrib.infra.files.durable import explained
from toolcrib.lib.documents import read_json
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolcrib.features.testing.cases import Case, CaseResult
    from toolcrib.model.tool import Tool

    Arguments = dict[str, object]

MAX_TOOLS = 1_000
MAX_BYTES = 4_000_000
# The arguments of an example are three levels down, and may themselves have the maximum depth.
MAX_DEPTH = 72


class Examples:
    """The record of failing examples in a file of the project; without a file, it stores nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def failing(self) -> dict[str, list[dict[str, object]]]:
        """The arguments of the examples that failed, by the content hashes of their tools."""
        return {} if self._file is None else read_failing(self._file)

    def remember(self, tool: Tool, tried: Iterable[tuple[Case, CaseResult]]) -> None:
        """Store which examples of a tool failed."""
        if self._file is not None:
            remember(self._file, tool, tried)


def remember(path: Path, tool: Tool, tried: Iterable[tuple[Case, CaseResult]]) -> None:
    """Store which examples of a tool failed; those that were not run this time stay as they were."""
    examples = [(dict(case.arguments), result) for case, result in tried if _is_verdict(case, result)]
    if not examples:
        return
    with explained(str(path)), _one_at_a_time(path.parent):
        known = read_failing(path)
        failing = [arguments for arguments, result in examples if result.failed]
        settled = [arguments for arguments, _ in examples]
        failing += [old for old in known.pop(tool.content_hash, []) if old not in settled]
        if failing:
            known[tool.content_hash] = failing
        if known or path.exists():
            durable.replace(path, _bounded(known))


def read_failing(path: Path) -> dict[str, list[Arguments]]:
    """The arguments of failing examples by the content hash of their tool, those tried last at the end."""
    with suppress(ToolError):
        data = durable.read(path, MAX_BYTES)
        if data is not None:
            found = read_json(data, place=str(path), max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
            return {key: _arguments(value) for key, value in found.items()} if isinstance(found, dict) else {}
    return {}


def _is_verdict(case: Case, result: CaseResult) -> bool:
    return case.is_documented and not case.expects_failure and not result.skipped


def _arguments(value: object) -> list[Arguments]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _bounded(known: dict[str, list[Arguments]]) -> bytes:
    """The content of the file, without the oldest entries if it would be too large."""
    latest = list(known.items())[-MAX_TOOLS:]
    while len(data := json.dumps(dict(latest)).encode()) > MAX_BYTES:
        latest = latest[len(latest) // 2 + 1 :]
    return data


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Serialise writers, so that no update is lost."""
    make_folder(folder)
    descriptor = os.open(folder, OPEN_FOLDER)
    try:
        with suppress(OSError):  # some file systems do not support locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
