"""Answer requests from recorded answers: an egress without any connection."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qsl, unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from toolcrib.infra.egress import http1
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.http1 import HOP_BY_HOP, WITHOUT_BODY
from toolcrib.infra.egress.proxy import (
    ESTABLISHED,
    GO_ON,
    Meter,
    ProxyLimits,
    ProxyLog,
    destination,
    serve_clients,
    too_many,
)
from toolcrib.lib.http_syntax import check_method, parse_url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from toolcrib.infra.egress import Request, Response
    from toolcrib.infra.egress.http1 import RequestHead
    from toolcrib.infra.egress.proxy import End
    from toolcrib.lib.http_syntax import HostList, Url
    from toolcrib.model.toolrequest import RecordedAnswer

    # Method, origin, path, and the sorted query where it matters.
    Key = tuple[str, str, str, tuple[tuple[str, str], ...] | None]


LOWEST_STATUS, HIGHEST_STATUS = 200, 599
# The reason phrases of real servers, so that a tool cannot detect a trial by them.
PHRASES = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
# The body is stored decoded, so these headers do not apply.
REWRITTEN = HOP_BY_HOP | {"content-encoding"}

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")


class Recorded(Egress):
    """Answers recorded requests over http and https and refuses everything else; each job starts with the first answer.

    From request number `fail_from` of a job on, the server fails: it answers 503 once, then closes the connection. None
    means never.
    """

    def __init__(self, answers: Sequence[RecordedAnswer], *, fail_from: int | None = None) -> None:
        super().__init__(resolve=_refuse_to_resolve)
        self._answers = RecordedReplies(answers)
        self._fail_from = fail_from

    @cached_property
    def authority(self) -> Authority:
        """The certificate authority of the recorded servers."""
        return Authority()

    async def fetch(self, request: Request, **_: object) -> Response:
        """Refuse: only requests through the proxy are answered."""
        raise ToolError(
            Kind.HOST_NOT_ALLOWED,
            f"{request.url.origin}: requests of the platform itself are not recorded; send it from a file of code",
        )

    async def locate(self, url: Url, hosts: HostList | None, port: int) -> NoReturn:
        """Refuse: databases are not recorded."""
        raise ToolError(Kind.HOST_NOT_ALLOWED, f"{url.authority}: connections to databases are not recorded")

    def proxy(
        self, hosts: HostList | None, *, deadline: float, limits: ProxyLimits | None = None
    ) -> Callable[[socket.socket], AbstractAsyncContextManager[ProxyLog]]:
        """Serve one job on a listening socket, like the proxy of a real egress."""
        bounds = limits or ProxyLimits()

        @asynccontextmanager
        async def serve(listener: socket.socket) -> AsyncIterator[ProxyLog]:
            server = _Server(self, self._answers, hosts, self._fail_from, bounds)
            async with serve_clients(listener, server.attend, deadline, bounds.connections):
                yield server.log

        return serve


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedReply:
    """A recorded response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def encode(self, method: str, *, stays: bool) -> bytes:
        """The whole message; `stays` keeps the connection open."""
        lines = [
            f"HTTP/1.1 {self.status} {PHRASES.get(self.status, '')}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if self.status not in WITHOUT_BODY:
            lines.append(f"Content-Length: {len(self.body)}")
        lines += [f"Connection: {'keep-alive' if stays else 'close'}", "", ""]
        has_body = method != "HEAD" and self.status not in WITHOUT_BODY
        return "\r\n".join(lines).encode("latin-1") + (self.body if has_body else b"")


class RecordedReplies:
    """The replies to each request, in order; raises ToolError for an answer that no server could give."""

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self._replies: dict[Key, list[RecordedReply]] = {}
        self._places: set[tuple[str, str, int]] = set()
        for number, answer in enumerate(answers, start=1):
            try:
                self._add(answer)
            except ToolError as problem:
                raise ToolError(Kind.VALIDATION, f"recorded answer {number}: {problem.message}") from problem

    def begin(self) -> ReplyTurns:
        """Start with the first answer."""
        return ReplyTurns(self._replies)

    def scheme_at(self, host: str, port: int) -> str:
        """The recorded protocol of a host and port, empty if none."""
        return next((scheme for scheme in ("https", "http") if (scheme, host, port) in self._places), "")

    def _add(self, answer: RecordedAnswer) -> None:
        method, url = answer.method.upper(), parse_url(answer.url)
        check_method(method)
        self._places.add((url.scheme, url.host, url.port))
        query = _query_of(url) if "?" in url.target else None
        self._replies.setdefault((method, url.origin, path_of(url), query), []).append(_read(answer))


class ReplyTurns:
    """The position of one job in the answers."""

    def __init__(self, replies: dict[Key, list[RecordedReply]]) -> None:
        self._replies = replies
        self._given: dict[Key, int] = {}

    def next(self, method: str, url: Url) -> RecordedReply | None:
        """The next reply to a request, repeating the last one; None if there is none."""
        key = next((key for key in _keys(method, url) if key in self._replies), None)
        if key is None:
            return None
        replies, place = self._replies[key], self._given.get(key, 0)
        self._given[key] = place + 1
        return replies[min(place, len(replies) - 1)]


def path_of(url: Url) -> str:
    """The normalized path, without the query, which may contain a secret."""
    return unquote(url.target.partition("?")[0])


FAULT = RecordedReply(status=503, headers=(("Content-Type", "text/plain"),), body=b"Service Unavailable\n")


def _keys(method: str, url: Url) -> list[Key]:
    """The keys of a reply: with the query before without, and HEAD falls back to GET."""
    methods = (method, "GET") if method == "HEAD" else (method,)
    return [(way, url.origin, path_of(url), query) for way in methods for query in (_query_of(url), None)]


def _query_of(url: Url) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parse_qsl(url.target.partition("?")[2], keep_blank_values=True)))


def _read(answer: RecordedAnswer) -> RecordedReply:
    if not LOWEST_STATUS <= answer.status <= HIGHEST_STATUS:
        message = f"status {answer.status} ends no request; write one from {LOWEST_STATUS} to {HIGHEST_STATUS}"
        raise ToolError(Kind.VALIDATION, message)
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in REWRITTEN]
    for name, value in headers:
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            message = f"header {name[:40]!r} is not a header; write its name and value on one line, in Latin letters"
            raise ToolError(Kind.VALIDATION, message)
    if answer.body and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", "application/json" if _is_json(answer.body) else "text/plain; charset=utf-8"))
    try:
        body = answer.body.encode()
    except UnicodeEncodeError:
        raise ToolError(Kind.VALIDATION, "its body contains a lone surrogate; write the whole character") from None
    return RecordedReply(status=answer.status, headers=tuple(headers), body=body)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


async def _refuse_to_resolve(host: str, port: int) -> NoReturn:
    raise ToolError(Kind.HOST_NOT_ALLOWED, f"{host}:{port} is not resolved: DNS is disabled during a trial")


class _Server:
    """All servers that one job can reach."""

    def __init__(
        self,
        recorded: Recorded,
        answers: RecordedReplies,
        hosts: HostList | None,
        fail_from: int | None,
        limits: ProxyLimits,
    ) -> None:
        self.log = ProxyLog(limit=limits.visits)
        self._recorded = recorded
        self._answers = answers
        self._turns = answers.begin()
        self._hosts = hosts
        self._fail_from = fail_from
        self._limits = limits
        self._sent = Meter("sent", limits.sent_bytes)
        self._requests = 0

    async def attend(self, client: End, *, is_full: bool) -> None:
        """Answer the requests of a client, one after the other."""
        tunnel: Url | None = None
        stays, seconds = True, self._limits.head_seconds
        while stays:
            url = tunnel
            try:
                request = await client.read_request(seconds)
                url = _address(request, tunnel)
                self._check(url, is_full=is_full)
                if request.method == http1.CONNECT:
                    tunnel = await self._open_tunnel(client, url)
                    continue
                stays = await self._exchange(request, url, client)
            except ToolError as refusal:
                if refusal.kind is Kind.TIMEOUT and client.has_answer:
                    return  # an idle client that was answered may just disconnect
                self.log.add(url, refusal.message)
                await client.answer(refusal)
                return
            seconds = self._limits.idle_seconds
        await client.linger()

    def _check(self, url: Url, *, is_full: bool) -> None:
        if is_full:
            raise too_many(self._limits)
        self._sent.check()
        if self._hosts is not None:
            self._hosts.check(url)

    async def _open_tunnel(self, client: End, url: Url) -> Url:
        """Act as the server at the end of the tunnel; returns its URL with the recorded scheme."""
        scheme = self._answers.scheme_at(url.host, url.port)
        if not scheme:
            raise _unanswered(http1.CONNECT, url.authority)
        self.log.add(url)
        if scheme == "http":
            await client.write(ESTABLISHED)
            return replace(url, scheme=scheme)
        context = self._recorded.authority.context_for(url.host)
        try:
            await client.secure(context, ESTABLISHED, self._limits.head_seconds)
        except OSError:
            self.log.add(url, "the TLS handshake failed; trust the authority that SSL_CERT_FILE names")
            raise
        return url

    async def _exchange(self, request: RequestHead, url: Url, client: End) -> bool:
        """Answer a request; returns whether the connection stays open."""
        async with asyncio.timeout(self._limits.idle_seconds):
            if request.waits:
                await client.write(GO_ON)
                client.has_answer = False
            await http1.copy_body(client.reader, request.framing or http1.Framing(0), self._drop)
            reply = self._turns.next(request.method, url)
            if reply is None:
                raise _unanswered(request.method, f"{url.origin}{path_of(url)}")
            self.log.add(url)
            stays = _may_stay(request)
            await client.write(self._fail_or(reply).encode(request.method, stays=stays))
        return stays

    async def _drop(self, data: bytes) -> None:
        self._sent.add(len(data))

    def _fail_or(self, reply: RecordedReply) -> RecordedReply:
        """The reply, or the failure once the server fails."""
        self._requests += 1
        if self._fail_from is None or self._requests < self._fail_from:
            return reply
        if self._requests > self._fail_from:
            raise ConnectionAbortedError
        return FAULT


def _address(request: RequestHead, tunnel: Url | None) -> Url:
    """The URL of a request; inside a tunnel, a path at its end."""
    if tunnel is None:
        return destination(request)
    if request.method == http1.CONNECT or not request.target.startswith("/"):
        raise http1.malformed("in a tunnel it has to name a path")
    hosts = [value for name, value in request.headers if name == "host"] or [tunnel.authority]
    if len(hosts) > 1:
        raise http1.malformed("it names more than one host")
    url = parse_url(f"{tunnel.scheme}://{hosts[0]}{request.target}")
    if url.origin != tunnel.origin:
        raise http1.malformed(f"it asks for {url.origin} in a tunnel to {tunnel.origin}")
    return url


def _may_stay(request: RequestHead) -> bool:
    options = {
        word.strip().lower() for name, value in request.headers if name == "connection" for word in value.split(",")
    }
    return request.minor == "1" and "close" not in options


def _unanswered(method: str, what: str) -> ToolError:
    message = f"asked for {method} {what}, which nothing recorded answers; add it to the answers of the request"
    return ToolError(Kind.NOT_FOUND, message)


# Certificates for recorded servers, issued by an authority that only the job under trial trusts.

VALID_FOR = timedelta(days=1)


class Authority:
    """Issues a certificate for each host; the keys are never stored."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._server_key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Internet Root")
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._certificate = (
            _draft(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def pem(self) -> bytes:
        """The certificate to trust."""
        return self._certificate.public_bytes(Encoding.PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """The TLS context of a server with this host name or address."""
        if host not in self._contexts:
            self._contexts[host] = self._make_context(host)
        return self._contexts[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = self._server_key
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _draft(_name("Internet Server"), self._name, key)
            .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(own, critical=False)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # ssl loads a certificate only from a file.
        with tempfile.NamedTemporaryFile() as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            file.write(certificate.public_bytes(Encoding.PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_FOR)
        .not_valid_after(now + VALID_FOR)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
