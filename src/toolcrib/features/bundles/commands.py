"""The commands about bundles: keep tools in them, find tools, switch tools, serve them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolcrib.features.bundles.bundle_files import known_bundle
from toolcrib.interfaces.cli.open_crib import LocalCrib, open_any, open_crib, open_keeping
from toolcrib.toolkit.cli.console import ExitCode, complain, on_one_line, say, say_json, say_table
from toolcrib.toolkit.cli.group import complete_tool, json_option, project_option, url_option
from toolcrib.toolkit.cli.tool_tables import FOUND_COLUMNS, complain_unknown, found_row_of

if TYPE_CHECKING:
    from toolcrib.core.client_protocol import AnyCrib
    from toolcrib.interfaces.cli.open_crib import OpenCrib
    from toolcrib.model.bundle import Bundle


# MERGED toolcrib.faces.cli.bundles

# `crib bundle list` and `delete`, `crib search`, `crib enable` and `crib disable`: what there is, and its switches.

BUNDLE_COLUMNS = ("slug", "state", "owner", "id", "description")
WHOLE_BUNDLE = "/*"


def list_bundles(crib: AnyCrib, *, as_json: bool) -> ExitCode:
    """`crib bundle list`."""
    found = crib.list_bundles()
    if as_json:
        say_json([_facts_of(bundle) for bundle in found])
        return ExitCode.DONE
    rows = [
        (bundle.slug, "on" if bundle.enabled else "off", bundle.owner, bundle.id, bundle.description)
        for bundle in found
    ]
    say_table(BUNDLE_COLUMNS, rows)
    return ExitCode.DONE


def delete_bundle(crib: AnyCrib, name: str) -> ExitCode:
    """`crib bundle delete BUNDLE`."""
    bundle = crib.bundles.delete_bundle(known_bundle(crib, name).id)
    cure = f"for two days it comes back with: crib bundle load, if bundle.json says bundleID {bundle.id}"
    say(on_one_line(f"{bundle.slug} is deleted; {cure}"))
    return ExitCode.DONE


def search_tools(
    crib: OpenCrib, text: str, *, is_question: bool, everything: bool, limit: int, as_json: bool
) -> ExitCode:
    """`crib search TEXT`."""
    tools, has_more = crib.search_tools(text, is_question=is_question, everything=everything, limit=limit)
    if not tools:
        # A server files by itself what was searched for in vain.
        request_id = crib.wish_from_search(text) if isinstance(crib, LocalCrib) else ""
        hint = f"it is asked for by {request_id}" if request_id else "list all tools with: crib list"
        complain(f"nothing fits {text!r:.80}; {hint}")
    if as_json:
        say_json(tools)
    if as_json or not tools:
        return ExitCode.DONE
    meant = {name: crib.meant_by(name) for name in {facts["name"] for facts in tools}}
    say_table(FOUND_COLUMNS, [found_row_of(facts, meant=meant[facts["name"]]) for facts in tools])
    if has_more:
        complain("there are more; see them with a greater --limit")
    return ExitCode.DONE


def switch(crib: AnyCrib, name: str, *, on: bool) -> ExitCode:
    """`crib enable NAME` and `crib disable NAME`; `bundle/*` is the whole bundle."""
    word = "on" if on else "off"
    if name.endswith(WHOLE_BUNDLE):
        bundle = crib.bundles.switch_bundle(known_bundle(crib, name.removesuffix(WHOLE_BUNDLE)).id, on)
        say(on_one_line(f"the bundle {bundle.slug} is switched {word}"))
        return ExitCode.DONE
    switched = crib.switch_tool(name, on=on)
    if switched is None:
        return _complain_unswitched(crib, name, on=on)
    address, reason = switched
    say(on_one_line(f"{address} is switched {word}"))
    if on and reason:
        complain(f"it still cannot be called: {reason}")
    return ExitCode.DONE


def _complain_unswitched(crib: AnyCrib, name: str, *, on: bool) -> ExitCode:
    """Say that there is no such tool; whoever has named a bundle is told how to switch that."""
    if all(name not in (bundle.slug, bundle.id) for bundle in crib.list_bundles()):
        return complain_unknown(crib, name)
    command = f"crib {'enable' if on else 'disable'} '{name}{WHOLE_BUNDLE}'"
    complain(f"Tool {name!r:.200} not found; for the bundle: {command}")
    return ExitCode.UNKNOWN_TOOL


def _facts_of(bundle: Bundle) -> dict[str, object]:
    return {
        "id": bundle.id,
        "slug": bundle.slug,
        "displayName": bundle.display_name,
        "description": bundle.description,
        "enabled": bundle.enabled,
        "owner": bundle.owner,
        "createdAt": bundle.created_at,
        "modifiedAt": bundle.modified_at,
    }


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
    from toolcrib.features.bundles.bundle_files import make_bundle

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
    from toolcrib.features.bundles.bundle_files import load_bundle

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
    from toolcrib.features.bundles.bundle_files import put_tool

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
    from toolcrib.features.bundles.bundle_files import remove_tool

    with open_any(project, url) as crib:
        return remove_tool(crib, name, agreed=agreed)


@bundle.command("delete")
@click.argument("name", metavar="BUNDLE")
@project_option
@url_option
@click.pass_obj
def bundle_delete(project: str | None, name: str, *, url: str | None) -> int:
    """Delete an empty bundle; for two days it can come back."""
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
    from toolcrib.interfaces.http.commands import serve_crib

    return serve_crib(open_crib(project), host, port)
