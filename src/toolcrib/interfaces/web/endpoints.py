"""HTTP endpoints of the web page: its document with a strict Content-Security-Policy, its files, and data that only it reads."""

from __future__ import annotations

import asyncio
import gzip
import re
import secrets
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from toolcrib.interfaces.web.languages import Languages
from toolcrib.interfaces.web.tool_list import STATES, list_tools
from toolcrib.lib import __version__
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http import Answer, answer_json
from toolcrib.toolkit.http.contract import MAX_PAGE, TEXT, TYPED, Reply, choice, in_path, text, whole
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.toolkit.http import Header, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

PATH = "/ui/"
NONCE, LANGUAGES = b"__NONCE__", b"__LANGUAGES__"
MAX_OFFSET = 10**6
# Most names contain a digest of the content: such a file may be cached for ever.
_WITH_DIGEST = re.compile(r".+-[\w-]{8}\.(?:js|css)")
FOR_EVER = (b"cache-control", b"public, max-age=31536000, immutable")
TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "svg": b"image/svg+xml",
}
# Styles that libraries insert carry the nonce; nothing is evaluated, framed, or fetched from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageData:
    """The data that the page loads first: the screens, and the list of tools."""

    def __init__(self, crib: Crib, threads: Threads) -> None:
        self._crib = crib
        self._threads = threads

    async def screens(self, request: Request) -> Answer:
        """GET /ui/screens."""
        return answer_json({"screens": self._crib.plugins.names("screens")})

    async def tools(self, request: Request) -> Answer:
        """GET /ui/tools."""
        return answer_json(await self._threads.read(list_tools, self._crib, request.query, request.reader))


class PageFiles:
    """The web page and its files."""

    def __init__(self, host: Host) -> None:
        crib: Crib = host.crib
        self._languages = Languages(crib.settings.data)

    async def root(self, request: Request) -> Answer:
        """GET /: redirect a browser to the page; any other client gets the address of the API."""
        if "text/html" in request.header(b"accept"):
            return Answer(status=307, headers=((b"location", PATH.encode()),))
        return answer_json(
            {"name": "Toolcrib", "version": __version__, "page": PATH, "api": "/openapi.json", "mcp": "/mcp"}
        )

    async def without_slash(self, request: Request) -> Answer:
        """GET /ui."""
        return Answer(status=308, headers=((b"location", PATH.encode()),))

    async def file(self, request: Request) -> Answer:
        """GET /ui/{file}: a file of the page; without a name its document."""
        name = request.path_params["file"]
        found = await asyncio.to_thread(_read, name or "index.html")
        if found is None:
            raise Refusal(404, Kind.NOT_FOUND, f"the page has no file {name[:80]!r}; open {PATH}")
        if not name or name.endswith(".html"):
            return _document(found[0], await asyncio.to_thread(self._languages.names))
        plain, packed = found
        headers: tuple[Header, ...] = ((b"vary", b"accept-encoding"),)
        if _WITH_DIGEST.fullmatch(name):
            request.always = tuple(header for header in request.always if header[0] != FOR_EVER[0])
            headers = (FOR_EVER, *headers)
        if "gzip" in request.header(b"accept-encoding"):
            plain, headers = packed, (*headers, (b"content-encoding", b"gzip"))
        return Answer(body=plain, content_type=TYPES[name.rpartition(".")[2]], headers=headers)

    async def language(self, request: Request) -> Answer:
        """GET /ui/languages/{language}: the texts of the page in another language."""
        name = request.path_params["language"]
        texts = await asyncio.to_thread(self._languages.read, name)
        if texts is None:
            reason = f"the page has no texts in {name[:80]!r}; write them to languages/ in the data folder"
            raise Refusal(404, Kind.NOT_FOUND, reason)
        return answer_json(texts)


def _document(template: bytes, languages: list[str]) -> Answer:
    nonce = secrets.token_urlsafe(16)
    return Answer(
        body=template.replace(NONCE, nonce.encode()).replace(LANGUAGES, " ".join(languages).encode()),
        content_type=TYPES["html"],
        headers=((b"x-frame-options", b"DENY"), (b"cross-origin-opener-policy", b"same-origin")),
        policy=POLICY.format(nonce=nonce).encode(),
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(one.name for one in files("toolcrib.interfaces.web").joinpath("assets").iterdir())


def _read(name: str) -> tuple[bytes, bytes] | None:
    """A file of the page, plain and compressed; None if there is no such file."""
    return _packed(name) if name in _names() else None


@cache
def _packed(name: str) -> tuple[bytes, bytes]:
    plain = files("toolcrib.interfaces.web").joinpath("assets", name).read_bytes()
    return plain, gzip.compress(plain, mtime=0)


PAGE = Reply(description="The page.", media_type="text/html")
PAGE_FILES = EndpointTable(
    tag="page",
    summary="The web page.",
    make=PageFiles,
    described=False,
    places=(
        in_path("file", "A file of the page.", TEXT, example="icon.svg"),
        in_path("language", "A language, by its tag of BCP 47.", TEXT, example="de"),
    ),
    endpoints=(
        Endpoint(
            name="root",
            method="GET",
            path="/",
            handler=PageFiles.root,
            scope=None,
            summary="Open the web page, or read where the API is.",
            replies={200: Reply(description="Where the API is."), 307: PAGE},
        ),
        Endpoint(
            name="pageWithoutSlash",
            method="GET",
            path="/ui",
            handler=PageFiles.without_slash,
            scope=None,
            summary="Open the web page.",
            replies={308: PAGE},
        ),
        Endpoint(
            name="page",
            method="GET",
            path="/ui/{file}",
            handler=PageFiles.file,
            scope=None,
            summary="Read the web page or one of its files.",
            query=(text("lang", "The language of the page, where it has a translation."),),
            replies={200: PAGE},
        ),
        Endpoint(
            name="pageLanguage",
            method="GET",
            path="/ui/languages/{language}",
            handler=PageFiles.language,
            scope=None,
            summary="Read the texts of the page in another language.",
            refusals=(404,),
            replies={200: Reply(description="Texts by their ids.")},
        ),
    ),
)
PAGE_DATA = EndpointTable(
    tag="page data",
    summary="What only the web page reads.",
    make=lambda host: PageData(host.crib, host.threads),
    described=False,
    endpoints=(
        Endpoint(
            name="pageScreens",
            method="GET",
            path="/ui/screens",
            handler=PageData.screens,
            scope=Scope.READ,
            summary="List the screens that features have registered.",
            replies={200: Reply(description="Their names.")},
        ),
        Endpoint(
            name="pageTools",
            method="GET",
            path="/ui/tools",
            handler=PageData.tools,
            scope=Scope.READ,
            summary="List tools in short rows.",
            query=(
                TYPED,
                text("bundle", "Only of this bundle."),
                text("tag", "Only with this tag."),
                text("kind", "Only of this kind."),
                text("effects", "Only with these side effects."),
                choice("state", "Only in this state.", STATES, key="toolState"),
                whole("offset", "Where the slice begins.", 0, MAX_OFFSET, 0),
                whole("size", "How many rows.", 1, MAX_PAGE, MAX_PAGE),
            ),
            replies={200: Reply(description="A slice of the list.")},
        ),
    ),
)
endpoints = (PAGE_DATA, PAGE_FILES)
