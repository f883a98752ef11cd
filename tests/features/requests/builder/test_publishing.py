"""A candidate that was proved becomes a tool in one step, and is the same tool for everybody from the next call on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import stat
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tool_requests import allowance_of, request_of
from toolcrib import Crib, Kind, ToolError
from toolcrib.features.bundles import other_sources
from toolcrib.features.requests.candidate import Candidate, find_published, publish, read_candidate
from toolcrib.features.requests.format import load_package
from toolcrib.infra.files import Disk
from toolcrib.lib.names import is_uuid7
from toolcrib.model.toolrequest import Made
from warm_python import run_python

WANTED: dict[str, object] = {
    "id": "req_20240115_001",
    "name": "text_shouter",
    "description": "Shouts a text",
    "inputs": [
        {"name": "text", "type": "string", "description": "What to shout", "required": True},
        {"name": "times", "type": "integer", "description": "How often", "default": 2},
    ],
    "outputs": [{"name": "loud", "type": "string"}],
    "requirements": ["Must be loud", "Must not be shy"],
    "example_usage": 'from tools.text_shouter import shout\n\nprint(shout(text="Ahoy").loud)\n',
}
CODE = "from parts.voice import loud\n\ndef shout(text, times):\n    return {'loud': ' '.join([loud(text)] * times)}\n"
VOICE = "from pathlib import Path\nMARK = Path(__file__).with_name('mark.txt').read_text()\ndef loud(text):\n    return text.upper() + MARK\n"
NOW = datetime(2026, 8, 1, 12, 30, 15, 123_456, tzinfo=UTC)


def wanted(**fields: object):
    return request_of({**WANTED, **fields})


REQUEST = wanted()


@pytest.fixture
def package(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "package"
    (folder / "parts").mkdir(parents=True)
    (folder / "text_shouter.py").write_text(CODE)
    (folder / "parts" / "voice.py").write_text(VOICE)
    (folder / "parts" / "mark.txt").write_text("!")
    return folder


@pytest.fixture
def tools(project) -> Path:
    return project / "tools"


def put(package: Path, tools: Path, request=REQUEST, **how: object):
    candidate = read_candidate(package, request)
    return publish(candidate, request, project_tools=tools, now=lambda: NOW, **how)  # type: ignore[arg-type]  # as given


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def attempt(candidate: Candidate, tools: Path, disk: Disk) -> ToolError | None:
    try:
        publish(candidate, REQUEST, project_tools=tools, disk=disk)
    except ToolError as error:
        return error
    return None


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestWhatIsPublished:
    def test_the_folder_holds_the_makers_files_and_two_of_ours(self, package, tools):
        made = put(package, tools)

        assert made == Made(
            name="text_shouter",
            version="1.0.0",
            address="tools/text-shouter@1.0.0",
            path="tools/text_shouter",
            digest=made.digest,
        )
        files = tree(tools / "text_shouter")
        assert sorted(files) == ["__init__.py", "parts/mark.txt", "parts/voice.py", "text_shouter.py", "tool.json"]
        assert files["text_shouter.py"] == CODE.encode()
        assert [path.name for path in tools.iterdir()] == ["text_shouter"]

    @pytest.mark.spec("S0-25")
    def test_the_description_is_a_document_of_the_platform_and_says_what_was_asked_for(self, package, tools):
        made = put(package, tools)

        document = json.loads((tools / "text_shouter" / "tool.json").read_bytes())

        assert is_uuid7(document.pop("bundleID"))
        assert is_uuid7(document.pop("toolID"))
        files = document.pop("files")
        assert sorted(files) == ["__init__.py", "parts/mark.txt", "parts/voice.py", "text_shouter.py"]
        assert all(len(digest) == 64 for digest in files.values())
        assert document == {
            "schemaVersion": "toolcrib-1",
            "slug": "text-shouter",
            "version": "1.0.0",
            "displayName": "text_shouter",
            "description": "Shouts a text",
            "type": "go",
            "isEnabled": True,
            "argSchema": REQUEST.parameters,
            "outputSchema": REQUEST.output_schema,
            "impl": {"goFunc": "tools.text_shouter.shout"},
            "function": "shout",
            "requires": [],
            "hosts": None,
            "requirements": ["Must be loud", "Must not be shy"],
            "requestID": "req_20240115_001",
            "digest": made.digest,
            "createdAt": "2026-08-01T12:30:15.123Z",
            "modifiedAt": "2026-08-01T12:30:15.123Z",
        }

    def test_the_same_build_gives_the_same_bytes_apart_from_the_times(self, package, tmp_path):
        folders = [tmp_path / name / "tools" for name in ("one", "other")]
        for folder in folders:
            put(package, folder)

        assert tree(folders[0]) == tree(folders[1])

    async def test_its_ids_are_those_under_which_the_platform_shows_it(self, package, project, tools, crib_of):
        put(package, tools)
        document = json.loads((tools / "text_shouter" / "tool.json").read_bytes())

        kept = crib_of(project=project).bundles.tool(document["bundleID"], "text-shouter", "1.0.0")

        assert (kept.id, kept.bundle.id, kept.bundle.slug) == (document["toolID"], document["bundleID"], "tools")
        assert kept.tool.metadata["requirements"] == ["Must be loud", "Must not be shy"]

    def test_others_may_read_it(self, package, tools):
        before = os.umask(0o022)
        try:
            put(package, tools)
        finally:
            os.umask(before)

        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tools / "text_shouter").rglob("*")}
        assert (modes["parts"], modes["voice.py"], modes["tool.json"]) == (0o755, 0o644, 0o644)
        assert stat.S_IMODE((tools / "text_shouter").stat().st_mode) == 0o755

    def test_the_operator_adds_capabilities_and_hosts_and_that_is_another_package(self, package, tools, tmp_path):
        plain = put(package, tmp_path / "plain" / "tools")
        allowance = allowance_of("net.http", hosts=("example.org",))

        made = put(package, tools, allowance=allowance)

        loaded = load_package(tools / "text_shouter", (tools / "text_shouter" / "tool.json").read_bytes())
        assert (loaded.requires, loaded.hosts) == ({"net.http"}, ("example.org",))
        assert made.digest != plain.digest

    def test_a_folder_of_tools_that_is_not_there_is_made(self, package, tmp_path):
        put(package, tmp_path / "deep" / "project" / "tools")

        assert (tmp_path / "deep" / "project" / "tools" / "text_shouter" / "tool.json").is_file()

    def test_as_much_as_a_candidate_may_hold_can_be_published_and_loaded(self, package, tools):
        for number in range(200 - 4):
            (package / f"{number}.txt").touch()

        put(package, tools)

        load_package(tools / "text_shouter", (tools / "text_shouter" / "tool.json").read_bytes())

    def test_a_description_that_would_be_too_long_to_load_is_refused_before_anything_is_written(self, package, tools):
        request = replace(REQUEST, requirements=("x" * 30_000,) * 10)

        with pytest.raises(ToolError) as caught:
            put(package, tools, request)

        assert caught.value.kind is Kind.LIMIT_EXCEEDED
        assert list(tools.iterdir()) == []

    def test_a_name_that_is_no_name_leads_nowhere(self, package, tools):
        candidate = read_candidate(package, REQUEST)
        evil = replace(REQUEST, name="../text_shouter")
        named = replace(candidate, files={**candidate.files, "../text_shouter.py": b"def shout(): ...\n"})

        with pytest.raises(ToolError, match="use 1 to 64"):
            publish(named, evil, project_tools=tools)
        assert list(tools.iterdir()) == []


class TestWhatIsThereAlready:
    def test_the_same_package_again_is_done(self, package, tools):
        first = put(package, tools)
        before = tree(tools)

        again = publish(read_candidate(package, REQUEST), REQUEST, project_tools=tools)

        assert again == first
        assert tree(tools) == before

    def test_another_package_of_that_name_is_a_conflict_and_changes_nothing(self, package, tools):
        put(package, tools)
        before = tree(tools)
        (package / "parts" / "mark.txt").write_text("?")

        with pytest.raises(ToolError) as caught:
            put(package, tools)

        assert caught.value.kind is Kind.CONFLICT
        assert caught.value.message == (
            "tools/text_shouter is there already and is something else; move it away, or ask under another name"
        )
        assert tree(tools) == before

    @pytest.mark.parametrize("damage", ["changed", "added", "removed"])
    def test_what_was_changed_since_is_something_else(self, package, tools, damage):
        put(package, tools)
        target = tools / "text_shouter" / "parts" / "mark.txt"
        if damage == "removed":
            target.unlink()
        else:
            (target if damage == "changed" else target.with_name("new.txt")).write_text("?")

        with pytest.raises(ToolError, match="is something else") as caught:
            put(package, tools)
        assert caught.value.kind is Kind.CONFLICT

    @pytest.mark.parametrize("kind", ["folder", "file", "link"])
    def test_what_another_program_has_there_stays(self, package, tools, kind):
        place = tools / "text_shouter"
        if kind == "folder":
            place.mkdir()
            (place / "handler.py").write_text("mine")
        elif kind == "file":
            place.write_text("mine")
        else:
            place.symlink_to("/tmp")

        with pytest.raises(ToolError) as caught:
            put(package, tools)

        assert caught.value.kind is Kind.CONFLICT
        assert [path.name for path in tools.iterdir()] == ["text_shouter"]
        assert place.is_symlink() is (kind == "link")

    def test_an_empty_folder_is_no_obstacle(self, package, tools):
        (tools / "text_shouter").mkdir()

        put(package, tools)

        assert (tools / "text_shouter" / "tool.json").is_file()

    @pytest.mark.parametrize("name", ["text_shouter.py", "text-shouter.py"])
    def test_a_plain_file_keeps_its_name(self, package, tools, name):
        (tools / name).write_text("def run():\n    return 1\n")

        with pytest.raises(ToolError, match=f"tools/{name} is a tool of that name already") as caught:
            put(package, tools)
        assert caught.value.kind is Kind.CONFLICT

    def test_of_many_publishers_all_succeed_with_the_same_and_one_with_another(self, package, tools):
        (other := package.with_name("other")).mkdir()
        (other / "text_shouter.py").write_text("def shout(text, times):\n    return {'loud': text}\n")
        candidates = [read_candidate(place, REQUEST) for place in (package, other) for _ in range(6)]
        start, ended = threading.Barrier(len(candidates)), []

        def race(candidate):
            start.wait(25)
            try:
                ended.append(publish(candidate, REQUEST, project_tools=tools).digest)
            except ToolError as error:
                ended.append(error.kind)

        threads = [threading.Thread(target=race, args=[candidate]) for candidate in candidates]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        winner = load_package(tools / "text_shouter", (tools / "text_shouter" / "tool.json").read_bytes()).digest
        assert sorted(ended) == sorted([winner] * 6 + [Kind.CONFLICT] * 6)
        assert [path.name for path in tools.iterdir()] == ["text_shouter"]


class TestWhatWasPublishedBefore:
    def test_it_is_found_by_the_next_builder_of_the_request(self, package, tools):
        made = put(package, tools)

        assert find_published(REQUEST, project_tools=tools) == made

    @pytest.mark.parametrize(
        "fields", [{"id": "req_20240115_002"}, {"description": "Another"}, {"capabilities": ["net.http"]}]
    )
    def test_what_another_request_brought_there_is_not_it(self, package, tools, fields):
        put(package, tools)

        assert find_published(wanted(**fields), project_tools=tools) is None

    def test_nothing_or_something_broken_is_not_it(self, package, tools):
        assert find_published(REQUEST, project_tools=tools) is None
        put(package, tools)
        (tools / "text_shouter" / "text_shouter.py").write_text("changed")
        assert find_published(REQUEST, project_tools=tools) is None


class FailingDisk(Disk):
    """Fails at the n-th call."""

    def __init__(self, number: int, code: int) -> None:
        self.left = number
        self.code = code

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path, flags, mode=0o600, *, folder=None):
        self._count()
        return super().open(path, flags, mode, folder=folder)

    def write(self, descriptor, data):
        self._count()
        return super().write(descriptor, data[: max(1, len(data) // 2)])

    def sync(self, descriptor):
        self._count()
        super().sync(descriptor)

    def rename(self, name, new, *, folder):
        self._count()
        super().rename(name, new, folder=folder)

    def make_folder(self, name, mode, *, folder):
        self._count()
        super().make_folder(name, mode, folder=folder)


class TestWhatGoesWrong:
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
    def test_whichever_step_fails_there_is_all_of_it_or_nothing(self, package, tools, code):
        candidate = read_candidate(package, REQUEST)
        descriptors = open_descriptors()
        for number in range(1, 1_000):
            disk = FailingDisk(number, code)
            error = attempt(candidate, tools, disk)
            if error is None:
                break
            assert "disk" in error.message
            names = [path.name for path in tools.iterdir()]
            assert names == (["text_shouter"] if error.partial_side_effects else [])
            if (tools / "text_shouter").exists():
                assert find_published(REQUEST, project_tools=tools) is not None
                shutil.rmtree(tools / "text_shouter")

        assert number > 20
        assert find_published(REQUEST, project_tools=tools) is not None
        assert open_descriptors() == descriptors

    def test_everything_is_on_the_disk_before_it_gets_its_name(self, package, tools):
        steps: list[str] = []

        class Watched(Disk):
            def sync(self, descriptor):
                steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
                super().sync(descriptor)

            def rename(self, name, new, *, folder):
                steps.append(f"rename {new}")
                super().rename(name, new, folder=folder)

        put(package, tools, disk=Watched())

        last = steps.index("rename text_shouter")
        assert steps[last + 1 :] == ["sync tools"]
        synced = {step.removeprefix("sync ") for step in steps[:last]}
        assert {"tool.json", "__init__.py", "text_shouter.py", "voice.py", "mark.txt", "parts"} < synced

    def test_what_a_killed_publisher_left_is_swept_and_no_tool(self, package, project, tools):
        code = (
            "import os, signal, sys\nfrom pathlib import Path\n"
            "from toolcrib.features.requests.candidate import read_candidate\nfrom toolcrib.features.requests.candidate import publish\n"
            "from toolcrib.infra.files import Disk\nfrom toolcrib.features.requests.document import read_request\n"
            "class Deadly(Disk):\n    def rename(self, *given, **more):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
            "request = read_request(sys.argv[1])\n"
            "publish(read_candidate(Path(sys.argv[2]), request), request, project_tools=Path(sys.argv[3]), disk=Deadly())\n"
        )
        ended = run_python([sys.executable, "-c", code, REQUEST.text, package, tools], timeout=60, check=False)
        (left,) = tools.iterdir()

        assert (ended.returncode, left.name.startswith(".crib-")) == (-9, True)
        with Crib(project) as crib:
            assert crib.find("text_shouter") is None
            assert crib.problems == []
        put(package, tools)
        assert [path.name for path in tools.iterdir()] == ["text_shouter"]

    def test_one_that_is_at_work_is_not_swept(self, package, tools):
        seen: list[list[str]] = []

        class Interrupted(Disk):
            def rename(self, name, new, *, folder):
                other = package.with_name("other")
                shutil.copytree(package, other)
                (other / "other_shouter.py").write_text(CODE)
                put(other, tools, wanted(name="other_shouter", example_usage=""))
                seen.append(sorted(path.name for path in tools.iterdir()))
                super().rename(name, new, folder=folder)

        put(package, tools, disk=Interrupted())

        assert len(seen[0]) == 2
        assert sorted(path.name for path in tools.iterdir()) == ["other_shouter", "text_shouter"]


class TestWhoFindsIt:
    @pytest.mark.spec("S0-35")
    async def test_it_is_live_on_the_next_call_for_everybody_who_looked_for_it_before(
        self, package, project, tools, crib_of
    ):
        here, there = crib_of(project=project), crib_of(project=project)
        for crib in (here, there):
            assert (await crib.call("text_shouter", text="ahoy")).error.kind is Kind.NOT_FOUND
            assert "text_shouter" not in {tool.name for tool in crib.find_tools("shout a text")}

        await asyncio.to_thread(put, package, tools)

        for crib in (here, there):
            assert (await crib.call("text_shouter", text="ahoy")).value == {"loud": "AHOY! AHOY!"}
        assert {tool.name for tool in there.tools} >= {"text_shouter"}
        assert [*here.problems, *there.problems] == []

    async def test_a_search_finds_it_without_a_restart(self, package, project, tools, crib_of, monkeypatch):
        monkeypatch.setattr(other_sources, "LOOK_SECONDS", 0.0)  # a search may be that far behind
        monkeypatch.setattr(other_sources, "ASKING_SHARE", 0)
        crib = crib_of(project=project)
        assert "text_shouter" not in {tool.name for tool in crib.find_tools("shout a text")}
        put(package, tools)

        assert crib.find_tools("shout a text")[0].name == "text_shouter"
        assert crib.bundles.search("text-sh").items[0].kept.slug == "text-shouter"

    @pytest.mark.spec("S0-35")
    def test_the_command_line_calls_it(self, package, project, tools):
        put(package, tools)

        ended = run_python(
            [sys.executable, "-m", "toolcrib", "-C", project, "call", "text_shouter", "text=ahoy", "times=1"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert (ended.returncode, json.loads(ended.stdout)) == (0, {"loud": "AHOY!"})
