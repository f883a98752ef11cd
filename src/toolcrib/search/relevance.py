"""How well a tool answers a question: rare words count for more than common ones, those in its name for more than others.

A question is a list of ideas. An idea is a word of the question and what else may stand for it: other forms have the same stem,
synonyms and corrections of slips weigh less. A tool is a list of stems for each of its fields.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.search.everyday import phrases, stop_words, synonyms
from toolcrib.search.stems import stem
from toolcrib.search.words import MAX_FIELD, words_in_order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from toolcrib.search.nouns import Row

MAX_LETTERS = 1_000
MAX_IDEAS = 12

# Tuned on half of the questions in benchmarks/questions.py.
SYNONYM, CORRECTION = 0.4, 0.6
NAME, DESCRIPTION, TAG, PARAMETER = 2.0, 1.0, 1.0, 0.5
# How much a field counts for less the longer it is, and where that begins.
LENGTH_OF_NAME, LENGTH_OF_DESCRIPTION, LENGTH_OF_PARAMETERS = 0.3, 0.75, 0.5
USUAL_NAME, USUAL_DESCRIPTION, USUAL_PARAMETERS = 2, 12, 4
# How soon more of the same word adds nothing.
SATURATION = 1.2


class Idea(NamedTuple):
    """A word of a question, and for each stem that may stand for it what it weighs."""

    word: str
    stems: Mapping[str, float]


class Document(NamedTuple):
    """The stems of a tool, field by field."""

    name: Sequence[str]
    description: Sequence[str]
    tags: Sequence[str]
    parameters: Sequence[str]


def document_of(row: Row) -> Document:
    """The stems of a row."""
    parameters = " ".join(f"{name} {description}" for name, description in row.parameters)
    return Document(
        name=list(dict.fromkeys(_stems(f"{row.slug} {row.name} {row.display_name}"))),
        description=_stems(row.description),
        tags=_stems(" ".join(row.tags)),
        parameters=_stems(parameters),
    )


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words_in_order(text[:MAX_FIELD])]


def read_question(question: str) -> list[Idea]:
    """The ideas of a question."""
    words = words_in_order(question[:MAX_LETTERS])
    ideas: list[Idea] = []
    telling: list[str] = []
    position = 0
    while position < len(words):
        meaning, length = _phrase(words, position)
        if meaning:
            ideas.append(Idea("", dict.fromkeys(meaning, 1.0)))
        elif words[position] not in stop_words():
            telling.append(words[position])
        position += length
    if not telling and not ideas:
        telling = words
    said = {stem(word): word for word in telling}
    return [*ideas, *(_idea(word, each, said) for each, word in said.items())][:MAX_IDEAS]


def _phrase(words: list[str], position: int) -> tuple[tuple[str, ...], int]:
    """What the words from here on mean together, and how many they are."""
    for length in (5, 4, 3, 2):
        meaning = phrases().get(tuple(words[position : position + length]))
        if meaning:
            return meaning, length
    return (), 1


def _idea(word: str, its_stem: str, said: Container[str]) -> Idea:
    """A word and its synonyms, but for those that are in the question themselves."""
    others = {other: SYNONYM for other in synonyms().get(its_stem, ()) if other not in said}
    return Idea(word, others | {its_stem: 1.0})


def corrected(idea: Idea, near: Iterable[str]) -> Idea:
    """An idea of which no tool has the word, with what that may have been meant for."""
    return Idea(idea.word, {stem(other): CORRECTION for other in near} | dict(idea.stems))


class Relevance:
    """The score of tools for one question, among so many tools of which so many have each stem."""

    def __init__(self, ideas: Iterable[Idea], frequencies: Mapping[str, int], count: int) -> None:
        self.rarity = {each: math.log(1 + (count - rows + 0.5) / (rows + 0.5)) for each, rows in frequencies.items()}
        self.ideas = [{each: weight for each, weight in idea.stems.items() if each in self.rarity} for idea in ideas]
        self._wanted = {each for idea in self.ideas for each in idea}
        # What no tool has cannot be covered; it counts as much as an ordinary word.
        self._worth = [
            max((weight * self.rarity[each] for each, weight in idea.items()), default=math.log(1 + count) / 2)
            for idea in self.ideas
        ]

    def score(self, document: Document) -> float:
        """How well it answers; 0 if it does not."""
        strengths = _strengths(document, self._wanted)
        if not strengths:
            return 0.0
        total = covered = 0.0
        for idea, worth in zip(self.ideas, self._worth, strict=True):
            best = max(
                (weight * self.rarity[each] * strengths[each] for each, weight in idea.items() if each in strengths),
                default=0.0,
            )
            if best:
                total += best
                covered += worth
        return total * covered / sum(self._worth)


def _strengths(document: Document, wanted: set[str]) -> dict[str, float]:
    """How strongly a tool is about each of the stems, from 0 to about 2."""
    amounts: defaultdict[str, float] = defaultdict(float)
    for stems, weight, length, usual in (
        (document.name, NAME, LENGTH_OF_NAME, USUAL_NAME),
        (document.description, DESCRIPTION, LENGTH_OF_DESCRIPTION, USUAL_DESCRIPTION),
        (document.tags, TAG, 0.0, 1),
        (document.parameters, PARAMETER, LENGTH_OF_PARAMETERS, USUAL_PARAMETERS),
    ):
        for each in wanted.intersection(stems):
            amounts[each] += weight * stems.count(each) / (1 - length + length * len(stems) / usual)
    return {each: amount * (SATURATION + 1) / (SATURATION + amount) for each, amount in amounts.items()}
