"""Where a candidate is tried: under the real guard, watched, with nothing but what its request allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from toolcrib.model.result import Result
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import RecordedAnswer
    from toolcrib.runners.effects import Deed


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialTerms:
    """What a trial allows.

    `requires` are the capabilities that are granted, no others. `hosts` narrows where the network leads; None narrows
    nothing. `answers` are what the network answers with; nobody is asked in earnest. From the request number `fail_from` on,
    counted from 1 in each call, the network fails; None means never. `seconds` is how long one call or one import may take.
    """

    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    answers: tuple[RecordedAnswer, ...] = ()
    fail_from: int | None = None
    seconds: float = 10.0


class Trial(Protocol):
    """A tool on trial; calls may be made side by side."""

    async def call(self, arguments: Mapping[str, object]) -> Result:
        """Call it as anybody would, through the whole pipeline, sandboxed and watched: `meta["effects"]` says what it did.

        What it printed stands in `meta["stdout"]` and `meta["stderr"]`.
        """

    async def load(self, probe: str) -> Result:
        """Run this Python text in the tool's place, in its folder, within its walls and watched as it would be.

        The function `probe()` of the text is called without arguments and its answer, any JSON, is the value. All files of
        the tool can be imported from it as they lie, the tool's own first file too.
        """

    def deeds(self, result: Result) -> list[Deed]:
        """What the result shows that was done or tried, without what happens as a matter of course."""


class OpenTrial(Protocol):
    """Opens a trial of a tool that is in no catalogue; nothing of it is left when it is closed."""

    def __call__(self, tool: Tool, terms: TrialTerms) -> AbstractAsyncContextManager[Trial]:
        """Open it."""
