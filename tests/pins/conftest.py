"""Golden files: what the product shows to its users today, compared with what it shows now."""

from __future__ import annotations

import difflib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from toolcrib.__main__ import main
from warm_python import WarmPython

GOLDEN = Path(__file__).parent / "golden"
# Set by regenerate.py: golden files are written instead of compared.
REGENERATE = "PINS_REGENERATE"
SCOPES = ("read", "invoke", "manage")
SECONDS = 30


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get(REGENERATE):
            file.write_text(text, encoding="utf-8")
            return
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if before != text:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            cure = "if the change is meant, run: python tests/pins/regenerate.py"
            pytest.fail("\n".join([f"{name} differs from what is pinned; {cure}", *lines]), pytrace=False)

    return compare


@dataclass(frozen=True)
class Served:
    """A server in a process of its own: its port, and a token of each scope."""

    port: int
    tokens: Mapping[str, str]

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)


@contextmanager
def serve(project: Path, *words: str) -> Iterator[Served]:
    """Run `crib serve` over a project until the end of the block."""
    tokens = {scope: make_token(project, scope) for scope in SCOPES}
    command = [sys.executable, "-m", "toolcrib", "serve", "-C", str(project), "--port", "0", *words]
    with WarmPython(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            first = process.stdout.readline()
            yield Served(int(first.strip().rpartition(":")[2]), tokens)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


def make_token(project: Path, scope: str) -> str:
    """Make a token with the command for it."""
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["token", "create", scope, "--scope", scope, "--json", "-C", str(project)]) == 0
    return json.loads(printed.getvalue())["token"]


@pytest.fixture
def served() -> Callable[..., AbstractContextManager[Served]]:
    """Run the real server: `with served(project) as server`."""
    return serve
