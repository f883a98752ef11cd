"""Where bundles and tools lie in a store: `bundles/<bundle>/bundle.json` and `bundles/<bundle>/<slug>@<version>.json`.

The slot of a tool is `<bundle>/<slug>@<version>` in the spelling of file names: one for each tool, and the same for ever.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import slug_problem, version_problem
from toolcrib.pure.filenames import from_filename, to_filename
from toolcrib.pure.ids import is_uuid7
from toolcrib.pure.names import slug_of

SPACE = "bundles"
BUNDLE_FILE = "bundle.json"
DASH = "_02d_"

_TOOL_KEY = re.compile(rf"{SPACE}/([^/@]+/[^/@]+@[^/@]+)\.json")


class Label(NamedTuple):
    """What a slot says of its tool; slug and version are shortened where the name of its file is."""

    bundle: str
    slug: str
    version: str


def check_bundle_id(bundle_id: object) -> str:
    """The id in its usual spelling; refuses what is none."""
    if isinstance(bundle_id, str) and is_uuid7(bundle_id):
        return bundle_id.lower()
    raise ToolError(Kind.VALIDATION, f"{bundle_id!r:.80} is no id of a bundle; ids are UUIDs of version 7")


def bundle_key(bundle_id: str) -> str:
    """The key of a bundle's own document."""
    return f"{SPACE}/{bundle_id}/{BUNDLE_FILE}"


def folder_of(bundle_id: str) -> str:
    """What the keys of everything in a bundle begin with."""
    return f"{SPACE}/{bundle_id}/"


def slot_of(bundle_id: str, slug: str, version: str) -> str:
    """The slot of a tool."""
    name = to_filename(slug)
    # No key has a word that begins with a dash, which programs take for an option.
    name = f"{DASH}{name[1:]}" if name.startswith("-") else name
    return f"{bundle_id}/{name}@{to_filename(version)}"


def check_slot(bundle_id: str, slug: str, version: str) -> str:
    """The slot of a tool that is looked for, by any spelling of its name; refuses what no tool can be called."""
    for text, problem in ((slug, slug_problem(slug_of(slug))), (version, version_problem(version))):
        if problem:
            raise ToolError(Kind.VALIDATION, f"{text[:80]!r}: {problem}")
    return slot_of(bundle_id, slug_of(slug), version)


def tool_key(slot: str) -> str:
    """The key of a tool's document."""
    return f"{SPACE}/{slot}.json"


def slot_at(key: str) -> str | None:
    """The slot that a key belongs to; None for the key of anything but a tool."""
    found = _TOOL_KEY.fullmatch(key)
    return None if found is None else found[1]


def read_slot(slot: str) -> Label:
    """Take a slot apart."""
    bundle, _, name = slot.partition("/")
    slug, _, version = name.partition("@")
    slug = f"-{slug.removeprefix(DASH)}" if slug.startswith(DASH) else slug
    return Label(bundle, from_filename(slug) or slug, from_filename(version) or version)
