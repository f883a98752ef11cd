"""What a path names: a bundle by its id, and in it a tool by slug and version."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME, check_slug, check_version
from toolcrib.pure.ids import is_uuid7
from toolcrib.pure.names import slug_of

if TYPE_CHECKING:
    from toolcrib.faces.http.wire import Header, Request

BUNDLES = "/tools/bundles"
CURE = "make one with: crib bundle new SLUG"
# Tools that are called are called again, and only places that are none are too long to be remembered.
PLACES_KEPT = 4_096


class ToolPlace(NamedTuple):
    """Where a tool is kept."""

    bundle_id: str
    slug: str
    version: str


def bundle_place(request: Request) -> str:
    """The bundle that the path names."""
    return _bundle_id(request.words[0])


def tool_place(request: Request, *, as_name: bool = True) -> ToolPlace:
    """The tool that the path names; a name in its place means its slug, but where a new one is made."""
    return _read(*request.words, as_name)


@lru_cache(PLACES_KEPT)
def _read(bundle_id: str, slug: str, version: str, as_name: bool) -> ToolPlace:  # noqa: FBT001 - what is cached goes by position
    if as_name:
        slug = slug_of(slug)
    try:
        check_slug(slug, slug)
    except ToolError:
        message = f"path: toolSlug {slug[:80]!r}: use 1 to {MAX_NAME} letters, digits or '-'"
        raise ToolError(Kind.VALIDATION, message) from None
    check_version(version)
    return ToolPlace(_bundle_id(bundle_id), slug, version)


def location_of_bundle(bundle_id: str) -> Header:
    """The header that says where a new bundle is."""
    return (b"location", f"{BUNDLES}/{bundle_id}".encode())


def location_of_tool(place: ToolPlace) -> Header:
    """The header that says where a new tool is."""
    bundle_id, slug, version = place
    path = f"{BUNDLES}/{bundle_id}/tools/{quote(slug, safe='')}/version/{quote(version, safe='')}"
    return (b"location", path.encode())


def _bundle_id(text: str) -> str:
    if is_uuid7(text):
        return text.lower()
    raise ToolError(Kind.VALIDATION, f"path: bundleID {text[:80]!r} is no UUID of version 7; {CURE}")
