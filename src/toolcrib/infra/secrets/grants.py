"""Give a tool the variables of the host and the secrets that the operator granted to it by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import is_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.model.tool import Tool


def granted_value(tool: Tool, name: str, variable: Callable[[Tool, str], str | None], purpose: str = "") -> str | None:
    """The variable or secret, None if it is not set; raises CAPABILITY_MISSING for one that was not granted.

    `variable` returns a granted value, empty if it is not set, and None if it was not granted.
    """
    value = variable(tool, name)
    if value is None:
        # A name alone means no tool of a stored bundle.
        word = f"{tool.bundle}/{tool.name}" if is_document(tool) else tool.name
        message = f"{tool.name} asks for the host's variable {name}{purpose}, which is not granted to it"
        cure = Cure(f"add '{word}:{name}' to access.variables in toolcrib.toml", "ask the operator to grant it")
        raise ToolError(Kind.CAPABILITY_MISSING, message, cure=cure, details={"missing": [name]})
    return value or None


def tell_all(refusal: ToolError, checks: Iterable[Callable[[], object]]) -> ToolError:
    """The refusal of a call, with everything else that the operator must provide. No check depends on the arguments."""
    found: dict[str, ToolError] = {}
    for check in checks:
        try:
            check()
        except ToolError as lack:
            # The refusal may also say in which part of the tool it was found.
            found.setdefault(lack.reason, refusal if refusal.reason.endswith(lack.reason) else lack)
    told = [*dict.fromkeys((refusal, *found.values()))]
    refusal = refusal.replace(lacks={lack.message: lack.kind for lack in found.values()})
    if len(told) > 1:
        cure = reduce(Cure.then, (other.as_cure() for other in told[1:]), refusal.cure)
        problems = [error.reason for error in told]
        refusal = refusal.replace(cure=cure, details={**refusal.details, "problems": problems})
    return refusal


@dataclass(frozen=True, slots=True)
class ToolGrants:
    """The grants of one tool. `value` returns a variable or secret; it raises CAPABILITY_MISSING for any other name."""

    value: Callable[[str], str | None]
    environment: Mapping[str, str] = field(repr=False)

    def variable(self, name: str) -> str | None:
        """A variable of the host and never a secret; None if it is not set."""
        self.value(name)
        return self.environment.get(name) or None


class Operator(Protocol):
    """The grants of the settings; `Resources` implements it."""

    def variable(self, tool: Tool, name: str) -> str | None:
        """A variable of the host or a secret, if the tool may see it; empty if it is not set."""

    def granted_names(self, tool: Tool, code: bytes) -> tuple[str, ...]:
        """The variables and secrets that the tool may see and whose names occur in its files."""


class GrantedVariables:
    """The granted variables of tools, limited to the names that occur in their files."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def of(self, tool: Tool, *codes: bytes) -> tuple[dict[str, str], VariableMasking]:
        """The variables that are set and whose names occur in the files, and the masking of their values in the outcome."""
        masking = VariableMasking(lambda name: granted_value(tool, name, self._operator.variable))
        names = self._operator.granted_names(tool, b"\n".join(codes))
        return {name: value for name in names if (value := masking.variable(name))}, masking
