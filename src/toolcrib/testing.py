"""Test tools from pytest or any other runner: call them as a fake client, and check their recorded cases.

    from toolcrib import Context, Crib, tool
    from toolcrib.testing import FakeContext, call_tool_sync

    @tool
    async def tell(word: str, context: Context) -> str:
        "Tell the client a word."
        await context.session.send({"word": word})
        return word

    client = FakeContext(mode="voice")
    with Crib(tools=[tell]) as crib:
        result = call_tool_sync(crib, "tell", {"word": "hello"}, context=client)
    assert result.value == "hello"
    assert client.sent == [{"word": "hello"}]

The examples that a tool shows, and the cases that are recorded for it, are tests already:

    @pytest.mark.parametrize("case", cases_of("path/of/the/project", "refund_order"), ids=str)
    def test_refund_order(case):
        with Crib("path/of/the/project") as crib:
            check_sync(crib, "refund_order", [case])

`load_cases` reads a file of cases that lies elsewhere. In async code write `await call_tool(…)` and `await check(…)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.crib import Crib
from toolcrib.features.testing.case_files import find_cases, load_cases
from toolcrib.features.testing.cases import (
    Case,
    CaseHost,
    CaseResult,
    FakeContext,
    called_at_once,
    case_host_of,
    perform,
    read_audit,
    run_cases,
    try_cases,
)
from toolcrib.infra.plain_code import run_alone
from toolcrib.model.call import Call

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool

__all__ = [
    "Case",
    "CaseResult",
    "FakeContext",
    "call_tool",
    "call_tool_sync",
    "cases_of",
    "check",
    "check_sync",
    "load_cases",
    "try_cases",
]


async def call_tool(
    crib: Crib, name: str, arguments: Mapping[str, object] | None = None, *, context: FakeContext | None = None
) -> Result:
    """Call a tool as a fake client, which records what it is sent."""
    return await _call(crib, case_host_of(crib, crib.call), name, arguments, context)


def call_tool_sync(
    crib: Crib, name: str, arguments: Mapping[str, object] | None = None, *, context: FakeContext | None = None
) -> Result:
    """Call a tool as a fake client, from code that is not async."""
    return run_alone(_call(crib, case_host_of(crib, called_at_once(crib)), name, arguments, context))


async def check(crib: Crib, name: str, cases: Iterable[Case] | None = None) -> list[CaseResult]:
    """Run cases of a tool, by default all that its documents and its project hold; raises AssertionError with every difference.

    A case that is skipped counts as failed, and so does a tool without cases.
    """
    tool = _tool(crib, name)
    return _require_passed(tool, await run_cases(case_host_of(crib, crib.call), tool, _cases(crib, tool, cases)))


def check_sync(crib: Crib, name: str, cases: Iterable[Case] | None = None) -> list[CaseResult]:
    """Run cases of a tool, as `check` does, from code that is not async."""
    tool = _tool(crib, name)
    return _require_passed(tool, try_cases(crib, tool, _cases(crib, tool, cases)))


def cases_of(crib: Crib | Path | str, name: str) -> list[Case]:
    """The cases of a tool, those of its documents first; use them as parameters of a test, with `ids=str`."""
    if isinstance(crib, Crib):
        return find_cases(_tool(crib, name), crib.settings.root)
    with Crib(crib) as opened:
        return cases_of(opened, name)


async def _call(
    crib: Crib, host: CaseHost, name: str, arguments: Mapping[str, object] | None, context: FakeContext | None
) -> Result:
    entry = crib.find(name)
    call = Call(name=name, arguments=dict(arguments or {}))
    client = FakeContext() if context is None else context
    performance = await perform(host, call, client, None if entry is None else entry.tool)
    read_audit(host, performance)
    return performance.result


def _tool(crib: Crib, name: str) -> Tool:
    return crib.require(name).tool


def _cases(crib: Crib, tool: Tool, cases: Iterable[Case] | None) -> list[Case]:
    return find_cases(tool, crib.settings.root) if cases is None else list(cases)


def _require_passed(tool: Tool, results: list[CaseResult]) -> list[CaseResult]:
    """Return the results, or raise AssertionError if a case failed."""
    if not results:
        raise AssertionError(f"{tool.name} has no examples and no cases; write tests/cases/{tool.name}.yaml")
    problems = [
        f"{result.place or tool.name}: {result.name}: {reason}"
        for result in results
        for reason in (*result.reasons, *([f"not tried: {result.skipped}"] if result.skipped else []))
    ]
    if problems:
        raise AssertionError("\n".join([f"{tool.name}: not as expected", *problems]))
    return results
