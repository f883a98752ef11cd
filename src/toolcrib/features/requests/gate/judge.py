"""The gate: read, import, call and observe a candidate; it passes if it does what was requested and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.grants import missing_grants
from toolcrib.features.requests.candidate import tool_of_candidate
from toolcrib.features.requests.gate import (
    Check,
    Judgement,
    Sample,
    TrialTerms,
    answer_checks,
    check_schemas,
    complain,
    derive_contract,
    show_call,
)
from toolcrib.features.requests.gate.answer_checks import (
    ONE_ANSWER,
    REPEATED,
    Leniency,
    check_constant,
    check_nothing,
    check_variety,
    has_one_answer,
    has_to_vary,
)
from toolcrib.features.requests.gate.calls import MOST, TOO_MUCH, Calls, Probed, Reason, message_of, write_probe
from toolcrib.features.requests.gate.effects import (
    Achievement,
    check_effects,
    complain_of_loss,
    find_undeclared,
    passed_a_landmark,
    uses_network,
)
from toolcrib.features.requests.gate.interface import check_import, check_interface, line_of_function
from toolcrib.infra.sandbox.jobs import has_network
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import Chained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.features.requests.candidate import Candidate
    from toolcrib.features.requests.gate import Complaint, Contract, OpenTrial
    from toolcrib.features.requests.gate.calls import Tried
    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import Allowance, ToolRequest

# Which network request of a call is made to fail: a later one; if a call makes only one, that one.
LATER_FAULTS = range(2, 6)
SECRETS = ("secret.", "secrets.")
NOTHING_RAN = ("nothing of it was run",)


async def judge(
    candidate: Candidate,
    request: ToolRequest,
    trial: OpenTrial,
    *,
    allowance: Allowance,
    seconds_per_call: float,
    deadline: float,
    say: Callable[[str], None],
) -> Judgement:
    """Prove a candidate; raises ToolError for reasons that are not the candidate's, such as a missing sandbox.

    `deadline` is a reading of `time.monotonic`; `say` is called with each step.
    """
    say("reading the request and the interface")
    unread = check_schemas(request) or check_interface(candidate, request)
    if unread:
        return Judgement(passed=False, complaints=tuple(unread), checks=NOTHING_RAN)
    unprovable = find_unprovable(request, allowance)
    if unprovable is not None:
        return Judgement(passed=False, complaints=(unprovable,), unprovable=True, checks=NOTHING_RAN)
    # The trial chooses the folder, and runs the bytes that were read.
    tool = tool_of_candidate(candidate, request, folder=Path(candidate.name), allowance=allowance)
    judging = _Judging(
        request=request,
        contract=derive_contract(request),
        tool=tool,
        terms=_terms(tool, request, allowance, seconds_per_call),
        line=line_of_function(candidate, request),
        trial=trial,
        deadline=deadline,
        say=say,
    )
    return await judging.go()


def refuse_beyond(request: ToolRequest, allowance: Allowance, cap: frozenset[str]) -> None:
    """Raise ToolError if the request asks for capabilities beyond `cap`, which is written as grants are.

    What the operator added to this request is allowed.
    """
    beyond = sorted(missing_grants(request.capabilities, cap | allowance.capabilities))
    if not beyond:
        return
    names = ", ".join(beyond)
    cure = Cure(
        "add it to the setting builder.capabilities, or allow it for this request alone: crib request allow",
        "ask the operator to allow it",
    )
    message = f"{request.name} asks for {names}, which no request may have here"
    raise ToolError(Kind.CAPABILITY_MISSING, message, cure=cure, details={"missing": beyond})


def find_unprovable(request: ToolRequest, allowance: Allowance) -> Complaint | None:
    """Why no candidate could be proved; None if one can be, or need not."""
    if allowance.unproved:
        return None
    text = _why_unconstrained(request) or _why_unreachable(request, allowance)
    return complain(Check.PROOF, f"not provable: {text}, or allow it to go unproved") if text else None


@dataclass(kw_only=True, slots=True)
class _Judging:
    """The state of one candidate in the gate. `line` is where its source defines the function."""

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
        """Run the checks in order, and stop when further ones would show nothing new."""
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
        """All complaints so far; of the same deed only the first."""
        return (*check_effects(self.tool, self.terms, self.seen), *self.complaints)

    async def _import(self, calls: Calls) -> None:
        entry = self.contract.file
        self.say(f"importing {entry}")
        probed = await self._probe(calls, None)
        self._see(f"importing {entry}", calls.trial.deeds(probed.result))
        self._note(check_import(probed, self.request, self.line))
        self.checks += [f"interface: {self.contract.function} in {entry}", "import: it only defines"]

    async def _call(self, calls: Calls) -> list[Tried]:
        """Make every call of the contract and check the results; return the calls that used the network."""
        contract, request = self.contract, self.request
        self.say(f"making {len(contract.examples) + len(contract.accepted)} calls that it has to answer")
        refused = await calls.make(contract.refused)
        expected = [(Sample(about="an example", arguments=each.arguments), each.expected) for each in contract.examples]
        shown = await calls.make(sample for sample, _ in expected)
        accepted = await calls.make(contract.accepted)
        self.checks += [f"refuses: {len(refused)} calls", f"accepts: {len(accepted)} calls"]
        self.checks += [f"examples: {len(shown)}"] if shown else []
        self.checks.append("output, effects, limits: in every call")
        seen = {id(each): calls.trial.deeds(each.result) for each in (*shown, *accepted)}
        for each in (*shown, *accepted):
            self._see(self._show(each), seen[id(each)])
        self._note(answer_checks.check_refusals(refused, request))
        self._note(answer_checks.check_shapes([*shown, *accepted], request))
        # A call that was denied something fails for that reason, which is reported as an effect.
        kept = {number for number, deeds in seen.items() if any(find_undeclared(self.tool, self.terms, deeds))}
        right = {id(sample): value for sample, value in expected}
        failed = [
            each for each in shown if each.kind not in {None, *answer_checks.REPORTED_BY_SHAPE} and id(each) not in kept
        ]
        reasons = await self._reasons(calls, failed)
        self._note(answer_checks.check_examples([(each, right[id(each.sample)]) for each in shown], reasons, request))
        failed = answer_checks.find_failures([each for each in accepted if id(each) not in kept], self._leniency)
        self._note(answer_checks.check_failures(failed, await self._reasons(calls, failed), request))
        self._remark([*shown, *accepted])
        if not calls.is_exhausting:
            again = await self._repeat(calls, [*accepted, *shown])
            self._compare(accepted, shown, again)
        return [each for each in (*shown, *accepted) if each.result.ok and uses_network(seen[id(each)])]

    def _remark(self, tried: list[Tried]) -> None:
        """Report what the request leaves unproved."""
        if empty := answer_checks.find_empty(tried, self.request):
            self.say(f"nothing is proved of {', '.join(empty)}: empty in every answer; examples would show more")
        if has_one_answer(self.request):
            self.checks.append(ONE_ANSWER)
            self.say(ONE_ANSWER)

    def _compare(self, accepted: list[Tried], shown: list[Tried], again: list[Tried]) -> None:
        """Complain of answers that do not depend on the inputs, unless there are complaints already."""
        if self.complaints:
            return
        if has_one_answer(self.request) and not self._leniency.unproved:
            self._note(check_constant([*shown, *accepted], self.request))
        elif has_to_vary(self.request, self._leniency):
            self._note(check_nothing(accepted, self.request) or check_variety(accepted, again, self.request))

    async def _reasons(self, calls: Calls, failed: list[Tried]) -> dict[int, Reason]:
        """Why calls failed, by `id`; only the first are probed, and the rest shares their reasons by message."""
        found: dict[int, Reason] = {}
        alike: dict[str, Reason] = {}
        for each in failed[:MOST]:
            raised = (await self._probe(calls, each.sample.arguments)).raised
            found[id(each)] = alike[message_of(each)] = Reason.of(each, raised)
        return {id(each): alike[message_of(each)] for each in failed if message_of(each) in alike} | found

    async def _repeat(self, calls: Calls, tried: list[Tried]) -> list[Tried]:
        """Make calls that were answered a second time, and the first once as bare Python, without filled-in defaults."""
        answered = [each for each in tried if each.result.ok]
        if not answered:
            return []
        first = answered[0]
        number = REPEATED if has_to_vary(self.request, self._leniency) else 1
        again = await self._make_again(calls, [each.sample for each in islice(cycle(answered), number)])
        bare = await self._probe(calls, first.sample.arguments)
        self._see(self._show(first), calls.trial.deeds(bare.result))
        self._note(
            complain(Check.EFFECTS, f"{self._show(first)} leaves {left} behind; end what it began")
            for left in bare.left
        )
        if bare.has_value and answer_checks.are_same(first, again[:1]):
            found = answer_checks.check_defaults(bare.value, first, self._filled(first, tried), self.request)
            # A random answer with few possible values may be the same twice.
            if found and answer_checks.are_same(first, await self._make_again(calls, [first.sample] * REPEATED)):
                self._note(found)
        self.checks.append("defaults: by a call that leaves out what it may")
        return again

    async def _make_again(self, calls: Calls, samples: list[Sample]) -> list[Tried]:
        """Repeat calls that were answered, and check their shapes and effects again."""
        again = await calls.make(samples)
        self._note(answer_checks.check_shapes(again, self.request))
        for each in again:
            self._see(self._show(each), calls.trial.deeds(each.result))
        return again

    def _filled(self, first: Tried, tried: list[Tried]) -> Tried | None:
        """The call with every default given, if the first one is the one with none."""
        if first.sample != self.contract.least:
            return None
        return next((each for each in tried if each.sample.arguments == self.contract.filled.arguments), None)

    async def _force_fault(self, working: list[Tried]) -> None:
        """Make the network fail during a call; the partial result has to survive."""
        if not self.request.asks_for_partial_results:
            return
        if not working:
            self.checks.append("partial: not tried, no call of it uses a recorded network")
            return
        self.say("letting the network fail")
        before = working[0]
        achievement = Achievement(before, self.terms.answers)
        failed = 0
        for number in LATER_FAULTS:
            is_settled = await self._fail_from(number, before, achievement)
            if is_settled is None:
                break
            failed = number
            if is_settled:
                break
        if not failed:
            failed = 1
            await self._fail_from(failed, before, achievement)
        self.checks.append(f"partial: request {failed} of a call failed")

    async def _fail_from(self, number: int, before: Tried, achievement: Achievement) -> bool | None:
        """Make this network request of the call fail; whether that settles the check, None if it makes fewer requests."""
        async with self.trial(self.tool, replace(self.terms, fail_from=number)) as opened:
            calls = Calls(opened, self.tool, deadline=self.deadline)
            [tried] = await calls.make([before.sample])
            self._see(self._show(tried), opened.deeds(tried.result))
            if number > 1 and answer_checks.are_same(before, [tried]):
                return None
            may_be_lost = achievement.may_be_lost(tried)
            is_lost = achievement.is_lost(tried) or (may_be_lost and await self._had_come(number, before, achievement))
            if is_lost:
                reasons = {} if tried.kind in {None, *TOO_MUCH} else await self._reasons(calls, [tried])
                why = reasons.get(id(tried), Reason.of(tried)).text
                self._note([complain_of_loss(tried, why, self.request)])
        return is_lost or not may_be_lost

    async def _had_come(self, number: int, before: Tried, achievement: Achievement) -> bool:
        """Whether an answer with a piece of the result had arrived before this request."""
        terms = replace(self.terms, fail_from=number, answers=achievement.with_landmarks())
        async with self.trial(self.tool, terms) as opened:
            tried = await Calls(opened, self.tool, deadline=self.deadline).make([before.sample])
            return any(passed_a_landmark(opened.deeds(each.result)) for each in tried)

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
        """Add complaints, each once."""
        self.complaints += [each for each in complaints if each not in self.complaints]

    def _see(self, about: str, deeds: list[Deed]) -> None:
        self.seen.append((about, deeds))


def _terms(tool: Tool, request: ToolRequest, allowance: Allowance, seconds: float) -> TrialTerms:
    """What the candidate may do in its trial: exactly what the published tool may."""
    return TrialTerms(
        requires=tool.requires,
        hosts=tool.run.hosts if isinstance(tool.run, Chained) else (),
        answers=(*request.answers, *allowance.answers),
        seconds=seconds,
    )


def _why_unconstrained(request: ToolRequest) -> str:
    """Why any answer would pass: there are no inputs, outputs or examples."""
    if request.inputs or request.outputs or request.examples:
        return ""
    return "add outputs or examples to the request, which says nothing about the answer"


def _why_unreachable(request: ToolRequest, allowance: Allowance) -> str:
    wanted = request.capabilities | allowance.capabilities
    names = sorted(name for name in wanted if has_network((name,)) or name.startswith(SECRETS))
    if not names or request.answers or allowance.answers:
        return ""
    return (
        f"the tool needs {', '.join(names)}, and the network is disabled while it is proved; "
        "add answers (url, status, body) to the request"
    )
