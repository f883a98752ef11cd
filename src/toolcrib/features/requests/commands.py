"""The commands about tools that are missing: request one, follow it, deliver it, build it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolcrib.features.requests.builder_process import run_builder
from toolcrib.features.requests.demo import show_missing_tool
from toolcrib.features.requests.terminal import (
    allow_request,
    cancel_request,
    deliver_tool,
    file_wish,
    list_experiments,
    list_requests,
    retry_request,
    show_request,
    submit_request,
    watch_request,
)
from toolcrib.toolkit.cli.group import json_option, pass_opener, project_option, url_option

if TYPE_CHECKING:
    from toolcrib.core.client_protocol import ProjectCrib
    from toolcrib.features.requests.builder_process import BuilderCrib
    from toolcrib.features.requests.demo import DemoCrib
    from toolcrib.toolkit.cli.opener import Opener

STATUSES = ("pending", "building", "ready", "failed", "cancelled")
# The number of a request; the name of a tool means the newest request for it.
id_argument = click.argument("request_id", metavar="ID|NAME")
strict_option = click.option("--strict", is_flag=True, help="Refuse what is only readable with warnings.")


@click.group("request")
def request() -> None:
    """Ask for a tool that does not exist yet."""


@request.command("new")
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--dry-run", is_flag=True, help="Print what would be filed, and file nothing.")
@strict_option
@project_option
@url_option
@json_option
@pass_opener
def request_new(
    opener: Opener[ProjectCrib], file: str | None, *, url: str | None, dry_run: bool, strict: bool, as_json: bool
) -> int:
    """File a wish; it gets the next number of the day.

    FILE is the request as YAML; one that has an id keeps it. `-` is standard input. Without FILE you are asked on the
    terminal. A wish that is open already is not built twice.
    """
    with opener.open_durable(url) as crib:
        return file_wish(crib, file, dry_run=dry_run, strict=strict, as_json=as_json)


@request.command("submit")
@click.argument("file", metavar="FILE")
@strict_option
@project_option
@url_option
@json_option
@pass_opener
def request_submit(opener: Opener[ProjectCrib], file: str, *, url: str | None, strict: bool, as_json: bool) -> int:
    """File a request under the id that it has.

    FILE is the request as YAML; `-` is standard input. The same text again is no second request. One without an id is filed by
    `crib request new`.
    """
    with opener.open_durable(url) as crib:
        return submit_request(crib, file, strict=strict, as_json=as_json)


@request.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many of the newest.")
@project_option
@url_option
@json_option
@pass_opener
def request_list(opener: Opener[ProjectCrib], *, url: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """List the requests, the newest last."""
    with opener.open_durable(url) as crib:
        return list_requests(crib, status, limit=limit, as_json=as_json)


@request.command("show")
@id_argument
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the request as it was written.")
@project_option
@url_option
@json_option
@pass_opener
def request_show(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, as_yaml: bool, as_json: bool) -> int:
    """Show a request and what happened to it."""
    with opener.open_durable(url) as crib:
        return show_request(crib, request_id, as_yaml=as_yaml, as_json=as_json)


@request.command("watch")
@id_argument
@project_option
@url_option
@json_option
@pass_opener
def request_watch(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, as_json: bool) -> int:
    """Follow a request until it is over.

    Ends with 0 if the tool is ready, else with 1. With --json, every line is an event, and the last one the request.
    """
    with opener.open_durable(url) as crib:
        return watch_request(crib, request_id, as_json=as_json)


@request.command("deliver")
@id_argument
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(exists=True))
@project_option
@url_option
@json_option
@pass_opener
def request_deliver(
    opener: Opener[ProjectCrib], request_id: str, path: str | None, *, url: str | None, as_json: bool
) -> int:
    """Have what you made proved and published.

    PATH is a folder that holds NAME.py, the tool's name, with what it needs beside it; or that file alone. Without PATH it
    is the folder that the Builder laid out for the request. What the gate refuses is named, and you can deliver again.
    """
    with opener.open_durable(url) as crib:
        return deliver_tool(crib, request_id, path, as_json=as_json)


@request.command("cancel")
@id_argument
@click.option("--reason", metavar="TEXT", default="", help="Why, for the history.")
@project_option
@url_option
@pass_opener
def request_cancel(opener: Opener[ProjectCrib], request_id: str, *, url: str | None, reason: str) -> int:
    """Say that nobody wants it any more; whoever builds it stops."""
    with opener.open_durable(url) as crib:
        return cancel_request(crib, request_id, reason)


@request.command("retry")
@id_argument
@project_option
@url_option
@pass_opener
def request_retry(opener: Opener[ProjectCrib], request_id: str, *, url: str | None) -> int:
    """Have one built again that failed or was cancelled."""
    with opener.open_durable(url) as crib:
        return retry_request(crib, request_id)


@request.command("allow")
@id_argument
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="What its tool may use; repeatable.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Where its tool may connect; repeatable.")
@click.option("--answers", metavar="FILE", help="Recorded answers of web servers to prove it with, as YAML or JSON.")
@click.option("--unproved", is_flag=True, help="Let it go live although nothing recorded proves its network.")
@click.option("--nothing", is_flag=True, help="Take back all that was added.")
@project_option
@url_option
@pass_opener
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
) -> int:
    """Add to a request what only the operator can: capabilities, hosts, recorded answers.

    What was added before is replaced.
    """
    with opener.open_durable(url) as crib:
        return allow_request(crib, request_id, capabilities, hosts, answers, unproved=unproved, nothing=nothing)


@click.command("experiments")
@project_option
@url_option
@json_option
@pass_opener
def experiments(opener: Opener[ProjectCrib], *, url: str | None, as_json: bool) -> int:
    """List what waits for tools, and what waits no more."""
    with opener.open_durable(url) as crib:
        return list_experiments(crib, as_json=as_json)


@click.group("builder")
def builder() -> None:
    """Have requested tools made, proved and published."""


@builder.command("run")
@click.option("--once", is_flag=True, help="Build what is asked for now, and end when nothing is left.")
@click.option("--maker", metavar="NAME", help="Who writes the code; without it the setting builder_maker.")
@project_option
@pass_opener
def builder_run(opener: Opener[BuilderCrib], *, once: bool, maker: str | None) -> int:
    """Build what is asked for until told to end.

    The setting builder_maker says who writes the code: `person` lays out a workspace and waits for `crib request deliver`,
    `command` starts a program of yours in the sandbox, `openai` asks a model. The gate decides what goes live. A maker that can
    make nothing, as its key or its program is wrong, ends the Builder with 1; with --once, so does a request that failed.
    """
    return run_builder(opener.open_local(), once=once, maker=maker)


@click.group("demo")
def demo() -> None:
    """See it work."""


@demo.command("missing-tool")
@click.option("--keep", metavar="DIR", type=click.Path(), help="Leave the project of the demo in this new folder.")
@pass_opener
def demo_missing_tool(opener: Opener[DemoCrib], keep: str | None) -> int:
    """A tool that is missing gets asked for, built, refused, corrected and used.

    Everything is real and nothing is needed: no key, no network, no server.
    """
    return show_missing_tool(keep, lambda folder: opener.open_folder(folder, caller="demo"))
