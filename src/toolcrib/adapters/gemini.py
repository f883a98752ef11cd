"""Gemini's shape: parts with a `function_call` in, one content with a `function_response` for each out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.adapters.adapter import Adapter
from toolcrib.adapters.asking import Asked
from toolcrib.adapters.reading import has, items, part, text
from toolcrib.adapters.telling import error_of, value_of
from toolcrib.pure.export import Provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.model.result import Result


class Gemini(Adapter):
    """Contents: `function_call` parts in, one content with all responses out."""

    provider = Provider.GEMINI
    marks = ("candidates", "content", "parts")
    replies = "a response, its content or a list of its parts"

    @property
    def definitions(self) -> list[dict[str, object]]:
        """What the vendor's client takes as `tools`: one tool that holds all functions."""
        functions = super().definitions
        return [{"function_declarations": functions}] if functions else []

    def _read(self, reply: object) -> list[Asked]:
        parts = reply if isinstance(reply, (list, tuple)) else part(_content(reply), "parts")
        return [
            Asked(id=text(part(call, "id")), name=text(part(call, "name")), arguments=part(call, "args"))
            for call in map(_function_call, items(parts))
            if call is not None
        ]

    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        parts = [{"function_response": _response(asked, result)} for asked, result in answers]
        return [{"role": "user", "parts": parts}]


def _content(reply: object) -> object:
    """The content of the first candidate, or of a candidate; else the reply itself."""
    if not has(reply, "candidates"):
        return part(reply, "content") or reply
    candidates = items(part(reply, "candidates"))
    return part(candidates[0], "content") if candidates else None


def _function_call(thing: object) -> object:
    """The call in a part, or a call by itself as the package hands them out too; None for anything else."""
    # The package writes function_call, the wire functionCall.
    call = part(thing, "function_call", "functionCall")
    return thing if call is None and has(thing, "name") else call


def _response(asked: Asked, result: Result) -> dict[str, object]:
    told = {"output": value_of(result)} if result.error is None else {"error": error_of(result.error, result)}
    response: dict[str, object] = {"name": asked.name, "response": told}
    # Not every model numbers its calls; an id that nobody gave would match nothing.
    return {"id": asked.id, **response} if asked.id else response
