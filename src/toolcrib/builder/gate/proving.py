"""The part of the gate that runs a candidate: import, refusals, calls, defaults, and a forced fault."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import TYPE_CHECKING

from toolcrib.builder.gate import answers
from toolcrib.builder.gate.answers import Leniency
from toolcrib.builder.gate.calls import TOO_MUCH, Calls
from toolcrib.builder.gate.effects import check_effects, find_undeclared, uses_network
from toolcrib.builder.gate.loading import check_import
from toolcrib.builder.gate.nouns import Check, Judgement, Sample, complain, show_call, spell_value
from toolcrib.builder.gate.probing import Probed, write_probe
from toolcrib.builder.gate.varying import REPEATED, check_variety, has_to_vary
from toolcrib.ground.sandbox.walls import has_network
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Complaint, Contract
    from toolcrib.builder.trial import OpenTrial, TrialTerms
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import ToolRequest
    from toolcrib.runners.effects import Deed

# Which request of a call fails: the second leaves something achieved; where there is no second, the first has to do.
FAULTS = (2, 1)


@dataclass(kw_only=True, slots=True)
class Passage:
    """A candidate on its way through the gate, and what was found so far. `line` is where its text defines the function."""

    request: ToolRequest
    contract: Contract
    tool: Tool
    terms: TrialTerms
    line: int
    trial: OpenTrial
    deadline: float
    say: Callable[[str], None]
    complaints: list[Complaint] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    seen: list[tuple[str, list[Deed]]] = field(default_factory=list)

    async def go(self) -> Judgement:
        """The whole way, as far as there is something to learn from going on."""
        try:
            async with self.trial(self.tool, self.terms) as opened:
                calls = Calls(opened, self.tool, deadline=self.deadline)
                await self._import(calls)
                working = [] if self._found() else await self._call(calls)
            if not self._found():
                await self._force_fault(working)
        except ToolError as problem:
            if problem.kind is not Kind.TIMEOUT:
                raise
            self._note([complain(Check.LIMITS, problem.message)])
        found = self._found()
        unprovable = bool(found) and all(each.check == Check.VARIES for each in found)
        return Judgement(passed=not found, complaints=found, unprovable=unprovable, checks=tuple(self.checks))

    def _found(self) -> tuple[Complaint, ...]:
        """Everything that there is to complain of by now; of one deed only the first time is told."""
        return (*check_effects(self.tool, self.terms, self.seen), *self.complaints)

    async def _import(self, calls: Calls) -> None:
        entry = self.contract.file
        self.say(f"importing {entry}")
        probed = await self._probe(calls, None)
        self._see(f"importing {entry}", calls.trial.deeds(probed.result))
        self._note(check_import(probed, self.request, self.line))
        self.checks += [f"interface: {self.contract.function} in {entry}", "import: it only defines"]

    async def _call(self, calls: Calls) -> list[Tried]:
        """Make every call of the contract, and hold what came of them against it; those that were answered."""
        contract, request = self.contract, self.request
        self.say(f"making {len(contract.examples) + len(contract.accepted)} calls that it has to answer")
        refused = await calls.make(contract.refused)
        expected = [(Sample(about="an example", arguments=each.arguments), each.expected) for each in contract.examples]
        shown = await calls.make(sample for sample, _ in expected)
        accepted = await calls.make(contract.accepted)
        seen = {id(each): calls.trial.deeds(each.result) for each in (*shown, *accepted)}
        self._note(answers.check_refusals(refused, request))
        misshapen = answers.check_shapes([*shown, *accepted], request)
        self._note(misshapen)
        right = {id(sample): value for sample, value in expected}
        failed = [each for each in shown if each.kind not in {None, *TOO_MUCH}][: answers.MOST]
        raised = {id(each): await self._said(calls, each) for each in failed}
        self._note(answers.check_examples([(each, right[id(each.sample)]) for each in shown], raised, request))
        for each in (*shown, *accepted):
            self._see(self._show(each), seen[id(each)])
        # A call that was kept from something fails for that reason, which has been told.
        honest = [each for each in accepted if not any(find_undeclared(self.tool, self.terms, seen[id(each)]))]
        failures = answers.find_failures(honest, self._leniency)
        await self._explain(calls, failures)
        if empty := answers.find_empty([*shown, *accepted], request):
            self.say(f"nothing is proved of {', '.join(empty)}: empty in every answer; examples would show more")
        self.checks += [f"refuses: {len(refused)} calls", f"accepts: {len(accepted)} calls"]
        self.checks += [f"examples: {len(shown)}"] if shown else []
        self.checks.append("output, effects, limits: in every call")
        if not calls.is_exhausting:
            again = await self._repeat(calls, [*accepted, *shown])
            if not failures and not misshapen and has_to_vary(request, self._leniency):
                self._note(check_variety(accepted, again, request))
        return [each for each in (*shown, *accepted) if each.result.ok and uses_network(seen[id(each)])]

    async def _explain(self, calls: Calls, failures: Iterable[Tried]) -> None:
        """Complain of calls that should have been answered, with what the candidate raised: the pipeline keeps that to itself."""
        for failed in failures:
            self._note([answers.complain_of_failure(failed, await self._said(calls, failed), self.request)])

    async def _said(self, calls: Calls, failed: Tried) -> str:
        raised = (await self._probe(calls, failed.sample.arguments)).raised
        return "" if raised is None else str(raised)

    async def _repeat(self, calls: Calls, tried: list[Tried]) -> list[Tried]:
        """Make calls that were answered a second time, and the first once as bare Python, where nobody fills in defaults."""
        answered = [each for each in tried if each.result.ok]
        if not answered:
            return []
        first = answered[0]
        number = REPEATED if has_to_vary(self.request, self._leniency) else 1
        again = await calls.make(each.sample for each in islice(cycle(answered), number))
        self._note(answers.check_shapes(again, self.request))
        for each in again:
            self._see(self._show(each), calls.trial.deeds(each.result))
        bare = await self._probe(calls, first.sample.arguments)
        self._see(self._show(first), calls.trial.deeds(bare.result))
        self._note(
            complain(Check.EFFECTS, f"{self._show(first)} leaves {left} behind; end what it began")
            for left in bare.left
        )
        if bare.has_value and again:
            given = self._filled(first, tried)
            self._note(answers.check_defaults(bare.value, first, again[0], given, self.request))
        self.checks.append("defaults: by a call that leaves out what it may")
        return again

    def _filled(self, first: Tried, tried: list[Tried]) -> Tried | None:
        """The call with every default written out that leaves nothing else out than the first one does."""
        if first.sample != self.contract.least:
            return None
        return next((each for each in tried if each.sample.arguments == self.contract.filled.arguments), None)

    async def _force_fault(self, working: list[Tried]) -> None:
        """Have the network fail in the midst of a call; what was achieved until then has to survive."""
        if not self.request.asks_for_partial_results:
            return
        if not working:
            self.checks.append("partial: not tried, no call of it uses a recorded network")
            return
        self.say("letting the network fail")
        for number in FAULTS:
            async with self.trial(self.tool, replace(self.terms, fail_from=number)) as opened:
                calls = Calls(opened, self.tool, deadline=self.deadline)
                tried = await calls.make([working[0].sample])
                for each in tried:
                    self._see(self._show(each), opened.deeds(each.result))
            if number > 1 and _came_to_the_same(tried, working[0]):
                continue
            self._note(answers.check_partial(tried, self.request))
            self.checks.append(f"partial: request {number} of a call failed")
            return

    async def _probe(self, calls: Calls, arguments: Mapping[str, object] | None) -> Probed:
        return Probed.of(await calls.load(write_probe(self.request.name, self.request.function, arguments)))

    @property
    def _leniency(self) -> Leniency:
        offline = has_network(self.terms.requires)
        return Leniency(
            decided=bool(self.contract.examples), offline=offline, unproved=offline and not self.terms.answers
        )

    def _show(self, tried: Tried) -> str:
        return show_call(self.request.function, tried.sample.arguments)

    def _note(self, complaints: Iterable[Complaint]) -> None:
        """Remember complaints, each once."""
        self.complaints += [each for each in complaints if each not in self.complaints]

    def _see(self, about: str, deeds: list[Deed]) -> None:
        self.seen.append((about, deeds))


def _came_to_the_same(tried: list[Tried], before: Tried) -> bool:
    """Whether the fault was never met: the call makes fewer requests than that."""
    return all(each.result.ok and spell_value(each.result.value) == spell_value(before.result.value) for each in tried)
