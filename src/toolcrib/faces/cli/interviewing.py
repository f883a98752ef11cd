"""`crib request new` on a terminal: one question after the other becomes a request."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import WrongUseError
from toolcrib.faces.cli.printing import complain, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPES = ("string", "integer", "boolean", "list", "object")
PRIORITIES = ("high", "medium", "low")
MOST_ANSWERS = 50
MOST_TRIES = 5


def ask_for_wish() -> str:
    """The request that a person at the terminal tells; raises WrongUseError if they give up."""
    from toolcrib.pure.requests import write_request

    complain("what should the tool be? (an empty line ends a list)")
    fields: dict[str, object] = {
        "name": _ask("name, as action_and_target", check=_is_name),
        "description": _ask("what it does", check=_is_said),
        "priority": _ask("priority: high, medium or low", "medium", check=lambda text: _one_of(text, PRIORITIES)),
        "requested_by": "fullsend",
    }
    if experiment := _ask("experiment that waits for it, if any"):
        fields["experiment_blocked"] = experiment
    if inputs := [_input(name) for name in _listed("input")]:
        fields["inputs"] = inputs
    if outputs := [_output(name) for name in _listed("output")]:
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


def _listed(noun: str) -> Iterator[str]:
    """What the person names, until an empty line."""
    for number in range(1, MOST_ANSWERS + 1):
        answer = _ask(f"{noun} {number}")
        if not answer:
            return
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
        problem = "" if check is None else check(answer)
        if not problem:
            return answer
        complain(problem)
    raise WrongUseError("nothing is filed; write the request to a file: crib request new FILE")


def _is_name(text: str) -> str:
    from toolcrib.pure.requests import name_problem

    return name_problem(text)


def _is_said(text: str) -> str:
    return "" if text else "say it in a few words"


def _one_of(text: str, words: tuple[str, ...]) -> str:
    return "" if text in words else f"write one of {', '.join(words)}"
