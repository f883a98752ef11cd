"""Give a tool the variables of the host and the secrets that the operator granted to it by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import is_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.model.tool import Tool


def granted_value(tool: Tool, name: str, variable: Callable[[Tool, str], str | None], purpose: str = "") -> str | None:
    """The variable or secret, None if it is not set; raises CAPABILITY_MISSING for one that was not granted.

    `variable` gives what was granted, empty if it is not set, and None for what was not granted.
    """
    value = variable(tool, name)
    if value is None:
        # A name alone means no tool of a stored bundle.
        word = f"{tool.bundle}/{tool.name}" if is_document(tool) else tool.name
        message = (
            f"{tool.name} asks for the host's variable {name}{purpose}, which is not granted to it; "
            f"the operator may add '{word}:{name}' to the setting variables"
        )
        raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": [name]})
    return value or None


@dataclass(frozen=True, slots=True)
class Grants:
    """What one tool was granted. `value` gives a variable or secret; it raises CAPABILITY_MISSING for any other name."""

    value: Callable[[str], str | None]
    environment: Mapping[str, str] = field(repr=False)

    def variable(self, name: str) -> str | None:
        """A variable of the host and never a secret; None if it is not set."""
        self.value(name)
        return self.environment.get(name) or None
