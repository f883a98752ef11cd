"""Whether what a call had achieved survives a network that fails in the midst of it.

What it had achieved follows from an undisturbed run: a piece of that answer whose words all stand in one recorded answer was
there as soon as that one was given. Whether it was given before the failure shows when it is a redirect instead.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.builder.gate.effects import CONNECT
from toolcrib.builder.gate.nouns import Check, complain, show_call, show_value, spell_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.model.toolrequest import RecordedAnswer, ToolRequest
    from toolcrib.runners.effects import Deed

# Reserved, so that nothing leads there but the redirect.
LANDMARK = "landmark.invalid"
FOUND = 302
# What is shorter stands in many an answer by chance.
TELLING_LETTERS = 3
CURE = 'catch the failure and return {"result": what there is, "success": False, "error": why}'


class Achievement:
    """What an undisturbed call achieved, as far as it can be found in the recorded answers again."""

    def __init__(self, before: Tried, answers: Iterable[RecordedAnswer]) -> None:
        self._answers = tuple(answers)
        self._known = set(_words(before.sample.arguments))
        texts = [_Text(answer.body) for answer in self._answers]
        pieces = [piece for piece in _pieces(before.result.value) if self._telling(piece)]
        self._pieces = [piece for piece in pieces if any(text.holds(piece) for text in texts)]
        self._is_rich = [any(text.holds(piece) for piece in self._pieces) for text in texts]
        self._has_fields = isinstance(before.result.value, dict) and bool(before.result.value)

    @property
    def example(self) -> str:
        """A word of it, for a sentence."""
        return min(self._telling(self._pieces[0]))

    def is_lost_in_any_case(self, tried: Tried) -> bool:
        """Whether there is no partial value at all, or an object without what it should hold."""
        value = tried.result.value
        return (value is None and not tried.result.ok) or (value == {} and self._has_fields)

    def may_be_lost(self, tried: Tried) -> bool:
        """Whether the answer lacks every piece that could have been there."""
        left = {word for piece in _pieces(tried.result.value) for word in self._telling(piece)}
        return bool(self._pieces) and all(left.isdisjoint(self._telling(piece)) for piece in self._pieces)

    def with_landmarks(self) -> tuple[RecordedAnswer, ...]:
        """The answers, with a redirect in place of each that holds a piece."""
        return tuple(
            _redirect(answer) if is_rich else answer
            for answer, is_rich in zip(self._answers, self._is_rich, strict=True)
        )

    def _telling(self, piece: object) -> set[str]:
        """The words that stand for it: not those that it shares with the question."""
        return {word for word in _words(piece) if len(word.strip('"')) >= TELLING_LETTERS} - self._known


def passed_a_landmark(deeds: Iterable[Deed]) -> bool:
    """Whether one of the redirects was given."""
    return any(deed.act == CONNECT and deed.what.startswith(f"{LANDMARK}:") for deed in deeds)


def complain_of_loss(lost: Tried, why: str, request: ToolRequest, example: str = "") -> Complaint:
    """Say what got lost; `why` is how the call failed, and `example` a word that had come before."""
    call = show_call(request.function, lost.sample.arguments)
    said = f" ({why})" if why else ""
    left = f": it answers {show_value(lost.result.value)}, and {example} had come before" if example else ""
    return complain(Check.PARTIAL, f"{call} loses what it had when the network fails{said}{left}; {CURE}")


class _Text:
    """The body of an answer: the values in it if it is JSON, else what is written there."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._words: set[str] | None = None
        try:
            self._words = set(_words(json.loads(body)))
        except (ValueError, RecursionError):
            return

    def holds(self, piece: object) -> bool:
        """Whether every word of a piece is in it."""
        words = set(_words(piece))
        if self._words is not None:
            return words <= self._words
        return all(word.strip('"') in self._body for word in words)


def _pieces(value: object) -> list[object]:
    """What an answer consists of: the items of its lists; where it has none, its other values."""
    values = list(value.values()) if isinstance(value, dict) else [value]
    items = [item for each in values if isinstance(each, list) for item in each]
    return items or [each for each in values if not isinstance(each, list)]


def _words(value: object) -> Iterator[str]:
    """The texts and numbers in a value, as JSON spells them."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _words(inner)
    elif value is not None and not isinstance(value, bool):
        yield spell_value(value)


def _redirect(answer: RecordedAnswer) -> RecordedAnswer:
    scheme = answer.url.partition(":")[0]
    headers: Mapping[str, str] = {"Location": f"{scheme}://{LANDMARK}/"}
    return replace(answer, status=FOUND, headers=headers, body="")
