"""The HTTP connection to one server: reaches only its host, and accepts only bounded responses of a Toolcrib server."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from toolcrib.infra.egress import Request
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.dialler import RESOLVE_SECONDS, resolve_name, unreachable
from toolcrib.lib.documents import read_json
from toolcrib.lib.http_syntax import HostList, HostPattern, parse_url
from toolcrib.model.errors import Kind, ToolError, cure_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.dialler import Resolve
    from toolcrib.lib.http_syntax import Url

    Query = Sequence[tuple[str, str]]

TOKEN_VARIABLE = "CRIB_TOKEN"  # noqa: S105 - the name of a variable
SECONDS = 60.0
MAX_ANSWER_BYTES = 32_000_000
MAX_SENT_BYTES = 32_000_000
# Far deeper than any document that a Toolcrib server accepts or sends.
MAX_DEPTH = 300
MAX_MESSAGE = 8_000
ZIP = "application/zip"
NO_CONTENT = 204
UNAUTHORIZED = 401
REFUSED = 400
KINDS = frozenset(Kind)
OWN_PATH = re.compile(
    r"(?P<root>.*?)/(tools(/(tools|bundles|search)(/.*)?)?|requests(/.*)?|experiments|docs|openapi\.json|mcp"
    r"|call/.*|crib/(tools|explain|health|results/.*))/?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A response: the JSON object of its body, the size of the body, and whether it is a refusal."""

    document: dict[str, Any]
    size: int
    is_refusal: bool
    is_new: bool


class Connection:
    """Sends requests to one server. The URL permits only its host and port, which may be a private address."""

    def __init__(self, url: str, token: str | None, *, resolve: Resolve = resolve_name) -> None:
        parsed = parse_url(url)
        path, mark, _ = parsed.target.partition("?")
        if mark:
            raise ToolError(
                Kind.VALIDATION, "the URL of a server has no query; leave out what follows its question mark"
            )
        # The URL may have the path of a proxy, but not a path of the server's own API.
        if inside := OWN_PATH.fullmatch(path):
            raise ToolError(Kind.VALIDATION, f"give the root URL of the server: {parsed.origin}{inside['root']}")
        self.url = parsed.origin + path.rstrip("/")
        self._place = parsed
        self._resolve = resolve
        self._hosts = HostList(patterns=(HostPattern(host=parsed.host, port=parsed.port),), where="--url")
        self._headers = {"Authorization": f"Bearer {_check_token(token)}"} if token else {}
        self._egress: Egress | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, object] | bytes | None = None,
        seconds: float = SECONDS,
    ) -> Answer:
        """Send a request and read its response; raises unless it comes from a Toolcrib server. A body of bytes is an archive."""
        target = f"{path}?{urlencode(query)}" if query else path
        content = {} if body is None else {"Content-Type": ZIP if isinstance(body, bytes) else "application/json"}
        said = {"Accept": "application/json", **content, **(headers or {})}
        sent = body if body is None or isinstance(body, bytes) else to_bytes(body)
        response = await self.send(method, target, said, sent, seconds)
        return self.read_answer(response)

    async def download(self, path: str) -> bytes | Answer:
        """Download an archive; returns an Answer if the server refuses."""
        response = await self.send("GET", path, {"Accept": ZIP}, None, SECONDS)
        if response.status >= REFUSED:
            return self.read_answer(response)
        if response.headers.get("content-type", "") != ZIP:
            raise self._not_ours(response)
        return response.body

    def read_answer(self, response: Response) -> Answer:
        """Read a response; raises unless it comes from a Toolcrib server."""
        return Answer(
            document=self._read(response),
            size=len(response.body),
            is_refusal=response.status >= REFUSED,
            is_new=response.status == 201,  # noqa: PLR2004 - Created
        )

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Response:
        """Send a request with the token; returns the raw response."""
        request = Request(
            url=parse_url(self.url + target), method=method, headers={**headers, **self._headers}, body=body
        )
        try:
            egress = self._egress or await self._open()
            return await egress.fetch(
                request, hosts=self._hosts, max_bytes=MAX_ANSWER_BYTES, timeout=seconds, max_sent_bytes=MAX_SENT_BYTES
            )
        except ToolError as problem:
            raise self._explain(problem) from problem

    @asynccontextmanager
    async def stream(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> AsyncIterator[tuple[Response, AsyncIterator[bytes]]]:
        """Send a request with the token; yields the head of the response, and its body in pieces as they arrive.

        `seconds` is the timeout for the head; the caller limits the body.
        """
        request = Request(
            url=parse_url(self.url + target), method=method, headers={**headers, **self._headers}, body=body
        )
        is_explained = False
        try:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(seconds):
                        egress = self._egress or await self._open()
                        opening = egress.stream(request, hosts=self._hosts, max_piece=MAX_ANSWER_BYTES)
                        streamed = await stack.enter_async_context(opening)
                except TimeoutError:
                    message = f"{self.url}: no answer began within {seconds:.3g} s"
                    raise ToolError(Kind.TIMEOUT, message, partial_side_effects=request.has_effects) from None
                try:
                    yield streamed
                except ToolError:
                    # Raised by the reader of the response, so it has its cure already.
                    is_explained = True
                    raise
        except ToolError as problem:
            if is_explained:
                raise
            raise self._explain(problem) from problem

    def problem_of(self, answer: Answer) -> ToolError:
        """The error in a refusal."""
        return error_of(answer.document)

    async def close(self) -> None:
        """Close the connections."""
        egress, self._egress = self._egress, None
        if egress is not None:
            await egress.close()

    async def _open(self) -> Egress:
        """Open egress to the present addresses of the host; later changes of its DNS name have no effect."""
        addresses = await self._look_up()
        self._egress = Egress(
            private=[_endpoint(address, self._place) for address in addresses], resolve=_pin(addresses)
        )
        return self._egress

    async def _look_up(self) -> Sequence[str]:
        place = self._place
        if place.address is not None:
            return [place.host]
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                # Without addresses with a zone, which mean another host on every machine.
                return [found for found in await self._resolve(place.host, place.port) if "%" not in found]
        except (OSError, TimeoutError):
            raise unreachable(place.host, "looking up the name failed") from None

    def _read(self, response: Response) -> dict[str, object]:
        if response.status == NO_CONTENT and not response.body:
            return {}
        try:
            document = read_json(response.body, place=self.url, max_bytes=MAX_ANSWER_BYTES, max_depth=MAX_DEPTH)
        except ToolError as problem:
            raise self._not_ours(response) from problem
        if not isinstance(document, dict):
            raise self._not_ours(response)
        if response.status < REFUSED:
            return document
        if not is_problem(document):
            raise self._not_ours(response)
        if response.status == UNAUTHORIZED:
            word = "another" if self._headers else "a"
            cure = f"give {word} token: token=… in Python, the variable {TOKEN_VARIABLE} on the command line"
            document["detail"] = f"{self.url}: {document['detail']}; {cure}"
        return document

    def _not_ours(self, response: Response) -> ToolError:
        message = (
            f"{self.url} answers with status {response.status} and not as Toolcrib does; is this the URL of its server?"
        )
        return ToolError(Kind.PERMANENT, message, details={"status": response.status})

    def _explain(self, problem: ToolError) -> ToolError:
        """The error of a failed request, with its cure."""
        details = problem.details
        if "redirectedBy" in details and "host" in details:
            where = f"{details['host']}:{details.get('port')}"
            message = f"{self.url} sends its clients on to {where}, which --url does not name; if it is the server, give its URL"
            return ToolError(Kind.HOST_NOT_ALLOWED, message, details=details)
        cure = _CURES.get((problem.kind, "reason" in details))
        if cure is None:
            return problem
        return problem.replace(cure=problem.cure.then(cure_of(cure(self._place))))


def is_problem(document: Mapping[str, object]) -> bool:
    """Whether it is a problem document of a Toolcrib server."""
    kind = document.get("kind")
    return isinstance(kind, str) and kind in KINDS and isinstance(document.get("detail"), str)


def error_of(problem: Mapping[str, object]) -> ToolError:
    """The error in a problem document."""
    details, problems, kind = problem.get("details"), problem.get("problems"), Kind(str(problem["kind"]))
    return ToolError(
        kind,
        str(problem["detail"])[:MAX_MESSAGE],
        retryable=problem.get("retryable") is True,
        details={
            **(details if isinstance(details, dict) else {}),
            **({"problems": problems} if isinstance(problems, list) else {}),
            **({"gate": "token"} if kind is Kind.AUTH else {}),
        },
    )


# The cure of a failure, by its kind and by whether its details have a reason (why there was no connection).
_CURES: Mapping[tuple[Kind, bool], Callable[[Url], str]] = {
    (Kind.TRANSIENT, True): lambda url: (
        f"is a server running there that speaks {url.scheme}? Start one with: crib serve"
    ),
    (Kind.TRANSIENT, False): lambda _: "try again, and look at the log of the server",
    (Kind.PERMANENT, True): lambda _: "name the file of the authority that signed it in the variable SSL_CERT_FILE",
    (Kind.PERMANENT, False): lambda url: f"is this the URL of a Toolcrib server, and does it speak {url.scheme}?",
}


def _pin(addresses: Sequence[str]) -> Resolve:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return resolve


def _endpoint(address: str, place: Url) -> str:
    return f"[{address}]:{place.port}" if ":" in address else f"{address}:{place.port}"


def _check_token(token: str) -> str:
    """Raise ToolError for a text that cannot be a token, or could break out of its header."""
    if token.isascii() and token.isprintable() and " " not in token:
        return token
    message = "the token holds what no token does; make one with: crib token create, and copy it whole"
    raise ToolError(Kind.AUTH, message, details={"gate": "token"})


def to_bytes(body: Mapping[str, object]) -> bytes:
    """The body of a request."""
    # With the standard library, which supports integers of any size; the server decides whether it accepts them.
    return json.dumps(body, separators=(",", ":")).encode()
