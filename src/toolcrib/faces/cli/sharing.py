"""`crib publish`, `crib pull` and `crib depot`: tools that travel between projects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.depots.places import FolderDepot, list_tools, open_depot
from toolcrib.depots.signing import new_key, public_half
from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.printing import complain, say, say_facts, say_json, say_table
from toolcrib.pure.names import read_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.crib import Crib


def publish_tool(crib: Crib, name: str, place: str, *, files: Sequence[str], key: str | None) -> ExitCode:
    """`crib publish NAME --to PLACE`."""
    published = crib.publish(name, place, files=files, key=None if key is None else Path(key))
    manifest = published.manifest
    say(f"published {manifest.name}@{manifest.version} to {place}")
    say_facts(
        [
            ("files", ", ".join(file.path for file in manifest.files)),
            ("hash", manifest.hash),
            ("signed by", "" if manifest.signature is None else manifest.signature.key),
        ]
    )
    for missing in published.left_behind:
        complain(f"{manifest.name}: {missing}")
    return ExitCode.DONE


def pull_tool(crib: Crib, wanted: str, place: str, *, replace: bool) -> ExitCode:
    """`crib pull NAME[@VERSION] --from PLACE`. What the tool asks for is shown: pulling it grants nothing."""
    address = read_address(wanted)
    pulled = asyncio.run(crib.pull(address.name, place, version=address.version, replace=replace))
    manifest = pulled.manifest
    say(f"pulled {manifest.name}@{manifest.version}: {manifest.description}")
    say_facts(
        [
            ("files", ", ".join(str(path) for path in pulled.written) or "all there already"),
            ("requires", ", ".join(manifest.requires) or "nothing"),
            ("hash", manifest.hash),
            ("signature", pulled.signed),
        ]
    )
    return ExitCode.DONE


def list_depot(place: str, *, as_json: bool, private: tuple[str, ...]) -> ExitCode:
    """`crib depot list PLACE`."""
    tools = asyncio.run(_tools_of(place, private))
    if as_json:
        say_json(tools)
    else:
        say_table(("tool", "versions"), [(name, ", ".join(versions)) for name, versions in tools.items()])
    return ExitCode.DONE


def show_key(path: str) -> ExitCode:
    """`crib depot key FILE`: make a key, or show the public half of the one that is there."""
    file = Path(path)
    key = public_half(file) if file.exists() else new_key(file)
    say(key)
    return ExitCode.DONE


async def _tools_of(place: str, private: tuple[str, ...]) -> dict[str, list[str]]:
    depot = open_depot(place, private)
    try:
        return await list_tools(depot)
    finally:
        if not isinstance(depot, FolderDepot):
            await depot.close()
