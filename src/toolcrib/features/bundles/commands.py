"""The commands about bundles: store tools in them, search tools, enable and disable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolcrib.features.bundles.bundle_files import (
    export_bundle,
    import_bundle,
    known_bundle,
    load_bundle,
    make_bundle,
    put_tool,
    remove_tool,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli import Answer, CommandError, ExitCode, complain, on_one_line, say, say_json
from toolcrib.toolkit.cli.console_tables import say_table
from toolcrib.toolkit.cli.group import (
    answers,
    complete_tool,
    example,
    json_option,
    pass_opener,
    project_option,
    url_option,
)
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.cli.tool_tables import FOUND_COLUMNS, found_row_of, unknown_tool

if TYPE_CHECKING:
    from toolcrib.model.bundle import Bundle
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import AnyCrib, ProjectCrib

BUNDLE_COLUMNS = ("slug", "state", "owner", "id", "description")
WHOLE_BUNDLE = "/*"


@click.group("bundle", epilog=example("crib bundle load samples"))
def bundle() -> None:
    """Store tools in bundles."""


@bundle.command("list", epilog=example("crib bundle list --json"))
@project_option
@url_option
@json_option
@pass_opener
def bundle_list(opener: Opener[ProjectCrib], *, url: str | None, as_json: bool) -> int:
    """List the bundles of every owner."""
    with opener.open_any(url) as crib:
        found = crib.bundles.list_all()
        if as_json:
            say_json([_facts_of(each) for each in found])
            return ExitCode.DONE
        rows = [(each.slug, "on" if each.enabled else "off", each.owner, each.id, each.description) for each in found]
        say_table(BUNDLE_COLUMNS, rows)
        return ExitCode.DONE


@bundle.command("new", epilog=example("crib bundle new weather --name 'Weather'"))
@click.argument("slug")
@click.option("--name", metavar="TEXT", default="", help="What people call it; without this, SLUG.")
@click.option("--description", metavar="TEXT", default="", help="What its tools are for.")
@project_option
@url_option
@answers("id", "slug")
@pass_opener
def bundle_new(opener: Opener[ProjectCrib], slug: str, *, name: str, description: str, url: str | None) -> Answer:
    """Make an empty bundle and print its id."""
    with opener.open_durable(url) as crib:
        return make_bundle(crib, slug, name=name, description=description)


strict_option = click.option("--strict", is_flag=True, help="Refuse other spellings, such as httpImpl.")


@bundle.command("load", epilog=example("crib bundle load samples"))
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@strict_option
@project_option
@url_option
@answers("id", "slug", "bundle", "tools", "warnings")
@pass_opener
def bundle_load(opener: Opener[ProjectCrib], folder: str, *, url: str | None, strict: bool) -> Answer:
    """Make a bundle of a folder, with its tools.

    DIR holds bundle.json and a file for each version of a tool. If anything is wrong with a file, nothing is written. An
    existing bundle stays enabled or disabled, and an existing version stays as it is; one whose file differs
    is named, and the command ends with 1.
    """
    with opener.open_durable(url) as crib, working("storing the bundle"):
        return load_bundle(crib, folder, strict=strict)


@bundle.command("put", epilog=example("crib bundle put weather forecast.json"))
@click.argument("name", metavar="BUNDLE")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@strict_option
@project_option
@url_option
@answers("id", "slug", "tools", "warnings")
@pass_opener
def bundle_put(opener: Opener[ProjectCrib], name: str, file: str, *, url: str | None, strict: bool) -> Answer:
    """Put one version of a tool into a bundle.

    FILE describes the tool and says its slug and version; BUNDLE is a slug or an id.
    """
    with opener.open_durable(url) as crib:
        return put_tool(crib, name, file, strict=strict)


@bundle.command("export", epilog=example("crib bundle export weather --to weather.zip"))
@click.argument("name", metavar="BUNDLE")
@click.option("--to", "file", metavar="FILE", help="Where to write it; without this, SLUG.zip in this folder.")
@click.option("--replace", is_flag=True, help="Put it where another file is.")
@project_option
@url_option
@answers("id", "slug", "file", "tools", "bytes")
@pass_opener
def bundle_export(
    opener: Opener[ProjectCrib], name: str, *, file: str | None, replace: bool, url: str | None
) -> Answer:
    """Export a bundle with its tools as a ZIP archive.

    It holds their documents and a list of hashes, and no secrets. The same content gives the same bytes.
    """
    with opener.open_any(url) as crib, working("writing the archive"):
        return export_bundle(crib, name, file, replace=replace)


@bundle.command("import", epilog=example("crib bundle import weather.zip --as climate"))
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option("--as", "slug", metavar="SLUG", default="", help="Import it as a new bundle with this slug.")
@click.option("--enable", is_flag=True, help="Enable it at once.")
@project_option
@url_option
@answers("id", "slug", "enabled", "tools")
@pass_opener
def bundle_import(opener: Opener[ProjectCrib], file: str, *, slug: str, enable: bool, url: str | None) -> Answer:
    """Import the bundle of a ZIP archive.

    All of its tools arrive or none. The bundle is disabled until it is enabled; each tool keeps its own switch. An existing
    bundle is never changed.
    """
    with opener.open_durable(url) as crib, working("reading the archive"):
        return import_bundle(crib, file, slug=slug, enable=enable)


@bundle.command("remove", epilog=example("crib bundle remove weather/forecast@v1"))
@click.argument("name", metavar="BUNDLE/SLUG@VERSION")
@click.option("--yes", "-y", "agreed", is_flag=True, help="Do not ask.")
@project_option
@url_option
@answers("bundle", "slug", "version")
@pass_opener
def bundle_remove(opener: Opener[ProjectCrib], name: str, *, agreed: bool, url: str | None) -> Answer:
    """Remove one version of a tool for good."""
    with opener.open_any(url) as crib:
        return remove_tool(crib, name, agreed=agreed)


@bundle.command("delete", epilog=example("crib bundle delete samples"))
@click.argument("name", metavar="BUNDLE")
@project_option
@url_option
@answers("id", "slug")
@pass_opener
def bundle_delete(opener: Opener[ProjectCrib], name: str, *, url: str | None) -> Answer:
    """Delete an empty bundle; it can be restored for two days."""
    with opener.open_any(url) as crib:
        deleted = crib.bundles.delete_bundle(known_bundle(crib, name).id)
        cure = f"for two days it is restored by: crib bundle load, if bundle.json says bundleID {deleted.id}"
        say(on_one_line(f"{deleted.slug} is deleted; {cure}"))
        return Answer({"id": deleted.id, "slug": deleted.slug})


@click.command("search", epilog=example("crib search --question is the server up"))
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option(
    "--question",
    is_flag=True,
    help="Only what answers TEXT as a question in plain language; the most relevant tools come first.",
)
@click.option("--all", "everything", is_flag=True, help="Include disabled tools.")
@click.option("--limit", type=click.IntRange(1, 256), default=10, show_default=True, help="How many tools.")
@project_option
@url_option
@json_option
@pass_opener
def search(
    opener: Opener[ProjectCrib],
    text: tuple[str, ...],
    *,
    url: str | None,
    question: bool,
    everything: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Search tools.

    Names that begin with TEXT come first, then tools that contain its words, then similar words, then tools that answer it as a question.
    """
    with opener.open_any(url) as crib, working("searching; new tools are indexed first"):
        words = " ".join(text)
        tools, has_more = crib.search_tools(words, is_question=question, everything=everything, limit=limit)
        if not tools:
            request_id = crib.request_from_search(words)
            hint = f"it is requested as {request_id}" if request_id else "list all tools with: crib list"
            complain(f"no tool matches {words!r:.80}; {hint}")
        if as_json:
            say_json(tools)
        if as_json or not tools:
            return ExitCode.DONE
        meant = {name: _meant_by(crib, name) for name in {facts["name"] for facts in tools}}
        say_table(FOUND_COLUMNS, [found_row_of(facts, meant=meant[facts["name"]]) for facts in tools])
        if has_more:
            complain("there are more; show them with a greater --limit")
        return ExitCode.DONE


@click.command("enable", epilog=example("crib enable shell"))
@click.argument("name", metavar="TOOL | BUNDLE/*", shell_complete=complete_tool)
@project_option
@url_option
@answers("name", "enabled", "reason")
@pass_opener
def enable(opener: Opener[ProjectCrib], name: str, *, url: str | None) -> Answer:
    """Enable a tool or a bundle."""
    with opener.open_any(url) as crib:
        return switch(crib, name, on=True)


@click.command("disable", epilog=example("crib disable shell", "crib disable 'builtin/*'"))
@click.argument("name", metavar="TOOL | BUNDLE/*", shell_complete=complete_tool)
@project_option
@url_option
@answers("name", "enabled", "reason")
@pass_opener
def disable(opener: Opener[ProjectCrib], name: str, *, url: str | None) -> Answer:
    """Disable a tool or a bundle.

    This is stored in the project; the tool itself stays as it is.
    """
    with opener.open_any(url) as crib:
        return switch(crib, name, on=False)


def switch(crib: AnyCrib, name: str, *, on: bool) -> Answer:
    """`crib enable NAME` and `crib disable NAME`; `bundle/*` is the whole bundle."""
    word = "enabled" if on else "disabled"
    if name.endswith(WHOLE_BUNDLE):
        bundle = crib.bundles.switch_bundle(known_bundle(crib, name.removesuffix(WHOLE_BUNDLE)).id, on)
        say(on_one_line(f"the bundle {bundle.slug} is {word}"))
        return Answer({"name": f"{bundle.slug}{WHOLE_BUNDLE}", "enabled": on, "reason": None})
    switched = crib.switch_tool(name, on=on)
    if switched is None:
        raise _not_found(crib, name, on=on)
    address, reason = switched
    say(on_one_line(f"{address} is {word}"))
    if on and reason:
        complain(f"it still cannot be called: {reason}")
    return Answer({"name": address, "enabled": on, "reason": (reason or None) if on else None})


def _meant_by(crib: AnyCrib, name: str) -> str:
    """The address of the tool that a name means; empty if it means none, or one whose document is broken."""
    try:
        entry = crib.find(name)
    except ToolError as problem:
        if problem.kind is Kind.DISABLED:
            return ""
        raise
    return "" if entry is None else entry.tool.address


def _not_found(crib: AnyCrib, name: str, *, on: bool) -> CommandError:
    """The error of an unknown tool, which says how to enable or disable a bundle of that name."""
    if all(name not in (bundle.slug, bundle.id) for bundle in crib.bundles.list_all()):
        return unknown_tool(crib, name)
    command = f"crib {'enable' if on else 'disable'} '{name}{WHOLE_BUNDLE}'"
    message = f"Tool {name!r:.200} not found; for the bundle: {command}"
    return CommandError(Kind.NOT_FOUND, message, code=ExitCode.UNKNOWN_TOOL)


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
