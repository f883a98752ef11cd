"""The built-in `fetch`: the content of a URL as text, or the size of what is not text."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from toolcrib.ground.egress import Request, parse_url
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.limits import Limits
from toolcrib.model.tool import Behaviour, Function, SideEffects, Tool

if TYPE_CHECKING:
    from toolcrib.ground.egress import Egress, Response

MAX_BYTES = 5_000_000
TIMEOUT_SECONDS = 30
OK = 200
TRANSIENT_STATUSES = frozenset({408, 429})
SERVER_ERRORS = range(500, 600)
TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/json",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
# The character sets of the web. Python knows more "encodings", some of which run code paths no page should choose.
CHARSETS = frozenset(
    {"utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "koi8-r", "koi8-u", "mac-roman"}
    | {f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))}
    | {f"cp{page}" for page in (866, 874, 932, 949, 950, *range(1250, 1259))}
    | {"gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "euc_kr", "iso2022_jp", "shift_jis"}
)

_MEDIA_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60})\s*(?:;|$)", re.ASCII)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([a-z0-9_.:+-]{1,40})\"?\s*(?:;|$)", re.ASCII)

PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"url": {"type": "string", "description": "The http or https URL to read, written out in full."}},
    "required": ["url"],
    "additionalProperties": False,
}


def fetch_tool(egress: Egress, *, max_bytes: int = MAX_BYTES, timeout_seconds: float = TIMEOUT_SECONDS) -> Tool:
    """The tool, reading through the given egress."""

    async def fetch(url: str) -> str:
        request = Request(url=parse_url(url))
        response = await egress.fetch(request, hosts=None, max_bytes=max_bytes, timeout=timeout_seconds)
        _check_status(response)
        return _show(response)

    def check(arguments: dict[str, object]) -> None:
        egress.check(parse_url(str(arguments["url"])), None)

    return Tool(
        name="fetch",
        description="Read a URL with GET. Returns the response content (text, JSON, XML) or size info for binary.",
        parameters=PARAMETERS,
        output_schema={"type": "string"},
        run=Function(call=fetch, is_async=True, check=check),
        bundle="builtin",
        behaviour=Behaviour.RETRIEVAL,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        requires=frozenset({"net.http"}),
        limits=Limits(timeout_ms=round(timeout_seconds * 1000)),
    )


def _check_status(response: Response) -> None:
    if response.status == OK:
        return
    again = response.status in TRANSIENT_STATUSES or response.status in SERVER_ERRORS
    raise ToolError(
        Kind.TRANSIENT if again else Kind.PERMANENT,
        f"{response.url.origin}: the server answered with status {response.status} instead of {OK}",
        retryable=again,
        details={"origin": response.url.origin, "status": response.status},
    )


def _show(response: Response) -> str:
    """The text of the body, or a sentence about one that is not declared to be text or does not decode as such."""
    declared = response.headers.get("content-type", "").lower()
    found = _MEDIA_TYPE.match(declared)
    media_type = found[1] if found else ""
    text = _decode(response.body, declared) if _is_text(media_type) else None
    if text is not None:
        return text
    return f"Binary content of type {media_type or 'unknown'}, {len(response.body)} bytes; not shown."


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in TEXT_TYPES or media_type.endswith(("+json", "+xml", "+yaml"))


def _decode(body: bytes, declared: str) -> str | None:
    """The text in its declared character set, UTF-8 without one, or None."""
    charset = _CHARSET.search(declared)
    try:
        name = codecs.lookup(charset[1] if charset else "utf-8").name
        # A byte order mark belongs to the encoding and not to the text.
        return body.decode("utf-8-sig" if name == "utf-8" else name) if name in CHARSETS else None
    except (LookupError, UnicodeDecodeError):
        return None
