"""Run calls and probes of a candidate in its trial, a few at a time, none past the deadline, and explain failures."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from toolcrib.features.requests.gate import complain, show_value
from toolcrib.infra.sandbox.jobs import WRITE
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence
    from typing import Self

    from toolcrib.features.requests.gate import Check, Complaint, Sample, Trial
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool

AT_ONCE = 4
TOO_MUCH = frozenset({Kind.TIMEOUT, Kind.LIMIT_EXCEEDED})
# A candidate cannot raise these itself: they say that the trial could not run here.
OURS = frozenset({Kind.SANDBOX_UNAVAILABLE, Kind.OVERLOADED, Kind.CANCELLED})
MOST = 5
# The values in a message, which differ between calls that show the same mistake.
_VALUE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d+(?:\.\d+)?)""")
EMPTY_ORDER = 'json.loads("{}")'
# sys.modules and sys.argv look to the candidate as in a call.
APART = """import os, sys
exec(compile({text!r}, __file__, "exec", dont_inherit=True))
sys.modules.pop(__name__, None)
sys.argv[0] = os.path.join(os.path.dirname(__file__), {entry!r})
"""
SHOWN_LETTERS = 300
MOST_LEFT = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """A call and its result."""

    sample: Sample
    result: Result

    @property
    def kind(self) -> Kind | None:
        """Why it failed, if it did."""
        return None if self.result.error is None else self.result.error.kind


class Calls:
    """Makes the calls of one trial, and remembers what was made.

    Calls of a tool that writes run one after the other: two would find each other's files.
    """

    def __init__(self, trial: Trial, tool: Tool, *, deadline: float) -> None:
        self.trial = trial
        self.made: list[Tried] = []
        self._deadline = deadline
        self._places = asyncio.Semaphore(1 if WRITE in tool.requires else AT_ONCE)
        self._trouble: ToolError | None = None

    @property
    def is_exhausting(self) -> bool:
        """Whether a call exceeded its time or a limit, as further calls would too."""
        return any(each.kind in TOO_MUCH for each in self.made)

    async def make(self, samples: Iterable[Sample]) -> list[Tried]:
        """Make these calls; after one that exceeded its time or a limit none is started."""
        tried = await asyncio.gather(*map(self._try, samples))
        if self._trouble is not None:
            raise self._trouble
        return [each for each in tried if each is not None]

    async def load(self, probe: str) -> Result:
        """Run a probe in the place of the candidate; see `Trial.load`."""
        async with self._places:
            return await self._within_time(self.trial.load(probe))

    async def _within_time(self, work: Awaitable[Result]) -> Result:
        """Wait for the trial; raises ToolError if it could not run."""
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                result = await work
        except TimeoutError:
            message = "the time was over before the gate had finished; raise builder.seconds"
            raise ToolError(Kind.TIMEOUT, message) from None
        if result.error is not None and result.error.kind in OURS:
            raise result.error
        return result

    async def _try(self, sample: Sample) -> Tried | None:
        async with self._places:
            if self._trouble is not None or self.is_exhausting:
                return None
            try:
                result = await self._within_time(self.trial.call(sample.arguments))
            except ToolError as problem:
                self._trouble = problem
                return None
            tried = Tried(sample=sample, result=result)
            self.made.append(tried)
            return tried


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """An exception of the candidate: its message, and the line that raised it. `missing` is a module."""

    type: str
    message: str
    place: str
    missing: str

    def __str__(self) -> str:
        said = f"{self.type}: {self.message[:SHOWN_LETTERS]}" if self.message else self.type
        return f"{said} (at {self.place})" if self.place else said


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """What a probe found. `function` describes the object of that name; `left` is what outlived the import or the call."""

    result: Result
    raised: Raised | None = None
    left: tuple[str, ...] = ()
    function: Mapping[str, object] | None = None
    value: object = None
    has_value: bool = False

    @classmethod
    def of(cls, result: Result) -> Self:
        """Read the answer of the probe, which may be anything: a candidate can forge it."""
        facts = result.value if result.ok and isinstance(result.value, Mapping) else {}
        raised, left, function = facts.get("raised"), facts.get("left"), facts.get("function")
        return cls(
            result=result,
            raised=_raised(raised) if isinstance(raised, Mapping) else None,
            left=tuple(map(str, left[:MOST_LEFT])) if isinstance(left, list) else (),
            function=function if isinstance(function, Mapping) else None,
            value=facts.get("value"),
            has_value="value" in facts,
        )


def write_probe(module: str, function: str, arguments: Mapping[str, object] | None = None) -> str:
    """A probe that imports the candidate and, if arguments are given, calls it with exactly these."""
    order = json.dumps({"module": module, "function": function, "arguments": arguments})
    return APART.format(text=_text().replace(EMPTY_ORDER, f"json.loads({order!r})", 1), entry=f"{module}.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a call failed: the text, and the causes that it may share with other calls."""

    text: str
    causes: frozenset[str]

    @classmethod
    def of(cls, failed: Tried, raised: Raised | None = None) -> Self:
        """What the candidate raised, which the pipeline does not report; else the error of the pipeline."""
        if raised is not None:
            return cls(text=str(raised), causes=frozenset({f"{raised.type} {raised.place or raised.message}"}))
        return cls(text=message_of(failed), causes=_causes(failed))


def message_of(tried: Tried) -> str:
    """The error of the pipeline; empty if the call did not fail."""
    error = tried.result.error
    return "" if error is None else f"{error.kind}: {error.message}"


def complain_once(check: Check, found: Iterable[tuple[str, frozenset[str]]]) -> list[Complaint]:
    """One complaint for each set of causes, with the number of calls that show them."""
    group_of: dict[str, int] = {}
    groups: list[list[str]] = []
    for text, causes in found:
        if causes <= group_of.keys():
            groups[min(group_of[cause] for cause in causes)].append(text)
            continue
        group_of = {**dict.fromkeys(causes, len(groups)), **group_of}
        groups.append([text])
    return [complain(check, _counted(texts)) for texts in groups[:MOST]]


@cache
def _text() -> str:
    return files("toolcrib.features.requests.gate").joinpath("child_probe.py").read_text("utf-8")


def _raised(facts: Mapping[str, object]) -> Raised:
    words = {name: facts.get(name) for name in ("type", "message", "place", "missing")}
    return Raised(**{name: word if isinstance(word, str) else show_value(word) for name, word in words.items()})


def _counted(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]}; seen in {len(texts)} calls"


def _causes(failed: Tried) -> frozenset[str]:
    error = failed.result.error
    problems = None if error is None else error.details.get("problems")
    texts = map(str, problems) if isinstance(problems, list) and problems else [message_of(failed)]
    return frozenset(_VALUE.sub("…", text) for text in texts)
