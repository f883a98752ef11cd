"""`crib audit`: show, export and verify the audit trail."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.toolkit.cli import ExitCode, WrongUseError, say, say_json
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.group import example, json_option, pass_opener, project_option, url_option
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from toolcrib.features.audit.log import AuditLog
    from toolcrib.toolkit.cli.group import Opener

COLUMNS = ("number", "time", "actor", "name", "what", "about", "why")
LIST, EXPORT, VERIFY = "list", "export", "verify"
SHOWN_EVENTS = 50


class AuditCrib(ProjectCrib, Protocol):
    """What the command uses of a local crib."""

    @property
    def audit(self) -> AuditLog:
        """The audit trail."""


@click.command("audit", epilog=example("crib audit --what tool --since 2026-11-01", "crib audit verify"))
@click.argument("action", type=click.Choice((LIST, EXPORT, VERIFY)), default=LIST)
@click.option("--since", metavar="TIME", default="", help="Only since this date or time.")
@click.option("--actor", metavar="NAME", default="", help="Only of this actor, by id or name.")
@click.option("--what", metavar="WORD", default="", help="Only of a kind such as tool or call.approved, or about this.")
@click.option("-n", "--lines", type=click.IntRange(0), default=SHOWN_EVENTS, show_default=True, help="How many events.")
@click.option("--head", metavar="NUMBER:HASH", default="", help="With verify: a head that was printed earlier.")
@project_option
@url_option
@json_option
@pass_opener
def audit(
    opener: Opener[AuditCrib],
    /,
    action: str,
    *,
    lines: int,
    head: str,
    url: str | None,
    as_json: bool,
    **filters: str,
) -> int:
    """Show, export and verify who decided and changed what.

    Lists the newest events. `export` prints every line of the trail as it is. `verify` checks the chain of their hashes and prints its head; keep that on
    another machine, and give it to --head later.
    """
    if action == LIST:
        with opener.open_durable(url) as crib:
            found = list(islice(crib.audit.events(**filters), lines))[::-1]
        if as_json:
            say_json(found)
        else:
            say_table(COLUMNS, [[str(event[name]) for name in COLUMNS] for event in found])
        return ExitCode.DONE
    if url:
        raise WrongUseError(
            f"{action} reads the files of the trail; run it on the machine of the server, without --url"
        )
    with opener.open_local() as local:
        if action == EXPORT:
            for line in local.audit.lines():
                say(line.decode("utf-8", "replace"))
            return ExitCode.DONE
        end = local.audit.verify(head)
    if as_json:
        say_json({"head": end})
    else:
        say(f"no event was changed or removed; the head is {end}")
    return ExitCode.DONE
