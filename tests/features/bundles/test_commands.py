"""`crib bundle`, `search` and `disable` over bundles, the same here and on a server, and what `crib serve` says first."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from warm_python import WarmPython

SECONDS = 30
BUNDLE = {"slug": "weather", "displayName": "Weather", "isEnabled": True}
FORECAST = {
    "schemaVersion": "toolcrib-1",
    "slug": "forecast",
    "version": "v1",
    "displayName": "The forecast",
    "isEnabled": True,
    "type": "http",
    "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://weather.example/${city}"},
}


@contextmanager
def serving(folder: Path, home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A server whose output goes through a pipe, buffered as Python does it."""
    command = [sys.executable, "-m", "toolcrib", "serve", "--port", "0", *words]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with WarmPython(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, cwd=folder
    ) as server:
        try:
            assert select.select([server.stdout or -1], [], [], SECONDS)[0], "the server did not say its address"
            yield server
        finally:
            if server.poll() is None:
                server.terminate()
                try:
                    server.wait(SECONDS)
                except subprocess.TimeoutExpired:
                    server.kill()


def greeting(server: subprocess.Popen[str]) -> list[str]:
    """What the server says before it is asked anything."""
    lines = []
    for line in server.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("Ctrl-C"):
            return lines
    raise AssertionError(lines)


@pytest.fixture(params=["here", "there"])
def crib(request, project: Path, empty_home: Path, cli, monkeypatch) -> Iterator[Callable[..., object]]:
    """Run a command in a project, and over a server of it."""
    (project / "toolcrib.toml").write_text("")
    (project / "tools" / "forecast.py").write_text(
        'def forecast(city: str) -> str:\n    """The forecast of a file."""\n    return city\n'
    )
    monkeypatch.chdir(project)
    if request.param == "here":
        yield cli
        return
    with serving(project, empty_home) as server:
        url = greeting(server)[0].split()[-1]
        yield lambda *words: cli(*words, "--url", url)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bundle with one tool."""
    folder = tmp_path_factory.mktemp("weather")
    write(folder, "bundle.json", BUNDLE)
    write(folder, "forecast.json", FORECAST)
    return folder


def write(folder: Path, name: str, document: object) -> None:
    (folder / name).write_text(json.dumps(document))


def stored(crib: Callable[..., Any], slug: str = "weather") -> dict[str, object]:
    (found,) = [one for one in json.loads(crib("bundle", "list", "--json").out) if one["slug"] == slug]
    return found


def words_of(ended: Any) -> list[str]:
    return [line.split()[0] for line in ended.out.splitlines()]


def test_loading_again_changes_nothing_and_leaves_the_switch_alone(crib, folder):
    first = crib("bundle", "load", str(folder))
    assert (first.code, words_of(first)) == (0, ["made", "made"]), first.err
    assert crib("disable", "weather/*").code == 0
    before = stored(crib)
    again = crib("bundle", "load", str(folder))
    assert (again.code, words_of(again), again.err) == (0, ["kept", "kept"], "")
    assert stored(crib) == before
    assert before["enabled"] is False


def test_links_and_pipes_in_a_folder_are_not_read(crib, folder, tmp_path):
    write(tmp_path, "mine.json", FORECAST)
    (folder / "linked.json").symlink_to(tmp_path / "mine.json")
    os.mkfifo(folder / "pipe.json")
    ended = crib("bundle", "load", str(folder))
    assert ended.code != 0
    for name in ("linked.json", "pipe.json"):
        assert f"{folder / name}: is a link or a pipe, which is not followed; put a copy of what it means" in ended.err
    assert all(one["slug"] != "weather" for one in json.loads(crib("bundle", "list", "--json").out))


def test_a_bundle_that_reads_otherwise_is_replaced_and_stays_switched_off(crib, folder):
    crib("bundle", "load", str(folder))
    crib("disable", "weather/*")
    write(folder, "bundle.json", {**BUNDLE, "description": "Rain and shine"})
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, words_of(ended)) == (0, ["replaced", "kept"]), ended.err
    assert (stored(crib)["description"], stored(crib)["enabled"]) == ("Rain and shine", False)


@pytest.mark.parametrize(
    "change",
    [
        {"displayName": "Another"},
        {"description": "Tells more"},
        {"argSchema": {"type": "object", "properties": {"city": {"type": "string", "default": 1}}}},
        {"toolID": "0197f000-0000-7000-8000-000000000001"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_version_that_reads_otherwise_is_named_and_kept(crib, folder, change):
    if "argSchema" in change:
        schema = {"type": "object", "properties": {"city": {"type": "string", "default": True}}}
        write(folder, "forecast.json", {**FORECAST, "argSchema": schema})
    crib("bundle", "load", str(folder))
    before = crib("show", "weather/forecast@v1", "--json").out
    write(folder, "forecast.json", {**FORECAST, **change})
    ended = crib("bundle", "load", str(folder))
    assert ended.code == 1
    assert ended.out.splitlines()[1] == (
        "differs  forecast.json: forecast@v1 is kept as it was; give it another version"
    )
    assert crib("show", "weather/forecast@v1", "--json").out == before


def test_a_version_that_says_the_same_in_other_words_is_kept(crib, folder):
    crib("bundle", "load", str(folder))
    (folder / "forecast.json").write_text(
        "// a comment\n" + json.dumps({"tags": [], "description": "", **FORECAST, "isEnabled": False}, indent=4)
    )
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, words_of(ended)) == (0, ["kept", "kept"])


def test_all_problems_are_told_with_their_files_and_nothing_is_written(crib, folder):
    write(folder, "bundle.json", {**BUNDLE, "displayName": 1, "colour": "blue"})
    write(folder, "a.json", {**FORECAST, "version": "v2", "type": "magic", "displayName": ""})
    write(folder, "b.json", {"displayName": "nameless"})
    write(folder, "c.json", FORECAST)
    write(folder, "d.json", [])
    (folder / "e.json").write_text("{")
    (folder / "f.json").mkdir()
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, ended.out) == (1, "")
    *told, last = ended.err.splitlines()
    places = [line.removeprefix(f"crib: {folder}/").split(":")[0] for line in told]
    assert [place.partition(" ")[0] for place in places] == [
        *("bundle.json", "bundle.json", "a.json", "a.json", "b.json", "d.json", "e.json", "f.json", "forecast.json"),
    ], told
    assert "forecast.json: forecast@v1 is in c.json already" in ended.err
    assert last == f"crib: nothing is written; {len(told)} problems"
    assert all(one["slug"] != "weather" for one in json.loads(crib("bundle", "list", "--json").out))


def test_a_bundle_that_is_off_takes_no_new_tools_and_says_so_before_anything_is_written(crib, folder):
    write(folder, "bundle.json", {**BUNDLE, "isEnabled": False})
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, ended.out) == (1, "")
    assert f"{folder / 'bundle.json'}: isEnabled: a disabled bundle accepts no tools" in ended.err
    write(folder, "bundle.json", BUNDLE)
    crib("bundle", "load", str(folder))
    crib("disable", "weather/*")
    write(folder, "bundle.json", {**BUNDLE, "description": "new"})
    write(folder, "second.json", {**FORECAST, "version": "v2"})
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, ended.out) == (1, "")
    assert f"{folder / 'second.json'}: the bundle weather is disabled" in ended.err
    assert stored(crib)["description"] == ""


def test_a_deleted_bundle_comes_back_by_its_id(crib, folder):
    (folder / "forecast.json").unlink()
    crib("bundle", "load", str(folder))
    bundle_id = stored(crib)["id"]
    assert f"if bundle.json says bundleID {bundle_id}" in crib("bundle", "delete", "weather").out
    write(folder, "bundle.json", {**BUNDLE, "bundleID": bundle_id})
    ended = crib("bundle", "load", str(folder))
    assert (ended.code, ended.out) == (0, f"restored  bundle weather ({bundle_id})\n")
    assert stored(crib)["enabled"] is True


def test_a_bundle_is_made_filled_and_emptied_by_commands(crib, folder):
    made = crib("bundle", "new", "sky", "--name", "The sky", "--description", "Above")
    assert (made.code, made.out) == (0, stored(crib, "sky")["id"] + "\n"), made.err
    assert (stored(crib, "sky")["displayName"], stored(crib, "sky")["description"]) == ("The sky", "Above")
    taken = crib("bundle", "new", "sky")
    assert (taken.code, taken.out) == (1, "")
    assert made.out.strip() in taken.err
    file = str(folder / "forecast.json")
    assert crib("bundle", "put", "sky", file).out == "made  sky/forecast@v1\n"
    assert crib("bundle", "put", made.out.strip(), file).out == "kept  sky/forecast@v1\n"
    write(folder, "forecast.json", {**FORECAST, "displayName": "Another"})
    differs = crib("bundle", "put", "sky", file)
    assert (differs.code, differs.out) == (
        1,
        "differs  sky/forecast@v1: forecast@v1 is kept as it was; give it another version\n",
    )
    write(folder, "forecast.json", {**FORECAST, "version": "v2", "type": "magic"})
    wrong = crib("bundle", "put", "sky", file)
    assert (wrong.code, wrong.out, f"{file}: type" in wrong.err) == (1, "", True)
    unsure = crib("bundle", "remove", "sky/forecast@v1")
    assert (unsure.code, unsure.out, "--yes" in unsure.err) == (5, "", True)
    assert crib("bundle", "remove", "sky/forecast@v1", "--yes").out == "sky/forecast@v1 is removed\n"
    assert crib("bundle", "remove", "sky/forecast@v1", "--yes").code == 4
    assert crib("bundle", "delete", "sky").code == 0


def test_a_version_to_remove_is_named_in_full(crib):
    for name in ("forecast", "sky/forecast", "forecast@v1"):
        ended = crib("bundle", "remove", name, "--yes")
        assert (ended.code, "write BUNDLE/SLUG@VERSION" in ended.err) == (2, True)
    assert "there is no bundle 'sky'" in crib("bundle", "remove", "sky/forecast@v1", "--yes").err
    refused = crib("bundle", "remove", "tools/forecast@1.0.0", "--yes")
    assert (refused.code, "is read-only here" in refused.err) == (1, True)


def test_a_search_names_each_tool_by_what_calls_it(crib, folder):
    crib("bundle", "load", str(folder))
    listed = {line.split()[0] for line in crib("list").out.splitlines() if "forecast" in line}
    found = {line.split()[0] for line in crib("search", "forecast").out.splitlines() if "forecast" in line}
    assert found == listed == {"forecast", "weather/forecast@v1"}


def test_the_name_of_a_bundle_is_met_with_how_to_switch_it(crib, folder):
    crib("bundle", "load", str(folder))
    for command in ("disable", "enable"):
        ended = crib(command, "weather")
        assert ended.code == 4
        assert ended.err == f"crib: Tool 'weather' not found; for the bundle: crib {command} 'weather/*'\n"


def test_nothing_is_kept_outside_a_project(cli, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (("new", "sky"), ("load", str(folder)), ("put", "sky", str(folder / "forecast.json"))):
        ended = cli("bundle", *words)
        assert (ended.code, ended.out, "crib init" in ended.err) == (2, "", True)


def test_the_help_of_bundles_has_a_line_for_each_command(cli):
    shown = cli("bundle", "--help").out
    for command in ("list", "new", "load", "put", "remove", "delete"):
        (line,) = [line for line in shown.splitlines() if line.split()[:1] == [command]]
        assert not line.endswith("...")


def test_a_token_without_a_scope_is_met_with_one_line_that_lists_them(cli):
    ended = cli("token", "create", "ci")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "crib: Missing option '--scope'. Choose from: read, invoke, manage, approve, confirm, setup. See: crib token create --help\n"
    )


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_what_there_is_at_once_and_ends_well(project, empty_home, folder, cli, how):
    (project / "toolcrib.toml").write_text("builtins.enabled = false\n")
    (project / "tools" / "add.py").write_text('def add(a: int = 1) -> int:\n    """Add."""\n    return a + 1\n')
    cli("bundle", "load", str(folder), "-C", str(project))
    with serving(project, empty_home) as server:
        lines = greeting(server)
        url = lines[0].split()[-1]
        assert f" serves {project} on http://127.0.0.1:" in lines[0]
        assert lines[1] == "2 tools and 2 bundles, enabled"
        assert any(line.startswith(f"  curl '{url}/tools/search?q=") and "q=word" not in line for line in lines)
        assert f"  {sys.executable} -m toolcrib call add --url {url}" in lines
        assert any(line.startswith(f"The page, for one sign-in within 10 minutes: {url}/ui/#") for line in lines)
        assert cli("page", "-C", str(project)).out.startswith(f"{url}/ui/#"), "it knows the running server"
        assert f"  curl -H 'Content-Type: application/json' -d '{{}}' '{url}/call/add'" in lines
        assert not any("Authorization" in line or "problem" in line for line in lines)
        server.send_signal(how)
        assert server.wait(SECONDS) == 0
    assert cli("page", "-C", str(project)).out.startswith("http://127.0.0.1:8765/ui/#")


def test_a_server_for_others_says_how_they_bring_their_token(project, empty_home, cli):
    (project / "toolcrib.toml").write_text("builtins.enabled = false\n")
    (project / "tools" / "add.py").write_text('def add(a: int = 1) -> int:\n    """Add."""\n    return a + 1\n')
    (project / "tools" / "broken.py").write_text("def broken(:\n")
    cli("token", "create", "me", "--scope", "read", "-C", str(project))
    with serving(project, empty_home, "--host", "0.0.0.0") as server:
        lines = greeting(server)
    assert lines[1:3] == ["1 tool and 1 bundle, enabled", "1 problem; see: crib check"]
    curls = [line for line in lines if line.startswith("  curl")]
    assert len(curls) == 3
    assert all('-H "Authorization: Bearer $CRIB_TOKEN"' in line and "//127.0.0.1:" in line for line in curls)
    assert not any("0.0.0.0" in line for line in lines[1:])


def test_the_pasted_lines_work(project, empty_home, cli):
    (project / "toolcrib.toml").write_text("builtins.enabled = false\n")
    (project / "tools" / "add.py").write_text('def add(a: int = 1) -> int:\n    """Add."""\n    return a + 1\n')
    token = cli("token", "create", "me", "--scope", "read", "--scope", "invoke", "-C", str(project)).out.strip()
    with serving(project, empty_home, "--host", "0.0.0.0") as server:
        lines = greeting(server)
        call = next(line for line in lines if " call add --url" in line)
        environment = {"PATH": os.defpath, "HOME": str(empty_home), "CRIB_TOKEN": token}
        ended = subprocess.run(
            call, shell=True, cwd="/", env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert ended.stdout == "2\n", ended.stderr
        assert " token create NAME --scope read --scope invoke)" in lines[3]


def test_a_server_outside_a_project_says_whose_tools_it_serves(tmp_path, empty_home):
    with serving(tmp_path, empty_home) as server:
        assert " serves the tools of the user on http://" in greeting(server)[0]


@pytest.mark.spec("S1-93", "S1-94")
def test_a_bundle_is_exported_and_imported_under_another_name(crib, folder, project):
    crib("bundle", "load", str(folder))
    ended = crib("bundle", "export", "weather")
    size = (project / "weather.zip").stat().st_size
    assert (ended.code, ended.out) == (0, f"exported weather to weather.zip (1 tool, {size} bytes)\n"), ended.err
    again = crib("bundle", "export", "weather")
    assert again.code != 0
    assert "weather.zip is there already; name another with --to, or add --replace" in again.err
    before = (project / "weather.zip").read_bytes()
    assert crib("bundle", "export", "weather", "--replace").code == 0
    assert (project / "weather.zip").read_bytes() == before
    taken = crib("bundle", "import", "weather.zip")
    assert taken.code != 0
    assert "nothing was imported" in taken.err
    ended = crib("bundle", "import", "weather.zip", "--as", "climate")
    assert ended.code == 0, ended.err
    made = stored(crib, "climate")
    assert ended.out == f"imported climate ({made['id']}) with 1 tool\n"
    assert "it is disabled; look at its tools, then enable it with: crib enable 'climate/*'" in ended.err
    assert made["enabled"] is False
    assert crib("bundle", "import", "weather.zip", "--as", "sky", "--enable").err == ""
    assert stored(crib, "sky")["enabled"] is True


def test_a_file_that_is_no_archive_is_refused(crib, project):
    (project / "weather.zip").write_bytes(b"PK")
    ended = crib("bundle", "import", "weather.zip")
    assert ended.code != 0
    assert "the archive was refused" in ended.err
