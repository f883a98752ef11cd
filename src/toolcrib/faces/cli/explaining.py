"""`crib explain`: whether the tool is there, whether models see it, and what each gate would say to a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.calling import make_call
from toolcrib.faces.cli.codes import ExitCode, WrongUseError, code_of_explanation
from toolcrib.faces.cli.describing import offer_of
from toolcrib.faces.cli.opening import open_any
from toolcrib.faces.cli.printing import say, say_facts, say_json, say_table
from toolcrib.faces.cli.reading import EXPLAIN_OPTIONS, GRANT, PROJECT, URL, read_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.crib.anywhere import AnyCrib
    from toolcrib.pipeline.explanation import Finding

COLUMNS = ("gate", "verdict", "reason", "rule", "where", "cure")


def explain_command(words: Sequence[str], project: str | None) -> ExitCode:
    """`crib explain NAME key=value …`: ends as the call would."""
    line = read_line(words, EXPLAIN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a tool: crib explain NAME key=value …; list the tools with: crib list")
    with open_any(line.last(PROJECT.name) or project, line.last(URL.name), grants=line.all(GRANT.name)) as crib:
        explanation = crib.explain(make_call(crib, line, line.words))
        standing = dict(_standing(crib, line.words[0]))
    if line.has("--json"):
        say_json({"standing": standing, **explanation.to_json()})
        return code_of_explanation(explanation)
    say_facts(standing.items())
    say("")
    say_table(COLUMNS, map(_row, explanation.findings))
    say("")
    refusal = explanation.refusal
    say("The call would run." if refusal is None else f"The call would be refused by the gate {refusal.gate}.")
    return code_of_explanation(explanation)


def _standing(crib: AnyCrib, name: str) -> Iterator[tuple[str, str]]:
    """How the tool stands before anybody calls it: what to look at when a model does not call it."""
    facts = crib.show_tool(name)
    if facts is None:
        hint = crib.suggest(name) or "list the tools with: crib list"
        yield "registered", f"no, nothing goes by {name[:200]!r}; {hint}"
        return
    place = facts["origin"]
    yield "registered", f"yes, as {facts['address']}" + (f", written in {place}" if place else "")
    yield "exact name", facts["name"]
    yield "enabled", "yes" if facts["enabled"] else f"no: {facts['reason']}; {facts['cure']}"
    yield "offered to models", offer_of(facts)


def _row(finding: Finding) -> tuple[str, ...]:
    facts = finding.to_json()
    facts["verdict"] = facts["decision"]
    return tuple(str(facts.get(column, "")) for column in COLUMNS)
