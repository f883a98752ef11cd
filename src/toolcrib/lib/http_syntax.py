"""Parse URLs by a strict grammar, check methods and headers, and match the hosts that a tool may reach.

Connections are made to the parsed URL, never to its text. Headers that inject lines or change the framing are refused.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.model.errors import MAX_RETRY_SECONDS, Cure, Kind, ToolError
from toolcrib.model.tool import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from toolcrib.lib.document_fields import Fields

RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
MAX_URL = 8_000
MAX_HOST = 253
MAX_PORT = 65_535
DEFAULT_PORTS = {"http": 80, "https": 443}
# A pattern without a port allows only these: services on other ports are rarely public.
STANDARD_PORTS = frozenset(DEFAULT_PORTS.values())

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]{1,6})?")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.ASCII | re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::(.*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Url:
    """A URL as it is sent: lower-case ASCII host or canonical address, port, and path with query as given.

    `target` is not in the `repr`, because a query may contain a secret.
    """

    scheme: str
    host: str
    port: int
    target: str = field(repr=False)

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The IP address, if the host is one; None for a name."""
        return _address_of(self.host)

    @property
    def authority(self) -> str:
        """Host and port as in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, which messages may show; secrets are only sent within one origin."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> Url:
    """Parse an absolute http or https URL; drops the fragment, and percent-encodes non-ASCII characters in the path."""
    if len(text) > MAX_URL:
        raise _refusal(f"it is longer than {MAX_URL} characters")
    _check_characters(text)
    parts = _URL.fullmatch(text)
    if parts is None:
        raise _refusal("it does not begin with http:// or https://")
    scheme = parts[1].lower()
    host, port = parse_authority(parts[2])
    target = quote(parts[3], safe=string.punctuation)
    if not target.startswith("/"):
        target = f"/{target}"
    url = Url(scheme=scheme, host=host, port=port or DEFAULT_PORTS[scheme], target=target)
    if len(str(url)) > MAX_URL:
        raise _refusal(f"it is longer than {MAX_URL} characters once it is encoded")
    return url


def follow_reference(base: Url, reference: str) -> Url:
    """Resolve a reference, such as the target of a redirect, against a base URL."""
    reference = reference.partition("#")[0]
    if _SCHEME.match(reference):
        return parse_url(reference)
    if reference.startswith("//"):
        return parse_url(f"{base.scheme}:{reference}")
    base_path = base.target.partition("?")[0]
    path, mark, query = reference.partition("?")
    if not path:
        return parse_url(base.origin + (base_path + mark + query if mark else base.target))
    if not path.startswith("/"):
        path = base_path[: base_path.rindex("/") + 1] + path
    return parse_url(base.origin + _without_dots(path) + mark + query)


def parse_authority(text: str) -> tuple[str, int | None]:
    """Host and port in canonical form."""
    if "@" in text:
        raise _refusal("it holds a user name or password; leave it out and send credentials in a header")
    host, port = split_authority(text)
    return (host if text.startswith("[") else parse_host(host)), port


def split_authority(text: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `[address]` or `[address]:port`; only an IPv6 address is validated here."""
    if not text.startswith("["):
        host, mark, port = text.partition(":")
        return host, _parse_port(port) if mark else None
    parts = _BRACKETED.fullmatch(text)
    if parts is None:
        raise _refusal("brackets belong around an IPv6 address without a zone, and only a port may follow them")
    return parse_ipv6(parts[1]), None if parts[2] is None else _parse_port(parts[2])


def parse_host(text: str) -> str:
    """The canonical form of a host name (IDNA 2008, lower case) or of an IPv4 address."""
    if not text:
        raise _refusal("the host is missing")
    host = ".".join(_parse_label(label) for label in _lower(text).split("."))
    if len(host) > MAX_HOST:
        raise _refusal(f"the host is longer than {MAX_HOST} characters")
    if ends_in_number(host) and not _is_ipv4(host):
        raise _refusal(
            "the host ends in a number and is not an IPv4 address; write four decimal numbers without zeros before"
        )
    return host


def parse_ipv6(text: str) -> str:
    """The canonical form of an IPv6 address, without brackets and without a zone."""
    try:
        return str(IPv6Address(text))
    except AddressValueError:
        raise _refusal("the brackets hold no IPv6 address; write names without brackets") from None


def ends_in_number(host: str) -> bool:
    """Whether some resolver could parse the host as an IPv4 address in any notation."""
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def check_method(method: str) -> None:
    """Reject a non-standard HTTP method."""
    if method not in METHODS:
        raise ToolError(Kind.VALIDATION, f"method {method[:20]!r} is refused; use one of {', '.join(METHODS)}")


def check_header(name: str, value: str) -> None:
    """Refuse a header that a tool may not send; messages never quote the value."""
    if problem := _problem_with(name):
        raise ToolError(Kind.VALIDATION, problem)
    if not is_sendable(value):
        message = f"header {name[:40]!r}: the value holds a line break or another control character"
        raise ToolError(Kind.VALIDATION, message)


def is_sendable(value: str) -> bool:
    """Whether a header may have this value: no line break and no other control character."""
    return value.isprintable() or value.replace("\t", "").isprintable()


@lru_cache(maxsize=1_024)  # checked for every request, and tools use few names
def _problem_with(name: str) -> str:
    shown = repr(name[:40])
    if _NAME.fullmatch(name) is None:
        return f"header {shown}: the name may hold letters, digits and '-' only"
    if name.lower() in RESERVED or name.lower().startswith("proxy-"):
        return f"header {shown} is set by Toolcrib or refused; leave it out"
    return ""


@lru_cache(maxsize=1_024)  # checked at every hop, and parsing an address costs more than the other checks
def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if ends_in_number(host) else None


def _check_characters(text: str) -> None:
    """Refuse characters that URL parsers treat differently, at any position."""
    for position, character in enumerate(text):
        if character in " \\" or not character.isprintable():
            reason = f"character {position + 1} (U+{ord(character):04X}) is not allowed; write it percent-encoded"
            raise _refusal(reason)


def _parse_port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > MAX_PORT:
        raise _refusal(f"the port is not a number from 1 to {MAX_PORT}")
    return int(text)


def _lower(text: str) -> str:
    # The Kelvin sign and similar characters become ASCII letters in lower case; left unchanged, IDNA refuses them.
    return "".join(letter.lower() if letter.isascii() or not letter.lower().isascii() else letter for letter in text)


def _parse_label(label: str) -> str:
    if _LABEL.fullmatch(label) and not label.startswith("xn--"):
        return label
    if label.isascii() and not label.startswith("xn--"):
        raise _refusal("the host has a part that is empty, too long or holds more than letters, digits, '-' and '_'")
    import idna

    try:
        return idna.alabel(label).decode("ascii")
    except UnicodeError:
        raise _refusal("the host has a part that IDNA 2008 does not allow") from None


def _is_ipv4(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except AddressValueError:
        return False


def _without_dots(path: str) -> str:
    """The path with `.` and `..` segments resolved."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == ".." and kept:
            kept.pop()
        elif segment not in {".", ".."}:
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _refusal(reason: str) -> ToolError:
    # The message does not quote the text: a refused URL may contain a password.
    return ToolError(Kind.VALIDATION, f"URL refused: {reason}")


OF_THE_TOOL = "the hosts of the tool"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPattern:
    """One exact host, or with `subdomains` only its subdomains; without a port, the standard ports."""

    host: str
    subdomains: bool = False
    port: int | None = None

    def matches(self, url: Url, ports: Collection[int] = STANDARD_PORTS) -> bool:
        """Whether the pattern matches the URL; `ports` are allowed without being named."""
        if url.port != self.port if self.port is not None else url.port not in ports:
            return False
        return url.host.endswith(f".{self.host}") if self.subdomains else url.host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return ("*." if self.subdomains else "") + host + ("" if self.port is None else f":{self.port}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HostList:
    """The allowed hosts; an empty list allows none. `where` says in messages where a host can be added.

    A list `within` another allows only hosts that both allow. `added` gives further patterns, which may change.
    """

    patterns: tuple[HostPattern, ...] = ()
    where: str = OF_THE_TOOL
    within: HostList | None = None
    added: Callable[[], tuple[HostPattern, ...]] = tuple

    @property
    def state(self) -> object:
        """The same object as long as the list allows the same."""
        return self.added() if self.within is None else self.within.state

    def names_port(self, url: Url) -> bool:
        """Whether a pattern that matches the URL has an explicit port."""
        if self.within is not None and self.within.names_port(url):
            return True
        # A loop, here and below: both run for every request, and a generator costs more than the check.
        for pattern in self.patterns:  # noqa: SIM110 - see above
            if pattern.port is not None and pattern.matches(url):
                return True
        return False

    def check(self, url: Url, ports: Collection[int] = STANDARD_PORTS) -> None:
        """Refuse a URL that no pattern matches; `ports` are allowed without being named."""
        if self.within is not None:
            self.within.check(url, ports)
        for pattern in self.patterns:
            if pattern.matches(url, ports):
                return
        added = self.added()
        if any(pattern.matches(url) for pattern in added):
            return
        allowed = [str(pattern) for pattern in (*self.patterns, *added)]
        cure = Cure(f'add "{url.authority}" to {self.where}')
        raise ToolError(
            Kind.HOST_NOT_ALLOWED,
            f"{url.authority} is not among the allowed hosts ({', '.join(allowed) or 'none'})",
            cure=cure,
            details={"host": url.host, "port": url.port, "allowed": allowed},
        )


def parse_hosts(patterns: Iterable[str], where: str = OF_THE_TOOL) -> HostList:
    """Parse patterns such as `api.example.com`, `*.example.com` and `example.com:8443`."""
    return HostList(patterns=tuple(_parse_pattern(text) for text in patterns), where=where)


def read_hosts(description: Fields) -> tuple[str, ...] | None:
    """The valid patterns in `hosts` of a tool's document, with problems reported; None if it has no `hosts`."""
    if "hosts" not in description:
        return None
    hosts = []
    for index, host in enumerate(description.items("hosts")):
        try:
            parse_hosts([str(host)])
            hosts.append(str(host))
        except ToolError as problem:
            description.report.refuse((*description.at, "hosts", index), problem.message)
    return tuple(hosts)


def _parse_pattern(text: str) -> HostPattern:
    subdomains = text.startswith("*.")
    rest = text.removeprefix("*.")
    try:
        host, port = split_authority(rest)
        host = host if ":" in host else parse_host(host)
    except ToolError:
        host, port = "", None
    if not host or (subdomains and (":" in host or ends_in_number(host))):
        cure = 'write "example.com", "*.example.com" for what lies below it, or either with a port such as ":8443"'
        raise ToolError(Kind.VALIDATION, f"host pattern {text[:80]!r} is refused; {cure}")
    return HostPattern(host=host, subdomains=subdomains, port=port)


def read_retry_after(header: str, now: float) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date; None if it is neither."""
    if _SECONDS.fullmatch(header):
        # A number too large for a float is capped like every other one.
        return min(float(header), float(MAX_RETRY_SECONDS))
    # Imported here: few answers have a date, and the import takes longer than most calls.
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(header)
        # HTTP dates are in GMT; a date without a zone must not be read as local time.
        seconds = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(0.0, round(seconds, 3)), float(MAX_RETRY_SECONDS))
