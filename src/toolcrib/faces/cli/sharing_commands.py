"""The commands that publish tools and pull them."""

from __future__ import annotations

import click

from toolcrib.faces.cli.group import complete_tool, json_option, project_option
from toolcrib.faces.cli.opening import open_crib


@click.command("publish")
@click.argument("name", shell_complete=complete_tool)
@click.option("--to", "place", required=True, metavar="DIR", help="The folder of the depot; it is made if needed.")
@click.option(
    "--with", "files", multiple=True, metavar="FILE", help="A further file, from the tool's folder; repeatable."
)
@click.option("--sign", "key", metavar="KEYFILE", help="Sign it with this key (see: crib depot key).")
@project_option
@click.pass_obj
def publish(project: str | None, name: str, place: str, files: tuple[str, ...], key: str | None) -> int:
    """Publish a tool to a depot.

    A depot is a folder; any web server that serves it makes it one that can be pulled from elsewhere.
    """
    from toolcrib.faces.cli.sharing import publish_tool

    with open_crib(project) as crib:
        return publish_tool(crib, name, place, files=files, key=key)


@click.command("pull")
@click.argument("name", metavar="NAME[@VERSION]")
@click.option("--from", "place", required=True, metavar="DIR|URL", help="The depot: a folder or a web address.")
@click.option("--replace", is_flag=True, help="Put the new files where other ones are.")
@project_option
@click.pass_obj
def pull(project: str | None, name: str, place: str, *, replace: bool) -> int:
    """Pull a tool from a depot.

    Without a version the one published last. All files arrive, each with the hash it was published with, or none.
    """
    from toolcrib.faces.cli.sharing import pull_tool

    with open_crib(project) as crib:
        return pull_tool(crib, name, place, replace=replace)


@click.group("depot")
def depot() -> None:
    """Look into a depot, and make keys to sign with."""


@depot.command("list")
@click.argument("place", metavar="DIR|URL")
@project_option
@json_option
@click.pass_obj
def depot_list(project: str | None, place: str, *, as_json: bool) -> int:
    """List the tools of a depot with their versions, oldest first."""
    from toolcrib.faces.cli.sharing import list_depot

    with open_crib(project) as crib:
        private = crib.settings.egress_private
    return list_depot(place, as_json=as_json, private=private)


@depot.command("key")
@click.argument("file", metavar="FILE")
def depot_key(file: str) -> int:
    """Make a key to sign with, if there is none; print its public half.

    The public half belongs into depot.keys of whoever should trust it.
    """
    from toolcrib.faces.cli.sharing import show_key

    return show_key(file)
