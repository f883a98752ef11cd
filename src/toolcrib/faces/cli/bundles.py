"""`crib bundle`, `crib search`, `crib enable` and `crib disable`: what is kept in bundles, and the switches of everything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode, WrongUseError
from toolcrib.faces.cli.describing import FOUND_COLUMNS, found_row_of
from toolcrib.faces.cli.listing import complain_unknown
from toolcrib.faces.cli.printing import complain, count, on_one_line, say, say_json, say_table
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.ids import is_uuid7, new_id

if TYPE_CHECKING:
    from toolcrib.crib.anywhere import AnyBundles, AnyCrib
    from toolcrib.model.bundle import Bundle

BUNDLE_FILE = "bundle.json"
BUNDLE_COLUMNS = ("slug", "state", "owner", "id", "description")
MAX_FILE_BYTES = 256_000
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


def load_bundle(crib: AnyCrib, folder: str) -> ExitCode:
    """`crib bundle load DIR`: put the bundle and the tools of a folder into the catalogue; what is there already stays."""
    from toolcrib.pure.jsonc import read_jsonc

    def read(path: Path) -> dict[str, object]:
        document = read_jsonc(_read_file(path), str(path))
        if not isinstance(document, dict):
            raise ToolError(Kind.VALIDATION, f"{path}: write an object")
        return document

    root = Path(folder)
    if not (root / BUNDLE_FILE).is_file():
        raise WrongUseError(f"{root / BUNDLE_FILE} is not there; it says slug, displayName and isEnabled of the bundle")
    document = read(root / BUNDLE_FILE)
    bundle_id = str(document.pop("bundleID", "") or _id_of(crib, str(document.get("slug"))) or new_id())
    bundle, created = crib.bundles.put_bundle(bundle_id, document)
    say(f"{'made' if created else 'kept'}  " + on_one_line(f"bundle {bundle.slug} ({bundle.id})"))
    for path in sorted(root.glob("*.json")):
        if path.name != BUNDLE_FILE:
            say(f"{_put(crib.bundles, bundle, read(path), path)}  {path.name}")
    return ExitCode.DONE


def delete_bundle(crib: AnyCrib, name: str) -> ExitCode:
    """`crib bundle delete BUNDLE`."""
    bundle = crib.bundles.delete_bundle(_known_bundle(crib, name).id)
    cure = f"for two days it comes back with: crib bundle load, or PUT of {bundle.id}"
    say(on_one_line(f"{bundle.slug} is deleted; {cure}"))
    return ExitCode.DONE


def search_tools(
    crib: AnyCrib, text: str, *, is_question: bool, everything: bool, limit: int, as_json: bool
) -> ExitCode:
    """`crib search TEXT`."""
    tools, has_more = crib.search_tools(text, is_question=is_question, everything=everything, limit=limit)
    if as_json:
        say_json(tools)
        return ExitCode.DONE
    if not tools:
        complain(f"nothing fits {text!r:.80}; list all tools with: crib list")
        return ExitCode.DONE
    say_table(FOUND_COLUMNS, map(found_row_of, tools))
    if has_more:
        complain("there are more; see them with a greater --limit")
    return ExitCode.DONE


def switch(crib: AnyCrib, name: str, *, on: bool) -> ExitCode:
    """`crib enable NAME` and `crib disable NAME`; `bundle/*` is the whole bundle."""
    word = "on" if on else "off"
    if name.endswith(WHOLE_BUNDLE):
        bundle = crib.bundles.switch_bundle(_known_bundle(crib, name.removesuffix(WHOLE_BUNDLE)).id, on)
        say(on_one_line(f"the bundle {bundle.slug} is switched {word}"))
        return ExitCode.DONE
    switched = crib.switch_tool(name, on=on)
    if switched is None:
        return complain_unknown(crib, name)
    address, reason = switched
    say(on_one_line(f"{address} is switched {word}"))
    if on and reason:
        complain(f"it still cannot be called: {reason}")
    return ExitCode.DONE


def _put(bundles: AnyBundles, bundle: Bundle, document: dict[str, object], path: Path) -> str:
    slug, version = document.get("slug"), document.get("version")
    if not isinstance(slug, str) or not isinstance(version, str):
        raise ToolError(Kind.VALIDATION, f"{path}: write slug and version")
    document.pop("bundleID", None)
    try:
        bundles.put_tool(bundle.id, slug, version, document)
    except ToolError as problem:
        if problem.kind is Kind.CONFLICT:
            return "kept"
        raise ToolError(problem.kind, f"{path}: {problem.message}", details=problem.details) from problem
    return "made"


def _id_of(crib: AnyCrib, slug: str) -> str:
    return next((bundle.id for bundle in crib.list_bundles() if bundle.slug == slug), "")


def _known_bundle(crib: AnyCrib, name: str) -> Bundle:
    found = [bundle for bundle in crib.list_bundles() if name in (bundle.slug, bundle.id)]
    if is_uuid7(name) and not found:
        return crib.bundles.bundle(name)
    if not found:
        raise ToolError(Kind.NOT_FOUND, f"there is no bundle {name!r:.80}; list them with: crib bundle list")
    if len(found) > 1:
        ids = ", ".join(bundle.id for bundle in found)
        raise ToolError(
            Kind.CONFLICT, f"{count(len(found), 'bundle')} are called {name!r:.80}; name one by its id: {ids}"
        )
    return found[0]


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{path} has more than {MAX_FILE_BYTES} bytes; make it smaller")
    return data


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
