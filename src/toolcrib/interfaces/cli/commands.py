"""The commands that find, show, explain and call tools."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from toolcrib.features.functions.host_modules import load_file, tools_in
from toolcrib.interfaces.cli import call_command, call_tool, make_call, opener_of
from toolcrib.lib import __version__
from toolcrib.model.bundle import Owner
from toolcrib.model.result import Decision
from toolcrib.toolkit.cli import (
    CALL_OPTIONS,
    EXPLAIN_OPTIONS,
    GRANT,
    JSON,
    RUN_OPTIONS,
    URL,
    Answer,
    ExitCode,
    WrongUseError,
    code_of_explanation,
    complain,
    from_here,
    mention_problems,
    on_one_line,
    read_grants,
    read_line,
    refuse_url,
    say,
    say_json,
    say_text,
)
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.cli.group import (
    CALL_WORDS,
    READS_ITS_OWN_WORDS,
    WordsCommand,
    answers,
    complete_tool,
    example,
    json_option,
    pass_opener,
    project_option,
    url_option,
)
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.cli.tool_tables import (
    describe,
    offer_of,
    parameter_rows_of,
    say_tools,
    state_of,
    unknown_tool,
)
from toolcrib.toolkit.tool_facts import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.result import Finding
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import AnyCrib

CALL_HELP = """Call a tool.

\b
key=value    a text, or what the tool's schema asks for: 5, true, [1, 2]
key:=json    any JSON value
key=@file    the text of a file; @- is standard input
"""
# The details of a verdict, in the order in which they are shown, and their maximum width.
DETAILS = ("reason", "rule", "where", "cure", "granted", "note")
PAGE_WIDTH = 80
MAX_TAGS = 50
BUILTIN = Owner.BUILTIN.value


class CallCommand(WordsCommand):
    """A command that makes calls."""

    options = CALL_OPTIONS


class RunCommand(WordsCommand):
    """A command that calls tools of a file."""

    options = RUN_OPTIONS


class ExplainCommand(WordsCommand):
    """A command that explains calls."""

    options = EXPLAIN_OPTIONS


@click.command("list", epilog=example("crib list --tag money"))
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only tools with this tag; repeatable.")
@click.option(
    "--executors", is_flag=True, help="The platform's own primitives and runtimes instead, which execute tools."
)
@project_option
@url_option
@json_option
@pass_opener
def list_(opener: Opener[Crib], tags: tuple[str, ...], *, url: str | None, executors: bool, as_json: bool) -> int:
    """List the tools."""
    with opener.open_any(url) as crib, working("reading the tools"):
        return list_tools(crib, as_json=as_json, tags=tags, executors=executors)


@click.command("show", epilog=example("crib show count_words"))
@click.argument("name", shell_complete=complete_tool)
@project_option
@url_option
@json_option
@pass_opener
def show(opener: Opener[Crib], name: str, *, url: str | None, as_json: bool) -> int:
    """Show everything about a tool."""
    with opener.open_any(url) as crib:
        return show_tool(crib, name, as_json=as_json)


@click.command(
    "call",
    cls=CallCommand,
    help=CALL_HELP,
    context_settings=READS_ITS_OWN_WORDS,
    epilog=example("crib call count_words text='the cat and the hat' top=2"),
)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@pass_opener
def call(opener: Opener[Crib], words: tuple[str, ...]) -> int:
    """Call a tool."""
    return call_command(words, opener)


@click.command(
    "explain", cls=ExplainCommand, context_settings=READS_ITS_OWN_WORDS, epilog=example("crib explain shell command=ls")
)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@pass_opener
def explain(opener: Opener[Crib], words: tuple[str, ...]) -> int:
    """Explain why a call would run or not.

    Every gate judges the call, and nothing runs; shown are the gates that object. The exit code is that of the call.
    """
    return explain_command(words, opener)


@click.command(
    "run",
    cls=RunCommand,
    context_settings=READS_ITS_OWN_WORDS,
    epilog=example("crib run tools/count_words.py count_words text='a b a'"),
)
@click.argument("words", nargs=-1, metavar=f"FILE [{CALL_WORDS}]", type=click.UNPROCESSED)
@pass_opener
def run_file(opener: Opener[Crib], words: tuple[str, ...]) -> int:
    """List or call the tools of a Python file.

    The file runs as code of your own, outside the sandbox.
    """
    return run_command(words, opener)


@click.command("result", epilog=example("crib result r_8f3a --offset 4000"))
@click.argument("handle")
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, show_default=True, help="The first character to print."
)
@click.option("--length", type=click.IntRange(min=1), default=None, help="How many characters; without it all of them.")
@project_option
@url_option
@answers("handle", "text", "offset", "next", "total")
@pass_opener
def result(opener: Opener[Crib], handle: str, *, url: str | None, offset: int, length: int | None) -> Answer:
    """Print the rest of a large result."""
    with opener.open_any(url) as crib:
        piece = crib.read_result(handle, offset=offset, length=length or sys.maxsize)
    say_text(piece.text)
    if piece.next is not None:
        complain(f"characters left: {piece.total - piece.next}; continue with --offset {piece.next}")
    facts = {"handle": handle, "text": piece.text, "offset": offset, "next": piece.next, "total": piece.total}
    return Answer(facts)


@click.command("version", epilog=example("crib version --json"))
@json_option
def version(*, as_json: bool) -> int:
    """Print the version."""
    if as_json:
        say_json({"version": __version__})
    else:
        say(__version__)
    return ExitCode.DONE


def list_tools(crib: AnyCrib, *, as_json: bool, tags: Sequence[str] = (), executors: bool = False) -> ExitCode:
    """`crib list [--tag TAG…]`: print the tools that have all of the tags; or the executors instead."""
    # The user's own tools come first; the sort is stable.
    tools = sorted(crib.list_tools(tags=tags, executors=executors), key=lambda facts: facts["bundle"] == BUILTIN)
    if as_json:
        say_json(tools)
    elif tags and not tools:
        known = sorted(crib.tags)
        named = f"{', '.join(known[:MAX_TAGS])}{', …' if len(known) > MAX_TAGS else ''}"
        complain(f"no tool has the tag {' and '.join(tags)}; tags are {named or 'not used here'}")
    else:
        say_tools(tools)
    mention_problems(crib)
    return ExitCode.DONE


def show_tool(crib: AnyCrib, name: str, *, as_json: bool) -> ExitCode:
    """`crib show NAME`."""
    facts = crib.show_tool(name)
    if facts is None:
        raise unknown_tool(crib, name)
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


def explain_command(words: Sequence[str], opener: Opener[Crib]) -> ExitCode:
    """`crib explain NAME key=value …`: ends as the call would."""
    line = read_line(words, EXPLAIN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a tool: crib explain NAME key=value …; list the tools with: crib list")
    grants = read_grants(line.all(GRANT.name), line.words[0])
    with opener_of(line, opener).open_any(line.last(URL.name), grants=grants) as crib:
        explanation = crib.explain(make_call(crib, line, line.words))
        standing = dict(_standing(crib, line.words[0]))
    if line.has("--json"):
        say_json({"standing": standing, **explanation.to_json()})
        return code_of_explanation(explanation)
    for name, text in standing.items():
        say(_wrap(f"{name}: {text}"))
    say("")
    for finding in explanation.findings:
        if line.has("--all") or _objects(finding) or finding.note or finding.granted:
            _say_finding(finding)
    refusal = explanation.refusal
    say("The call would run." if refusal is None else f"The call would be refused by the gate {refusal.gate}.")
    return code_of_explanation(explanation)


def _objects(finding: Finding) -> bool:
    return finding.verdict is not None and finding.verdict.decision is not Decision.ALLOW


def _say_finding(finding: Finding) -> None:
    """Print one gate with its verdict, and below it the details."""
    facts = finding.to_json()
    say(f"{finding.gate:<13} {facts['decision']}")
    for name in DETAILS:
        if text := facts.get(name):
            say(_wrap(f"{name}: {from_here(str(text))}", indent="  "))
    if _objects(finding):
        say("")


def _wrap(text: str, indent: str = "") -> str:
    """Wrap the text for a narrow terminal; a path or command is not broken."""
    return fill(
        on_one_line(text),
        PAGE_WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _standing(crib: AnyCrib, name: str) -> Iterator[tuple[str, str]]:
    """Facts that explain why a model does not call the tool: registered, enabled, offered."""
    facts = crib.show_tool(name)
    if facts is None:
        hint = crib.suggest(name) or "list the tools with: crib list"
        yield "registered", f"no, there is no tool {name[:200]!r}; {hint}"
        return
    place = facts["origin"]
    yield "registered", f"yes, as {facts['address']}" + (f", written in {place}" if place else "")
    yield "exact name", facts["name"]
    yield "enabled", "yes" if facts["enabled"] else f"no: {facts['reason']}; {facts['cure']}"
    yield "offered to models", offer_of(facts)


def run_command(words: Sequence[str], opener: Opener[Crib]) -> ExitCode:
    """`crib run FILE [NAME key=value …]`."""
    refuse_url(words, "crib run")
    line = read_line(words, RUN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a file: crib run FILE [NAME key=value …]")
    file, *call = line.words
    if not Path(file).is_file():
        raise WrongUseError(f"{file} is not a file; name a Python file that holds tools")
    tools, problems = tools_in(load_file(Path(file)))
    for problem in problems:
        complain(problem.message)
    opener = opener_of(line, opener)
    if call:
        return call_tool(line, call, lambda grants: opener.open_calling(None, grants=grants, tools=tools))
    grants = read_grants(line.all(GRANT.name), *(tool.name for tool in tools))
    with opener.open_local(grants=grants, tools=tools) as crib:
        addresses = {tool.address for tool in tools}
        found = [facts_of() for address, facts_of in listed(crib) if address in addresses]
    if line.has(JSON.name):
        say_json(found)
    else:
        say_tools(found)
    return ExitCode.FAILED if problems else ExitCode.DONE
