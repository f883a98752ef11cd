"""Sinks: events go in one after the other, and are on disk when the block is left."""

import asyncio
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sample_tools import host_tool
from toolcrib import Kind, ToolError
from toolcrib.core.grants import Grants
from toolcrib.features.scripts.format import ScriptFile
from toolcrib.features.scripts.sink import open_sink
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.files.jail import Jail
from toolcrib.infra.sandbox.jobs import WorkspacePolicy

PATIENCE = 30
FILE_SINK = Path(__file__).parents[2] / "seeds" / "fixtures" / "ai_tools" / "sinks" / "file_sink.py"
HEAD = """
__tool_type__ = "runtime"
__version__ = "1.0.0"
__executor_id__ = "python"
__category__ = "sinks"
__tool_description__ = "A sink of these tests"
"""


@pytest.fixture
def jail(workspace):
    with Jail(workspace, is_sensitive=lambda path: path.endswith(".env"), protected=[workspace / "tools"]) as jail:
        yield jail


@pytest.fixture
def sink_of(tools_folder):
    """The tool of a sink, given as its code, with a config of its own."""

    def read(code, *requires, config=None):
        path = tools_folder / "sinks" / "sample_sink.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
        (tool,) = ScriptFile(tools_folder).read(path, path.read_bytes())
        run = replace(tool.run, config=tool.run.config if config is None else config)
        return replace(tool, run=run, requires=frozenset(requires))

    return read


@pytest.fixture
def file_sink(sink_of):
    return sink_of(FILE_SINK.read_text())


def grants_but(*missing: str) -> Grants:
    """All that sinks of these tests use, but what is missing."""
    return Grants({"*": frozenset({"fs.read", "fs.write", "net.http"}.difference(missing))}, means=lambda *_: True)


@pytest.fixture
def pour(sandbox, workspace, jail):
    """Write events to a sink; `missing` names what is not granted."""

    async def run(tool, events, *, missing=(), seconds=10.0, **arguments):
        parts = {
            "sandbox": sandbox,
            "workspace_policy": WorkspacePolicy(workspace=workspace),
            "jail": jail,
            "egress": None,
        }
        async with asyncio.timeout(PATIENCE):
            async with open_sink(tool, arguments, **parts, grants=grants_but(*missing), seconds=seconds) as sink:
                for event in events:
                    await sink.write(event)
            return sink.written

    return run


@pytest.mark.spec("S3-42")
async def test_events_are_appended_as_json_lines_and_what_is_no_json_as_it_is(file_sink, pour, workspace):
    (workspace / "log.jsonl").write_text("before\n")
    assert await pour(file_sink, ['{"a":1}', "plain words", '  {"b": "Köln"}'], path="log.jsonl") == 3
    assert (workspace / "log.jsonl").read_text() == 'before\n{"a": 1}\nplain words\n{"b": "K\\u00f6ln"}\n'


@pytest.mark.spec("S3-66")
async def test_another_format_is_written_verbatim(file_sink, pour, workspace):
    events = ['{"a":1}', '  {"b" :2} ', "", "  ", "Köln \u2028 \U0001f600", "tab\tand \\n", "\t'x'\"y\" ", '"quoted"']
    await pour(file_sink, events, path="plain.txt", format="text")
    assert (workspace / "plain.txt").read_text().split("\n") == [*events, ""]


@pytest.mark.spec("S3-42")
async def test_thousands_of_events_arrive_in_their_order(file_sink, pour, workspace):
    count = 5_000
    assert await pour(file_sink, (json.dumps({"number": number}) for number in range(count)), path="many") == count
    lines = (workspace / "many").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(count))


async def test_a_file_in_folders_that_are_missing_is_made_even_without_an_event(file_sink, pour, workspace):
    assert await pour(file_sink, [], path="deep/er/log") == 0
    assert (workspace / "deep" / "er" / "log").read_bytes() == b""


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside", ".env", "tools/x.py", "", "a\0b"])
async def test_a_path_that_no_tool_may_write_is_refused_before_anything_runs(file_sink, pour, workspace, path):
    with pytest.raises(ToolError) as caught:
        await pour(file_sink, ["x"], path=path)
    assert caught.value.kind in {Kind.BLOCKED, Kind.VALIDATION, Kind.PERMANENT}
    assert not (workspace.parent / "outside").exists()


async def test_a_link_that_leads_out_is_refused(file_sink, pour, workspace):
    (workspace / "way").symlink_to(workspace.parent)
    with pytest.raises(ToolError, match="outside the workspace"):
        await pour(file_sink, ["x"], path="way/outside")


async def test_a_path_of_the_config_wins_and_is_granted_by_it(sink_of, pour, workspace):
    tool = sink_of(FILE_SINK.read_text(), config={"path": "configured", "format": "text", "env": {"A": "1"}})
    await pour(tool, ["one"], missing=["fs.write"], path="other", format="jsonl")
    assert (workspace / "configured").read_text() == "one\n"
    assert not (workspace / "other").exists()


async def test_a_path_of_the_caller_needs_the_grant_to_write(file_sink, pour, workspace):
    with pytest.raises(ToolError) as caught:
        await pour(file_sink, ["one"], missing=["fs.write"], path="log")
    assert caught.value.kind is Kind.CAPABILITY_MISSING
    assert 'write "sample_sink" = ["fs.write"] under [grants]' in caught.value.message
    assert not (workspace / "log").exists()


async def test_what_a_sink_requires_must_be_granted(sink_of, pour):
    with pytest.raises(ToolError, match=r"requires net\.http, which is not granted"):
        await pour(sink_of(FILE_SINK.read_text(), "net.http", config={"path": "log"}), ["x"], missing=["net.http"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "path"),
        ({"path": "log", "flush_every": "ten"}, "flush_every"),
        ({"path": "log", "colour": "red"}, "colour"),
    ],
)
async def test_arguments_are_checked_against_what_the_class_takes(file_sink, pour, arguments, reason):
    with pytest.raises(ToolError, match=reason) as caught:
        await pour(file_sink, ["x"], **arguments)
    assert caught.value.kind is Kind.VALIDATION


FAILING = (
    HEAD
    + """
class Sink:
    def __init__(self, path: str):
        self.file = open(path, "a")

    async def write(self, event):
        if event == "bad":
            raise ValueError("no such event")
        if event == "stop":
            import os; os._exit(3)
        if event == "wait":
            import time; time.sleep(60)
        self.file.write(event + "\\n")
"""
)


async def test_an_event_that_fails_is_told_by_its_number_and_ends_the_sink(sink_of, pour, workspace):
    events = ["one", "two", "bad", *(["later"] * 50_000)]
    with pytest.raises(ToolError) as caught:
        await pour(sink_of(FAILING), events, path="log")
    assert caught.value.message == "sample_sink: event 3 failed: ValueError: no such event"
    assert caught.value.details == {"event": 3, "written": 2}
    lines = (workspace / "log").read_text().splitlines()
    assert lines[:3] == ["one", "two", "later"]
    assert len(lines) < 40_000


async def test_a_last_event_that_fails_is_told_when_the_block_is_left(sink_of, pour, workspace):
    with pytest.raises(ToolError, match="event 2 failed: ValueError: no such event"):
        await pour(sink_of(FAILING), ["one", "bad"], path="log")
    assert (workspace / "log").read_text() == "one\n"


async def test_a_process_that_ends_itself_loses_no_event_in_silence(sink_of, pour):
    with pytest.raises(ToolError, match="ended with exit code 3"):
        await pour(sink_of(FAILING), ["one", "stop"], path="log")


async def test_an_event_that_takes_too_long_ends_the_sink(sink_of, pour):
    with pytest.raises(ToolError, match=r"event 2 took longer than 0\.5 s") as caught:
        await pour(sink_of(FAILING), ["one", "wait"], path="log", seconds=0.5)
    assert caught.value.kind is Kind.TIMEOUT


async def test_a_class_that_cannot_be_made_says_so(sink_of, pour):
    code = f"{HEAD}\nclass Sink:\n    def __init__(self): raise OSError('nothing there')\n    async def write(self, event): ..."
    with pytest.raises(ToolError, match=r"failed \(OSError\): nothing there"):
        await pour(sink_of(code), ["x"] * 1000)


async def test_an_event_too_long_for_a_line_is_refused_and_the_rest_goes_on(file_sink, sandbox, workspace, jail):
    parts = {"sandbox": sandbox, "workspace_policy": WorkspacePolicy(workspace=workspace), "jail": jail, "egress": None}
    async with open_sink(file_sink, {"path": "log"}, **parts, grants=grants_but()) as sink:
        await sink.write("one")
        with pytest.raises(ToolError, match="event 2 is too long with 9000000 letters"):
            await sink.write("x" * 9_000_000)
        with pytest.raises(ToolError, match="an event is a text, not a dict"):
            await sink.write({})
        await sink.write("two")
    assert (workspace / "log").read_text() == "one\ntwo\n"
    with pytest.raises(ToolError, match="is closed and takes no event"):
        await sink.write("late")


async def test_what_goes_wrong_in_the_block_passes_and_what_was_written_stays(file_sink, sandbox, workspace, jail):
    parts = {"sandbox": sandbox, "workspace_policy": WorkspacePolicy(workspace=workspace), "jail": jail, "egress": None}
    with pytest.raises(ZeroDivisionError):
        async with open_sink(file_sink, {"path": "log"}, **parts, grants=grants_but()) as sink:
            await sink.write("one")
            raise ZeroDivisionError
    assert (workspace / "log").read_text() == "one\n"


async def test_everything_is_synced_before_the_block_is_left(sink_of, pour, workspace, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(Path(f"/proc/self/fd/{number}").readlink().name))
    code = f"{HEAD}\nclass Sink:\n    def __init__(self, path: str): self.file = open(path, 'a')\n    async def write(self, event): self.file.write(event)\n    def close(self): self.file.close()"
    await pour(sink_of(code), ["one"], path="log")
    assert synced[-1] == "log"
    assert (workspace / "log").read_text() == "one"


class Beside:
    """A sandbox beside which something else happens just before a job begins."""

    def __init__(self, sandbox, act):
        self._sandbox = sandbox
        self._act = act

    async def run(self, job, **how):
        self._act()
        return await self._sandbox.run(job, **how)


class Overtaken(Jail):
    """A jail in which something happens to a file as soon as it was made."""

    act = staticmethod(print)

    def append(self, path, data):
        super().append(path, data)
        self.act(Path(path))


def swap_for_link(file):
    file.unlink()
    file.symlink_to(file.parent.parent / "victim")


@pytest.fixture
def victim(workspace):
    file = workspace.parent / "victim"
    file.write_text("untouched")
    return file


async def test_a_file_that_is_swapped_for_a_link_before_the_sink_opens_it_leads_nowhere(
    sink_of, sandbox, workspace, jail, victim
):
    tool = sink_of(FILE_SINK.read_text(), config={"path": "events.jsonl"})
    beside = Beside(sandbox, lambda: swap_for_link(workspace / "events.jsonl"))
    parts = {"sandbox": beside, "workspace_policy": WorkspacePolicy(workspace=workspace), "jail": jail, "egress": None}
    with pytest.raises(ToolError, match="the file was replaced meanwhile; call again"):
        async with open_sink(tool, {}, **parts, grants=grants_but()) as sink:
            await sink.write("one")
    assert victim.read_text() == "untouched"


async def test_a_new_file_is_not_taken_for_the_old_one_by_its_number(sink_of, sandbox, workspace, jail):
    file = workspace / "events.jsonl"
    tool = sink_of(FILE_SINK.read_text(), config={"path": file.name})

    def make_another_with_its_number():
        number = file.stat().st_ino
        file.unlink()
        for place in (workspace / str(count) for count in range(2000)):
            place.touch()
            if place.stat().st_ino == number:
                break
        place.rename(file)

    beside = Beside(sandbox, make_another_with_its_number)
    parts = {"sandbox": beside, "workspace_policy": WorkspacePolicy(workspace=workspace), "jail": jail, "egress": None}
    with pytest.raises(ToolError, match="the file was replaced meanwhile; call again"):
        async with open_sink(tool, {}, **parts, grants=grants_but()) as sink:
            await sink.write("one")
    assert file.read_text() == ""


def swap_its_folder(file):
    file.parent.rename(file.parent.with_name("away"))
    file.parent.symlink_to("tools")


@pytest.mark.parametrize("swap", [swap_for_link, swap_its_folder])
async def test_a_file_that_is_swapped_as_soon_as_it_was_made_is_refused(sink_of, sandbox, workspace, victim, swap):
    tool = sink_of(FILE_SINK.read_text(), config={"path": "deep/events.jsonl"})
    (workspace / "victim").write_text("untouched")
    (workspace / "tools").mkdir()
    (workspace / "tools" / "events.jsonl").write_text("untouched")
    with Overtaken(workspace, is_sensitive=lambda path: False, protected=[workspace / "tools"]) as jail:
        jail.act = swap
        parts = {
            "sandbox": sandbox,
            "workspace_policy": WorkspacePolicy(workspace=workspace),
            "jail": jail,
            "egress": None,
        }
        with pytest.raises(ToolError, match=r"events\.jsonl: the file was replaced meanwhile; call again") as caught:
            async with open_sink(tool, {}, **parts, grants=grants_but()) as sink:
                await sink.write("one")
    assert caught.value.kind is Kind.TRANSIENT
    assert caught.value.retryable
    for file in (victim, workspace / "victim", workspace / "tools" / "events.jsonl"):
        assert file.read_text() == "untouched"


async def test_a_sink_that_may_write_the_workspace_may_move_its_file(sink_of, pour, workspace):
    code = f"{HEAD}\nimport os\nclass Sink:\n    def __init__(self, path: str): self.path = path\n    async def write(self, event):\n        open(self.path, 'a').write(event)\n        os.rename(self.path, self.path + event)"
    await pour(sink_of(code, "fs.write"), ["1", "2"], path="log")
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {"log": "", "log1": "1", "log2": "2"}


async def test_its_file_is_all_that_a_sink_may_write_in_the_workspace(sink_of, pour, sandbox, workspace):
    await sandbox.learn()
    if "fs" not in sandbox.report()["guarantees"]:
        pytest.skip("this machine cannot keep a process from files")
    code = FAILING.replace("self.file.write(event", "open(event, 'a') if '/' in event else self.file.write(event")
    with pytest.raises(ToolError, match="event 2 failed: (PermissionError|OSError|FileNotFoundError)"):
        await pour(sink_of(code), ["one", str(workspace / "other")], path="log")
    assert sorted(path.name for path in workspace.iterdir()) == ["log"]


POSTING = (
    HEAD
    + """
import urllib.request

class Poster:
    def __init__(self, url: str):
        self.url = url

    async def write(self, event):
        urllib.request.urlopen(self.url, event.encode(), timeout=5).close()
"""
)


async def test_a_sink_with_a_network_reaches_what_it_may_and_nothing_else(sink_of, sandbox, workspace, jail):
    await sandbox.learn()
    if "net" not in sandbox.report("network")["guarantees"]:
        pytest.skip("this machine cannot give a process a network of its own")
    heard = []

    async def listen(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        heard.append(await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1])))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    parts = {
        "sandbox": sandbox,
        "workspace_policy": WorkspacePolicy(workspace=workspace),
        "jail": jail,
        "grants": grants_but(),
    }
    tool = sink_of(POSTING, "net.http")
    async with server, asyncio.timeout(PATIENCE):
        egress = Egress(private=[endpoint])
        async with open_sink(tool, {"url": f"http://{endpoint}/"}, **parts, egress=lambda: egress) as sink:
            await sink.write("one")
            await sink.write("two")
        with pytest.raises(ToolError, match=r"event 1 failed: HTTPError: HTTP Error 403: 127\.0\.0\.1 lies in"):
            async with open_sink(tool, {"url": "http://127.0.0.1:1/"}, **parts, egress=lambda: egress) as sink:
                await sink.write("three")
    assert heard == [b"one", b"two"]


async def test_a_tool_that_is_no_sink_says_how_to_call_it(pour):
    with pytest.raises(ToolError, match="sample is not a sink; call it with: crib call sample"):
        await pour(host_tool(), [])
