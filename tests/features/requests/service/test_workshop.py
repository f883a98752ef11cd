"""Every setting about Builders and their makers reaches its part through a Crib."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from toolcrib import Crib, Kind, SettingsError, ToolError

SECONDS = 20
KEY = "sk-canary-19bd55e188a2"
HONEST = "def lucky_number():\n    return {'number': 7}\n"
WRITES = f"import pathlib\npathlib.Path('package/lucky_number.py').write_text({HONEST!r})\n"


def wanted(**more):
    """A tool that is quickly proved."""
    return {
        "name": "lucky_number",
        "description": "Tell the lucky number",
        "priority": "medium",
        "requested_by": "fullsend",
        "outputs": [{"name": "number", "type": "integer"}],
        **more,
    }


@pytest.fixture
def operator(tmp_path_factory):
    """A folder of the operator's, outside of the project."""
    return tmp_path_factory.mktemp("operator")


@pytest.fixture
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
async def crib_with(project, home):
    """A crib over the project with these settings, and with these variables beside those that every process has."""
    opened = []

    def make(variables=None, **settings):
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), **(variables or {})}
        opened.append(Crib(project, environment=environment, **settings))
        return opened[-1]

    yield make
    for crib in opened:
        await crib.close()


@pytest.fixture
def commanded(crib_with, operator):
    """A crib whose tools are made by a program of this code."""

    def make(code, *words, folder=operator, variables=None, **settings):
        path = folder / "agent.py"
        path.write_text(code)
        command = [sys.executable, str(path), *words]
        builder = {"maker": "command", "command": command, "attempts": 1, **settings.pop("builder", {})}
        return crib_with(variables, builder=builder, **settings)

    return make


async def build(crib, **more):
    """File a request and have it built; what became of it."""
    filed = crib.requests.new(wanted(**more)).filed
    async with asyncio.timeout(SECONDS):
        await crib.builder().build_one()
    return crib.requests.show(filed.id)


def said(crib, filed):
    """What the maker printed while it worked."""
    return [event.text for event in crib.requests.history(filed.id) if event.step == "progress"]


async def told(crib):
    """The JSON that a program printed which then failed: nothing has to be proved."""
    filed = await build(crib)
    assert filed.status == "failed"
    return json.loads(said(crib, filed)[0])


class TestACommand:
    async def test_the_program_is_started_with_its_words_and_writes_what_goes_live(self, commanded):
        crib = commanded(f"import sys\n{WRITES}print(sys.argv[1:])", "--model", "one two", "--model")
        filed = await build(crib)
        assert (filed.status, filed.error) == ("ready", "")
        assert said(crib, filed)[0] == "['--model', 'one two', '--model']"
        assert (await crib.call("lucky_number")).value == {"number": 7}

    async def test_a_caller_that_asks_for_another_maker_gets_that_one(self, commanded):
        crib = commanded(WRITES, builder={"maker": "person"})
        filed = crib.requests.new(wanted()).filed
        assert (await crib.builder().build_one()).held
        crib.requests.cancel(filed.id)
        crib.requests.retry(filed.id)
        assert (await crib.builder(maker="command").build_one()).status == "ready"

    async def test_it_sees_the_listed_variables_and_secrets_and_no_others(self, commanded):
        code = (
            "import hashlib, json, os\n"
            "digests = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in os.environ.items()}\n"
            "print(json.dumps({name: digests[name] for name in digests if 'CANARY' in name}))\nraise SystemExit(1)\n"
        )
        crib = commanded(
            code,
            variables={"CANARY_LISTED": "of the host", "CANARY_OTHER": "of nobody"},
            builder={"variables": ["CANARY_LISTED", "CANARY_STORED"]},
        )
        crib.secrets.set("CANARY_STORED", "of the store")
        crib.secrets.set("CANARY_HIDDEN", "of nobody either")
        assert await told(crib) == {
            "CANARY_LISTED": hashlib.sha256(b"of the host").hexdigest()[:16],
            "CANARY_STORED": hashlib.sha256(b"of the store").hexdigest()[:16],
        }

    async def test_it_reaches_the_listed_hosts_through_the_proxy_and_no_others(self, commanded, page, other_page):
        places = [f"127.0.0.1:{page.server_port}", f"127.0.0.1:{other_page.server_port}"]
        code = f"""\
import json, urllib.error, urllib.request
told = []
for place in {places!r}:
    try:
        told.append(urllib.request.urlopen(f"http://{{place}}/", timeout=10).read().decode())
    except urllib.error.HTTPError as problem:
        told.append(problem.code)
    except OSError as problem:
        told.append(type(problem).__name__)
print(json.dumps(told))
raise SystemExit(1)
"""
        crib = commanded(code, builder={"hosts": places[:1]}, egress={"private": places})
        if "net" not in (await crib.sandbox_report())["program"]["guarantees"]:
            pytest.skip("this machine has no network to give away")
        assert await told(crib) == ["hello", 403]
        assert (page.heard, other_page.heard) == (["/"], [])

    async def test_it_may_write_as_much_as_the_setting_says(self, commanded):
        code = (
            "import pathlib, signal\n"
            "for number in range(6):\n    pathlib.Path(f'part{number}').write_bytes(bytes(500_000))\n"
            "signal.pause()\n"
        )
        filed = await build(commanded(code, builder={"disk_mb": 1, "seconds": 8}))
        assert filed.status == "failed"
        assert "more disk than it may (setting builder.disk_mb)" in filed.error

    async def test_it_may_take_as_long_as_the_setting_says(self, commanded):
        filed = await build(commanded("import signal\nsignal.pause()\n", builder={"seconds": 1}))
        assert filed.status == "failed"
        assert "(setting builder.seconds)" in filed.error

    async def test_it_may_try_as_often_as_the_setting_says(self, commanded):
        crib = commanded("raise SystemExit('no idea')", builder={"attempts": 2})
        filed = await build(crib)
        assert "refused after 2 attempts" in filed.error
        assert "no idea" in filed.error
        tries = [event.text for event in crib.requests.history(filed.id) if event.step == "making"]
        assert tries == ["attempt 1 of 2 by command", "attempt 2 of 2 by command"]

    async def test_of_the_home_it_sees_nothing_but_itself(self, commanded, home):
        (home / "note.txt").write_text("canary")
        code = (
            "import json, pathlib\n"
            f"try:\n    told = pathlib.Path({str(home / 'note.txt')!r}).read_text()\n"
            "except OSError as problem:\n    told = type(problem).__name__\n"
            "print(json.dumps(told))\nraise SystemExit(1)\n"
        )
        crib = commanded(code, folder=home)
        if "fs" not in (await crib.sandbox_report())["program"]["guarantees"]:
            pytest.skip("this machine cannot keep files closed")
        assert await told(crib) in {"PermissionError", "FileNotFoundError"}

    @pytest.mark.parametrize("place", ["project", "workspace"])
    def test_a_program_that_tools_could_write_starts_nothing(self, commanded, project, tmp_path_factory, place):
        workspace = tmp_path_factory.mktemp("workspace")
        folder = project if place == "project" else workspace
        crib = commanded(WRITES, folder=folder, workspace={"folder": str(workspace)})
        with pytest.raises(SettingsError, match="agent.py lies in the project, where tools write; keep it elsewhere"):
            crib.builder()


class Page(BaseHTTPRequestHandler):
    """A page that says hello, and a stand-in for a model that answers with the code of the tool."""

    def do_GET(self):
        self.server.heard.append(self.path)
        self.answer(b"hello")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((self.path, body["model"], self.headers["Authorization"]))
        message = {"role": "assistant", "content": f"```python\n{HONEST}```"}
        self.answer(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())

    def answer(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve_page():
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.heard = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join(SECONDS)


page = pytest.fixture(serve_page)
other_page = pytest.fixture(serve_page)


class TestAModel:
    async def test_the_endpoint_is_asked_for_the_model_with_the_key(self, crib_with, page):
        place = f"127.0.0.1:{page.server_port}"
        crib = crib_with(
            builder={"maker": "openai", "url": f"http://{place}/v7", "model": "some-model-1", "key": "BUILDER_KEY"},
            egress={"private": [place]},
        )
        crib.secrets.set("BUILDER_KEY", KEY)
        filed = await build(crib)
        assert (filed.status, filed.error) == ("ready", "")
        assert page.heard == [("/v7/chat/completions", "some-model-1", f"Bearer {KEY}")]
        assert KEY not in (crib.settings.root / ".toolcrib" / "queue.sqlite3").read_bytes().decode("latin-1")

    def test_a_key_that_is_not_there_is_named_with_the_setting_and_the_cure(self, crib_with):
        crib = crib_with(
            builder={"maker": "openai", "url": "https://api.example.com/v1", "model": "m", "key": "NO_KEY"}
        )
        with pytest.raises(ToolError, match="builder.key.* crib secret set NO_KEY") as refusal:
            crib.builder()
        assert refusal.value.kind is Kind.AUTH


class TestAPlugIn:
    CODE = f"""\
class Copyist:
    name = "copyist"

    async def make(self, task):
        (task.package / "lucky_number.py").write_text({HONEST!r})
        return True

    async def close(self):
        pass


def register(plugins):
    plugins.add_maker("copyist", Copyist())
"""

    @pytest.fixture
    def installed(self, tmp_path_factory, monkeypatch):
        """What pip would leave behind of a package with a maker."""
        folder = tmp_path_factory.mktemp("installed")
        (folder / "crib_copyist.py").write_text(self.CODE)
        info = folder / "crib_copyist-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crib-copyist\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[toolcrib.plugins]\ncopyist = crib_copyist:register\n")
        monkeypatch.syspath_prepend(str(folder))
        yield
        sys.modules.pop("crib_copyist", None)

    async def test_its_maker_is_chosen_by_its_name(self, installed, crib_with):
        crib = crib_with(builder={"maker": "copyist"})
        filed = await build(crib)
        assert (filed.status, filed.error) == ("ready", "")
        tries = [event.text for event in crib.requests.history(filed.id) if event.step == "making"]
        assert tries == ["attempt 1 of 3 by copyist"]

    def test_its_name_is_among_those_that_are_offered(self, installed, crib_with):
        with pytest.raises(SettingsError, match="use one of person, command, openai, copyist for builder.maker"):
            crib_with(builder={"maker": "nobody"}).builder()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"maker": "nobody"},
            "no maker is called 'nobody'; use one of person, command, openai for builder.mak",
        ),
        ({"maker": "command"}, "builder.command names no program; write the words that start the maker"),
        ({"maker": "command", "command": ["./agent"]}, "is a relative path; write its absolute path"),
        ({"maker": "command", "command": ["no-such-agent"]}, "was not found; install it"),
        ({"maker": "openai"}, "builder.url names no endpoint; write the one that the maker openai should ask"),
        ({"maker": "openai", "url": "https://a.example/v1"}, "builder.model names no model; write"),
        ({"maker": "openai", "url": "not a url", "model": "m"}, "builder.url: "),
    ],
)
def test_a_maker_that_could_make_nothing_is_refused_with_the_cure(crib_with, settings, words):
    with pytest.raises(SettingsError) as refusal:
        crib_with(builder=settings).builder()
    assert words in refusal.value.message
