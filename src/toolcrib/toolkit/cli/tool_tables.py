"""Print tools: rows of tables and lines of facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.lib.schema_structure import properties_of, types_of
from toolcrib.model.errors import Kind
from toolcrib.toolkit.cli import CommandError, ExitCode, complain, problems_mentioned, say
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.tool_facts import NOT_BUILT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.toolkit.client_protocol import Suggesting
    from toolcrib.toolkit.tool_facts import Facts

COLUMNS = ("name", "state", "bundle", "kind", "requires", "description")
FOUND_COLUMNS = ("name", "found by", "bundle", "description")
NOTHING = "-"
SHORT_LINES = 5
MAX_REFUSED = 10
NO_GRANT = "no grant"


def say_tools(tools: Iterable[Facts]) -> None:
    """Print the table of tools, and below it those that lack a grant, each with the line that grants it."""
    shown = list(tools)
    if not shown:
        complain("there are no tools here; make the first one with: crib init")
        return
    say_table(COLUMNS, [row_of(facts) for facts in shown])
    refused = [facts for facts in shown if facts["enabled"] and facts["missingGrants"] and not facts["shadowedBy"]]
    if refused:
        say("")
        say("not offered to models:")
        say_facts([(facts["name"], facts["models"]["reason"]) for facts in refused[:MAX_REFUSED]])
    if len(refused) > MAX_REFUSED:
        say(f"and {len(refused) - MAX_REFUSED} more; crib show NAME says why")


def unknown_tool(crib: Suggesting, name: str) -> CommandError:
    """The error for an unknown tool, with a suggestion."""
    hint = crib.suggest(name) or "list the tools with: crib list"
    cure = "\n".join([hint, *problems_mentioned(crib)])
    return CommandError(Kind.NOT_FOUND, f"Tool {name[:200]!r} not found", cure=cure, code=ExitCode.UNKNOWN_TOOL)


def row_of(facts: Facts) -> tuple[str, ...]:
    """The row of a tool in a list."""
    if "built" in facts:
        reason = facts["reason"].removeprefix(f"{NOT_BUILT}: ")
        about = f"{facts['origin']}: {reason}; {facts['cure']}"
        return (facts["name"], NOT_BUILT, facts["bundle"], facts["kind"], NOTHING, about)
    grant = NO_GRANT if facts["missingGrants"] else ""
    state = ["on" if facts["enabled"] else "off", *facts["marks"], _shadow(facts), grant]
    return (
        # The name of a shadowed tool would call another one.
        facts["address"] if facts["shadowedBy"] else facts["name"],
        _list(filter(None, state)),
        facts["bundle"],
        facts["kind"],
        _list(facts["requires"]) or NOTHING,
        _first_line(facts["description"]),
    )


def found_row_of(facts: Facts, *, meant: str) -> tuple[str, ...]:
    """A row of a search result; `meant` is the address of the tool that its bare name calls."""
    name = facts["name"] if meant == facts["address"] else facts["address"]
    return (name, facts["foundBy"], facts["bundle"], _first_line(facts["description"]))


def state_of(facts: Facts) -> str:
    """Whether a tool can be called, and why not."""
    marks = _list(["on" if facts["enabled"] else "off", *facts["marks"]])
    return marks if facts["enabled"] else f"{marks}: {facts['reason']}; {facts['cure']}"


def offer_of(facts: Facts) -> str:
    """Whether and how models see a tool."""
    offer = facts["models"]
    if offer["reason"]:
        return f"no: {offer['reason']}"
    return f"yes, as {offer['as']}, in {' and '.join(offer['modes'])} mode"


def parameter_rows_of(facts: Facts) -> Iterator[tuple[str, ...]]:
    """The rows of a table of a tool's parameters."""
    parameters = facts["parameters"]
    required = parameters.get("required")
    names = required if isinstance(required, list) else []
    for name, schema in properties_of(parameters).items():
        default = "required" if name in names else NOTHING
        if "default" in schema:
            default = _text(schema["default"])
        yield name, _describe_type(schema, parameters), default, str(schema.get("description", ""))


def describe(facts: Facts) -> Iterator[tuple[str, str]]:
    """Facts besides name, description, state and parameters; an unknown fact is empty."""
    output = facts["output"]
    yield "returns", "anything" if output is None else _describe_type(output, output)
    missing = facts["missingGrants"]
    yield "requires", (_list(facts["requires"]) or "nothing") + (f" (not granted: {_list(missing)})" if missing else "")
    yield "behaviour", facts["behaviour"] or ""
    yield "side effects", facts["sideEffects"] or "not declared"
    yield "confirmation", "needed" if facts["requiresConfirmation"] else "not needed"
    yield "limits", facts["limits"]
    yield "tried", facts["tried"]
    yield "costs", "" if facts["cost"] is None else _price(facts["cost"])
    yield "offered to models", offer_of(facts)
    yield "address", facts["address"]
    yield "shadows", _list(facts["shadows"])
    yield "shadowed by", facts["shadowedBy"] or ""
    yield "category", facts["category"]
    yield "tags", _list(facts["tags"])
    yield "runs as", facts["kind"]
    yield "summary", facts["summary"]
    yield from _describe_run(facts)
    yield "documentation", _documentation(facts)
    yield from _describe_more(facts)


def _describe_run(facts: Facts) -> Iterator[tuple[str, str]]:
    if "handler" in facts:
        yield "handler", f"{facts['handler']} ({facts['language']})"
        yield "reaches", _reach(facts["hosts"])
        yield "registry", facts["registry"]
    if "statement" in facts:
        yield "database", facts["database"]
        yield "statement", " ".join(facts["statement"].split())
    if "toolType" in facts:
        yield "type", facts["toolType"]
        yield "executor", facts["executor"] or "none"
        yield "action", facts["action"] or ""
        yield "reaches", _reach(facts["hosts"])
        yield "config", _text(facts["config"]) if facts["config"] else ""


def _describe_more(facts: Facts) -> Iterator[tuple[str, str]]:
    failing = facts["failingExamples"]
    for example in facts["examples"]:
        yield "example", _text(example) + (" (fails; models are not shown it)" if example in failing else "")
    for name, value in facts["metadata"].items():
        # Not under its own name, which could be that of another line.
        yield "metadata", f"{name}: {value if isinstance(value, str) else _text(value)}"
    yield "written in", facts["origin"]
    yield "content", facts["contentHash"]
    for warning in facts["warnings"]:
        yield "warning", warning


def _documentation(facts: Facts) -> str:
    """The text if it is short, else how to read it."""
    text: str = facts["documentation"]
    lines = text.strip().count("\n") + 1
    return text if lines <= SHORT_LINES else f"{lines} lines; read it with: crib doc {facts['name']}"


def _price(cost: Facts) -> str:
    """The price; the estimate is for a call of the duration that the author expects."""
    currency = cost["currency"]
    parts = [
        f"{amount:g} {currency} a {unit}"
        for amount, unit in ((cost["per_invocation"], "call"), (cost["per_minute"], "minute"))
        if amount
    ]
    seconds = cost["estimated_duration"]
    estimate = f"about {cost['estimate']:g} {currency} for a call of {seconds:g} s"
    return "; ".join([" and ".join(parts) or "nothing", estimate] if seconds else parts or ["nothing"])


def _shadow(facts: Facts) -> str:
    if facts["shadowedBy"]:
        return f"shadowed by {facts['shadowedBy']}"
    return f"shadows {_list(facts['shadows'])}" if facts["shadows"] else ""


def _reach(hosts: list[str] | None) -> str:
    return "" if hosts is None else _list(hosts) or "no host"


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _describe_type(schema: Mapping[str, object], root: Mapping[str, object]) -> str:
    """The type in a few words."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "one of " + ", ".join(map(str, choices))
    types = types_of(schema, root)
    words = " or ".join(sorted(types - {"null"})) or "anything"
    items = schema.get("items")
    if types == {"array"} and isinstance(items, dict):
        words = f"array of {_describe_type(items, root)}"
    return f"{words} or null" if "null" in types else words
