"""Where the server listens: its sockets, and who may listen where without asking for a token."""

from __future__ import annotations

import errno
import resource
import socket
from ipaddress import ip_address

from toolcrib.model.errors import SettingsError

BACKLOG = 4_096
# Descriptors for everything but connections: files of the store, the log, children.
SPARE_FILES = 256


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of the host, all with the same port; raises SettingsError that names the cure."""
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
    """How a client calls the server."""
    port = sockets[0].getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def room_for(connections: int) -> int:
    """Have the system allow so many connections; how many of them it does allow."""
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
        return f"the host {host!r:.100} is not known; listen on an address of this machine: --host 127.0.0.1"
    if problem.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken; choose another with --port, or 0 for any that is free"
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; listen on one that is: --host 127.0.0.1"
    if problem.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} of {host} is not for ordinary users; choose one from 1024 on with --port"
    return f"cannot listen on port {port} of {host}: {problem.strerror}"
