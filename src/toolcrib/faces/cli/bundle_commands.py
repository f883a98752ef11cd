"""The commands about bundles: keep tools in them, find tools, switch tools, serve them all."""

from __future__ import annotations

import click

from toolcrib.faces.cli.group import complete_tool, json_option, project_option, url_option
from toolcrib.faces.cli.opening import open_any, open_crib, open_keeping


@click.group("bundle")
def bundle() -> None:
    """Keep tools in bundles."""


@bundle.command("list")
@project_option
@url_option
@json_option
@click.pass_obj
def bundle_list(project: str | None, *, url: str | None, as_json: bool) -> int:
    """List the bundles, whoever owns them."""
    from toolcrib.faces.cli.bundles import list_bundles

    with open_any(project, url) as crib:
        return list_bundles(crib, as_json=as_json)


@bundle.command("new")
@click.argument("slug")
@click.option("--name", metavar="TEXT", default="", help="What people call it; without this, SLUG.")
@click.option("--description", metavar="TEXT", default="", help="What its tools are for.")
@project_option
@url_option
@click.pass_obj
def bundle_new(project: str | None, slug: str, *, name: str, description: str, url: str | None) -> int:
    """Make an empty bundle and print its id."""
    from toolcrib.faces.cli.loading import make_bundle

    with open_keeping(project, url) as crib:
        return make_bundle(crib, slug, name=name, description=description)


@bundle.command("load")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@project_option
@url_option
@click.pass_obj
def bundle_load(project: str | None, folder: str, *, url: str | None) -> int:
    """Make a bundle of a folder, with its tools.

    DIR holds bundle.json and a file for each version of a tool. If anything is wrong with a file, nothing is written. A
    bundle that is there already keeps its switch, and a version that is there already stays as it is; one whose file says
    something else is named, and the command ends with 1.
    """
    from toolcrib.faces.cli.loading import load_bundle

    with open_keeping(project, url) as crib:
        return load_bundle(crib, folder)


@bundle.command("put")
@click.argument("name", metavar="BUNDLE")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@project_option
@url_option
@click.pass_obj
def bundle_put(project: str | None, name: str, file: str, *, url: str | None) -> int:
    """Put one version of a tool into a bundle.

    FILE describes the tool and says its slug and version; BUNDLE is a slug or an id.
    """
    from toolcrib.faces.cli.loading import put_tool

    with open_keeping(project, url) as crib:
        return put_tool(crib, name, file)


@bundle.command("remove")
@click.argument("name", metavar="BUNDLE/SLUG@VERSION")
@click.option("--yes", "-y", "agreed", is_flag=True, help="Do not ask.")
@project_option
@url_option
@click.pass_obj
def bundle_remove(project: str | None, name: str, *, agreed: bool, url: str | None) -> int:
    """Remove one version of a tool for good."""
    from toolcrib.faces.cli.loading import remove_tool

    with open_any(project, url) as crib:
        return remove_tool(crib, name, agreed=agreed)


@bundle.command("delete")
@click.argument("name", metavar="BUNDLE")
@project_option
@url_option
@click.pass_obj
def bundle_delete(project: str | None, name: str, *, url: str | None) -> int:
    """Delete an empty bundle; for two days it can come back."""
    from toolcrib.faces.cli.bundles import delete_bundle

    with open_any(project, url) as crib:
        return delete_bundle(crib, name)


@click.command("search")
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--question", is_flag=True, help="TEXT is a question in plain words; the most relevant tools come first.")
@click.option("--all", "everything", is_flag=True, help="Tools that are switched off too.")
@click.option("--limit", type=click.IntRange(1, 256), default=10, show_default=True, help="How many tools.")
@project_option
@url_option
@json_option
@click.pass_obj
def search(
    project: str | None,
    text: tuple[str, ...],
    *,
    url: str | None,
    question: bool,
    everything: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Find tools by what is typed.

    Names that begin with TEXT come first, then tools that hold its words, then words that are nearly the same.
    """
    from toolcrib.faces.cli.bundles import search_tools

    with open_any(project, url) as crib:
        words = " ".join(text)
        return search_tools(crib, words, is_question=question, everything=everything, limit=limit, as_json=as_json)


@click.command("enable")
@click.argument("name", metavar="TOOL | BUNDLE/*", shell_complete=complete_tool)
@project_option
@url_option
@click.pass_obj
def enable(project: str | None, name: str, *, url: str | None) -> int:
    """Switch a tool or a bundle on."""
    from toolcrib.faces.cli.bundles import switch

    with open_any(project, url) as crib:
        return switch(crib, name, on=True)


@click.command("disable")
@click.argument("name", metavar="TOOL | BUNDLE/*", shell_complete=complete_tool)
@project_option
@url_option
@click.pass_obj
def disable(project: str | None, name: str, *, url: str | None) -> int:
    """Switch a tool or a bundle off.

    The switch is kept with the project; the tool itself stays as it is.
    """
    from toolcrib.faces.cli.bundles import switch

    with open_any(project, url) as crib:
        return switch(crib, name, on=False)


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="The address to listen on; without it the setting http_host.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0 takes a free one. Without it http_port.")
@project_option
@click.pass_obj
def serve(project: str | None, host: str | None, port: int | None) -> int:
    """Serve the tools over HTTP.

    On this machine alone nobody needs a token; on any other address everybody does: crib token create.
    """
    from toolcrib.faces.cli.serving import serve_crib

    return serve_crib(open_crib(project), host, port)
