"""Anthropic's shape: blocks of the type `tool_use` in, one message of the user with a `tool_result` for each out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.adapters.adapter import Adapter
from toolcrib.adapters.asking import Asked
from toolcrib.adapters.reading import items, part, text
from toolcrib.adapters.telling import tell
from toolcrib.pure.export import Provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.model.result import Result


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
