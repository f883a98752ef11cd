"""`crib page`: print a link that signs a person in to the web page of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolcrib.features.access.sign_in import LINK_SECONDS, running_server, sign_in_link
from toolcrib.toolkit.cli import Answer, complain, require_project, say
from toolcrib.toolkit.cli.group import answers, example, pass_opener, project_option

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.toolkit.cli.group import Opener


@click.command("page", epilog=example("crib page"))
@click.option(
    "--at",
    metavar="URL",
    help="The address of the server; without it that of the running server, or else of the settings.",
)
@project_option
@answers("url", "seconds")
@pass_opener
def page(opener: Opener[Crib], at: str | None) -> Answer:
    """Print a link that signs you in to the web page.

    It works once, within ten minutes, on a server of the same project, and its session has all scopes, also approve:
    do not pass it on. The session ends after twelve hours, or with: crib token revoke ID.

    Example: crib page
    """
    with opener.open_local() as crib:
        require_project(crib.settings)
        server = crib.settings["server"]
        host = f"[{server.host}]" if ":" in server.host else server.host
        link = sign_in_link(crib, at or running_server(crib.settings.data) or f"http://{host}:{server.port}")
    say(link)
    complain(f"It works once, within {LINK_SECONDS // 60} minutes.")
    return Answer({"url": link, "seconds": LINK_SECONDS})
