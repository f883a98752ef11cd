"""Parse and check the lists of hosts that a tool may reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.lib.http_syntax import ends_in_number, parse_host, split_authority
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.lib.http_syntax import Url

OF_THE_TOOL = "the hosts of the tool"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPattern:
    """One exact host, or with `subdomains` everything below it but not itself; without a port, every port."""

    host: str
    subdomains: bool = False
    port: int | None = None

    def matches(self, url: Url) -> bool:
        """Whether the URL lies within the pattern."""
        if self.port not in {None, url.port}:
            return False
        return url.host.endswith(f".{self.host}") if self.subdomains else url.host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return ("*." if self.subdomains else "") + host + ("" if self.port is None else f":{self.port}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HostList:
    """The hosts that are allowed; an empty list allows none. `where` says who may add one."""

    patterns: tuple[HostPattern, ...] = ()
    where: str = OF_THE_TOOL

    def check(self, url: Url) -> None:
        """Refuse a URL that no pattern matches."""
        if any(pattern.matches(url) for pattern in self.patterns):
            return
        allowed = [str(pattern) for pattern in self.patterns]
        cure = f'add "{url.authority}" to {self.where}'
        raise ToolError(
            Kind.HOST_NOT_ALLOWED,
            f"{url.authority} is not among the allowed hosts ({', '.join(allowed) or 'none'}); {cure}",
            details={"host": url.host, "port": url.port, "allowed": allowed, "cure": cure},
        )


def parse_hosts(patterns: Iterable[str], where: str = OF_THE_TOOL) -> HostList:
    """Read patterns such as `api.example.com`, `*.example.com` and `example.com:8443`."""
    return HostList(patterns=tuple(_parse_pattern(text) for text in patterns), where=where)


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
