"""A tool is published once, found by name and version, and arrives whole and unchanged, or not at all."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.depots.depot import FolderDepot, list_tools, open_depot
from warm_python import WarmPython


def refused(work) -> ToolError:
    with pytest.raises(ToolError) as caught:
        work()
    return caught.value


async def refused_later(work) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


def snapshot(root: Path) -> dict[str, bytes]:
    """The files of a project; what was tried, though, stays in the audit trail."""
    files = {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}
    own = (".toolcrib/audit/", ".toolcrib/locks/")
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(own)}


def change(path: Path, **facts: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def rewrite_version(crib: Crib, text: str) -> None:
    assert crib.settings.root is not None
    (crib.settings.root / "tools" / "hello.py").write_text(text)


@pytest.mark.spec("S3-04")
async def test_a_published_tool_is_listed_and_pulled_from_the_folder(author, user, depot):
    manifest = author.publish("hello", str(depot)).manifest
    assert await list_tools(open_depot(str(depot))) == {"hello": ["1.0.0"]}
    pulled = await user.pull("hello", str(depot), enable=True)
    assert pulled.manifest == manifest
    assert pulled.written == (user.settings.root / "tools" / "hello.py",)
    assert (await user.call("hello", name="Ann")).value == "Hello, Ann!"


@pytest.mark.spec("S3-04")
async def test_a_published_tool_is_listed_and_pulled_from_a_web_server(author, user, depot, served):
    author.publish("hello", str(depot))
    remote = open_depot(served)
    assert await list_tools(remote) == {"hello": ["1.0.0"]}
    await remote.close()
    pulled = await user.pull("hello", served, version="1.0.0", enable=True)
    assert pulled.written[0].read_bytes() == (author.settings.root / "tools" / "hello.py").read_bytes()
    assert (await user.call("hello")).value == "Hello, World!"


async def test_nothing_is_asked_of_a_web_server_beyond_the_address_that_was_typed(user, depot, served, author):
    author.publish("hello", str(depot))
    (depot / "index.json").unlink()
    error = await refused_later(user.pull("hello", served))
    assert error.message == f"{served} is not a depot: it has no index.json; publish a tool to it first"
    assert (await refused_later(user.pull("hello", "http://localhost:1"))).kind in {Kind.BLOCKED, Kind.HOST_NOT_ALLOWED}


async def test_a_version_that_is_not_there_is_named_with_those_that_are(author, user, depot):
    author.publish("hello", str(depot))
    error = await refused_later(user.pull("hello", str(depot), version="2.0.0"))
    assert (error.kind, error.message) == (
        Kind.NOT_FOUND,
        f"{depot} holds no version 2.0.0 of hello; it has 1.0.0",
    )
    assert (await refused_later(user.pull("bye", str(depot)))).kind is Kind.NOT_FOUND


def test_a_version_is_published_once(author, depot):
    author.publish("hello", str(depot))
    before = snapshot(depot)
    assert "with the same content" in refused(lambda: author.publish("hello", str(depot))).message
    rewrite_version(author, "def hello() -> str:\n    return 'other'\n")
    error = refused(lambda: author.publish("hello", str(depot)))
    assert (error.kind, "raise the version" in error.message) == (Kind.CONFLICT, True)
    assert snapshot(depot) == before


@pytest.mark.spec("S3-04")
@pytest.mark.parametrize("place", ["folder", "web"])
async def test_a_file_that_is_not_the_published_one_is_refused(author, user, depot, served, place):
    author.publish("hello", str(depot))
    file = depot / "tools/hello/1.0.0/files/hello.py"
    file.write_bytes(file.read_bytes().replace(b"Hello", b"Hullo"))
    before = snapshot(user.settings.root)
    error = await refused_later(user.pull("hello", str(depot) if place == "folder" else served))
    assert error.message == (
        "hello@1.0.0: hello.py is not the file that was published (its hash differs); nothing was installed"
    )
    assert snapshot(user.settings.root) == before


async def test_a_changed_manifest_is_refused(author, user, depot):
    author.publish("hello", str(depot))
    change(depot / "tools/hello/1.0.0/manifest.json", description="another")
    error = await refused_later(user.pull("hello", str(depot)))
    assert "the hash is not that of the manifest" in error.message


@pytest.mark.parametrize(
    "path", ["../evil.py", "/etc/evil.py", "a/../../evil.py", ".hidden", "a//b", "a\\b", "c:evil", "", "ä.py", "a\0b"]
)
async def test_a_path_that_leads_elsewhere_is_refused(author, user, depot, path):
    author.publish("hello", str(depot))
    manifest = depot / "tools/hello/1.0.0/manifest.json"
    files = json.loads(manifest.read_text())["files"]
    change(manifest, files=[{**files[0], "path": path}], main=path)
    error = await refused_later(user.pull("hello", str(depot)))
    assert (error.kind, "cannot be packed" in error.message) == (Kind.VALIDATION, True)


@pytest.mark.parametrize(
    "facts",
    [
        {"depot": 2},
        {"files": []},
        {"files": "hello.py"},
        {"files": [1]},
        {"main": "other.py"},
        {"tree": "home"},
        {"requires": [1]},
        {"name": "Hello"},
        {"version": "1"},
        {"signature": "me"},
        {"hash": 5},
    ],
)
async def test_a_manifest_that_makes_no_sense_is_refused_and_nothing_changes(author, user, depot, facts):
    author.publish("hello", str(depot))
    change(depot / "tools/hello/1.0.0/manifest.json", **facts)
    before = snapshot(user.settings.root)
    await refused_later(user.pull("hello", str(depot)))
    assert snapshot(user.settings.root) == before


@pytest.mark.parametrize("text", ["[]", "{", '{"depot": 1}', '{"depot": 1, "tools": {"hello": []}}', "\0"])
async def test_an_index_that_makes_no_sense_is_refused(author, user, depot, text):
    author.publish("hello", str(depot))
    (depot / "index.json").write_text(text)
    assert (await refused_later(user.pull("hello", str(depot)))).kind is Kind.VALIDATION


async def test_another_tool_under_the_name_is_refused(author, user, depot, project_of):
    author.publish("hello", str(depot))
    async with project_of("other", bye="def bye() -> str:\n    '''Part.'''\n    return 'bye'\n") as other:
        other.publish("bye", str(depot))
    (depot / "tools/hello/1.0.0").rename(depot / "gone")
    (depot / "tools/bye/1.0.0").rename(depot / "tools/hello/1.0.0")
    error = await refused_later(user.pull("hello", str(depot)))
    assert "holds bye@1.0.0; the depot is damaged" in error.message


async def test_a_file_of_ones_own_is_never_overwritten_unasked(author, user, depot):
    author.publish("hello", str(depot))
    mine = user.settings.root / "tools" / "hello.py"
    mine.write_text("def hello() -> str:\n    '''Mine.'''\n    return 'mine'\n")
    error = await refused_later(user.pull("hello", str(depot)))
    assert (error.kind, "--replace" in error.message) == (Kind.CONFLICT, True)
    assert "mine" in mine.read_text()
    await user.pull("hello", str(depot), replace=True, enable=True)
    assert (await user.call("hello")).value == "Hello, World!"
    assert (await user.pull("hello", str(depot))).written == ()


async def test_nothing_is_installed_through_a_link(author, user, depot, tmp_path):
    author.publish("hello", str(depot))
    outside = tmp_path / "outside.py"
    outside.write_text("kept")
    (user.settings.root / "tools" / "hello.py").symlink_to(outside)
    error = await refused_later(user.pull("hello", str(depot), replace=True))
    assert error.kind is Kind.BLOCKED
    assert outside.read_text() == "kept"


async def test_a_failure_half_way_takes_back_what_was_written(author, user, depot):
    folder = author.settings.root / "tools"
    (folder / "_a").mkdir()
    (folder / "_a" / "data.txt").write_text("a")
    (folder / "_z").mkdir()
    (folder / "_z" / "data.txt").write_text("z")
    author.publish("hello", str(depot), files=["_a/data.txt", "_z/data.txt"])
    (user.settings.root / "tools" / "_z").write_text("a file stands where a folder belongs")
    before = snapshot(user.settings.root)
    await refused_later(user.pull("hello", str(depot)))
    assert snapshot(user.settings.root) == before
    assert not (user.settings.root / ".toolcrib").exists() or not list(
        (user.settings.root / ".toolcrib").glob("pull-*")
    )


async def test_further_files_travel_with_the_tool(author, user, depot):
    (author.settings.root / "tools" / "_words.txt").write_text("hello")
    author.publish("hello", str(depot), files=["_words.txt"])
    await user.pull("hello", str(depot))
    assert (user.settings.root / "tools" / "_words.txt").read_text() == "hello"


@pytest.mark.parametrize("name", ["../toolcrib.toml", "/etc/passwd", "none.txt", "link.txt", "folder"])
def test_only_files_beside_the_tool_can_be_added(author, depot, name):
    folder = author.settings.root / "tools"
    (folder / "link.txt").symlink_to("/etc/passwd")
    (folder / "folder").mkdir()
    error = refused(lambda: author.publish("hello", str(depot), files=[name]))
    assert error.kind is Kind.NOT_FOUND
    assert not (depot / "index.json").exists()


def test_a_tool_of_the_host_program_cannot_be_published(author, depot):
    error = refused(lambda: author.publish("read_file", str(depot)))
    assert "is not written in a file of the project" in error.message


def test_a_web_address_is_not_published_to(author):
    error = refused(lambda: author.publish("hello", "http://127.0.0.1:9/depot"))
    assert "publish to the folder that the web server serves" in error.message


PUBLISHER = """
import sys
from toolcrib import Crib, ToolError
with Crib(sys.argv[1], environment={}) as crib:
    try:
        crib.publish("hello", sys.argv[2])
        print("won")
    except ToolError as error:
        print(error.kind)
"""


def test_of_many_publishers_of_one_version_exactly_one_wins(author, depot):
    command = [sys.executable, "-c", PUBLISHER, str(author.settings.root), str(depot)]
    running = [WarmPython(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = sorted(process.communicate(timeout=50)[0].strip() for process in running)
    assert answers == ["CONFLICT"] * 5 + ["won"]


KILLED = """
import os, signal, sys
from pathlib import Path
from toolcrib import Crib
from toolcrib.features.depots.depot import FolderDepot
FolderDepot._write_index = lambda self: os.kill(os.getpid(), signal.SIGKILL)
with Crib(sys.argv[1], environment={}) as crib:
    crib.publish("hello", sys.argv[2])
"""


async def test_what_a_killed_publisher_left_is_listed_by_the_next(author, user, depot, project_of):
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(author.settings.root), str(depot)]
    publisher = await asyncio.create_subprocess_exec(*command)
    assert await asyncio.wait_for(publisher.wait(), 50) == -signal.SIGKILL
    leftover = depot / "tools" / "hello" / ".0123.part"
    leftover.mkdir()
    async with project_of("other", bye="def bye() -> str:\n    '''Part.'''\n    return 'bye'\n") as other:
        other.publish("bye", str(depot))
    assert await list_tools(FolderDepot(depot)) == {"bye": ["1.0.0"], "hello": ["1.0.0"]}
    assert not leftover.exists()
    await user.pull("hello", str(depot))


def test_a_depot_can_be_read_by_a_web_server_of_another_user(author, depot):
    author.publish("hello", str(depot))
    for path in depot.rglob("*"):
        if path.name != ".lock":
            assert path.stat().st_mode & (0o055 if path.is_dir() else 0o044), path
    assert not os.access(depot / "tools/hello/1.0.0/files/hello.py", os.X_OK)


def tool_of(name: str, *modules: str) -> str:
    """The code of a tool that imports these modules, and gives what is in them."""
    imports = "".join(f"import {module}\n" for module in modules)
    words = ", ".join(f"getattr({module}, 'WORD', None)" for module in modules)
    return f'{imports}\ndef {name}() -> list:\n    """Give words."""\n    return [{words}]\n'


def refusal_of(name: str, file: str) -> str:
    return f"{name} may not import {file}: its tool is disabled, or was pulled or built and keeps its files"


@pytest.mark.parametrize(
    "name", ["more.py", "below/more.py", "below/more.sh", "more.sh", "below/tool.json", "below/schema.json"]
)
async def test_a_package_brings_no_tool_besides_its_own(author, user, depot, name):
    path = author.settings.root / "tools" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n# Give a word.\necho word\n" if name.endswith(".sh") else tool_of("more"))
    author.publish("hello", str(depot), files=[name])
    message = (await refused_later(user.pull("hello", str(depot)))).message
    assert "holds other tools besides it (more)" in message or "which a package may not install" in message
    assert not list((user.settings.root / "tools").iterdir())


async def test_files_of_a_folder_that_holds_helpers_travel_with_the_tool(author, user, depot):
    path = author.settings.root / "tools" / "_below" / "more.py"
    path.parent.mkdir()
    path.write_text(tool_of("more"))
    author.publish("hello", str(depot), files=["_below/more.py"])
    await user.pull("hello", str(depot))
    assert user.find("hello") is not None
    assert user.find("more") is None


async def test_what_was_pulled_is_imported_only_by_the_tools_that_it_came_with(project_of, depot):
    helpers = {name: f"WORD = {name!r}\n" for name in ("_one", "_both", "_same", "_own")}
    one, two = tool_of("one", "_one", "_both", "_own"), tool_of("two", "_both", "_same")
    async with project_of("author", one=one, two=two, **helpers) as author:
        author.publish("one", str(depot), files=["_one.py", "_both.py"])
        author.publish("two", str(depot), files=["_both.py", "_same.py"])
    own = {f"use_{name}": tool_of(f"use_{name}", name) for name in ("_one", "_both", "_same", "one")}
    async with project_of("user", _own=helpers["_own"], _same=helpers["_same"], **own) as user:
        for name in ("one", "two"):
            await user.pull(name, str(depot), enable=True)
        assert (await user.call("one")).value == ["_one", "_both", "_own"]
        assert (await user.call("two")).value == ["_both", "_same"]
        # The same bytes were there before: they are the project's own.
        assert (await user.call("use__same")).value == ["_same"]
        for name in ("_one", "_both", "one"):
            assert (await user.call(f"use_{name}")).error.reason == refusal_of(f"use_{name}", f"{name}.py")
    async with project_of("user") as user:
        assert (await user.call("use__one")).error.reason == refusal_of("use__one", "_one.py")
        record = user.settings.root / "tools" / ".pulled.json"
        record.write_text("[]")
        message = f"{record}: write an object with the files of each tool that was pulled"
        assert (await user.call("use__one")).error.reason == message


async def test_a_disabled_tool_in_a_folder_below_is_not_imported_either(project_of):
    async with project_of("user", use=tool_of("use", "below.part")) as user:
        (user.settings.root / "tools" / "below").mkdir()
        (user.settings.root / "tools" / "below" / "part.py").write_text(tool_of("part"))
        assert (await user.call("use")).ok
        user.switch_tool("part", on=False)
        assert (await user.call("use")).error.reason == refusal_of("use", "part.py")


async def test_a_file_that_a_later_version_has_no_more_does_not_become_the_projects_own(project_of, depot, tmp_path):
    for version, files in (("first", ["_left.py"]), ("second", [])):
        async with project_of(
            "author", one=tool_of("one", *("_left" for _ in files)), _left="WORD = 'left'\n"
        ) as author:
            author.publish("one", str(tmp_path / version), files=files)
        async with project_of("user", use=tool_of("use", "_left")) as user:
            await user.pull("one", str(tmp_path / version), enable=True, replace=True)
            assert (await user.call("use")).error.reason == refusal_of("use", "_left.py")


async def test_a_tool_whose_name_is_that_of_a_module_is_told_when_it_is_published_and_pulled(author, user, depot):
    (author.settings.root / "tools" / "csv.py").write_text(tool_of("csv"))
    (warning,) = author.publish("csv", str(depot)).left_behind
    pulled = await user.pull("csv", str(depot))
    said = "csv.py: 'import csv' in another file finds the module of Python or of a package; rename the file if it is meant"
    assert warning == said
    assert pulled.to_do == f"it is disabled; look at it, then enable it with: crib enable csv\n{warning}"
