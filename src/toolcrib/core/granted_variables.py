"""Hand files of every kind the variables and secrets that the operator granted to their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.infra.secrets.grants import granted_value
from toolcrib.infra.secrets.secret import VariableMasking

if TYPE_CHECKING:
    from toolcrib.model.tool import Tool


class Operator(Protocol):
    """What the settings grant; `Resources` is it."""

    def variable(self, tool: Tool, name: str) -> str | None:
        """A variable of the host or a secret, if the tool may see it; empty if it is not set."""

    def granted_names(self, tool: Tool, code: bytes) -> tuple[str, ...]:
        """The variables and secrets that the tool may see and whose names stand in its files."""


class GrantedVariables:
    """What the operator granted, by tool and the names in its files."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def of(self, tool: Tool, *codes: bytes) -> tuple[dict[str, str], VariableMasking]:
        """The variables that are set and whose names stand in the files, and what masks them in the outcome of the call."""
        masking = VariableMasking(lambda name: granted_value(tool, name, self._operator.variable))
        names = self._operator.granted_names(tool, b"\n".join(codes))
        return {name: value for name in names if (value := masking.variable(name))}, masking
