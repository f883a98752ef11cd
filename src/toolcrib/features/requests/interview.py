"""`crib request new` on a terminal: one question after the other becomes a request."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from toolcrib.features.requests.document.parameters import OUTPUT_NAME, is_argument_name
from toolcrib.features.requests.document.reader import name_problem
from toolcrib.features.requests.document.writer import write_request
from toolcrib.toolkit.cli.console import WrongUseError, complain, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPES = ("string", "integer", "boolean", "list", "object")
PRIORITIES = ("high", "medium", "low")
MOST_ANSWERS = 50
MOST_TRIES = 5
# Keys that were pressed by mistake, and bytes that are no UTF-8.
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def ask_for_request() -> str:
    """The request that a person at the terminal tells; raises WrongUseError if they give up."""
    complain("what should the tool be? (an empty line ends a list)")
    fields: dict[str, object] = {
        "name": _ask("name, as action_and_target", check=name_problem),
        "description": _ask("what it does", check=_is_said),
        "priority": _ask("priority: high, medium or low", "medium", check=lambda text: _one_of(text, PRIORITIES)),
        "requested_by": "fullsend",
    }
    if experiment := _ask("experiment that waits for it, if any"):
        fields["experiment_blocked"] = experiment
    if inputs := [_input(name) for name in _listed("input", _is_argument)]:
        fields["inputs"] = inputs
    if outputs := [_output(name) for name in _listed("output", _is_output)]:
        fields["outputs"] = outputs
    if requirements := list(_listed("requirement")):
        fields["requirements"] = requirements
    return write_request(fields)


def _input(name: str) -> dict[str, object]:
    described: dict[str, object] = {
        "name": name,
        "type": _ask(f"type of {name}: {', '.join(TYPES)}", "string", check=lambda text: _one_of(text, TYPES)),
        "description": _ask(f"what {name} is", check=_is_said),
    }
    if _ask(f"is {name} required? y or n", "y", check=lambda text: _one_of(text, ("y", "n"))) == "y":
        described["required"] = True
    return described


def _output(name: str) -> dict[str, object]:
    kind = _ask(f"type of {name}: {', '.join(TYPES)}", "string", check=lambda text: _one_of(text, TYPES))
    may_be_null = _ask(f"may {name} be null? y or n", "n", check=lambda text: _one_of(text, ("y", "n"))) == "y"
    return {"name": name, "type": f"{kind} | null" if may_be_null else kind}


def _listed(noun: str, check: Callable[[str], str] | None = None) -> Iterator[str]:
    """What the person names, until an empty line; what is checked is named once."""
    named: set[str] = set()

    def look(text: str) -> str:
        if not text or check is None:
            return ""
        return f"{text} is there already; name another" if text in named else check(text)

    for number in range(1, MOST_ANSWERS + 1):
        answer = _ask(f"{noun} {number}", check=look)
        if not answer:
            return
        named.add(answer)
        yield answer


def _ask(question: str, default: str = "", check: Callable[[str], str] | None = None) -> str:
    """Ask until the answer will do; an empty one is the default."""
    for _ in range(MOST_TRIES):
        sys.stderr.write(visible(f"{question} [{default}]: " if default else f"{question}: "))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            break
        answer = line.strip() or default
        problem = _is_text(answer) or ("" if check is None else check(answer))
        if not problem:
            return answer
        complain(problem)
    raise WrongUseError("nothing is filed; write the request to a file: crib request new FILE")


def _is_argument(text: str) -> str:
    return "" if is_argument_name(text) else "it is an argument in Python; use letters, digits and '_', and no keyword"


def _is_output(text: str) -> str:
    return "" if OUTPUT_NAME.fullmatch(text) else "it is a key of the answer; use letters, digits, '_', '-' and '.'"


def _is_text(text: str) -> str:
    return "that holds letters that cannot be written; write it without them" if _UNWRITABLE.search(text) else ""


def _is_said(text: str) -> str:
    return "" if text else "say it in a few words"


def _one_of(text: str, words: tuple[str, ...]) -> str:
    return "" if text in words else f"write one of {', '.join(words)}"
