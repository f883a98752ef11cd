"""The body of a request: one JSON object, with nothing in it that two readers could read differently."""

from __future__ import annotations

import asyncio
import math
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote

import orjson

from toolcrib.lib.documents import MAX_DEPTH, read_json, read_jsonc
from toolcrib.lib.ids import is_uuid7
from toolcrib.lib.names import slug_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MAX_NAME, check_slug, check_version
from toolcrib.toolkit.http.messages import JSON
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolcrib.toolkit.http.messages import Header, Request


# MERGED toolcrib.faces.http.places

# What a path names: a bundle by its id, and in it a tool by slug and version.

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
    return _read_places(*request.words, as_name)


@lru_cache(PLACES_KEPT)
def _read_places(bundle_id: str, slug: str, version: str, as_name: bool) -> ToolPlace:  # noqa: FBT001 - what is cached goes by position
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


# MERGED toolcrib.faces.http.queries

# The parameters behind the question mark: each known, each once unless it is a list, each within its bounds.

MAX_PAGE = 256
MAX_TOKEN = 4_096
MAX_TEXT = 1_000
MAX_LISTED = 256
MAX_PARAMETERS = 1_024
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"[0-9]{1,15}")


def refuse_query(request: Request) -> None:
    """Refuse every parameter; for paths that take none."""
    if request.scope.get("query_string"):
        Query(request, known=())


class Query:
    """What a client asked for besides the path."""

    def __init__(self, request: Request, known: Collection[str], lists: Collection[str] = ()) -> None:
        self._found: dict[str, list[str]] = {}
        for name, value in _pairs(request):
            if name not in known:
                hint = f"known are {', '.join(sorted(known))}" if known else "this path takes none"
                raise ToolError(Kind.VALIDATION, f"query: unknown parameter {name[:80]!r}; {hint}")
            if name in self._found and name not in lists:
                raise ToolError(Kind.VALIDATION, f"query: {name} stands more than once; write it once")
            self._found.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        """Whether the parameter was given."""
        return name in self._found

    def text(self, name: str) -> str:
        """A text; empty where it is absent."""
        text = self._found.get(name, [""])[0]
        if len(text) > MAX_TEXT:
            raise _bad(name, f"longer than {MAX_TEXT} letters; write less")
        return text

    def token(self, name: str = "pageToken") -> str:
        """A token that an earlier page ended with; empty asks for the first page."""
        token = self._found.get(name, [""])[0]
        if len(token) > MAX_TOKEN:
            raise _bad(name, "is none that this server gave out; begin again without it")
        return token

    def words(self, name: str) -> tuple[str, ...]:
        """A list, written with commas, by repeating the parameter, or both."""
        words = [word for value in self._found.get(name, ()) for word in value.split(",")]
        if "" in words:
            raise _bad(name, "holds nothing between two commas; write words, or leave the parameter out")
        if len(words) > MAX_LISTED:
            raise _bad(name, f"holds more than {MAX_LISTED} words; ask in several requests")
        return tuple(words)

    def bundle_ids(self) -> tuple[str, ...] | None:
        """The ids of bundles; None asks for all of them."""
        return self.words("bundleIDs") if "bundleIDs" in self._found else None

    def switch(self, name: str) -> bool:
        """`true` or `false`; false where it is absent."""
        value = self._found.get(name, ["false"])[0]
        if value not in ("true", "false"):
            raise _bad(name, f"write true or false, not {value[:80]!r}")
        return value == "true"

    def number(self, name: str, *, least: int, most: int | None = None) -> int | None:
        """A whole number within its bounds; None where it is absent."""
        if name not in self._found:
            return None
        value = self._found[name][0]
        number = int(value) if _DIGITS.fullmatch(value) else -1
        if number < least or (most is not None and number > most):
            bounds = f"from {least} to {most}" if most is not None else f"from {least} on"
            raise _bad(name, f"write a whole number {bounds}, not {value[:80]!r}")
        return number


def _pairs(request: Request) -> list[tuple[str, str]]:
    raw = request.scope.get("query_string", b"")
    if not raw:
        return []
    query = raw if isinstance(raw, bytes) else str(raw).encode()
    try:
        if _HALF_ESCAPE.search(query):
            raise ValueError
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = "query: is no list of name=value; write other than ASCII letters as percent-encoded UTF-8"
        raise ToolError(Kind.VALIDATION, message) from None


def _bad(name: str, reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"query: {name}: {reason}")


PLACE = "body"
# Reading more than this at once would keep everybody else waiting.
READ_AT_ONCE = 16_384
READERS = 2
# From here on a number may have been an integer that was rounded.
LARGE = 2.0**63
SHOWN = 8
YAML = b"application/yaml"
_YAML_TYPE = re.compile(rb'application/(?:x-)?yaml\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
_JSON_TYPE = re.compile(rb'application/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)


async def read_object(request: Request, limit: int) -> dict[str, object]:
    """The object that is the body."""
    _check_type(request)
    return await _read(await request.body(limit), limit, read_json)


async def read_document(request: Request, limit: int) -> dict[str, object]:
    """Likewise, of what a person may have written: it may hold comments."""
    _check_type(request)
    return await _read(await request.body(limit), limit, read_jsonc)


async def read_yaml(request: Request, limit: int) -> bytes | None:
    """The body as it is if it is YAML; None leaves JSON to whoever reads that, and any other type is refused."""
    if _YAML_TYPE.fullmatch(request.headers.get(b"content-type", b"")):
        _refuse_compressed(request)
        return await request.body(limit)
    _check_type(request, JSON, YAML)
    return None


async def read_keys(request: Request, limit: int, known: frozenset[str]) -> dict[str, object]:
    """The object that is the body, which may have no other keys than these."""
    return only_keys(await read_object(request, limit), known)


async def read_any_keys(request: Request, limit: int, known: frozenset[str]) -> dict[str, object]:
    """Likewise, where an empty body, of whatever type, says as much as an empty object."""
    raw = await request.body(limit)
    if not raw:
        return {}
    _check_type(request)
    return only_keys(await _read(raw, limit, read_json), known)


def only_keys(found: dict[str, object], known: frozenset[str]) -> dict[str, object]:
    """The object itself; refuses one with other keys than these."""
    if found.keys() <= known:
        return found
    unknown = [key[:80] for key in sorted(found.keys() - known)[:SHOWN]]
    hint = f"known are {', '.join(sorted(known))}" if known else "it takes none"
    message = f"body: unknown key {', '.join(map(repr, unknown))}; {hint}"
    raise ToolError(Kind.VALIDATION, message, details={"unknown": unknown})


def text_of(body: dict[str, object], key: str) -> str | None:
    """A text of the body; None where it is absent or null."""
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ToolError(Kind.VALIDATION, f"body: {key}: must be a text, not {type(value).__name__}")


def arguments_of(body: dict[str, object]) -> dict[str, object]:
    """The arguments of a call; none where they are absent."""
    arguments = body.get("args", {})
    if isinstance(arguments, dict):
        return arguments
    raise ToolError(Kind.VALIDATION, 'body: args: must be an object; write {"args": {"name": value, …}}')


def _check_type(request: Request, *known: bytes) -> None:
    content_type = request.headers.get(b"content-type", b"")
    if content_type != JSON and not _JSON_TYPE.fullmatch(content_type):
        types = b", ".join(known or (JSON,))
        cure = "send JSON with Content-Type: application/json" if not known else f"send one of {types.decode()}"
        message = f"the body is of type {request.header(b'content-type')[:80]!r}; {cure}"
        raise Refusal(415, Kind.VALIDATION, message, headers=((b"accept-post", types),))
    _refuse_compressed(request)


def _refuse_compressed(request: Request) -> None:
    if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refusal(415, Kind.VALIDATION, "the body is compressed; send it as it is, without Content-Encoding")


async def _read(raw: bytes, limit: int, read: Callable[..., object]) -> dict[str, object]:
    if len(raw) <= READ_AT_ONCE:
        return _read_now(raw, limit, read)
    return await asyncio.get_running_loop().run_in_executor(_readers(), _read_now, raw, limit, read)


@cache
def _readers() -> ThreadPoolExecutor:
    """Threads that nobody else uses: those of the loop may all be waiting for a server that does not answer."""
    return ThreadPoolExecutor(READERS, "toolcrib-body")


def _read_now(raw: bytes, limit: int, read: Callable[..., object]) -> dict[str, object]:
    plain = _read_plain(raw)
    if plain is not None:
        return plain
    found = read(raw, place=PLACE, max_bytes=limit)
    if not isinstance(found, dict):
        raise ToolError(Kind.VALIDATION, "body: must be a JSON object; write {…}")
    return found


def _read_plain(raw: bytes) -> dict[str, object] | None:
    """The object of a body in which nothing is out of the ordinary; None leaves it to the reader that looks twice.

    This one is several times as quick, and keeps the last of two equal keys. Every text stands between two quotation
    marks, so that a value with fewer texts than its body has marks for may have lost one to another.
    """
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    is_plain = isinstance(found, dict) and 2 * _texts(found, 1) == raw.count(b'"')
    return found if is_plain else None


def _texts(value: dict[str, object] | list[object], depth: int) -> float:
    """How many texts a value holds, keys and all; not a number for one that is out of the ordinary."""
    if depth > MAX_DEPTH:
        return math.nan
    found: float = len(value) if isinstance(value, dict) else 0
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str):
            found += 1
        elif isinstance(item, (dict, list)):
            found += _texts(item, depth + 1)
        elif isinstance(item, float) and abs(item) >= LARGE:
            return math.nan
    return found
