"""Settings: which of them open something, and how the file, its tables and the environment are read."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolcrib import Crib, SettingsError
from toolcrib.__main__ import main


def settings_of(project: Path | None, environment: Mapping[str, str] | None = None, **given: object) -> object:
    with Crib(project, environment=environment or {}, **given) as crib:
        return crib.settings


def names_of_settings(project: Path) -> list[str]:
    """Every name that the file may set, as the refusal of another name lists them."""
    (project / "toolcrib.toml").write_text("xyzzy = 1\n")
    with pytest.raises(SettingsError) as refused:
        settings_of(project)
    return str(refused.value).partition("known are ")[2].split(", ")


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
    # Without a project it is the current folder.
    assert usual.workspace == Path.cwd()
    usual = dataclasses.replace(usual, workspace=Path())
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    names = names_of_settings(inner)
    (outer / "toolcrib.toml").write_text("")
    monkeypatch.chdir(inner)
    opening: set[str] = set()
    while True:
        # Settings within another project are refused where they could open something, one by one.
        left = [name for name in names if name not in opening]
        lines = [f"{name} = {write_value(getattr(usual, name) or 'x')}\n" for name in left]
        (inner / "toolcrib.toml").write_text("".join(lines))
        code = main(["list"])
        refused = re.search(r"sets (\w+) inside the project", capfd.readouterr().err)
        if refused is None:
            break
        assert code == 2
        opening.add(refused[1])
    lines = [f"{name}{' (opens)' if name in opening else ''} = {show(getattr(usual, name))}" for name in names]
    listed = {field.name for field in dataclasses.fields(usual)} - {"root", "places"}
    assert listed == set(names)
    golden("settings.txt", "\n".join(lines) + "\n")


FILES = {
    "a flat name": "http_port = 81",
    "a name in its table": "[http]\nport = 82",
    "both": "http_port = 81\n[http]\nport = 82",
    "both, of different settings": "http_port = 81\n[http]\nhost = '127.0.0.2'",
    "an unknown name in a table": "[http]\nporto = 82",
    "a table in a table": "[http.port]\nnumber = 82",
    "a table that is none": "[nonsense]\nport = 82",
    "an empty table that is none": "[nonsense]",
    "an empty table": "[http]",
    "a table of a name without prefix": "[max]\nsteps = 3",
    "a name near another": "htp_port = 82",
    "a wrong type": "http_port = '82'",
    "a truth value for a number": "http_port = true",
    "a number for a truth value": "builtins = 1",
    "a number too large": "http_port = 65536",
    "zero": "max_steps = 0",
    "a text for a list": "disabled = 'add'",
    "an empty list": "grants = []",
    "an empty text in a list": "disabled = ['']",
    "rules": "[[rules]]\nname = 'mine'\nforbidden_patterns = ['x']",
    "a table of rules": "[rules]\nname = 'mine'",
    "a rule without a name": "[[rules]]\nforbidden_patterns = ['x']",
    "a rule with an unknown key": "[[rules]]\nname = 'mine'\nforbidden_patterns = ['x']\nmore = 1",
    "an unknown default rule": "rules_off = ['nonsense']",
    "an unknown guarantee": "[sandbox]\nrequire = ['nonsense']",
    "a variable without a tool": "variables = ['HOME']",
    "a workspace that is missing": "workspace = 'nowhere'",
    "places cannot be set": "places = {}",
    "root cannot be set": "root = '/'",
    "no TOML": "= 1",
    "a name twice": "max_steps = 1\nmax_steps = 2",
}
ENVIRONMENTS = {
    "a number": {"TOOLCRIB_HTTP_PORT": "83"},
    "a number with spaces": {"TOOLCRIB_HTTP_PORT": " 83 "},
    "no number": {"TOOLCRIB_HTTP_PORT": "83x"},
    "an empty number": {"TOOLCRIB_HTTP_PORT": ""},
    "a list": {"TOOLCRIB_DISABLED": "add, send,,"},
    "an empty list": {"TOOLCRIB_GRANTS": ""},
    "a truth value": {"TOOLCRIB_BUILTINS": "False"},
    "a truth value as a number": {"TOOLCRIB_BUILTINS": "0"},
    "a text": {"TOOLCRIB_HTTP_HOST": "127.0.0.3"},
    "rules": {"TOOLCRIB_RULES": "x"},
    "an unknown name": {"TOOLCRIB_NONSENSE": "x"},
    "a name near another": {"TOOLCRIB_HTP_PORT": "1"},
    "small letters": {"TOOLCRIB_http_port": "1"},
    "another prefix": {"toolcrib_http_port": "1", "CRIB_HTTP_PORT": "1", "TOOLCRIBHTTP_PORT": "1"},
    "a nested name": {"TOOLCRIB_HTTP__PORT": "1"},
    "the prefix alone": {"TOOLCRIB_": "1"},
    "a setting that opens": {"TOOLCRIB_ALLOWED_HOSTS": "api.example.com"},
}


def changed(project: Path, environment: Mapping[str, str], **given: object) -> str:
    """The settings that are not the default, with the place of each; or why they are refused."""
    try:
        settings = settings_of(project, environment, **given)
    except SettingsError as problem:
        return f"refused: {problem}".replace(str(project), "PROJECT").partition("; known are")[0]
    return ", ".join(f"{name} = {show(getattr(settings, name))} by {place}" for name, place in settings.places.items())


def test_settings_are_read_and_refused_as_pinned(tmp_path, golden):
    lines = []
    file = tmp_path / "toolcrib.toml"
    for title, text in FILES.items():
        file.write_text(text)
        lines.append(f"file, {title}: {changed(tmp_path, {})}")
    file.write_text("http_port = 81\ndisabled = ['file']\ngrants = ['net.http']\n")
    for title, environment in ENVIRONMENTS.items():
        lines.append(f"environment, {title}: {changed(tmp_path, environment)}")
    both = {"TOOLCRIB_HTTP_PORT": "83", "TOOLCRIB_GRANTS": "shell.execute"}
    lines.append(f"environment and host program: {changed(tmp_path, both, http_port=84, grants=['fs.read'])}")
    for place in ("the host program", "the command line"):
        lines.append(f"grants of {place}: {changed(tmp_path, {}, given_by=place, grants=['fs.read'])}")
    lines.append(f"host program, unknown name: {changed(tmp_path, {}, nonsense=1)}")
    lines.append(f"host program, None changes nothing: {changed(tmp_path, {}, http_port=None)}")
    golden("settings_reading.txt", "\n".join(lines) + "\n")
