"""What a candidate may do while it is proved, and what no request may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.builder.gate.nouns import Check, complain
from toolcrib.builder.trial import TrialTerms
from toolcrib.ground.sandbox.walls import has_network
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained
from toolcrib.pipeline.plan import missing_grants

if TYPE_CHECKING:
    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import Allowance, ToolRequest

SECRETS = ("secret.", "secrets.")


def refuse_beyond(request: ToolRequest, allowance: Allowance, cap: frozenset[str]) -> None:
    """Raise ToolError if the request asks for more than the operator lets any request have; `cap` is written as grants are.

    What the operator added to this very request is allowed already.
    """
    beyond = sorted(missing_grants(request.capabilities, cap | allowance.capabilities))
    if not beyond:
        return
    names = ", ".join(beyond)
    cure = "add it to the setting builder_capabilities, or allow it for this request alone: crib request allow"
    message = f"{request.name} asks for {names}, which no request may have here; {cure}"
    raise ToolError(Kind.CAPABILITY_MISSING, message, details={"missing": beyond, "cure": cure})


def find_unprovable(request: ToolRequest, allowance: Allowance) -> Complaint | None:
    """Why nothing that anybody could make would be proved; None if it can be, or need not."""
    if allowance.unproved:
        return None
    text = _why_silent(request) or _why_unreachable(request, allowance)
    return complain(Check.PROOF, f"not provable: {text}, or allow it to go unproved") if text else None


def _why_silent(request: ToolRequest) -> str:
    """Whether any answer would do: one without inputs cannot even be told by how it varies."""
    if request.inputs or request.outputs or request.examples:
        return ""
    return "add outputs or examples to the request, which says nothing about the answer"


def _why_unreachable(request: ToolRequest, allowance: Allowance) -> str:
    wanted = request.capabilities | allowance.capabilities
    names = sorted(name for name in wanted if has_network((name,)) or name.startswith(SECRETS))
    if not names or request.answers or allowance.answers:
        return ""
    return (
        f"the tool needs {', '.join(names)}, and nobody is asked in earnest while it is proved; "
        "add answers (url, status, body) to the request"
    )


def terms_of(tool: Tool, request: ToolRequest, allowance: Allowance, seconds: float) -> TrialTerms:
    """What the candidate may do in its trial: exactly what the finished tool may."""
    return TrialTerms(
        requires=tool.requires,
        hosts=tool.run.hosts if isinstance(tool.run, Chained) else (),
        answers=(*request.answers, *allowance.answers),
        seconds=seconds,
    )
