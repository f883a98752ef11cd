"""`crib check --observe TOOL`: run a tool under observation, and compare what it did with what it declares."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.infra.programs.observed_effects import CALL, Comparison, find_deeds, read_effects
from toolcrib.infra.sandbox.child.observer import MORE
from toolcrib.infra.sandbox.jobs import Effect
from toolcrib.model.tool import Chained, Function
from toolcrib.toolkit.cli import (
    ARGUMENTS,
    GRANT,
    ExitCode,
    Line,
    WrongUseError,
    code_of_error,
    complain_about,
    on_one_line,
    read_grants,
    say,
    say_json,
)
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.tool_tables import unknown_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli import Granted
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import CallingCrib, ProjectCrib

    Perform = Callable[[Line, Sequence[str], Callable[[Granted], CallingCrib]], Result]

COLUMNS = ("act", "on", "verdict", "capability")
DOCKER = "docker"
EFFECTS, CHILD, REQUESTED = "effects", "sandbox", "origin"  # in the meta of a result


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """The findings of all runs; `unseen` says why nothing could be observed."""

    tool: Tool
    results: tuple[Result, ...]
    comparison: Comparison
    unseen: str = ""

    @property
    def errors(self) -> list[ToolError]:
        """Why runs failed."""
        return [result.error for result in self.results if result.error is not None]

    @property
    def unused(self) -> tuple[str, ...]:
        """Declared capabilities that were not used; empty unless all runs succeeded."""
        return () if self.errors or self.unseen else self.comparison.unused

    @property
    def code(self) -> ExitCode:
        """The exit code: refused if a call was refused, failed for any other problem."""
        if self.errors and (code := code_of_error(self.errors[0])) is not ExitCode.FAILED:
            return code
        return ExitCode.FAILED if self.errors or self.unseen or self.comparison.undeclared else ExitCode.DONE

    def to_json(self) -> dict[str, object]:
        """All of it as one object."""
        return {
            "ok": self.code is ExitCode.DONE,
            "tool": self.tool.address,
            "runs": len(self.results),
            "effects": [{**deed.to_json(), "declared": declared} for deed, declared in _verdicts(self.comparison)],
            "unused": list(self.unused),
            "unseen": self.unseen,
            "errors": [error.to_json() for error in self.errors],
        }


def observe_tool(
    words: Sequence[str],
    opener: Opener[ProjectCrib],
    perform: Perform,
    *,
    grants: Iterable[str] = (),
    agreed: bool = False,
    as_json: bool = False,
) -> ExitCode:
    """`crib check --observe NAME [key=value …]`: run the tool's examples, or the call that is given, and report.

    `perform` makes a call as `crib call` does, in a crib opened with the capabilities that it is told.
    """
    if not words:
        raise WrongUseError("name a tool: crib check --observe NAME [key=value …]; list the tools with: crib list")
    with opener.open_local(observe=True) as crib:
        entry, workspace = crib.find(words[0]), crib.settings.workspace
        if entry is None:
            raise unknown_tool(crib, words[0])
    options = {GRANT.name: sorted(grants), **({"--yes": [""]} if agreed else {})}

    def opened(granted: Granted) -> CallingCrib:
        return opener.open_calling(None, grants=granted, observe=True)

    lines = _lines(entry.tool, words, options)
    results = tuple(perform(line, line.words, opened) for line in lines)
    deeds = [deed for result in results for deed in find_deeds(entry.tool, _effects(result), workspace)]
    with opener.open_local(grants=read_grants(grants, words[0]), observe=True) as crib:
        observation = _look_at(crib, entry.tool, results, deeds)
    if as_json:
        say_json(observation.to_json())
    else:
        _say(observation)
    return observation.code


def _lines(tool: Tool, words: Sequence[str], options: Mapping[str, list[str]]) -> list[Line]:
    """The calls to make, as if each had been typed."""
    if isinstance(tool.run, Function):
        return []
    if len(words) > 1:
        return [Line(options=options, words=list(words))]
    required = tool.parameters.get("required")
    if not tool.examples and isinstance(required, list) and required:
        call = " ".join([words[0], *(f"{name}=…" for name in required)])
        message = f"{words[0]} has no examples that could be run; write its arguments: crib check --observe {call}"
        raise WrongUseError(f"{message}, or add documentation.examples to the tool")
    return [
        Line(
            options={**options, ARGUMENTS.name: [json.dumps(example)]},
            words=[words[0]],
        )
        for example in tool.examples or ({},)
    ]


def _look_at(crib: ProjectCrib, tool: Tool, results: tuple[Result, ...], deeds: Sequence[Deed]) -> Observation:
    called = [crib.find(deed.what) for deed in deeds if deed.act == CALL]
    passed_on = {capability for entry in called if entry is not None for capability in entry.tool.requires}
    return Observation(
        tool=tool,
        results=results,
        comparison=Comparison.of(tool, deeds, passed_on),
        unseen=_why_unseen(tool, results),
    )


def _effects(result: Result) -> list[Effect]:
    """What was observed in the child, or the request that the platform sent itself."""
    origin = result.meta.get(REQUESTED)
    requested = [Effect("connect", origin)] if isinstance(origin, str) else []
    return [*read_effects(result.meta.get(EFFECTS)), *requested]


def _why_unseen(tool: Tool, results: Iterable[Result]) -> str:
    if isinstance(tool.run, Function):
        return f"{tool.name} is a function of the host program and runs in its process, where nothing is observed"
    if DOCKER in {tool.kind, getattr(tool.run, "executor", None)}:
        return f"{tool.name} runs in a container, which is not observed; only what starts it was"
    if any(result.ok and not result.meta.keys() & {CHILD, REQUESTED} for result in results):
        return f"{tool.name} is done by the platform itself and not in a child, so that nothing was observed"
    return ""


def _verdicts(comparison: Comparison) -> Iterator[tuple[Deed, bool]]:
    yield from ((deed, False) for deed in comparison.undeclared)
    yield from ((deed, True) for deed in comparison.declared)


def _say(observation: Observation) -> None:
    tool, comparison = observation.tool, observation.comparison
    for error in observation.errors:
        complain_about(error)
    if observation.unseen:
        say(observation.unseen)
    if any(REQUESTED in result.meta for result in observation.results):
        hosts = tool.run.hosts if isinstance(tool.run, Chained) else None
        reach = "any public host" if hosts is None else ", ".join(hosts) or "no host"
        say(f"{tool.name} is not a child: the platform sends its requests, and lets them reach {reach}")
    if rows := [_row(deed, declared=declared) for deed, declared in _verdicts(comparison)]:
        say_table(COLUMNS, rows)
    for deed in comparison.undeclared:
        say(f"problem: {on_one_line(_problem(deed))}")
    for capability in observation.unused:
        say(f"unused: {capability} was declared and never used; remove it from requires")
    counts = (len(observation.results), "run"), (len(comparison.undeclared), "undeclared effect")
    say(", ".join(f"{number} {noun}" + ("" if number == 1 else "s") for number, noun in counts))


def _row(deed: Deed, *, declared: bool) -> tuple[str, str, str, str]:
    verdict = "declared" if declared else "undeclared"
    return deed.act, deed.what, f"{verdict}, denied" if deed.denied else verdict, deed.capability


def _problem(deed: Deed) -> str:
    if deed.act == MORE:
        return "it did more than could be noted; let the examples do less"
    what = f"{deed.act} {deed.what}"
    if deed.capability:
        return f"{what}: list {deed.capability} in requires, or leave it be"
    return f"{what}: no capability allows that; leave it be"
