"""Which guard answers a request first: path, method, token, Host and Origin against each other, over a real connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
TOOL = f"/tools/bundles/{BUNDLE}/tools/none/version/v1"
STRANGE = ("PROPFIND", "BREW")  # one that HTTP parsers know, and one that they do not
# Each kind of path, with the methods that are tried on it.
PATHS: Mapping[str, tuple[str, ...]] = {
    "/healthz": ("GET", "HEAD", "OPTIONS", "POST", *STRANGE),
    "/tools/bundles": ("GET", "HEAD", "OPTIONS", "DELETE"),
    f"/tools/bundles/{BUNDLE}": ("GET", "DELETE", "POST"),
    "/call/none": ("POST", "GET", "OPTIONS"),
    f"{TOOL}/invoke": ("POST", "GET"),
    "/nonsense": ("GET", "DELETE", "OPTIONS", *STRANGE),
    "/tools%2Fbundles": ("GET", "DELETE", "OPTIONS"),
    "/%74ools/bundles": ("GET", "DELETE"),
    "/tools/bundles/": ("GET", "DELETE", "OPTIONS"),
    "/healthz/": ("GET",),
    "//tools/bundles": ("GET",),
    "/tools/./bundles": ("GET",),
    "/tools/../healthz": ("GET",),
    "/HEALTHZ": ("GET",),
    "/health%7A": ("GET", "POST"),
    "/tools/%zz": ("GET", "OPTIONS"),
    "/tools/%ff": ("GET",),
    "/healthz#part": ("GET",),
    "tools/bundles": ("GET",),
    "*": ("OPTIONS",),
}
PAGE = "https://page.example.com"
SETTINGS = f"""
[server]
hosts = ["tools.example.com"]
origins = ["{PAGE}"]
"""
ORIGINS = ("none", "same", "listed", "foreign")
TOKENS = ("none", "bad", "read", "invoke", "manage")


class Tried:
    """One server, asked every question over one connection where it may stay open."""

    def __init__(self, connection: HTTPConnection, port: int, tokens: Mapping[str, str]) -> None:
        self.connection = connection
        self.hosts = {"own": f"127.0.0.1:{port}", "listed": "tools.example.com", "foreign": "evil.example.com"}
        self.tokens = {"bad": "nonsense", **tokens}
        self.allowed: dict[str, str] = {}

    def ask(self, path: str, method: str, host: str, origin: str, token: str) -> tuple[str, bool]:
        """The status with the kind of problem, and whether a browser lets the page read the answer."""
        self.connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        self.connection.putheader("Host", self.hosts[host])
        if origin != "none":
            origins = {"same": f"http://{self.hosts[host]}", "listed": PAGE, "foreign": "https://evil.example.com"}
            self.connection.putheader("Origin", origins[origin])
        if token != "none":
            self.connection.putheader("Authorization", f"Bearer {self.tokens[token]}")
        if method in {"POST", *STRANGE}:
            self.connection.putheader("Content-Length", "0")
        self.connection.endheaders()
        answer = self.connection.getresponse()
        body = answer.read()
        if allow := answer.getheader("Allow"):
            assert self.allowed.setdefault(path, allow) == allow
        kind = json.loads(body)["type"].removeprefix("/docs#") if answer.status >= 400 and body else ""
        return f"{answer.status} {kind}".strip(), answer.getheader("Access-Control-Allow-Origin") is not None

    def table(self) -> Iterator[str]:
        """The requests that are answered alike, and then each answer with the hosts, pages and tokens that get it."""
        alike: dict[tuple[str, ...], list[str]] = {}
        for path, methods in PATHS.items():
            for method in methods:
                alike.setdefault(tuple(self._lines(path, method)), []).append(f"{method} {path}")
        for lines, requests in alike.items():
            yield from requests
            yield from lines
            yield ""
        for path, allow in self.allowed.items():
            yield f"Allow of {path}: {allow}"

    def _lines(self, path: str, method: str) -> Iterator[str]:
        rows: dict[tuple[str, ...], list[str]] = {}
        readable: set[str] = set()
        for host in self.hosts:
            for origin in ORIGINS:
                asked = [self.ask(path, method, host, origin, token) for token in TOKENS]
                readable |= {origin for _, is_readable in asked if is_readable}
                assert len({is_readable for _, is_readable in asked}) == 1
                cells = [cell for cell, _ in asked]
                row = tuple(cells[:1]) if len(set(cells)) == 1 else tuple(cells)
                rows.setdefault(row, []).append(f"{host}/{origin}")
        for row, places in rows.items():
            answers = row[0] if len(row) == 1 else ", ".join(map("{}: {}".format, TOKENS, row))
            yield f"    {answers}  <- {_merge(places)}"
        yield f"    readable by pages: {', '.join(sorted(readable)) or 'none'}"


def _merge(places: list[str]) -> str:
    """The pairs of host and page, with one word for all pages of a host."""
    merged: dict[str, list[str]] = {}
    for place in places:
        host, _, origin = place.partition("/")
        merged.setdefault(host, []).append(origin)
    if len(merged) == 3 and all(len(origins) == 4 for origins in merged.values()):
        return "everything"
    shown = {host: "any page" if len(origins) == 4 else "|".join(origins) for host, origins in merged.items()}
    return "; ".join(f"{host} host, {origins}" for host, origins in shown.items())


def answers_of(project, served, *words: str) -> str:
    (project / "toolcrib.toml").write_text(SETTINGS)
    with served(project, *words) as server:
        connection = server.connect()
        text = "\n".join(Tried(connection, server.port, server.tokens).table()) + "\n"
        connection.close()
    return text


def test_a_server_for_this_machine_guards_in_the_order_that_is_pinned(tmp_path, served, golden):
    golden("guards_local.txt", answers_of(tmp_path, served))


def test_a_server_for_others_guards_in_the_order_that_is_pinned(tmp_path, served, golden):
    # A spelling of 127.0.0.1 that does not count as this machine's own: the server asks everybody for a token.
    golden("guards_remote.txt", answers_of(tmp_path, served, "--host", "2130706433"))
