"""`crib publish`, `crib pull` and `crib depot`: share tools between projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.features.depots.depot import FolderDepot, list_tools, open_depot
from toolcrib.features.depots.package import new_key, public_half
from toolcrib.infra.egress import EgressSettings
from toolcrib.infra.plain_code import run_async
from toolcrib.lib.names import read_address
from toolcrib.toolkit.cli import Answer, ExitCode, WrongUseError, complain, say, say_json
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.cli.group import answers, complete_tool, example, json_option, pass_opener, project_option
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.features.depots.transfer import Published, Pulled
    from toolcrib.toolkit.cli.group import Opener


WHOLE_BUNDLE = "/*"


class DepotCrib(ProjectCrib, Protocol):
    """What these commands use of a crib."""

    def publish(self, name: str, place: str, *, files: Iterable[str] = (), key: Path | None = None) -> Published:
        """Publish a tool of the project to the depot in a folder."""

    def publish_bundle(self, slug: str, version: str, place: str, *, key: Path | None = None) -> Published:
        """Publish a stored bundle to the depot in a folder."""

    async def pull(
        self, name: str, place: str, *, version: str | None = None, replace: bool = False, enable: bool = False
    ) -> Pulled:
        """Pull a tool, a tool folder or a bundle from a depot into the project."""


@click.command("publish", epilog=example("crib publish initials --to ../depot"))
@click.argument("name", shell_complete=complete_tool)
@click.option("--to", "place", required=True, metavar="DIR", help="The folder of the depot; it is made if needed.")
@click.option(
    "--with", "files", multiple=True, metavar="FILE", help="A further file, from the tool's folder; repeatable."
)
@click.option("--sign", "key", metavar="KEYFILE", help="Sign it with this key (see: crib depot key).")
@click.option("--version", metavar="X.Y.Z", help="The version of a bundle, which has none of its own.")
@project_option
@answers("name", "version", "to", "files", "hash", "signedBy", "missing")
@pass_opener
def publish(
    opener: Opener[DepotCrib], name: str, place: str, files: tuple[str, ...], key: str | None, version: str | None
) -> Answer:
    """Publish a tool, a tool folder, or a bundle (`BUNDLE/*`) to a depot.

    A depot is a folder; any web server that serves it makes it one that can be pulled from elsewhere.
    """
    key_file = None if key is None else Path(key)
    is_bundle = name.endswith(WHOLE_BUNDLE)
    if is_bundle is (version is None) or (is_bundle and files):
        raise WrongUseError(
            "a bundle is published as crib publish 'BUNDLE/*' --version X.Y.Z, and a tool has its own version"
        )
    with opener.open_local() as crib, working("publishing"):
        if version is None:
            published = crib.publish(name, place, files=files, key=key_file)
        else:
            published = crib.publish_bundle(name.removesuffix(WHOLE_BUNDLE), version, place, key=key_file)
        manifest = published.manifest
        paths = [file.path for file in manifest.files]
        signed_by = "" if manifest.signature is None else manifest.signature.key
        say(f"published {manifest.name}@{manifest.version} to {place}")
        say_facts(
            [
                ("files", ", ".join(paths)),
                ("hash", manifest.hash),
                ("signed by", signed_by),
            ]
        )
        for missing in published.left_behind:
            complain(f"{manifest.name}: {missing}")
    return Answer(
        {
            "name": manifest.name,
            "version": manifest.version,
            "to": place,
            "files": paths,
            "hash": manifest.hash,
            "signedBy": signed_by or None,
            "missing": list(published.left_behind),
        }
    )


@click.command("pull", epilog=example("crib pull initials@1.0.0 --from ../depot"))
@click.argument("name", metavar="NAME[@VERSION]")
@click.option("--from", "place", required=True, metavar="DIR|URL", help="The depot: a folder or a web address.")
@click.option("--replace", is_flag=True, help="Replace existing files.")
@click.option("--enable", is_flag=True, help="Enable it at once.")
@project_option
@answers("name", "version", "bundle", "files", "requires", "hash", "signature", "toDo")
@pass_opener
def pull(opener: Opener[DepotCrib], name: str, place: str, *, replace: bool, enable: bool) -> Answer:
    """Pull a tool, a tool folder or a bundle from a depot.

    Without a version it pulls the one published last. Every file is checked against its published hash; if one differs,
    nothing is installed. A pulled tool or bundle is disabled until you enable it; a tool folder has to be built.
    """
    with opener.open_local() as crib, working("pulling and checking it"):
        address = read_address(name)
        pulled = run_async(crib.pull(address.name, place, version=address.version, replace=replace, enable=enable))
        manifest = pulled.manifest
        say(f"pulled {manifest.name}@{manifest.version}: {manifest.description}")
        # The required capabilities are printed, because pulling a tool grants nothing.
        say_facts(
            [
                ("bundle", pulled.bundle),
                ("files", "" if pulled.bundle else ", ".join(map(str, pulled.written)) or "all there already"),
                ("requires", ", ".join(manifest.requires) or "nothing"),
                ("hash", manifest.hash),
                ("signature", pulled.signed),
            ]
        )
        if pulled.to_do:
            complain(pulled.to_do)
    return Answer(
        {
            "name": manifest.name,
            "version": manifest.version,
            "bundle": pulled.bundle or None,
            "files": [] if pulled.bundle else [str(path) for path in pulled.written],
            "requires": list(manifest.requires),
            "hash": manifest.hash,
            "signature": pulled.signed,
            "toDo": pulled.to_do or None,
        }
    )


@click.group("depot", epilog=example("crib depot list ../depot"))
def depot() -> None:
    """List the tools of a depot, and make signing keys."""


@depot.command("list", epilog=example("crib depot list ../depot"))
@click.argument("place", metavar="DIR|URL")
@project_option
@json_option
@pass_opener
def depot_list(opener: Opener[DepotCrib], place: str, *, as_json: bool) -> int:
    """List the tools of a depot with their versions, oldest first."""
    with opener.open_local() as crib:
        private = crib.settings.table(EgressSettings).private
    tools = run_async(_tools_of(place, private))
    if as_json:
        say_json(tools)
    else:
        say_table(("tool", "versions"), [(name, ", ".join(versions)) for name, versions in tools.items()])
    return ExitCode.DONE


@depot.command("key", epilog=example("crib depot key signing.key"))
@click.argument("file", metavar="FILE")
@answers("file", "key", "created")
def depot_key(file: str) -> Answer:
    """Make a key to sign with, if there is none; print its public half.

    The public half belongs into depots.keys of every project that should trust it.
    """
    path = Path(file)
    is_new = not path.exists()
    key = new_key(path) if is_new else public_half(path)
    say(key)
    return Answer({"file": file, "key": key, "created": is_new})


async def _tools_of(place: str, private: tuple[str, ...]) -> dict[str, list[str]]:
    depot = open_depot(place, private)
    try:
        return await list_tools(depot)
    finally:
        if not isinstance(depot, FolderDepot):
            await depot.close()
