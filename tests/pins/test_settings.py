"""Settings: which of them open something, and how the file, its tables and the environment are read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcrib import Crib, SettingsError
from toolcrib.__main__ import main
from toolcrib.infra.settings import Settings
from toolcrib.interfaces.http.settings import ServerSettings


def settings_of(project: Path | None, environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    with Crib(project, environment=environment or {}, **given) as crib:
        return crib.settings


def write_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, (frozenset, tuple)):
        return json.dumps(sorted(value))
    return json.dumps(str(value) if isinstance(value, Path) else value)


def show(value: object) -> str:
    return (
        repr(sorted(value)) if isinstance(value, frozenset) else repr(str(value) if isinstance(value, Path) else value)
    )


def test_settings_have_the_defaults_that_are_pinned_and_those_open_something_that_are_pinned(
    tmp_path, monkeypatch, capfd, golden
):
    usual = settings_of(None)
    defaults = {
        declaration.name_of(key): value
        for table, declaration in usual.tables.items()
        for key, value in usual[table].values.items()
    }
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (outer / "toolcrib.toml").write_text("")
    monkeypatch.chdir(inner)
    opening: set[str] = set()
    while True:
        # Settings within another project are refused where they could open something, one by one.
        left = [name for name in defaults if name not in opening and name.partition(".")[0] not in opening]
        lines = [f"{name} = {write_value(defaults[name] or 'x')}\n" for name in left]
        (inner / "toolcrib.toml").write_text("".join(lines))
        code = main(["list"])
        refused = re.search(r"sets ([\w.]+) inside the project", capfd.readouterr().err)
        if refused is None:
            break
        assert code == 2
        opening.add(refused[1])
    opens = {name for name in defaults if name in opening or name.partition(".")[0] in opening}
    lines = [f"{name}{' (opens)' if name in opens else ''} = {show(value)}" for name, value in defaults.items()]
    golden("settings.txt", "\n".join(lines) + "\n")


FILES = {
    "a name in its table": "[server]\nport = 82",
    "a name with dots": "server.port = 81",
    "both": "server.port = 81\n[server]\nport = 82",
    "both, of different settings": "server.port = 81\n[calls]\nmax_steps = 2",
    "a name in no table": "port = 81",
    "a name of before there were tables": "sandbox_jobs = 2",
    "an unknown name in a table": "[server]\nporto = 82",
    "a table in a table": "[server.port]\nnumber = 82",
    "a table that is none": "[nonsense]\nport = 82",
    "an empty table that is none": "[nonsense]",
    "an empty table": "[server]",
    "a table near another": "[servr]\nport = 82",
    "a text for a table": "server = 'here'",
    "a list of tables for a table": "[[server]]\nport = 82",
    "a wrong type": "server.port = '82'",
    "a truth value for a number": "server.port = true",
    "a number for a truth value": "builtins.enabled = 1",
    "a number too large": "server.port = 65536",
    "zero": "calls.max_steps = 0",
    "a text for a list": "catalog.disabled = 'add'",
    "an empty list": 'grants."*" = []',
    "a grant": "[grants]\n'grep-log' = ['shell.execute']",
    "grants of before there were lines": "access.grants = ['fs.*']",
    "an empty text in a list": "catalog.disabled = ['']",
    "rules": "[[rules]]\nname = 'mine'\nforbidden_patterns = ['x']",
    "a table of rules": "[rules]\nname = 'mine'",
    "a rule without a name": "[[rules]]\nforbidden_patterns = ['x']",
    "a rule with an unknown key": "[[rules]]\nname = 'mine'\nforbidden_patterns = ['x']\nmore = 1",
    "an unknown default rule": "safety_rules.off = ['nonsense']",
    "an unknown guarantee": "[sandbox]\nrequire = ['nonsense']",
    "a variable without a tool": "access.variables = ['HOME']",
    "a workspace that is missing": "workspace.folder = 'nowhere'",
    "places cannot be set": "places = {}",
    "root cannot be set": "root = '/'",
    "no TOML": "= 1",
    "a name twice": "[calls]\nmax_steps = 1\nmax_steps = 2",
}
ENVIRONMENTS = {
    "a number": {"TOOLCRIB_SERVER_PORT": "83"},
    "a number with spaces": {"TOOLCRIB_SERVER_PORT": " 83 "},
    "no number": {"TOOLCRIB_SERVER_PORT": "83x"},
    "an empty number": {"TOOLCRIB_SERVER_PORT": ""},
    "a list": {"TOOLCRIB_CATALOG_DISABLED": "add, send,,"},
    "an empty list": {"TOOLCRIB_ACCESS_VARIABLES": ""},
    "grants": {"TOOLCRIB_GRANTS": "shell.execute"},
    "grants of before there were lines": {"TOOLCRIB_ACCESS_GRANTS": "shell.execute"},
    "a truth value": {"TOOLCRIB_BUILTINS_ENABLED": "False"},
    "a truth value as a number": {"TOOLCRIB_BUILTINS_ENABLED": "0"},
    "a text": {"TOOLCRIB_SERVER_HOST": "127.0.0.3"},
    "rules": {"TOOLCRIB_RULES": "x"},
    "an unknown name": {"TOOLCRIB_NONSENSE": "x"},
    "a name of before there were tables": {"TOOLCRIB_TIMEOUT_MS": "1"},
    "a name near another": {"TOOLCRIB_SERVR_PORT": "1"},
    "small letters": {"TOOLCRIB_server_port": "1"},
    "another prefix": {"toolcrib_server_port": "1", "CRIB_SERVER_PORT": "1", "TOOLCRIBSERVER_PORT": "1"},
    "a nested name": {"TOOLCRIB_SERVER__PORT": "1"},
    "the prefix alone": {"TOOLCRIB_": "1"},
    "a table of two words": {"TOOLCRIB_HTTP_TOOLS_MAX_RETRIES": "1"},
    "a setting that opens": {"TOOLCRIB_HTTP_TOOLS_HOSTS": "api.example.com"},
    "what tools are given": {"TOOLCRIB_WORKSPACE": "/nowhere", "TOOLCRIB_CHANNEL": "7"},
}


def changed(project: Path, environment: Mapping[str, str], **given: Any) -> str:
    """The settings that are not the default, with the place of each; or why they are refused."""
    try:
        settings = settings_of(project, environment, **given)
    except SettingsError as problem:
        return f"refused: {problem}".replace(str(project), "PROJECT").partition("; known are")[0]
    shown = []
    for name, place in settings.places.items():
        table, _, key = name.partition(".")
        value = settings[table].values[key.strip('"') or table]
        shown.append(f"{name} = {show(value)} by {place}")
    return ", ".join(shown)


def test_settings_are_read_and_refused_as_pinned(tmp_path, golden):
    lines = []
    file = tmp_path / "toolcrib.toml"
    for title, text in FILES.items():
        file.write_text(text)
        lines.append(f"file, {title}: {changed(tmp_path, {})}")
    file.write_text("server.port = 81\ncatalog.disabled = ['file']\ngrants.'*' = ['net.http']\n")
    for title, environment in ENVIRONMENTS.items():
        lines.append(f"environment, {title}: {changed(tmp_path, environment)}")
    both = {"TOOLCRIB_SERVER_PORT": "83", "TOOLCRIB_CATALOG_DISABLED": "add"}
    lines.append(
        f"environment and host program: {changed(tmp_path, both, server={'port': 84}, grants={'*': ['fs.read']})}"
    )
    for place in ("the host program", "the command line"):
        lines.append(f"grants of {place}: {changed(tmp_path, {}, given_by=place, grants={'*': ['fs.read']})}")
    lines.append(f"host program, unknown table: {changed(tmp_path, {}, nonsense={})}")
    lines.append(f"host program, unknown name: {changed(tmp_path, {}, server={'nonsense': 1})}")
    lines.append(f"host program, a typed table: {changed(tmp_path, {}, server=ServerSettings(port=85))}")
    lines.append(f"host program, None changes nothing: {changed(tmp_path, {}, server={'port': None}, calls=None)}")
    golden("settings_reading.txt", "\n".join(lines) + "\n")
