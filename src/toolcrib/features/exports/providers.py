"""Translate between tool calls and results and the messages of Anthropic, Gemini and OpenAI.

A model gets the value of a result or its error; never a confirmation token, a stack trace or a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.features.exports.chat import Adapter, Asked, has, items, part, text
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.hidden_text import show_hidden, show_hidden_in
from toolcrib.lib.presentation import to_text
from toolcrib.model.errors import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Result

MAX_MESSAGE = 4_000


class Anthropic(Adapter):
    """Messages: `tool_use` blocks in, one message with all results out."""

    provider = Provider.ANTHROPIC
    marks = ("content",)
    replies = "a message or a list of its content blocks"

    def _read(self, reply: object) -> list[Asked]:
        blocks = reply if isinstance(reply, (list, tuple)) else part(reply, "content")
        return [
            Asked(id=text(part(block, "id")), name=text(part(block, "name")), arguments=part(block, "input"))
            for block in items(blocks)
            if part(block, "type") == "tool_use"
        ]

    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        blocks = [
            {"type": "tool_result", "tool_use_id": asked.id, "content": tell(result), "is_error": not result.ok}
            for asked, result in answers
        ]
        return [{"role": "user", "content": blocks}]


class Gemini(Adapter):
    """Contents: `function_call` parts in, one content with all responses out."""

    provider = Provider.GEMINI
    marks = ("candidates", "content", "parts")
    replies = "a response, its content or a list of its parts"

    @property
    def definitions(self) -> list[dict[str, object]]:
        """The `tools` argument of the vendor's client: one tool that holds all functions."""
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


class OpenAIChat(Adapter):
    """Chat completions, and compatible servers: `tool_calls` in, messages of the role `tool` out."""

    provider = Provider.OPENAI
    marks = ("choices", "message", "tool_calls", "role")
    replies = "a chat completion, its message or a list of tool calls"

    def _read(self, reply: object) -> list[Asked]:
        wanted = reply if isinstance(reply, (list, tuple)) else part(_message(reply), "tool_calls")
        return [_asked(call) for call in items(wanted) if has(call, "function") or has(call, "id")]

    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        return [{"role": "tool", "tool_call_id": asked.id, "content": tell(result)} for asked, result in answers]


class OpenAIResponses(Adapter):
    """Responses: items of the type `function_call` in, `function_call_output` out."""

    provider = Provider.OPENAI_RESPONSES
    marks = ("output",)
    replies = "a response or a list of its output items"

    def _read(self, reply: object) -> list[Asked]:
        wanted = reply if isinstance(reply, (list, tuple)) else part(reply, "output")
        return [
            Asked(id=text(part(item, "call_id")), name=text(part(item, "name")), arguments=part(item, "arguments"))
            for item in items(wanted)
            if part(item, "type") == "function_call"
        ]

    def _write(self, answers: Sequence[tuple[Asked, Result]]) -> list[dict[str, object]]:
        return [
            {"type": "function_call_output", "call_id": asked.id, "output": tell(result)} for asked, result in answers
        ]


def tell(result: Result) -> str:
    """The result as text: the value, or the error as JSON."""
    return show_hidden(to_text(value_of(result) if result.error is None else error_of(result.error, result)))


def value_of(result: Result) -> object:
    """The value; for a stored result its beginning, and how to read the rest."""
    kept = result.meta.get("kept")
    if not isinstance(kept, dict):
        return result.value
    shown = kept.get("shown")
    return (
        f"{result.value}\n\n[These are {shown} of {kept.get('letters')} characters. The rest is stored for an hour: "
        f'crib.read_result("{kept.get("handle")}", offset={shown}). Or ask for less.]'
    )


def error_of(error: ToolError, result: Result) -> dict[str, object]:
    """The error as an object, with the partial value of the tool."""
    told: dict[str, object] = {
        "type": str(error.kind),
        "message": _sendable(error.told_to(Reader.MODEL).message),
        "retryable": error.retryable,
        "partialSideEffects": error.partial_side_effects,
    }
    return told if result.value is None else {**told, "partialValue": value_of(result)}


def _sendable(message: str) -> str:
    """The message, shortened and without lone surrogates, which clients cannot send."""
    short = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
    return short.encode("utf-8", "replace").decode()


def _content(reply: object) -> object:
    """The content of the first candidate, or of a candidate; else the reply itself."""
    if not has(reply, "candidates"):
        return part(reply, "content") or reply
    candidates = items(part(reply, "candidates"))
    return part(candidates[0], "content") if candidates else None


def _function_call(thing: object) -> object:
    """The call in a part, or the part itself if it is a call, as the package also returns them; None for anything else."""
    # The package writes function_call, the wire functionCall.
    call = part(thing, "function_call", "functionCall")
    return thing if call is None and has(thing, "name") else call


def _response(asked: Asked, result: Result) -> dict[str, object]:
    told = (
        {"output": show_hidden_in(value_of(result))}
        if result.error is None
        else {"error": error_of(result.error, result)}
    )
    response: dict[str, object] = {"name": asked.name, "response": told}
    # Not every model gives its calls an id; a made-up one would match nothing.
    return {"id": asked.id, **response} if asked.id else response


def _message(reply: object) -> object:
    """The message of a completion's first choice, or of a choice; else the reply itself."""
    choices = items(part(reply, "choices"))
    choice = choices[0] if choices else reply
    return part(choice, "message") or choice


def _asked(call: object) -> Asked:
    function = part(call, "function")
    return Asked(id=text(part(call, "id")), name=text(part(function, "name")), arguments=part(function, "arguments"))
