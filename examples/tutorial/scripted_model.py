"""A model that needs no key, with the methods of OpenAI's client: it asks for count_words and says what came back."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any


def create(*, model: str, messages: Sequence[Any], tools: Sequence[object]) -> Any:
    function = SimpleNamespace(name="count_words", arguments='{"text": "the cat and the hat", "top": 1}')
    asked = SimpleNamespace(id="call_1", type="function", function=function)
    message = SimpleNamespace(role="assistant", content=None, tool_calls=[asked])
    if len(messages) > 1:
        [(word, times)] = json.loads(messages[-1]["content"]).items()
        message = SimpleNamespace(role="assistant", content=f"It is {word!r}, {times} times.", tool_calls=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
