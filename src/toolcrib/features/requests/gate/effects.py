"""Compare what a candidate did with what is allowed, and check what is left of its work when the network fails.

A deed that the sandbox prevented counts as done. What a call had achieved before a failure follows from an undisturbed run:
a piece of that result whose words are all in one recorded answer was known once that answer had arrived. Whether it had
arrived before the failure is found by replacing it with a redirect.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.features.requests.gate import Check, complain, show_call, show_value, spell_value
from toolcrib.infra.programs.observed_effects import Comparison
from toolcrib.infra.sandbox.child.observer import MORE
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.features.requests.gate import Complaint, TrialTerms
    from toolcrib.features.requests.gate.calls import Tried
    from toolcrib.infra.programs.observed_effects import Deed
    from toolcrib.model.tool import Tool
    from toolcrib.model.toolrequest import RecordedAnswer, ToolRequest

    # Texts and numbers, as JSON spells them.
    Piece = frozenset[str]


CONNECT = "connect"
ACTS = {"read": "reads", "write": "writes to", CONNECT: "connects to", "start": "starts", "call": "calls the tool"}
MOST = 10
# A reserved name, so that only the redirect leads there.
LANDMARK = "landmark.invalid"
FOUND = 302
# Shorter words are in many answers by chance.
TELLING_LETTERS = 3
CURE = 'catch the failure and return {"result": what there is, "success": False, "error": why}'


def check_effects(tool: Tool, terms: TrialTerms, seen: Iterable[tuple[str, Iterable[Deed]]]) -> list[Complaint]:
    """One complaint for each deed that was not allowed, with the call that did it."""
    first: dict[tuple[str, str], str] = {}
    for about, deeds in seen:
        for deed in find_undeclared(tool, terms, deeds):
            first.setdefault((deed.act, deed.what), _describe(about, deed, terms))
    texts = list(first.values())
    if len(texts) > MOST:
        texts[MOST:] = [f"… and {len(texts) - MOST} more such deeds"]
    return [complain(Check.EFFECTS, text) for text in texts]


def find_undeclared(tool: Tool, terms: TrialTerms, deeds: Iterable[Deed]) -> Iterator[Deed]:
    """The deeds that neither the request nor the operator allows."""
    comparison = Comparison.of(tool, deeds)
    yield from comparison.undeclared
    yield from (deed for deed in comparison.declared if deed.act == CONNECT and _is_to_other_host(deed, terms))


def uses_network(deeds: Iterable[Deed]) -> bool:
    """Whether a connection was made, or tried."""
    return any(deed.act == CONNECT for deed in deeds)


class Achievement:
    """The result of an undisturbed call, as far as it can be found in recorded answers."""

    def __init__(self, before: Tried, answers: Iterable[RecordedAnswer]) -> None:
        self._value = before.result.value
        self._asked = _words(before.sample.arguments)
        self._answers = tuple(answers)
        bodies = [_Body(answer.body) for answer in self._answers]
        pieces = [piece for piece in self._take_apart(self._value) if self._telling(piece)]
        self._pieces = [piece for piece in pieces if any(body.holds(piece) for body in bodies)]
        self._is_rich = [any(body.holds(piece) for piece in self._pieces) for body in bodies]

    def is_lost(self, tried: Tried) -> bool:
        """Whether there is no partial value, or an empty object."""
        value = tried.result.value
        return (value is None and not tried.result.ok) or (value == {} and self._value != {})

    def may_be_lost(self, tried: Tried) -> bool:
        """Whether nothing is left of any piece that can be found in a recorded answer."""
        left = self._telling(frozenset().union(*self._take_apart(tried.result.value)))
        return bool(self._pieces) and all(left.isdisjoint(piece) for piece in self._pieces)

    def with_landmarks(self) -> tuple[RecordedAnswer, ...]:
        """The recorded answers, with a redirect in place of each that holds a piece."""
        pairs = zip(self._answers, self._is_rich, strict=True)
        return tuple(_redirect(answer) if is_rich else answer for answer, is_rich in pairs)

    def _take_apart(self, value: object) -> list[Piece]:
        """The items of lists where the undisturbed answer has any, else each text and number."""
        if any(True for _ in _items(self._value)):
            return [_words(item) for item in _items(value)]
        return [frozenset({word}) for word in _words(value)]

    def _telling(self, piece: Piece) -> Piece:
        """The words that identify it: without those of the arguments."""
        return frozenset(word for word in piece - self._asked if len(word.strip('"')) >= TELLING_LETTERS)


def passed_a_landmark(deeds: Iterable[Deed]) -> bool:
    """Whether one of the redirects was followed."""
    return any(deed.act == CONNECT and deed.what.startswith(f"{LANDMARK}:") for deed in deeds)


def complain_of_loss(lost: Tried, why: str, request: ToolRequest) -> Complaint:
    """Complain that a call lost its partial result; `why` is its error, if it reported one."""
    call, said = show_call(request.function, lost.sample.arguments), f" ({why})" if why else ""
    left = "" if lost.result.value is None else f": it answers {show_value(lost.result.value)}"
    had = ", and answers that hold more had come before" if lost.result.value else ""
    return complain(Check.PARTIAL, f"{call} loses what it had when the network fails{said}{left}{had}; {CURE}")


def _is_to_other_host(deed: Deed, terms: TrialTerms) -> bool:
    """Whether a connection was refused because its host is not allowed, or not recorded."""
    if not deed.denied or (not terms.answers and terms.hosts is None):
        return False
    try:
        url = parse_url(f"http://{deed.what}/")
        if terms.answers:
            return url.host not in {parse_url(answer.url).host for answer in terms.answers}
        parse_hosts(terms.hosts or ()).check(url)
    except ToolError:
        return True
    return False


def _describe(about: str, deed: Deed, terms: TrialTerms) -> str:
    if deed.act == MORE:
        return f"{about}: it did more than can be written down; do less"
    kept = " (it was denied)" if deed.denied else ""
    return f"{about}: it {ACTS.get(deed.act, deed.act)} {deed.what}{kept}; {_cure(deed, terms)}"


def _cure(deed: Deed, terms: TrialTerms) -> str:
    if deed.act == CONNECT and deed.capability and any(name.startswith("net.") for name in terms.requires):
        return "remove it, or have that host among the hosts and recorded answers of the request"
    if deed.capability:
        return f"remove it, or have {deed.capability} among the capabilities of the request"
    return "remove it: no capability opens that"


class _Body:
    """The body of an answer: its values if it is JSON, else its text."""

    def __init__(self, body: str) -> None:
        self._text = body
        try:
            self._words: Piece | None = _words(json.loads(body))
        except (ValueError, RecursionError):
            self._words = None

    def holds(self, piece: Piece) -> bool:
        """Whether every word of a piece is in it."""
        if self._words is not None:
            return piece <= self._words
        return all(word.strip('"') in self._text for word in piece)


def _items(value: object) -> Iterator[object]:
    """The items of the outermost lists of an answer."""
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _items(inner)


def _words(value: object) -> Piece:
    """The texts and numbers in a value, without null and booleans."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return frozenset().union(*map(_words, inner))
    return frozenset() if value is None or isinstance(value, bool) else frozenset({spell_value(value)})


def _redirect(answer: RecordedAnswer) -> RecordedAnswer:
    scheme = answer.url.partition(":")[0]
    return replace(answer, status=FOUND, headers={"Location": f"{scheme}://{LANDMARK}/"}, body="")
