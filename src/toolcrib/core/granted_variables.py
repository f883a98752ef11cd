"""Hand files of every kind the variables and secrets that the operator granted to their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.secrets.grants import granted_value
from toolcrib.infra.secrets.secret import VariableMasking

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Tool


class GrantedVariables:
    """What the operator granted, by tool and the names in its files."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def of(self, tool: Tool, *codes: bytes) -> tuple[dict[str, str], VariableMasking]:
        """The variables that are set and whose names stand in the files, and what masks them in the outcome of the call."""
        masking = VariableMasking(lambda name: granted_value(tool, name, self._resources.variable))
        names = self._resources.granted_names(tool, b"\n".join(codes))
        return {name: value for name in names if (value := masking.variable(name))}, masking
