"""`crib list` and `crib show`: which tools there are, and everything about one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.describing import COLUMNS, describe, parameter_rows_of, row_of, state_of
from toolcrib.faces.cli.opening import mention_problems
from toolcrib.faces.cli.printing import complain, say, say_facts, say_json, say_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcrib.crib.anywhere import AnyCrib, Suggesting
    from toolcrib.crib.facts import Facts


def list_tools(crib: AnyCrib, *, as_json: bool, tags: Sequence[str] = (), executors: bool = False) -> ExitCode:
    """`crib list [--tag TAG…]`: all tools, or those with every one of the tags; or what executes them."""
    tools = crib.list_tools(tags=tags, executors=executors)
    if as_json:
        say_json(tools)
    elif tags and not tools:
        known = sorted({tag for facts in crib.list_tools() for tag in facts["tags"]})
        complain(f"no tool has the tag {' and '.join(tags)}; tags are {', '.join(known) or 'not used here'}")
    else:
        say_tools(tools)
    mention_problems(crib)
    return ExitCode.DONE


def say_tools(tools: Iterable[Facts]) -> None:
    """The table of tools."""
    rows = [row_of(facts) for facts in tools]
    if rows:
        say_table(COLUMNS, rows)
    else:
        complain("there are no tools here; make the first one with: crib init")


def show_tool(crib: AnyCrib, name: str, *, as_json: bool) -> ExitCode:
    """`crib show NAME`."""
    facts = crib.show_tool(name)
    if facts is None:
        return complain_unknown(crib, name)
    if as_json:
        say_json(facts)
        return ExitCode.DONE
    say_facts([("tool", facts["name"]), ("does", facts["description"]), ("state", state_of(facts))])
    say("")
    rows = list(parameter_rows_of(facts))
    if rows:
        say_table(("parameter", "type", "default", "description"), rows)
    else:
        say("It takes no parameters.")
    say("")
    say_facts(describe(facts))
    return ExitCode.DONE


def complain_unknown(crib: Suggesting, name: str) -> ExitCode:
    """Say that there is no such tool, and what was perhaps meant."""
    hint = crib.suggest(name) or "list the tools with: crib list"
    complain(f"Tool {name[:200]!r} not found; {hint}")
    mention_problems(crib)
    return ExitCode.UNKNOWN_TOOL
