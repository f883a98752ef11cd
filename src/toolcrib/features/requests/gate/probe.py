"""The import of a candidate, and one bare call of it, looked at from within the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from toolcrib.features.requests.gate.types import show_value

if TYPE_CHECKING:
    from typing import Self

    from toolcrib.model.result import Result

EMPTY_ORDER = 'json.loads("{}")'
# Whatever a file of the candidate is called, the probe imports what Python brings with it, and the candidate what a call of it
# would; and what it sees of its process at first sight is what it sees in a call.
APART = """import os, sys
place, known = sys.path.pop(0), set(sys.modules)
exec(compile({text!r}, __file__, "exec", dont_inherit=True))
beside = {{name.partition(".")[0] for name in os.listdir(place)}}
for name in [name for name in sys.modules.keys() - known if name.partition(".")[0] in beside]:
    del sys.modules[name]
sys.modules.pop(__name__, None)
sys.argv[0] = os.path.join(place, {entry!r})
sys.path.insert(0, place)
"""
SHOWN_LETTERS = 300
MOST = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """An exception of the candidate: what it says, and the line in which it was raised. `missing` is a module."""

    type: str
    message: str
    place: str
    missing: str

    def __str__(self) -> str:
        said = f"{self.type}: {self.message[:SHOWN_LETTERS]}" if self.message else self.type
        return f"{said} (at {self.place})" if self.place else said


@dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """What was found. `function` describes what the name stands for; `left` is what outlived the import or the call."""

    result: Result
    raised: Raised | None = None
    left: tuple[str, ...] = ()
    function: Mapping[str, object] | None = None
    value: object = None
    has_value: bool = False

    @classmethod
    def of(cls, result: Result) -> Self:
        """Read the answer of the probe, which may be anything: a candidate can write in its place."""
        facts = result.value if result.ok and isinstance(result.value, Mapping) else {}
        raised, left, function = facts.get("raised"), facts.get("left"), facts.get("function")
        return cls(
            result=result,
            raised=_raised(raised) if isinstance(raised, Mapping) else None,
            left=tuple(map(str, left[:MOST])) if isinstance(left, list) else (),
            function=function if isinstance(function, Mapping) else None,
            value=facts.get("value"),
            has_value="value" in facts,
        )


def write_probe(module: str, function: str, arguments: Mapping[str, object] | None = None) -> str:
    """A probe that imports the candidate, and calls it with these arguments alone if there are any given."""
    order = json.dumps({"module": module, "function": function, "arguments": arguments})
    return APART.format(text=_text().replace(EMPTY_ORDER, f"json.loads({order!r})", 1), entry=f"{module}.py")


@cache
def _text() -> str:
    from importlib.resources import files

    return files("toolcrib.features.requests.gate").joinpath("child_probe.py").read_text("utf-8")


def _raised(facts: Mapping[str, object]) -> Raised:
    words = {name: facts.get(name) for name in ("type", "message", "place", "missing")}
    return Raised(**{name: word if isinstance(word, str) else show_value(word) for name, word in words.items()})
