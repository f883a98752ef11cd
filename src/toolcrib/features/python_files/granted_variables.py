"""Hand plain files the variables that the operator granted to them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.infra.secrets.secret import VariableMasking

if TYPE_CHECKING:
    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Tool


class GrantedVariables:
    """What the operator granted, by tool and the names in its file."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def of(self, tool: Tool, code: bytes) -> tuple[dict[str, str], VariableMasking]:
        """The variables that are set, and what masks them in the outcome of the call."""
        masking = VariableMasking(partial(self._resources.variable, tool))
        names = self._resources.granted_names(tool, code)
        return {name: value for name in names if (value := masking.variable(name))}, masking
