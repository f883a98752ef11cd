"""The commands about tools that are missing: ask for one, follow it, deliver it, build it."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from toolcrib.features.requests.document.extensions import HOST_CURE, is_host_pattern
from toolcrib.features.requests.terminal import meant_by, read_file, spell_allowance
from toolcrib.interfaces.cli.open_crib import open_crib, open_keeping
from toolcrib.lib.names import is_capability
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Allowance, Status
from toolcrib.toolkit.cli.console import (
    ExitCode,
    WrongUseError,
    complain,
    on_one_line,
    require_project,
    say,
    show_warnings,
)
from toolcrib.toolkit.cli.group import json_option, project_option, url_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.crib import Crib
    from toolcrib.features.requests.builder import Builder
    from toolcrib.interfaces.cli.open_crib import OpenCrib
    from toolcrib.model.toolrequest import RecordedAnswer


# MERGED toolcrib.faces.cli.allowing

# `crib request allow ID`: what the operator adds to a request.


def allow_request(
    crib: OpenCrib,
    word: str,
    capabilities: tuple[str, ...],
    hosts: tuple[str, ...],
    answers: str | None,
    *,
    unproved: bool,
    nothing: bool,
) -> ExitCode:
    """Add it, and say what the request has now."""
    is_something = bool(capabilities or hosts or unproved or answers is not None)
    if is_something == nothing:
        options = "--capability, --host, --answers or --unproved"
        raise WrongUseError(f"say what it is allowed: {options}; or take all of that back: --nothing")
    for name in capabilities:
        if not is_capability(name):
            raise WrongUseError(f"--capability: {name!r:.80} is none; write a dotted name, such as net.http")
    for host in hosts:
        if not is_host_pattern(host):
            raise WrongUseError(f"--host: {host!r:.80} is none; {HOST_CURE}")
    allowance = Allowance(
        capabilities=frozenset(capabilities), hosts=hosts, answers=_answers(answers), unproved=unproved
    )
    filed = crib.requests.allow(meant_by(crib, word), allowance)
    say(on_one_line(f"{filed.id} is allowed {spell_allowance(allowance) or 'nothing besides what it says'}"))
    return ExitCode.DONE


def _answers(file: str | None) -> tuple[RecordedAnswer, ...]:
    if file is None:
        return ()
    from toolcrib.features.requests.document.extensions import read_answers

    return read_answers(read_file(file), place=file)


# MERGED toolcrib.faces.cli.making

# `crib builder run`: what is asked for gets built, until somebody says stop.

# Whose warnings an operator wants to see while a Builder runs.
TELLING = ("toolcrib.builder", "toolcrib.queues", "toolcrib.requests")
# How often a queue that is not there yet is asked what there is to say about it.
AGAIN_SECONDS = 1.0


def run_builder(crib: Crib, *, once: bool, maker: str | None) -> ExitCode:
    """Run a Builder in this process."""
    require_project(crib)
    crib.check_settings()
    try:
        with show_warnings(*TELLING):
            return asyncio.run(_run(crib, once=once, maker=maker))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(crib: Crib, *, once: bool, maker: str | None) -> ExitCode:
    async with crib:
        with _stopping() as stop:
            voice = _Voice(stop)
            builder = crib.builder(maker=maker, say=voice)
            try:
                if once:
                    code = await _until_empty(crib, builder, stop)
                else:
                    voice(f"the Builder is here ({maker or crib.settings.builder_maker}); Ctrl-C ends it")
                    code = await _until_told(crib, builder, stop)
            finally:
                await builder.close()
    if voice.problem is not None:
        raise voice.problem
    return code


async def _until_empty(crib: Crib, builder: Builder, stop: asyncio.Event) -> ExitCode:
    """Build what is there, unless told to end."""
    await _remark(crib)
    await builder.reconcile()
    code = ExitCode.DONE
    while not stop.is_set() and (filed := await builder.build_one(stop)) is not None:
        if filed.status is Status.FAILED:
            code = ExitCode.FAILED
    return ExitCode.INTERRUPTED if stop.is_set() else code


async def _until_told(crib: Crib, builder: Builder, stop: asyncio.Event) -> ExitCode:
    """Build whatever comes, also where the queue comes later than the Builder."""
    later = None
    try:
        await _remark(crib)
    except ToolError as problem:
        if problem.kind is not Kind.TRANSIENT:
            raise
        complain(f"the queue is not there yet, and the Builder waits for it: {problem.message}")
        later = asyncio.create_task(_remark_later(crib))
    try:
        await builder.run(stop)
    finally:
        if later is not None:
            later.cancel()
            await asyncio.gather(later, return_exceptions=True)
    return ExitCode.DONE


async def _remark(crib: Crib) -> None:
    """Say what the operator should know about the queue."""
    for remark in await asyncio.to_thread(crib.requests.remarks):
        complain(remark)


async def _remark_later(crib: Crib) -> None:
    while True:
        await asyncio.sleep(AGAIN_SECONDS)
        with suppress(ToolError):  # the Builder itself says what is wrong with the queue
            await _remark(crib)
            return


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """An event that is set when somebody wants the process to end; asked twice, it ends at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def end() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _Voice:
    """Says what happens, in any thread; once nobody can hear it the Builder ends, and no request is failed for that."""

    def __init__(self, stop: asyncio.Event) -> None:
        self.problem: OSError | None = None
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def __call__(self, text: str) -> None:
        if self.problem is not None:
            return
        try:
            say(on_one_line(text))
            # Whoever reads this through a pipe watches it work.
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as problem:
            self.problem = problem
            self._loop.call_soon_threadsafe(self._stop.set)


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
@click.pass_obj
def request_new(
    project: str | None, file: str | None, *, url: str | None, dry_run: bool, strict: bool, as_json: bool
) -> int:
    """File a wish; it gets the next number of the day.

    FILE is the request as YAML; one that has an id keeps it. `-` is standard input. Without FILE you are asked on the
    terminal. A wish that is open already is not built twice.
    """
    from toolcrib.features.requests.terminal import file_wish

    with open_keeping(project, url) as crib:
        return file_wish(crib, file, dry_run=dry_run, strict=strict, as_json=as_json)


@request.command("submit")
@click.argument("file", metavar="FILE")
@strict_option
@project_option
@url_option
@json_option
@click.pass_obj
def request_submit(project: str | None, file: str, *, url: str | None, strict: bool, as_json: bool) -> int:
    """File a request under the id that it has.

    FILE is the request as YAML; `-` is standard input. The same text again is no second request. One without an id is filed by
    `crib request new`.
    """
    from toolcrib.features.requests.terminal import submit_request

    with open_keeping(project, url) as crib:
        return submit_request(crib, file, strict=strict, as_json=as_json)


@request.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many of the newest.")
@project_option
@url_option
@json_option
@click.pass_obj
def request_list(project: str | None, *, url: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """List the requests, the newest last."""
    from toolcrib.features.requests.terminal import list_requests

    with open_keeping(project, url) as crib:
        return list_requests(crib, status, limit=limit, as_json=as_json)


@request.command("show")
@id_argument
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the request as it was written.")
@project_option
@url_option
@json_option
@click.pass_obj
def request_show(project: str | None, request_id: str, *, url: str | None, as_yaml: bool, as_json: bool) -> int:
    """Show a request and what happened to it."""
    from toolcrib.features.requests.terminal import show_request

    with open_keeping(project, url) as crib:
        return show_request(crib, request_id, as_yaml=as_yaml, as_json=as_json)


@request.command("watch")
@id_argument
@project_option
@url_option
@json_option
@click.pass_obj
def request_watch(project: str | None, request_id: str, *, url: str | None, as_json: bool) -> int:
    """Follow a request until it is over.

    Ends with 0 if the tool is ready, else with 1. With --json, every line is an event, and the last one the request.
    """
    from toolcrib.features.requests.terminal import watch_request

    with open_keeping(project, url) as crib:
        return watch_request(crib, request_id, as_json=as_json)


@request.command("deliver")
@id_argument
@click.argument("path", required=False, metavar="[PATH]", type=click.Path(exists=True))
@project_option
@url_option
@json_option
@click.pass_obj
def request_deliver(project: str | None, request_id: str, path: str | None, *, url: str | None, as_json: bool) -> int:
    """Have what you made proved and published.

    PATH is a folder that holds NAME.py, the tool's name, with what it needs beside it; or that file alone. Without PATH it
    is the folder that the Builder laid out for the request. What the gate refuses is named, and you can deliver again.
    """
    from toolcrib.features.requests.terminal import deliver_tool

    with open_keeping(project, url) as crib:
        return deliver_tool(crib, request_id, path, as_json=as_json)


@request.command("cancel")
@id_argument
@click.option("--reason", metavar="TEXT", default="", help="Why, for the history.")
@project_option
@url_option
@click.pass_obj
def request_cancel(project: str | None, request_id: str, *, url: str | None, reason: str) -> int:
    """Say that nobody wants it any more; whoever builds it stops."""
    from toolcrib.features.requests.terminal import cancel_request

    with open_keeping(project, url) as crib:
        return cancel_request(crib, request_id, reason)


@request.command("retry")
@id_argument
@project_option
@url_option
@click.pass_obj
def request_retry(project: str | None, request_id: str, *, url: str | None) -> int:
    """Have one built again that failed or was cancelled."""
    from toolcrib.features.requests.terminal import retry_request

    with open_keeping(project, url) as crib:
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
@click.pass_obj
def request_allow(
    project: str | None,
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
    with open_keeping(project, url) as crib:
        return allow_request(crib, request_id, capabilities, hosts, answers, unproved=unproved, nothing=nothing)


@click.command("experiments")
@project_option
@url_option
@json_option
@click.pass_obj
def experiments(project: str | None, *, url: str | None, as_json: bool) -> int:
    """List what waits for tools, and what waits no more."""
    from toolcrib.features.requests.terminal import list_experiments

    with open_keeping(project, url) as crib:
        return list_experiments(crib, as_json=as_json)


@click.group("builder")
def builder() -> None:
    """Have requested tools made, proved and published."""


@builder.command("run")
@click.option("--once", is_flag=True, help="Build what is asked for now, and end when nothing is left.")
@click.option("--maker", metavar="NAME", help="Who writes the code; without it the setting builder_maker.")
@project_option
@click.pass_obj
def builder_run(project: str | None, *, once: bool, maker: str | None) -> int:
    """Build what is asked for until told to end.

    The setting builder_maker says who writes the code: `person` lays out a workspace and waits for `crib request deliver`,
    `command` starts a program of yours in the sandbox, `openai` asks a model. The gate decides what goes live. A maker that can
    make nothing, as its key or its program is wrong, ends the Builder with 1; with --once, so does a request that failed.
    """
    return run_builder(open_crib(project), once=once, maker=maker)


@click.group("demo")
def demo() -> None:
    """See it work."""


@demo.command("missing-tool")
@click.option("--keep", metavar="DIR", type=click.Path(), help="Leave the project of the demo in this new folder.")
def demo_missing_tool(keep: str | None) -> int:
    """A tool that is missing gets asked for, built, refused, corrected and used.

    Everything is real and nothing is needed: no key, no network, no server.
    """
    from toolcrib.features.requests.demo import show_missing_tool

    return show_missing_tool(keep)
