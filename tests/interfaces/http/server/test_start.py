"""A server answers at once, however much is stored: it indexes, looks for problems and removes bundles in the background."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.infra.search.index import Index
from toolcrib.interfaces.http.commands import run_server
from toolcrib.interfaces.http.server_state import FINDING_SHARE, QUICK_FINDING_SECONDS, ProblemFinder
from toolcrib.lib.names import new_id

SECONDS = 20
MANY = 120
TOOL = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Weather report",
    "type": "http",
    "isEnabled": True,
    "argSchema": {"type": "object"},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://weather.example/"},
}


@pytest.fixture
async def stocked(project):
    """A project with so many stored tools that a call does not wait for their index, which is lost."""
    async with Crib(project) as crib:
        bundle_id = new_id()
        crib.bundles.put_bundle(bundle_id, {"slug": "mine", "displayName": "Mine", "isEnabled": True})
        for number in range(MANY):
            crib.bundles.put_tool(bundle_id, f"tool-{number}", "v1", TOOL)
    for path in (project / ".toolcrib").glob("index.sqlite3*"):
        path.unlink()
    return project


@pytest.fixture
def stuck_index(monkeypatch):
    """Nothing gets into an index until the event is set."""
    let_go = threading.Event()
    put = Index.put

    def wait_and_put(self, rows):
        assert let_go.wait(SECONDS)
        put(self, rows)

    monkeypatch.setattr(Index, "put", wait_and_put)
    yield let_go
    let_go.set()


class Served:
    """`crib serve` of a project in this process, and a client of it."""

    def __init__(self, crib: Crib, capsys: pytest.CaptureFixture[str]) -> None:
        self._crib = crib
        self._capsys = capsys
        self.said = ""

    async def __aenter__(self):
        self._task = asyncio.create_task(run_server(self._crib, "127.0.0.1", 0))
        await self.until(lambda: "http://" in self.heard())
        self._port = int(self.said.partition("http://127.0.0.1:")[2].split()[0])
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=SECONDS)

    def heard(self) -> str:
        """What it has said so far."""
        self.said += self._capsys.readouterr().out
        return self.said

    async def until(self, is_so) -> None:
        async with asyncio.timeout(SECONDS):
            while not is_so() and not self._task.done():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(0.01)

    async def get(self, path: str, status: bytes = b"200") -> dict:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(SECONDS):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 %s " % status)
        return json.loads(body)


async def test_requests_are_answered_while_stored_tools_are_still_being_indexed(stocked, stuck_index, capsys):
    async with Served(Crib(stocked), capsys) as served:
        for path in ("/tools?tags=none", "/tools/search?q=tool", "/crib/tools?question=tool"):
            page = await served.get(path)
            assert (page["tools"], page["nextPageToken"], page["indexing"]) == ([], None, True)
        assert await served.get("/readyz", b"503") == {"ready": False}
        health = await served.get("/crib/health")
        assert (health["problems"], health["indexing"]) == ([], True)
        await served.until(lambda: "Ctrl-C" in served.heard())
        assert "stored tools are being indexed" in served.said
        stuck_index.set()
        async with asyncio.timeout(SECONDS):
            while "indexing" in (page := await served.get("/tools/search?q=tool&pageSize=200")):
                pass
        assert len(page["tools"]) == MANY
        async with asyncio.timeout(SECONDS):
            while "indexing" in (health := await served.get("/crib/health")):
                pass
        assert health["problems"] == []
        assert await served.get("/readyz") == {"ready": True}


async def test_health_tells_the_last_finding_while_another_one_takes_long():
    now, found, let_go = [0.0], ["first"], threading.Event()
    finds: list[str] = []

    def find():
        finds.extend(found)
        if finds == ["first"]:
            now[0] += QUICK_FINDING_SECONDS  # it took long, so that no request waits for the next one
        else:
            assert let_go.wait(SECONDS)
        return [ToolError(Kind.VALIDATION, text) for text in found]

    finder = ProblemFinder(find, lambda: now[0])
    async with asyncio.timeout(SECONDS):
        assert await finder.read() == ["first"]
        found[:] = ["second"]
        assert await finder.read() == ["first"]
        assert finds == ["first"]
        now[0] += FINDING_SHARE * QUICK_FINDING_SECONDS
        assert await finder.read() == ["first"]
        let_go.set()
        while (told := await finder.read()) == ["first"]:  # noqa: ASYNC110 - the thread gives no signal
            await asyncio.sleep(0)
    assert told == ["second"]


@pytest.mark.spec("S1-74")
async def test_a_server_removes_a_bundle_that_was_deleted_two_days_ago(project, capsys, monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.commands.SECOND_LOOK_SECONDS", 0.01)
    crib = Crib(project)
    ids = [new_id(), new_id()]
    for bundle_id in ids:
        crib.bundles.put_bundle(bundle_id, {"slug": f"b-{bundle_id}", "displayName": "Mine", "isEnabled": True})
    for bundle_id in ids:
        crib.bundles.delete_bundle(bundle_id)
    old, new = (project / ".toolcrib" / "bundles" / bundle_id / "bundle.json" for bundle_id in ids)
    old.write_text(json.dumps({**json.loads(old.read_text()), "softDeletedAt": "2020-01-01T00:00:00.000Z"}))
    async with Served(crib, capsys) as served:
        await served.until(lambda: not old.parent.exists())
        assert not old.parent.exists()
        assert new.exists()
