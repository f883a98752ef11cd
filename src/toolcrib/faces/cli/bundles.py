"""`crib bundle list` and `delete`, `crib search`, `crib enable` and `crib disable`: what there is, and its switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.describing import FOUND_COLUMNS, found_row_of
from toolcrib.faces.cli.listing import complain_unknown
from toolcrib.faces.cli.naming import known_bundle
from toolcrib.faces.cli.opening import LocalCrib
from toolcrib.faces.cli.printing import complain, on_one_line, say, say_json, say_table

if TYPE_CHECKING:
    from toolcrib.crib.anywhere import AnyCrib
    from toolcrib.faces.cli.opening import OpenCrib
    from toolcrib.model.bundle import Bundle

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
