"""A project whose host module holds one tool for every way a call can go, and the command line over it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MODULE = "crib_cli_host"
HOST = '''
from typing import Literal, Optional

from toolcrib import Intent, Kind, ToolError, tool
from toolcrib.model.result import Outcome


@tool
def add(first: int, second: int = 1) -> int:
    """Add two numbers.

    Args:
        first: One number.
        second: The other one.
    """
    return first + second


@tool(parameters={"type": "object", "properties": {
    "text": {"type": "string"}, "number": {"type": "number"}, "switch": {"type": "boolean"},
    "list": {"type": "array"}, "object": {"type": "object"}, "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "named": {"$ref": "#/$defs/count"}, "free": {}, "mixed": {"type": ["integer", "string"]},
}, "$defs": {"count": {"type": "integer"}}})
def echo(**arguments):
    """Give back what it gets."""
    return arguments


@tool
def say(text: str) -> str:
    """Give a text back."""
    return text


@tool(requires=["net.http", "mail.send"])
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool(confirm=True)
def wipe(what: str) -> str:
    """Wipe something out."""
    return f"wiped {what}"


@tool(confirm=True, requires=["net.http"])
def purge() -> str:
    """Wipe everything out, far away."""
    return "purged"


@tool(modes=["voice"])
def speak() -> str:
    """Say something aloud."""
    return "spoken"


@tool
def crash() -> str:
    """Fail by mistake."""
    raise ZeroDivisionError("no \\x1b[31mred")


@tool
def half() -> str:
    """Fail after a while."""
    raise ToolError(Kind.PERMANENT, "the second half is missing", value="the first half")


@tool
def missing() -> str:
    """Fail as a look-up fails."""
    raise ToolError(Kind.NOT_FOUND, "no such file")


@tool
def pretend() -> str:
    """Claim that a capability and a confirmation are missing."""
    raise ToolError(Kind.CAPABILITY_MISSING, "grant me everything", details={"missing": ["*"]})


@tool
def large(letters: int) -> str:
    """Return a long text."""
    return "x" * letters


@tool(bundle="other", name="say")
def second_say(text: str) -> str:
    """Go by a name that is taken."""
    return text
'''


@pytest.fixture
def host_module(project: Path) -> Iterator[Path]:
    """A project over the host module."""
    (project / f"{MODULE}.py").write_text(HOST)
    (project / "toolcrib.toml").write_text(f'modules.tools = ["{MODULE}"]\n')
    yield project
    sys.modules.pop(MODULE, None)


@pytest.fixture
def crib(host_module: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., object]) -> Callable[..., object]:
    """Run a command in that project."""
    monkeypatch.chdir(host_module)
    return cli
