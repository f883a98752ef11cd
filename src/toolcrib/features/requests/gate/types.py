"""The types of the gate: the contract of a request and its calls, complaints, the judgement, and the trial of a candidate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import Example, RecordedAnswer

SHOWN_LETTERS = 60
MAX_TEXT = 1_500


class Check(StrEnum):
    """The checks of a candidate, in their order."""

    SCHEMA = "schema"  # the schemas of the request are usable
    INTERFACE = "interface"  # the function of the example is there, with exactly the inputs
    PROOF = "proof"  # the request can be proved at all
    IMPORT = "import"  # importing has no effects
    ACCEPTS = "accepts"  # valid calls are answered
    REFUSES = "refuses"  # invalid calls never reach it
    OUTPUT = "output"  # every answer has the declared outputs, and no others
    DEFAULTS = "defaults"  # leaving an input out means its default
    EXAMPLES = "examples"  # the answers are those that the request shows
    VARIES = "varies"  # the answer depends on the inputs
    EFFECTS = "effects"  # it does nothing that is not allowed
    LIMITS = "limits"  # it ends in time and keeps within its limits
    PARTIAL = "partial"  # a partial result survives a failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A call to make. `about` says what it shows.

    A `plain` one is ordinary use; others try edge values of a schema.
    """

    about: str
    arguments: dict[str, object]
    plain: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What a request asks for, as calls: those that have to be answered, those that have to be refused, and examples.

    `file` is the entry file and `function` what it has to define. `least` is the call with only the required inputs,
    `filled` the same with every default given.
    """

    file: str
    function: str
    least: Sample
    filled: Sample
    accepted: tuple[Sample, ...]
    refused: tuple[Sample, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Complaint:
    """What a candidate lacks; `text` names the place and the cure."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What the gate found. `unprovable` means that another attempt cannot succeed: the request has to say more.

    `checks` lists what was checked, and what was not.
    """

    passed: bool
    complaints: tuple[Complaint, ...] = ()
    unprovable: bool = False
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialTerms:
    """What a trial allows.

    `requires` are the capabilities that are granted, no others. `hosts` narrows where the network leads; None narrows
    nothing. `answers` are the recorded answers; the real network is disabled. From the request number `fail_from` on,
    counted from 1 in each call, the network fails; None means never. `seconds` is how long one call or one import may take.
    """

    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    answers: tuple[RecordedAnswer, ...] = ()
    fail_from: int | None = None
    seconds: float = 10.0


class Trial(Protocol):
    """A tool on trial; calls may run concurrently."""

    async def call(self, arguments: Mapping[str, object]) -> Result:
        """Call it like any tool, through the whole pipeline, sandboxed and watched: `meta["effects"]` says what it did.

        What it printed is in `meta["stdout"]` and `meta["stderr"]`.
        """

    async def load(self, probe: str) -> Result:
        """Run this Python text in the tool's place, in its folder, sandboxed and observed like the tool.

        The function `probe()` of the text is called without arguments and its answer, any JSON, is the value. All files of
        the tool, its entry file included, can be imported from it.
        """

    def deeds(self, result: Result) -> list[Deed]:
        """What the call did or tried, without what every call does."""


class OpenTrial(Protocol):
    """Opens a trial of a tool that is not in the catalog; closing it leaves nothing behind."""

    def __call__(self, tool: Tool, terms: TrialTerms) -> AbstractAsyncContextManager[Trial]:
        """Open it."""


def complain(check: Check, text: str) -> Complaint:
    """A complaint on one line of bounded length, because part of its text may come from the candidate."""
    line = " ".join(text.split())
    return Complaint(check=check, text=line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}…")


def show_call(function: str, arguments: Mapping[str, object]) -> str:
    """A call as Python writes it, short enough for a sentence."""
    return f"{function}({', '.join(f'{name}={show_value(value)}' for name, value in arguments.items())})"


def show_value(value: object) -> str:
    """A value as Python writes it, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"


def spell_value(value: object) -> str:
    """A value as JSON, so that two are the same if they read the same; 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
