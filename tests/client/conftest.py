"""A server that says what a test wants it to, byte for byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

SECONDS = 20


@dataclass
class Puppet:
    """Answers every request on a connection of its own with the chunks that `say` makes of its first line."""

    listener: socket.socket
    say: Callable[[str], Iterator[bytes]] = lambda _: iter(())
    heard: list[str] = field(default_factory=list)
    secure: Callable[[socket.socket], socket.socket] = lambda connection: connection

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, body: object, *, status: str = "200 OK", head: str = "") -> None:
        """Answer JSON from now on."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{head}\r\n"
        self.say = lambda _: iter([lines.encode() + content])

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(SECONDS)
            with suppress(OSError), self.secure(connection) as connection:
                head = b""
                while not head.startswith(b"\x16") and b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                    head += data
                self.heard.append(head.decode("latin-1"))
                for chunk in self.say(head.split(b"\r\n")[0].decode("latin-1")):
                    connection.sendall(chunk)
                connection.shutdown(socket.SHUT_WR)
                # What was sent and not read would turn the end into a reset.
                while connection.recv(65536):
                    pass


@pytest.fixture
def puppet() -> Iterator[Puppet]:
    """The server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        puppet = Puppet(listener)
        thread = threading.Thread(target=puppet.serve, daemon=True)
        thread.start()
        yield puppet
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)
        assert not thread.is_alive()
