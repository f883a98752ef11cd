"""Start Python in a process of its own without paying each time for the start of an interpreter and the imports of Toolcrib.

One process per test process has all of Toolcrib imported and waits. For each start it forks a child that gets the words, the folder, the
variables and the descriptors of a fresh process and runs to its end, exit code and all. The child is a child of the test process
(CLONE_PARENT), so `WarmPython` is a `subprocess.Popen` in everything but the way it starts.

For whatever is about the start itself, such as which modules a command loads, start a real interpreter instead.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import toolcrib

SECONDS = 60
CLONE_PARENT = 0x00008000
SYSCALL_OF_CLONE = {"x86_64": 56, "aarch64": 220}
# Beside all of ours, what commands import only when they need it.
MODULES = (
    *(
        "asyncio",
        "click",
        "cryptography.hazmat.primitives.ciphers.aead",
        "encodings.ascii",
        "encodings.idna",
    ),
    *("encodings.utf_8_sig", "jsonschema_rs", "orjson", "pwd", "re2", "redis", "rich.console", "rich.table", "sqlite3"),
    *("starlette.routing", "sysconfig", "tomllib", "tree_sitter", "uvicorn.lifespan.on", "uvloop"),
)
# The one is run, the other is for pytest alone and brings it.
NOT_LOADED = ("toolcrib.__main__", "toolcrib.features.testing.pytest_plugin")


class WarmPython(subprocess.Popen):
    """`python` with these words (`-m module …`, `-c code …` or `file …`), started as `subprocess.Popen` starts it.

    The interpreter itself may stand before them.
    """

    zygote: Zygote | None = None

    def __init__(self, words: Sequence[object], **options: Any) -> None:
        assert not options.keys() & {"preexec_fn", "pass_fds", "executable", "shell", "umask", "user", "process_group"}
        super().__init__([sys.executable, *map(str, words[1:] if words[0] == sys.executable else words)], **options)

    def _execute_child(self, args: Any, *rest: Any) -> None:
        (_, _, _, _, cwd, env, _, _, _, *pipes) = rest
        stdin, _, _, stdout, _, stderr = pipes[:6]
        told = {
            "words": args[1:],
            "folder": str(Path.cwd() if cwd is None else cwd),
            "variables": {str(name): str(text) for name, text in (os.environ if env is None else env).items()},
            "session": bool(pipes[11]),
        }
        given = [own if theirs == -1 else theirs for own, theirs in enumerate((stdin, stdout, stderr))]
        try:
            self.pid = start().fork(told, given)
        except BaseException:
            # A test that ran out of time leaves its answer unread, which the next one would take for its own.
            stop()
            raise
        self._child_created = True
        self._close_pipe_fds(*pipes[:6])  # type: ignore[attr-defined]


def run_python(
    words: Sequence[object], *, timeout: float = SECONDS, check: bool = False, input: Any = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of a warm Python."""
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with WarmPython(words, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def start() -> Zygote:
    """The process that forks, started if there is none; tests that count open descriptors start it before they count."""
    if WarmPython.zygote is None:
        WarmPython.zygote = Zygote()
    return WarmPython.zygote


def things() -> set[tuple[str, int]]:
    """The process that forks, which serves every later test of this process too, and what belongs to it."""
    zygote = WarmPython.zygote
    if zygote is None:
        return set()
    return {("process", zygote.pid), *(("descriptor", file.fileno()) for file in (zygote._socket, zygote._errors))}


def stop() -> None:
    """End the process that forks, if there is one."""
    if WarmPython.zygote is not None:
        WarmPython.zygote.close()
        WarmPython.zygote = None


class Zygote:
    """The process that forks: asked over a socket."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with it
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
            )
        self._socket.settimeout(SECONDS)
        self.pid = self._process.pid

    def fork(self, told: Mapping[str, object], descriptors: list[int]) -> int:
        """Start one; its id."""
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(told).encode())
            file.flush()
            try:
                socket.send_fds(self._socket, [b"fork"], [*descriptors, file.fileno()])
                answer = self._socket.recv(32)
            except ConnectionError:
                answer = b""
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"the process that forks is gone: {self._errors.read().decode(errors='replace')}")
        return int(answer)

    def close(self) -> None:
        """Let it end, also where a fork of the test process still has the socket."""
        with contextlib.suppress(OSError):  # it is gone already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._process.wait(SECONDS)
        self._errors.close()


# From here on: what runs in the process that forks, and in its children.


def _fork_for_the_parent() -> int:
    """Fork a child of our own parent, with all that Python does around a fork."""
    api, library = ctypes.pythonapi, ctypes.CDLL(None, use_errno=True)
    number = SYSCALL_OF_CLONE[platform.machine()]
    api.PyOS_BeforeFork()
    pid = int(library.syscall(number, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        api.PyOS_AfterFork_Child()
        return 0
    api.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def _wait_for_words(listening: socket.socket) -> dict[str, Any] | None:
    """Fork whenever it is asked for; gives what a child is told in that child, and nothing at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(listening, 16, 4)
        if not message:
            return None
        pid = _fork_for_the_parent()
        if pid == 0:
            listening.close()
            with os.fdopen(descriptors.pop(), "rb") as file:
                file.seek(0)
                told: dict[str, Any] = json.load(file)
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return told
        listening.sendall(b"%d" % pid)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(told: Mapping[str, Any]) -> None:
    """Be as an interpreter that was just started with all this."""
    if told["session"]:
        os.setsid()
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["variables"])
    tempfile.tempdir = None
    sys.path[1:1] = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    importlib.invalidate_caches()
    words = told["words"]
    while words[0] in ("-u", "-W"):
        if words.pop(0) == "-u":
            os.environ["PYTHONUNBUFFERED"] = "1"
        else:
            warnings.simplefilter(words.pop(0))
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - it stays open as long as the process
    sys.stdout = _open_stream(1, at_once=at_once, lines=os.isatty(1), errors="strict")
    sys.stderr = _open_stream(2, at_once=at_once, lines=True, errors="backslashreplace")
    sys.__dict__.update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _open_stream(descriptor: int, *, at_once: bool, lines: bool, errors: str) -> io.TextIOWrapper:
    file = open(descriptor, "wb", 0 if at_once else -1)  # noqa: SIM115 - it stays open as long as the process
    return io.TextIOWrapper(file, encoding="utf-8", errors=errors, line_buffering=lines, write_through=at_once)


def _run(words: list[str]) -> None:
    """Run a module, a text or a file as the interpreter does."""
    if words[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    else:
        sys.path[0] = str(Path(words[0]).resolve().parent)
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _code_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _run_to_the_end(words: list[str]) -> int:
    """Run it, and do all that an interpreter does at its end but tear down the modules; the exit code."""
    code, interrupted = 0, False
    try:
        _run(words)
    except SystemExit as error:
        code = _code_of(error)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code, interrupted = 1, isinstance(error, KeyboardInterrupt)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = code or 120
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def main() -> None:
    """Import everything, then fork whenever it is asked for."""
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for found in pkgutil.walk_packages(toolcrib.__path__, "toolcrib."):
        if found.name not in NOT_LOADED:
            importlib.import_module(found.name)
    gc.freeze()
    told = _wait_for_words(socket.socket(fileno=int(sys.argv[1])))
    if told is not None:
        _become(told)
        os._exit(_run_to_the_end(told["words"]) & 0xFF)


if __name__ == "__main__":
    main()
