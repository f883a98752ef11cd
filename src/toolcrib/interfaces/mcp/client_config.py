"""Write the entry for `crib mcp` into the configuration of a client, beside what stands there."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.lib.documents import read_json, read_toml
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
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ToolError(Kind.VALIDATION, f"{path} cannot be read ({problem}); mend it first") from problem


def _json_change(path: Path, before: str, key: str, entry: Mapping[str, object]) -> Change:
    try:
        document = read_json(before, place=str(path), max_bytes=MAX_BYTES) if before.strip() else {}
    except ToolError as problem:
        # Comments would be lost by writing the file anew.
        raise _by_hand(path, {key: {NAME: entry}}, problem.message) from problem
    servers = document.get(key, {}) if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(servers, dict):
        raise _by_hand(path, {key: {NAME: entry}}, f"{key} is no object")
    if _is_there(servers, entry):
        return Change(path=path, entry="", text=before)
    if NAME in servers:
        raise _by_hand(path, {key: {NAME: entry}}, f"it has another entry {NAME!r}")
    document[key] = {**servers, NAME: entry}
    shown = json.dumps({key: {NAME: entry}}, indent=2, ensure_ascii=False)
    return Change(path=path, entry=shown, text=json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _toml_change(path: Path, before: str, started: Mapping[str, object]) -> Change:
    # A text or a list of texts is written in TOML as in JSON.
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in started.items())
    entry = f"[mcp_servers.{NAME}]\n{''.join(lines)}"
    servers = read_toml(before, str(path), max_bytes=MAX_BYTES).get("mcp_servers", {})
    if isinstance(servers, dict) and _is_there(servers, started):
        return Change(path=path, entry="", text=before)
    if not isinstance(servers, dict) or NAME in servers:
        raise ToolError(Kind.CONFLICT, f"{path}: it has another entry {NAME!r}; replace it by hand with:\n{entry}")
    gap = "" if not before.strip() else "\n" if before.endswith("\n") else "\n\n"
    return Change(path=path, entry=entry, text=f"{before}{gap}{entry}")


def _is_there(servers: Mapping[str, object], entry: Mapping[str, object]) -> bool:
    """Whether the client starts this project already, by the path of the program or by its name."""
    return servers.get(NAME) in (entry, {**entry, "command": NAME})


def _by_hand(path: Path, entry: Mapping[str, object], why: str) -> ToolError:
    shown = json.dumps(entry, indent=2, ensure_ascii=False)
    return ToolError(Kind.CONFLICT, f"{path}: {why}; add this by hand:\n{shown}")
