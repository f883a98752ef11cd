"""Why calls failed, and how it is told: one cause once, however many calls show it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.builder.gate.nouns import complain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from toolcrib.builder.gate.calls import Tried
    from toolcrib.builder.gate.nouns import Check, Complaint
    from toolcrib.builder.gate.probing import Raised

MOST = 5
# The values in a sentence: of one mistake each call shows others.
_VALUE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d+(?:\.\d+)?)""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a call failed: in words, and by what other calls can fail too."""

    text: str
    causes: frozenset[str]

    @classmethod
    def of(cls, failed: Tried, raised: Raised | None = None) -> Self:
        """What the candidate raised, which the pipeline keeps to itself; else what the pipeline says."""
        if raised is not None:
            return cls(text=str(raised), causes=frozenset({f"{raised.type} {raised.place or raised.message}"}))
        return cls(text=message_of(failed), causes=_causes(failed))


def message_of(tried: Tried) -> str:
    """What the pipeline says of a failure; empty if there is none."""
    error = tried.result.error
    return "" if error is None else f"{error.kind}: {error.message}"


def tell_once(check: Check, found: Iterable[tuple[str, frozenset[str]]]) -> list[Complaint]:
    """A complaint for each text with causes that no other has told, and how many calls show them."""
    teller: dict[str, int] = {}
    told: list[list[str]] = []
    for text, causes in found:
        if causes <= teller.keys():
            told[min(teller[cause] for cause in causes)].append(text)
            continue
        teller = {**dict.fromkeys(causes, len(told)), **teller}
        told.append([text])
    return [complain(check, _counted(texts)) for texts in told[:MOST]]


def _counted(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]}; seen in {len(texts)} calls"


def _causes(failed: Tried) -> frozenset[str]:
    error = failed.result.error
    problems = None if error is None else error.details.get("problems")
    texts = map(str, problems) if isinstance(problems, list) and problems else [message_of(failed)]
    return frozenset(_VALUE.sub("…", text) for text in texts)
