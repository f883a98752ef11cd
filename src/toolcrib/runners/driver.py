"""What the executor runner hands to whoever does the work of a primitive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.model.call import Call, Context
    from toolcrib.model.result import Outcome
    from toolcrib.model.tool import Chained, Tool
    from toolcrib.runners.chain import Chain


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One piece of work: a tool with its resolved chain, the checked arguments and the names of the platform.

    `run` is `tool.run`, and `chain.config` what its authors configured, verbatim but merged. `values` are the names that
    the platform knows (request_id, version, tool_version, slug, tool_id, bundle_id, client_id, now). `variable` gives a
    variable of the host, None if it is not set, and raises CAPABILITY_MISSING for one that was not granted to this tool.
    """

    tool: Tool
    run: Chained
    chain: Chain
    arguments: Mapping[str, object]
    values: Mapping[str, object]
    variable: Callable[[str], str | None]

    @property
    def is_primitive(self) -> bool:
        """Whether a primitive is called by its own name, so that the arguments say everything."""
        return len(self.chain.elements) == 1


class Driver(Protocol):
    """Does the work of one primitive."""

    def check(self, order: Order, call: Call) -> None:
        """Refuse, by raising ToolError, what can be seen to fail before anything runs; changes nothing."""

    async def run(self, order: Order, context: Context) -> Outcome:
        """Do it once. What failed is raised or stands in the outcome, beside what is worth telling."""
