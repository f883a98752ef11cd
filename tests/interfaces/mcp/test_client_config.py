"""The configuration of clients: what is added, and what is left alone."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from toolcrib import ToolError
from toolcrib.interfaces.mcp.client_config import McpClient, plan_change

PROJECT = Path("/srv/my project")
ARGS = ["mcp", "-C", "/srv/my project"]


@pytest.mark.parametrize(
    ("client", "file", "key"),
    [
        ("claude-code", "project/.mcp.json", "mcpServers"),
        ("cursor", "project/.cursor/mcp.json", "mcpServers"),
        ("vscode", "project/.vscode/mcp.json", "servers"),
        ("claude-desktop", "home/.config/Claude/claude_desktop_config.json", "mcpServers"),
    ],
)
def test_an_entry_is_added_beside_what_stands_there_and_only_once(tmp_path, client, file, key):
    project, home, path = tmp_path / "project", tmp_path / "home", tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"other": 1, key: {"theirs": {"command": "x"}}}))
    change = plan_change(McpClient(client), project, home, platform="linux")
    assert change.path == path
    document = json.loads(change.text)
    assert document["other"] == 1
    assert document[key]["theirs"] == {"command": "x"}
    assert document[key]["crib"]["args"] == ["mcp", "-C", str(project)]
    path.write_text(change.text)
    assert plan_change(McpClient(client), project, home, platform="linux").entry == ""


def test_a_file_that_is_not_there_is_planned_whole_and_nothing_is_written(tmp_path):
    change = plan_change(McpClient.CURSOR, tmp_path, tmp_path)
    assert json.loads(change.text) == {
        "mcpServers": {"crib": {"command": "crib", "args": ["mcp", "-C", str(tmp_path)]}}
    }
    assert not change.path.exists()


def test_codex_gets_a_table_behind_its_own(tmp_path):
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "m"')
    change = plan_change(McpClient.CODEX, PROJECT, tmp_path)
    assert change.text.startswith('# mine\nmodel = "m"\n\n')
    assert tomllib.loads(change.text)["mcp_servers"]["crib"] == {"command": "crib", "args": ARGS}
    path.write_text(change.text)
    assert plan_change(McpClient.CODEX, PROJECT, tmp_path).entry == ""


@pytest.mark.parametrize(
    "text",
    ['{"mcpServers": {"crib": {"command": "other"}}}', '{// mine\n"mcpServers": {}}', "[]", '{"mcpServers": []}', "{"],
)
def test_what_cannot_be_added_to_is_left_to_a_person_with_the_entry_to_paste(tmp_path, text):
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(ToolError) as refused:
        plan_change(McpClient.CLAUDE_CODE, tmp_path, tmp_path)
    assert '"crib"' in refused.value.message
    assert "by hand" in refused.value.message


@pytest.mark.parametrize("client", [str(client) for client in McpClient])
def test_install_shows_the_change_writes_it_when_told_and_the_program_in_it_starts(tmp_path, monkeypatch, cli, client):
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    shown = cli("mcp", "install", client, "-C", str(project))
    assert (shown.code, "write it with --write" in shown.out) == (0, True)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]

    written = cli("mcp", "install", client, "-C", str(project), "--write")
    [file] = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert (written.code, str(file) in written.out) == (0, True)
    document = tomllib.loads(file.read_text()) if client == "codex" else json.loads(file.read_text())
    [servers] = document.values()
    entry = servers["crib"]
    # A client that a desktop starts has no PATH that leads here.
    started = [entry["command"], *entry["args"]]
    done = subprocess.run(started, input=b"{\n", capture_output=True, timeout=60, check=True, env={"PATH": "/nowhere"})
    assert json.loads(done.stdout)["error"]["code"] == -32700
    assert "has it already" in cli("mcp", "install", client, "-C", str(project), "--write").out


@pytest.mark.parametrize("client", [McpClient.CURSOR, McpClient.CODEX])
def test_an_entry_with_the_name_of_the_program_counts_as_one_with_its_path(tmp_path, client):
    by_name = plan_change(client, tmp_path, tmp_path)
    by_name.path.parent.mkdir(parents=True)
    by_name.path.write_text(by_name.text)
    assert plan_change(client, tmp_path, tmp_path, program="/opt/bin/crib").entry == ""
