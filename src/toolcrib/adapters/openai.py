"""OpenAI's two shapes: chat completions and responses. Results are text in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.adapters.adapter import Adapter
from toolcrib.adapters.asking import Asked
from toolcrib.adapters.reading import has, items, part, text
from toolcrib.adapters.telling import tell
from toolcrib.pure.export import Provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.model.result import Result


class OpenAIChat(Adapter):
    """Chat completions, and every server that speaks like them: `tool_calls` in, messages of the role `tool` out."""

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


def _message(reply: object) -> object:
    """The message of a completion, where it is the first of its choices, or of a choice; else the reply itself."""
    choices = items(part(reply, "choices"))
    choice = choices[0] if choices else reply
    return part(choice, "message") or choice


def _asked(call: object) -> Asked:
    function = part(call, "function")
    return Asked(id=text(part(call, "id")), name=text(part(function, "name")), arguments=part(function, "arguments"))
