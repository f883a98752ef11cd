"""Try cases of tools in a crib, from code that is not async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.core.execution import run_alone
from toolcrib.features.testing.case_runner import run_cases
from toolcrib.features.testing.cases import Bench

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from toolcrib.features.testing.cases import Case, CaseResult, OpenSession
    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Journal
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.verdict import Explanation, Verdict


class TriedCrib(Protocol):
    """What trials use of a crib."""

    @property
    def session(self) -> OpenSession:
        """Opens a conversation."""

    @property
    def journal(self) -> Journal:
        """What happened."""

    def call_sync(self, call: Call, /) -> Result:
        """Make a call."""

    def explain(self, call: Call, /) -> Explanation:
        """What every gate would say to a call, without making it."""


def try_cases(
    crib: TriedCrib,
    tool: Tool,
    cases: Iterable[Case],
    *,
    mode: str | None = None,
    heard: Callable[[CaseResult], None] | None = None,
    agreed: bool = True,
) -> list[CaseResult]:
    """Try cases and report how each went, from code that is not async; `heard` is told of each as it ends.

    Unless a person `agreed`, a recorded case confirms nothing.
    """
    bench = bench_of(crib, called_at_once(crib))
    return run_alone(run_cases(bench, tool, cases, mode=mode, heard=heard, agreed=agreed))


def bench_of(crib: TriedCrib, call: Callable[[Call], Awaitable[Result]]) -> Bench:
    """The crib as cases are tried on it, with this way to make calls."""

    def refusal(call: Call) -> Verdict | None:
        finding = crib.explain(call).refusal
        return None if finding is None else finding.verdict

    return Bench(call=call, refusal=refusal, session=crib.session, journal=crib.journal.read)


def called_at_once(crib: TriedCrib) -> Callable[[Call], Awaitable[Result]]:
    """Calls that are over when they return, so that awaiting them needs no event loop."""

    async def call(call: Call) -> Result:
        return crib.call_sync(call)

    return call
