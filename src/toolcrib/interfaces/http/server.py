"""Run the HTTP server: open sockets, check tokens, serve the application behind all guards."""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import socket
import time
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

from toolcrib.interfaces.http.app import make_app
from toolcrib.interfaces.http.exchange import Guarded
from toolcrib.interfaces.http.server_state import Service
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.interfaces.http.uvicorn_server import BACKLOG, Server
from toolcrib.model.errors import SettingsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from starlette.types import ASGIApp

    from toolcrib.crib import Crib
    from toolcrib.features.access.tokens import Token
    from toolcrib.interfaces.http.server_state import ProblemFinder

# File descriptors for everything but connections: store, log, child processes.
SPARE_FILES = 256
# Thresholds of the garbage collector for its three generations.
COLLECT_AFTER = (100_000, 20, 20)


async def serve(
    crib: Crib,
    *,
    host: str,
    port: int,
    say: Callable[[str], None],
    ready: Callable[[str], None] | None = None,
    problems: ProblemFinder | None = None,
) -> int:
    """Serve the crib until a signal, and return the exit code; the caller closes the crib.

    `ready` is called with the URL once requests are accepted. Raises SettingsError if the server cannot or may not listen.
    """
    settings = crib.settings.table(ServerSettings)
    if not is_loopback(host) and not settings.oauth_issuer:
        _require_token(crib.tokens.list(), host)
    service = Service(settings)
    service.listing = asyncio.ensure_future(asyncio.to_thread(_list_all, crib))
    try:
        return await serve_app(
            make_app(crib, open_to_loopback=is_loopback(host), service=service, problems=problems),
            settings,
            service,
            host=host,
            port=port,
            say=say,
            ready=ready or (lambda _: None),
        )
    finally:
        # The crib is closed next, and its thread would open the index again.
        await asyncio.wait({service.listing})


def _list_all(crib: Crib) -> None:
    """List every tool once, so that no later listing waits for files that were not read or an index that is incomplete."""
    with suppress(ToolError):
        _ = crib.entries
        crib.bundles.list_tools(page_size=1)


async def serve_app(
    app: ASGIApp,
    settings: ServerSettings,
    service: Service,
    *,
    host: str,
    port: int,
    say: Callable[[str], None],
    ready: Callable[[str], None],
) -> int:
    """Serve an application behind all limits of the server."""
    sockets = open_sockets(host, port)
    most = room_for(settings.connections)
    if most < settings.connections:
        say(f"the system allows {most} connections; raise the limit of open files (ulimit -n) for more")
        service.connections.most = most
    server = Server(Guarded(app, settings, service), settings, service, say)
    with _seldom_collecting():
        await server.run(sockets, partial(ready, url_of(host, sockets)))
    return 0


def new_loop() -> asyncio.AbstractEventLoop:
    """Create a uvloop event loop, or one of asyncio where uvloop is missing."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Run the garbage collector rarely, and exclude what was loaded before the server started.

    Journal lines live for a second and look like a growing heap: with default thresholds the collector would take a third of
    the time of a call.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _require_token(tokens: Iterable[Token], host: str) -> None:
    now = time.time()
    if not any(token.expires_at is None or token.expires_at > now for token in tokens):
        raise SettingsError(
            f"listening on {host} needs a token for clients, and there is none; make one with: "
            "crib token create NAME --scope invoke, or listen on 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether the host is loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of the host with the same port; raises SettingsError with a cure."""
    sockets: list[socket.socket] = []
    try:
        for family, address in _addresses(host, port):
            sockets.append(_listen(family, address, port))
            port = sockets[0].getsockname()[1]
    except OSError as problem:
        for one in sockets:
            one.close()
        raise SettingsError(_why(problem, host, port)) from problem
    return sockets


def url_of(host: str, sockets: list[socket.socket]) -> str:
    """The URL of the server."""
    port = sockets[0].getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def room_for(connections: int) -> int:
    """Raise the limit of open files for so many connections; how many the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - SPARE_FILES))


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in found))


def _listen(family: int, address: str, port: int) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((address, port))
        one.listen(BACKLOG)
        one.setblocking(False)  # noqa: FBT003 - the library names no such argument
    except OSError:
        one.close()
        raise
    return one


def _why(problem: OSError, host: str, port: int) -> str:
    if isinstance(problem, socket.gaierror):
        return f"the host {host!r:.100} is unknown; listen on an address of this machine: --host 127.0.0.1"
    if problem.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken; choose another with --port, or 0 for any that is free"
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; listen on one that is: --host 127.0.0.1"
    if problem.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} of {host} needs privileges; choose a port of at least 1024 with --port"
    return f"cannot listen on port {port} of {host}: {problem.strerror}"
