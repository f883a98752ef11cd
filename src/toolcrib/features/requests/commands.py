"""The commands about tools that are missing: request one, follow it, deliver it, build it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from toolcrib.features.requests.builder_process import run_builder
from toolcrib.features.requests.demo import show_missing_tool
from toolcrib.features.requests.terminal import (
    COLUMNS,
    ask_for_request,
    code_of,
    facts_of,
    find_id,
    lacks_only_its_id,
    next_step,
    package_of,
    place_of,
    read_file,
    row_of,
    show_text,
    spell_allowance,
    tell_end,
    tell_event,
    tell_submitted,
    typed_allowance,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status
from toolcrib.toolkit.cli import (
    Answer,
    ExitCode,
    WrongUseError,
    complain,
    count,
    may_ask,
    on_one_line,
    say,
    say_json,
    say_json_line,
    say_text,
)
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.cli.group import answers, example, json_option, pass_opener, project_option, url_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.requests.builder_process import BuilderCrib
    from toolcrib.features.requests.demo import DemoCrib
    from toolcrib.model.toolrequest import Event, Filed
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import AnyCrib, ProjectCrib

# What is printed of a request as JSON.
REQUEST_KEYS = (
    "id",
    "name",
    "status",
    "priority",
    "experiment",
    "tool",
    "error",
    "mergedInto",
    "owner",
    "held",
    "attempts",
    "requesters",
    "allowance",
    "createdAt",
    "updatedAt",
    "yaml",
)
EXPERIMENT_COLUMNS = ("experiment", "status", "waits for", "requests", "released")
# The number of a request; the name of a tool means the newest request for it.
id_argument = click.argument("request_id", metavar="ID|NAME")
strict_option = click.option("--strict", is_flag=True, help="Refuse what is only readable with warnings.")


def on_queue(command: Callable[..., int | Answer]) -> Callable[..., int | Answer]:
    """Give a command the opener, and the options that name a project or a server."""
    return project_option(url_option(pass_opener(command)))


@click.group("request", epilog=example("crib request new email_validator.yaml"))
def request() -> None:
    """Request a tool that does not exist yet."""


@request.command("new", epilog=example("crib request new email_validator.yaml"))
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--dry-run", is_flag=True, help="Print what would be filed, and file nothing.")
@strict_option
@on_queue
@json_option
def request_new(
    opener: Opener[ProjectCrib], file: str | None, *, url: str | None, dry_run: bool, strict: bool, as_json: bool
) -> int:
    """File a request; it gets the next number of the day.

    FILE is the request as YAML; one that has an id keeps it. `-` is standard input. Without FILE you are asked on the
    terminal. A request that is open already is not built twice.
    """
    with opener.open_durable(url) as crib:
        if file is None and not may_ask():
            raise WrongUseError("there is no terminal to ask on; write: crib request new FILE")
        text = ask_for_request() if file is None else read_file(file)
        place = place_of(file)
        if dry_run:
            return show_text(text, place, strict=strict, as_json=as_json)
        return tell_submitted(crib.requests.new(text, strict=strict or None, place=place), as_json=as_json)


@request.command("submit", epilog=example("crib request submit email_validator.yaml"))
@click.argument("file", metavar="FILE")
@strict_option
@on_queue
@json_option
def request_submit(opener: Opener[ProjectCrib], file: str, *, url: str | None, strict: bool, as_json: bool) -> int:
    """File a request under the id that it has.

    FILE is the request as YAML; `-` is standard input. The same text again is a no-op. One without an id is filed by
    `crib request new`.
    """
    with opener.open_durable(url) as crib:
        text, place = read_file(file), place_of(file)
        if lacks_only_its_id(text):
            raise ToolError(
                Kind.VALIDATION, f"{place}: id: is missing; to have it numbered write: crib request new {file}"
            )
        return tell_submitted(crib.requests.submit(text, strict=strict or None, place=place), as_json=as_json)


@request.command("list", epilog=example("crib request list --status pending"))
@click.option("--status", type=click.Choice(tuple(map(str, Status))), help="Only these.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many of the newest.")
@on_queue
@json_option
def request_list(opener: Opener[ProjectCrib], *, url: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """List the requests, the newest last."""
    with opener.open_durable(url) as crib:
        found = crib.requests.list(None if status is None else Status(status), limit=limit)
        if as_json:
            say_json([filed.to_json() for filed in found])
        elif found:
            say_table(COLUMNS, [row_of(filed) for filed in found])
        else:
            say("there are no such requests; make one with: crib request new")
        return ExitCode.DONE


@request.command("show", epilog=example("crib request show email_validator --yaml"))
@id_argument
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the request as it was written.")
@on_queue
@json_option
def request_show(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, as_yaml: bool, as_json: bool) -> int:
    """Show a request and what happened to it."""
    with opener.open_durable(url) as crib:
        request_id = find_id(crib.requests, request_id)
        filed = crib.requests.show(request_id)
        events = crib.requests.history(request_id)
        if as_json:
            say_json({**filed.to_json(), "history": [event.to_json() for event in events]})
            return ExitCode.DONE
        if as_yaml:
            say_text(filed.text.rstrip("\n"))
            return ExitCode.DONE
        say_facts(facts_of(filed))
        for event in events:
            tell_event(event)
        if hint := next_step(filed):
            say(hint)
        return ExitCode.DONE


@request.command("watch", epilog=example("crib request watch email_validator"))
@id_argument
@on_queue
@json_option
def request_watch(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, as_json: bool) -> int:
    """Follow a request until it is over.

    Ends with 0 if the tool is ready, else with 1. With --json, every line is an event, and the last one the request.
    """

    def report(event: Event) -> None:
        if as_json:
            say_json_line(event.to_json())
        else:
            tell_event(event)
        # Output to a pipe is buffered otherwise.
        if sys.stdout is not None:
            sys.stdout.flush()

    with opener.open_durable(url) as crib:
        filed = _follow(crib, find_id(crib.requests, request_id), report)
        if not as_json:
            return tell_end(filed, as_json=False)
        say_json_line(filed.to_json())
        return code_of(filed)


def _follow(crib: AnyCrib, request_id: str, report: Callable[[Event], None]) -> Filed:
    """Report what happens to a request until it is over."""

    async def listen() -> None:
        async for event in crib.requests.watch(request_id):
            report(event)

    crib.run_sync(listen())
    return crib.requests.show(request_id)


@request.command("deliver", epilog=example("crib request deliver email_validator"))
@id_argument
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(exists=True))
@on_queue
@json_option
def request_deliver(
    opener: Opener[ProjectCrib], request_id: str, path: str | None, *, url: str | None, as_json: bool
) -> int:
    """Prove and publish what you made.

    PATH is a folder that holds NAME.py, the tool's name, with what it needs beside it; or that file alone. Without PATH it
    is the folder that the Builder laid out for the request. Complaints of the gate are printed, and you can deliver again.
    """
    with opener.open_durable(url) as crib:
        request_id = find_id(crib.requests, request_id)
        report = (lambda _: None) if as_json else (lambda text: complain(on_one_line(text)))
        try:
            package = package_of(crib.requests, request_id, path)
            filed = crib.run_sync(crib.requests.deliver(request_id, package, report))
        except ToolError as problem:
            complaints = problem.details.get("complaints")
            if problem.kind is not Kind.VALIDATION or not isinstance(complaints, list):
                raise
            if as_json:
                say_json({"id": request_id, "delivered": False, "complaints": complaints})
            for text in complaints:
                complain(str(text))
            complain(f"not delivered: {count(len(complaints), 'complaint')}; put it right and deliver it again")
            return ExitCode.FAILED
        return tell_end(filed, as_json=as_json)


@request.command("cancel", epilog=example("crib request cancel email_validator --reason 'found one'"))
@id_argument
@click.option("--reason", metavar="TEXT", default="", help="Why, for the history.")
@on_queue
@answers(*REQUEST_KEYS)
def request_cancel(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, reason: str) -> Answer:
    """Cancel a request; a builder that works on it stops."""
    with opener.open_durable(url) as crib:
        filed = crib.requests.cancel(find_id(crib.requests, request_id), reason)
    say(on_one_line(f"{filed.id} is {filed.status}"))
    return Answer(filed.to_json())


@request.command("retry", epilog=example("crib request retry email_validator"))
@id_argument
@on_queue
@answers(*REQUEST_KEYS)
def request_retry(opener: Opener[ProjectCrib], request_id: str, *, url: str | None) -> Answer:
    """Have a failed or cancelled request built again."""
    with opener.open_durable(url) as crib:
        filed = crib.requests.retry(find_id(crib.requests, request_id))
    say(on_one_line(f"{filed.id} is {filed.status}"))
    return Answer(filed.to_json())


@request.command("allow", epilog=example("crib request allow email_validator --capability net.http --host a.example"))
@id_argument
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="What its tool may use; repeatable.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Where its tool may connect; repeatable.")
@click.option("--answers", metavar="FILE", help="Recorded answers of web servers to prove it with, as YAML or JSON.")
@click.option("--unproved", is_flag=True, help="Let it go live although nothing recorded proves its network.")
@click.option("--nothing", is_flag=True, help="Revoke everything that was added.")
@on_queue
@answers(*REQUEST_KEYS)
def request_allow(
    opener: Opener[ProjectCrib],
    request_id: str,
    *,
    url: str | None,
    capabilities: tuple[str, ...],
    hosts: tuple[str, ...],
    answers: str | None,
    unproved: bool,
    nothing: bool,
) -> Answer:
    """Add to a request what only the operator can: capabilities, hosts, recorded answers.

    What was added before is replaced.
    """
    with opener.open_durable(url) as crib:
        if bool(capabilities or hosts or unproved or answers is not None) == nothing:
            options = "--capability, --host, --answers or --unproved"
            raise WrongUseError(f"say what it is allowed: {options}; or revoke all of it: --nothing")
        allowance = typed_allowance(capabilities, hosts, answers, unproved=unproved)
        filed = crib.requests.allow(find_id(crib.requests, request_id), allowance)
    say(on_one_line(f"{filed.id} is allowed {spell_allowance(allowance) or 'nothing besides what it says'}"))
    return Answer(filed.to_json())


@click.command("experiments", epilog=example("crib experiments --json"))
@on_queue
@json_option
def experiments(opener: Opener[ProjectCrib], *, url: str | None, as_json: bool) -> int:
    """List the experiments that wait or waited for a tool."""
    with opener.open_durable(url) as crib:
        found = crib.requests.experiments()
        if as_json:
            say_json([experiment.to_json() for experiment in found])
            return ExitCode.DONE
        if not found:
            say("nothing waits for a tool")
            return ExitCode.DONE
        rows = [
            (
                one.id,
                "ready" if one.ready else "blocked",
                ", ".join(one.waits_for),
                ", ".join(one.requests),
                one.released_at,
            )
            for one in found
        ]
        say_table(EXPERIMENT_COLUMNS, rows)
        return ExitCode.DONE


@click.group("builder", epilog=example("crib builder run --once"))
def builder() -> None:
    """Have requested tools made, proved and published."""


@builder.command("run", epilog=example("crib builder run --once --maker command"))
@click.option("--once", is_flag=True, help="Build the open requests, and end when none is left.")
@click.option("--maker", metavar="NAME", help="What writes the code; default: the setting builder.maker.")
@project_option
@answers("requests")
@pass_opener
def builder_run(opener: Opener[BuilderCrib], *, once: bool, maker: str | None) -> Answer:
    """Build requests until told to stop.

    The setting builder.maker says what writes the code: `person` lays out a workspace and waits for `crib request deliver`,
    `command` starts a program of yours in the sandbox, `openai` asks a model. The gate decides what goes live. A maker that
    cannot work, because its key or its program is wrong, ends the Builder with 1; with --once, so does a failed request.
    With --json progress is printed on standard error, and at the end the requests that were built on standard output.
    """
    return run_builder(opener.open_local(), once=once, maker=maker)


@click.group("demo", epilog=example("crib demo missing-tool"))
def demo() -> None:
    """See it work."""


@demo.command("missing-tool", epilog=example("crib demo missing-tool --keep demo"))
@click.option("--keep", metavar="DIR", type=click.Path(), help="Leave the project of the demo in this new folder.")
@answers("steps", "value", "seconds")
@pass_opener
def demo_missing_tool(opener: Opener[DemoCrib], keep: str | None) -> Answer:
    """A tool that is missing gets asked for, built, refused, corrected and used.

    Everything is real and nothing is needed: no key, no network, no server.
    """
    return show_missing_tool(keep, lambda folder: opener.open_folder(folder, caller="demo"))
