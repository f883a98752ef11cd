"""Paths of bundles and tools: parse and build `/tools/bundles/{id}/tools/{slug}/version/{version}`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from toolcrib.lib.names import is_uuid7, slug_of
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import MAX_NAME, check_slug, check_version
from toolcrib.toolkit.http.contract import TEXT, in_path

if TYPE_CHECKING:
    from toolcrib.toolkit.http import Header, Request

BUNDLES = "/tools/bundles"
BUNDLE = f"{BUNDLES}/{{bundleID}}"
TOOL = f"{BUNDLE}/tools/{{toolSlug}}/version/{{version}}"
CURE = Cure("make one with: crib bundle new SLUG", "list the bundles with: GET /tools/bundles")
# Parsed paths are cached, because the same tools are called again and again.
PLACES_KEPT = 4_096

UUID7 = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"
SLUG = r"^[\p{L}\p{Nd}-]{1,64}$"
# At most 64 characters, not only dots.
VERSION = r"^\.*[\p{L}\p{Nd}-][\p{L}\p{Nd}.-]*$"
BUNDLE_PLACE = in_path(
    "bundleID",
    "The id of the bundle: a UUID of version 7.",
    {**TEXT, "pattern": UUID7},
    example="018faf50-b7b6-7a01-9a05-a22a6e0af101",
)
TOOL_PLACE = (
    BUNDLE_PLACE,
    in_path(
        "toolSlug",
        "1 to 64 Unicode letters, digits and dashes; upper and lower case differ.",
        {**TEXT, "pattern": SLUG},
        example="weather",
    ),
    in_path(
        "version",
        "An opaque label: 1 to 64 Unicode letters, digits, dashes and dots, not only dots.",
        {**TEXT, "pattern": VERSION, "maxLength": 64},
        example="v2",
    ),
)


class ToolPlace(NamedTuple):
    """The address of a stored tool."""

    bundle_id: str
    slug: str
    version: str


def bundle_place(request: Request) -> str:
    """The id of the bundle in the path."""
    return _bundle_id(request.path_params["bundleID"])


def tool_place(request: Request, *, as_name: bool = True) -> ToolPlace:
    """The tool in the path; with `as_name` its name is accepted for its slug, which a PUT does not."""
    words = request.path_params
    return _tool_place(words["bundleID"], words["toolSlug"], words["version"], as_name)


def location_of_bundle(bundle_id: str) -> Header:
    """The Location header of a new bundle."""
    return (b"location", f"{BUNDLES}/{bundle_id}".encode())


def location_of_tool(place: ToolPlace) -> Header:
    """The Location header of a new tool."""
    bundle_id, slug, version = place
    path = f"{BUNDLES}/{bundle_id}/tools/{quote(slug, safe='')}/version/{quote(version, safe='')}"
    return (b"location", path.encode())


@lru_cache(PLACES_KEPT)
def _tool_place(bundle_id: str, slug: str, version: str, as_name: bool) -> ToolPlace:  # noqa: FBT001 - what is cached goes by position
    if as_name:
        slug = slug_of(slug)
    try:
        check_slug(slug, slug)
    except ToolError:
        message = f"path: toolSlug {slug[:80]!r}: use 1 to {MAX_NAME} letters, digits or '-'"
        raise ToolError(Kind.VALIDATION, message) from None
    check_version(version)
    return ToolPlace(_bundle_id(bundle_id), slug, version)


def _bundle_id(text: str) -> str:
    if is_uuid7(text):
        return text.lower()
    raise ToolError(Kind.VALIDATION, f"path: bundleID {text[:80]!r} is not a UUID of version 7", cure=CURE)
