"""Add the entry for `crib mcp` to the configuration of a client."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.lib.documents import read_jsonc, read_toml
from toolcrib.lib.json_edit import BOM, add_member
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "crib"
MAX_BYTES = 5_000_000


class McpClient(StrEnum):
    """The clients whose configuration is known."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CODEX = "codex"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a configuration file would become; `entry` is the part that is new, empty if it stands there already."""

    path: Path
    entry: str
    text: str


def plan_change(
    client: McpClient, project: Path, home: Path, *, program: str = NAME, platform: str = sys.platform
) -> Change:
    """The change that has a client start `program mcp` for the project; nothing is written."""
    path = _path(client, project, home, platform)
    before = _read(path)
    started = {"command": program, "args": ["mcp", "-C", str(project)]}
    if client is McpClient.CODEX:
        return _toml_change(path, before, started)
    key = "servers" if client is McpClient.VSCODE else "mcpServers"
    kind = {"type": "stdio"} if client is McpClient.VSCODE else {}
    return _json_change(path, before, key, {**kind, **started})


def own_program() -> str:
    """The path of the running `crib`: clients that a desktop starts have not the PATH of a shell or of an environment."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.is_file() else NAME


def _path(client: McpClient, project: Path, home: Path, platform: str) -> Path:
    support = home / "Library" / "Application Support" if platform == "darwin" else home / ".config"
    return {
        McpClient.CLAUDE_CODE: project / ".mcp.json",
        McpClient.CLAUDE_DESKTOP: support / "Claude" / "claude_desktop_config.json",
        McpClient.CURSOR: project / ".cursor" / "mcp.json",
        McpClient.VSCODE: project / ".vscode" / "mcp.json",
        McpClient.CODEX: home / ".codex" / "config.toml",
    }[client]


def _read(path: Path) -> str:
    """The text of the file with its own line ends; empty if there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        if path.is_symlink():
            raise ToolError(Kind.VALIDATION, f"{path} is a link to what does not exist; remove it first") from None
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ToolError(Kind.VALIDATION, f"{path} cannot be read ({problem}); correct it first") from problem


def _json_change(path: Path, before: str, key: str, entry: Mapping[str, object]) -> Change:
    is_empty = not before.removeprefix(BOM).strip()
    try:
        document = {} if is_empty else read_jsonc(before, str(path), max_bytes=MAX_BYTES)
    except ToolError as problem:
        raise _by_hand(path, {key: {NAME: entry}}, problem.message) from problem
    servers = document.get(key, {}) if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(servers, dict):
        raise _by_hand(path, {key: {NAME: entry}}, f"{key} is not an object")
    if _is_there(servers, entry):
        return Change(path=path, entry="", text=before)
    if NAME in servers:
        raise _by_hand(path, {key: {NAME: entry}}, f"it has another entry {NAME!r}")
    shown = json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
    if is_empty:
        return Change(path=path, entry=shown, text=f"{shown}\n")
    text = add_member(before, key, NAME, dict(entry), max_bytes=MAX_BYTES)
    if read_jsonc(text, str(path), max_bytes=MAX_BYTES) != {**document, key: {**servers, NAME: dict(entry)}}:
        raise _by_hand(path, {key: {NAME: entry}}, "its form is unusual")
    return Change(path=path, entry=shown, text=text)


def _toml_change(path: Path, before: str, started: Mapping[str, object]) -> Change:
    # A text or a list of texts is written in TOML as in JSON.
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in started.items())
    entry = f"[mcp_servers.{NAME}]\n{''.join(lines)}"
    document = read_toml(before.removeprefix(BOM), str(path), max_bytes=MAX_BYTES)
    servers = document.get("mcp_servers", {})
    if isinstance(servers, dict) and _is_there(servers, started):
        return Change(path=path, entry="", text=before)
    if not isinstance(servers, dict) or NAME in servers:
        raise ToolError(Kind.CONFLICT, f"{path}: it has another entry {NAME!r}; replace it by hand with:\n{entry}")
    gap = "" if not before.strip() else "\n" if before.endswith("\n") else "\n\n"
    text = f"{before}{gap}{entry}" if "\r\n" not in before else before + f"{gap}{entry}".replace("\n", "\r\n")
    if not _is_added(text, document, servers, started):
        raise ToolError(Kind.CONFLICT, f"{path}: it writes mcp_servers in another form; add this by hand:\n{entry}")
    return Change(path=path, entry=entry, text=text)


def _is_added(
    text: str, document: Mapping[str, object], servers: Mapping[str, object], started: Mapping[str, object]
) -> bool:
    """Whether the text says what the document did, and the new server; an inline table takes no further one."""
    try:
        now = read_toml(text.removeprefix(BOM), "", max_bytes=MAX_BYTES)
    except ToolError:
        return False
    return now == {**document, "mcp_servers": {**servers, NAME: dict(started)}}


def _is_there(servers: Mapping[str, object], entry: Mapping[str, object]) -> bool:
    """Whether the client starts this project already, by the path of the program or by its name."""
    return servers.get(NAME) in (entry, {**entry, "command": NAME})


def _by_hand(path: Path, entry: Mapping[str, object], why: str) -> ToolError:
    shown = json.dumps(entry, indent=2, ensure_ascii=False)
    return ToolError(Kind.CONFLICT, f"{path}: {why}; add this by hand:\n{shown}")
