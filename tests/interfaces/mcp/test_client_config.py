"""The configuration of clients: what is added, and what is left alone."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import ToolError
from toolcrib.interfaces.mcp.client_config import McpClient, plan_change
from toolcrib.lib.documents import read_jsonc
from toolcrib.lib.json_edit import add_member

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
    ['{"mcpServers": {"crib": {"command": "other"}}}', '{"mcpServers": {},}', "[]", '{"mcpServers": []}', "{"],
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


ENTRY = {"command": "crib", "args": ["mcp", "-C", "/srv/my project"]}
ODD = {
    "with comments": '{\n  // mine\n  "mcpServers": {\n    "theirs": {"command": "x"} // keep\n    /* end */\n  },\n  "other": [1, 2]\n}\n',
    "on one line": '{"mcpServers":{"theirs":{"command":"x"}},"other":1}',
    "with tabs": '{\n\t"mcpServers": {\n\t\t"theirs": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}',
    "with a byte order mark": '\ufeff{\n  "mcpServers": {"theirs": {"command": "x"}}\n}\n',
    "with the line ends of Windows": '{\r\n  "mcpServers": {\r\n    "theirs": {"command": "x"}\r\n  }\r\n}\r\n',
    "without servers": '{\n  "theme": "dark" // mine\n}\n',
    "with an empty object": '{\n    "mcpServers": {}\n}\n',
    "with an empty object of comments": '{"mcpServers": {\n  // none yet\n}}',
    "empty": "{}",
    "empty with a comment": "{\n  // nothing\n}",
    "with odd letters": '{"mcpServers": {"a\\"}{": {"command": "\\\\", "n": 1.50e3}}, "ü": "\\u00fc"}',
    "with a key of that name elsewhere": '{"x": {"mcpServers": {"y": 1}}, "mcpServers": {"z": {}}}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_stands_in_a_file_stays_letter_for_letter(tmp_path, text):
    file = tmp_path / "project" / ".mcp.json"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    change = plan_change(McpClient.CLAUDE_CODE, file.parent, tmp_path)
    before, after = read_jsonc(text), read_jsonc(change.text)
    added = after["mcpServers"].pop("crib")
    assert added == {"command": "crib", "args": ["mcp", "-C", str(file.parent)]}
    assert after == {**before, "mcpServers": before.get("mcpServers", {})}
    # The old text is the new one with pieces left out.
    letters = iter(change.text)
    assert all(letter in letters for letter in text)
    assert ("\r\n" in text) == ("\r\n" in change.text)
    assert change.text.count("\n") == change.text.count("\r\n") or "\r\n" not in text
    file.write_bytes(change.text.encode())
    assert plan_change(McpClient.CLAUDE_CODE, file.parent, tmp_path).entry == ""


def test_comments_stay_beside_what_they_are_about(tmp_path):
    (tmp_path / ".mcp.json").write_text(ODD["with comments"])
    lines = plan_change(McpClient.CLAUDE_CODE, tmp_path, tmp_path).text.splitlines()
    assert lines[3] == '    "theirs": {"command": "x"}, // keep'
    assert lines[4] == "    /* end */"
    assert lines[5] == '    "crib": {'


@given(
    document=st.dictionaries(
        st.text(max_size=5),
        st.integers()
        | st.text(max_size=5)
        | st.lists(st.none(), max_size=2)
        | st.dictionaries(st.text(max_size=3), st.booleans(), max_size=2),
        max_size=4,
    ),
    servers=st.dictionaries(st.text(max_size=5).filter(lambda name: name != "crib"), st.booleans(), max_size=3)
    | st.none(),
    indent=st.none() | st.integers(0, 4) | st.just("\t"),
)
def test_an_entry_is_added_to_any_document(document, servers, indent):
    document = {**document, **({} if servers is None else {"mcpServers": servers})}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    now = json.loads(add_member(text, "mcpServers", "crib", ENTRY, max_bytes=10_000))
    assert now == {**document, "mcpServers": {**(servers or {}), "crib": ENTRY}}


def test_codex_keeps_its_line_ends_and_a_form_that_takes_no_further_table_is_left_to_a_person(tmp_path):
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(b'\xef\xbb\xbf# mine\r\nmodel = "m"\r\n')
    change = plan_change(McpClient.CODEX, PROJECT, tmp_path)
    assert change.text.startswith('\ufeff# mine\r\nmodel = "m"\r\n\r\n[mcp_servers.crib]\r\n')
    path.write_text('mcp_servers = {theirs = {command = "x"}}\n')
    with pytest.raises(ToolError, match="another form; add this by hand"):
        plan_change(McpClient.CODEX, PROJECT, tmp_path)


def test_a_link_stays_a_link_and_permissions_stay(tmp_path, monkeypatch, cli):
    project, elsewhere = tmp_path / "project", tmp_path / "dotfiles.json"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    elsewhere.write_text("{}")
    elsewhere.chmod(0o640)
    (project / ".mcp.json").symlink_to(elsewhere)
    assert cli("mcp", "install", "claude-code", "-C", str(project), "--write").code == 0
    assert (project / ".mcp.json").is_symlink()
    assert "crib" in json.loads(elsewhere.read_text())["mcpServers"]
    assert elsewhere.stat().st_mode & 0o777 == 0o640


def test_a_link_to_nothing_and_what_is_no_text_are_refused(tmp_path):
    (tmp_path / ".mcp.json").symlink_to(tmp_path / "nothing")
    with pytest.raises(ToolError, match="is a link to what does not exist"):
        plan_change(McpClient.CLAUDE_CODE, tmp_path, tmp_path)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ToolError, match="cannot be read"):
        plan_change(McpClient.CURSOR, tmp_path, tmp_path)
