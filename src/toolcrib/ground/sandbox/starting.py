"""Starting the launcher from the host, and holding on to it."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.sandbox import cgroup
from toolcrib.ground.sandbox.preload import ORDER_BYTES, ORDERS

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_SECONDS = 6.0

# The packages are entered without running their __init__, which would bring the whole of Toolcrib into every worker.
_BOOT = """\
import sys
folder = sys.argv[1]
for name in ("toolcrib", "toolcrib.ground", "toolcrib.ground.sandbox"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [folder + name.removeprefix("toolcrib").replace(".", "/")]
from toolcrib.ground.sandbox.launcher import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""


class LauncherProcess:
    """A running launcher in a Python of its own, and the socket that it takes orders from."""

    def __init__(self, program: Path) -> None:
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, ORDERS)
        self._control.settimeout(0)
        package = Path(__file__).resolve().parents[2]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter outside of every workspace, with our own code
                [
                    *(str(program), "-I", "-S", "-X", "utf8", "-c", _BOOT),
                    *(str(package), str(theirs.fileno()), str(self._owner)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._control.close()
            raise
        finally:
            theirs.close()
        self._confining = self._confine()

    @property
    def is_ours(self) -> bool:
        """Whether this process started it; a fork of the host has only inherited it."""
        return self._owner == os.getpid()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def order(self, wish: bytes, descriptors: Sequence[int]) -> bool:
        """Ask for a supervisor; False if it has too many orders open, ConnectionError if it is gone."""
        try:
            socket.send_fds(self._control, [wish[:ORDER_BYTES]], descriptors)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno == errno.ETOOMANYREFS:
                return False
            if isinstance(problem, ConnectionError):
                raise
            raise ConnectionError(str(problem)) from problem
        return True

    def _confine(self) -> threading.Thread | None:
        """Have its processes counted by the kernel, beside its start; those of a user other than root are counted anyway."""
        if os.geteuid() != 0:
            return None
        thread = threading.Thread(target=cgroup.confine, args=(self._process.pid,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread to be had: what each call uses is measured all the same
            return None
        return thread

    def kill(self) -> None:
        """End it at once; its supervisors end their calls."""
        self._process.kill()

    def close(self) -> None:
        """End it and every call under it, and wait for that."""
        if self._confining is not None and self.is_ours:
            self._confining.join(_END_SECONDS)  # it leaves the group when it ends
        self._control.close()
        if not self.is_ours:
            self._process.returncode = 0  # it is the child of another process, which waits for it
            return
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_SECONDS)
