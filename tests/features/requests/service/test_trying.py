"""Trials of tools that are in no catalogue."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from sample_tools import host_tool
from tool_requests import recorded_answer
from toolcrib import Crib, Kind, Tool, ToolError
from toolcrib.features.requests.gate import TrialTerms
from toolcrib.features.requests.gate.calls import write_probe
from toolcrib.features.requests.service import AUTHORITY
from toolcrib.infra.programs.observed_effects import Comparison
from toolcrib.infra.sandbox.child import notifications
from toolcrib.model.tool import Chained, Script

pytestmark = pytest.mark.skipif(not notifications.is_available(), reason="the kernel lets nobody observe")

NOWHERE = Path("/nowhere")
NETWORK = frozenset({"net.http"})
ADD = "def sample(a=1, b=2):\n    return {'sum': a + b}\n"
FETCH = """
import json, urllib.request

def sample(urls):
    users, error = [], None
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                users.append(json.load(answer))
        except OSError as problem:
            error = str(problem)
            break
    return {"users": users, "error": error}
"""
PAGE = recorded_answer("https://api.example.com/users", body='"first"')
SECOND = recorded_answer("https://api.example.com/users", body='"second"')
PLAIN = recorded_answer("http://plain.example/", body='"plain"')


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """An operator's crib, whose sandbox all trials of these tests share."""
    root = tmp_path_factory.mktemp("project")
    (root / "secret.txt").write_text("of the operator")
    environment = {
        "PATH": "/usr/bin:/bin",
        "TOKEN": "hunter2",
        "TOOLCRIB_SANDBOX_JOBS": "2",
        "TOOLCRIB_CATALOG_DISABLED": "sample",
    }
    with Crib(root, environment=environment, grants={"*": ["*"]}) as crib:
        yield crib


@pytest.fixture(autouse=True)
def _own_place(monkeypatch, tmp_path):
    """Trials of these tests lie apart from all others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def try_out(operator):
    """Open a trial of a tool with this code: `async with try_out(code) as trial`."""

    def opened(code, *, files=None, own_hosts=None, tool=None, **terms):
        requires = frozenset(terms.get("requires", ()))
        script = Script(
            path=NOWHERE / "sample.py",
            code=code.encode(),
            language="python",
            entry="sample",
            files={} if files is None else {"sample.py": code.encode(), **files},
        )
        facts = {"name": "sample", "description": "A sample.", "parameters": {"type": "object"}, "requires": requires}
        run = Chained(
            kind="script",
            tool_type="script",
            executor="python_runtime",
            folder=NOWHERE,
            script=script,
            hosts=own_hosts,
        )
        return operator._requests.trials(Tool(**{**facts, "run": run, **(tool or {})}), TrialTerms(**terms))

    return opened


def folders():
    """What is there of trials."""
    return sorted(Path(tempfile.gettempdir()).iterdir())


def shown(deeds):
    return [(deed.act, deed.what, deed.denied) for deed in deeds]


async def test_a_tool_is_called_through_the_whole_pipeline(try_out):
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    output = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    async with try_out(ADD, tool={"parameters": parameters, "output_schema": output}) as trial:
        answered, refused = await trial.call({"a": 40}), await trial.call({"a": "40"})
    assert (answered.value, answered.error) == ({"sum": 42}, None)
    assert "fs" in answered.meta["sandbox"]["guarantees"]
    assert (refused.error.kind, refused.refused, refused.meta["effects"]) == (Kind.VALIDATION, True, [])


async def test_a_value_of_the_wrong_shape_is_no_answer(try_out):
    output = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    async with try_out(ADD, tool={"output_schema": output}) as trial:
        assert (await trial.call({})).error.kind is Kind.OUTPUT_INVALID


async def test_what_only_computes_does_nothing(try_out):
    async with try_out(ADD) as trial:
        result = await trial.call({})
        assert trial.deeds(result) == []
    assert isinstance(result.meta["effects"], list)


async def test_a_large_value_is_handed_over_whole(try_out):
    async with try_out("def sample():\n    return 'x' * 1_000_000\n") as trial:
        assert len((await trial.call({})).value) == 1_000_000


async def test_calls_may_be_made_side_by_side(try_out):
    async with try_out(ADD) as trial:
        results = await asyncio.gather(*(trial.call({"a": number}) for number in range(20)))
    assert [result.value for result in results] == [{"sum": number + 2} for number in range(20)]


async def test_time_is_not_lost_by_waiting_for_a_turn(try_out):
    # Less than two turns, and far more than one of them needs on a busy machine.
    code = "import time\ndef sample():\n    time.sleep(2)\n    return 1\n"
    async with try_out(code, seconds=3.7) as trial:
        results = await asyncio.gather(*(trial.call({}) for _ in range(4)))
    assert [result.value for result in results] == [1] * 4


async def test_a_call_is_ended_when_its_time_is_over(try_out):
    code = "def sample():\n    while True:\n        pass\n"
    async with try_out(code, seconds=0.5) as trial:
        error = (await trial.call({})).error
    assert (error.kind, error.message) == (Kind.TIMEOUT, "sample ran longer than 0.5 s; its processes were killed")


async def test_the_files_of_a_package_lie_beside_each_other_and_cannot_be_changed(try_out):
    code = """
import helper, inner.deep, os
def sample():
    try:
        open(helper.__file__, "w")
    except OSError as problem:
        return [helper.NUMBER, inner.deep.NUMBER, sorted(os.listdir(".")), problem.errno]
"""
    files = {"helper.py": b"NUMBER = 7\n", "inner/__init__.py": b"", "inner/deep.py": b"NUMBER = 8\n"}
    async with try_out(code, files=files) as trial:
        result = await trial.call({})
        deeds = trial.deeds(result)
    assert result.value[:3] == [7, 8, ["__init__.py", "helper.py", "inner", "sample.py", "tool.json"]]
    assert [(deed.act, Path(deed.what).name, deed.denied) for deed in deeds] == [("write", "helper.py", True)]


async def test_a_tool_is_not_told_that_it_is_on_trial(try_out):
    code = """
import os, sys
SEEN = [sys.argv[0], *sorted(sys.modules)]
def sample():
    words = [__file__, os.getcwd(), *SEEN, *os.environ, *os.environ.values(), *sys.path, *os.listdir(".")]
    found = [word for word in words for tell in ("trial", "probe", "record", "candidate") if tell in word.lower()]
    return [found, sys.argv[0] == __file__, os.path.relpath(__file__, os.path.join(os.path.dirname(__file__), "..", ".."))]
"""
    probe = write_probe("sample", "sample", {})
    async with try_out(code, files={}, requires=NETWORK, answers=(PAGE,)) as trial:
        called = (await trial.call({})).value
        probed = (await trial.load(probe)).value["value"]
    assert called == [[], True, "tools/sample/sample.py"]
    assert probed == called


async def test_nothing_is_left_of_a_trial(try_out):
    code = "import os\ndef sample():\n    os.makedirs(os.environ['TOOLCRIB_WORKSPACE'] + '/a/b')\n    os.chmod(os.environ['TOOLCRIB_WORKSPACE'] + '/a', 0)\n"
    async with try_out(code, requires={"fs.write"}) as trial:
        assert (await trial.call({})).error is None
        assert len(folders()) == 1
    assert folders() == []
    with pytest.raises(ZeroDivisionError):
        async with try_out(ADD):
            raise ZeroDivisionError
    assert folders() == []


async def test_nothing_is_left_of_a_trial_that_is_cancelled_while_it_runs(try_out):
    began = asyncio.Event()

    async def run():
        async with try_out("def sample():\n    while True:\n        pass\n", seconds=60.0) as trial:
            call = asyncio.ensure_future(trial.call({}))
            began.set()
            await call

    task = asyncio.create_task(run())
    async with asyncio.timeout(25):
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert folders() == []


@pytest.mark.soak
async def test_a_folder_that_is_too_deep_for_others_is_removed_too(try_out):
    async with try_out(ADD):
        folder = os.open(folders()[0] / "workspace", os.O_RDONLY)
        for _ in range(1200):
            os.mkdir("a", dir_fd=folder)
            folder, above = os.open("a", os.O_RDONLY, dir_fd=folder), folder
            os.close(above)
        os.close(folder)
    assert folders() == []


async def test_the_sandbox_stays_the_lenders(try_out, operator):
    async with try_out(ADD) as trial:
        assert (await trial.call({})).ok
        launcher = operator._resources.get("sandbox")._launcher.pid
    async with try_out(ADD) as trial:
        assert (await trial.call({})).ok
    assert operator._resources.get("sandbox")._launcher.pid == launcher


async def test_nothing_is_granted_but_what_the_terms_say(try_out, operator):
    async with try_out(ADD, tool={"requires": frozenset({"fs.read"})}) as trial:
        error = (await trial.call({})).error
    assert (error.kind, error.details["missing"]) == (Kind.CAPABILITY_MISSING, ["fs.read"])
    assert operator.grants.lines == {"*": {"*"}}


async def test_a_tool_that_may_use_files_finds_an_empty_workspace(try_out, operator):
    code = """
import os
def sample():
    os.chdir(os.environ["TOOLCRIB_WORKSPACE"])
    before = os.listdir(".")
    open("made.txt", "w").write("x")
    return [before, os.getcwd()]
"""
    async with try_out(code, requires={"fs.read", "fs.write"}) as trial:
        result = await trial.call({})
        names, workspace = result.value
        deeds = trial.deeds(result)
    assert names == []
    assert not Path(workspace).is_relative_to(operator.settings.workspace)
    assert ("write", f"{workspace}/made.txt", False) in shown(deeds)
    assert [path.name for path in operator.settings.workspace.iterdir() if path.name != ".toolcrib"] == ["secret.txt"]


@pytest.mark.parametrize("requires", [set(), {"fs.read", "fs.write"}])
async def test_what_is_the_operators_is_out_of_reach_and_the_attempt_is_seen(try_out, operator, requires):
    secret = operator.settings.workspace / "secret.txt"
    code = f"def sample():\n    try:\n        return open({str(secret)!r}).read()\n    except OSError:\n        return 'kept out'\n"
    async with try_out(code, requires=requires) as trial:
        result = await trial.call({})
        deeds = trial.deeds(result)
    assert result.value == "kept out"
    assert shown(deeds) == [("read", str(secret), True)]
    assert len(Comparison.of(Tool(name="x", description="", parameters={}, run=None), deeds).undeclared) == 1


async def test_no_variable_of_the_operators_is_seen(try_out):
    code = "import os\ndef sample():\n    return sorted(os.environ)\n"
    async with try_out(code) as trial:
        names = (await trial.call({})).value
    assert not {name for name in names if name.startswith("TOOLCRIB_") or name == "TOKEN"}


async def test_no_tool_of_the_operators_can_be_called_and_none_of_ours_opens_more(try_out):
    code = """
import rye
def sample():
    kinds = []
    for name, arguments in (("read_file", {"path": "x"}), ("subprocess", {"command": "true"})):
        try:
            rye.execute(name, arguments)
        except Exception as problem:
            kinds.append(str(problem.kind))
    return kinds
"""
    async with try_out(code, requires={"rye.execute"}) as trial:
        result = await trial.call({})
    assert result.value == ["NOT_FOUND", "CAPABILITY_MISSING"]


async def test_recorded_answers_come_over_http_and_https(try_out):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE, PLAIN)) as trial:
        urls = ["https://api.example.com/users", "http://plain.example/"]
        result = await trial.call({"urls": urls})
        deeds = trial.deeds(result)
    assert result.value == {"users": ["first", "plain"], "error": None}
    assert shown(deeds) == [("connect", "api.example.com:443", False), ("connect", "plain.example:80", False)]


CLIENTS = {
    "requests": "    return [requests.get(url, timeout=5).json() for url in urls]",
    "httpx2": "    return [httpx2.get(url, timeout=5).json() for url in urls]",
    "aiohttp": """
    async def fetch():
        async with aiohttp.ClientSession(trust_env=True) as session:
            return [await (await session.get(url)).json() for url in urls]
    return fetch()
""",
}


@pytest.mark.parametrize("client", CLIENTS)
async def test_other_clients_trust_the_recorded_servers_too(try_out, client):
    pytest.importorskip(client)
    code = f"import {client}\ndef sample(urls):\n{CLIENTS[client]}\n"
    async with try_out(code, requires=NETWORK, answers=(PAGE, PLAIN)) as trial:
        result = await trial.call({"urls": ["https://api.example.com/users", "http://plain.example/"]})
        deeds = trial.deeds(result)
    assert (result.value, result.error) == (["first", "plain"], None)
    visits = [("connect", "api.example.com:443", False), ("connect", "plain.example:80", False)]
    # One of them tries at its import whether this machine has addresses of the newer kind.
    assert [deed for deed in shown(deeds) if deed != ("connect", "[::1]:0", False)] == visits


async def test_every_call_hears_the_answers_from_the_first_on(try_out):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE, SECOND)) as trial:
        urls = ["https://api.example.com/users"] * 3
        results = await asyncio.gather(*(trial.call({"urls": urls}) for _ in range(3)))
    assert [result.value["users"] for result in results] == [["first", "second", "second"]] * 3


async def test_what_nothing_recorded_answers_is_refused_and_seen(try_out):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE,)) as trial:
        host = await trial.call({"urls": ["https://other.example/"]})
        path = await trial.call({"urls": ["https://api.example.com/else?key=hunter2"]})
        deeds = trial.deeds(host), trial.deeds(path)
    assert "502 asked for CONNECT other.example, which nothing recorded answers" in host.value["error"]
    asked = "asked for GET https://api.example.com/else, which nothing recorded answers; add it to the answers of the request"
    assert path.value["error"] == f"HTTP Error 502: {asked}"
    assert shown(deeds[0]) == [("connect", "other.example:443", True)]
    assert ("connect", "api.example.com:443", True) in shown(deeds[1])


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/", "http://localhost/", "http://[::1]:8080/", "https://192.0.2.7/"]
)
async def test_addresses_lead_nowhere_either(try_out, url):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE,)) as trial:
        result = await trial.call({"urls": [url]})
        deeds = trial.deeds(result)
    assert "which nothing recorded answers" in result.value["error"]
    assert [deed.denied for deed in deeds] == [True]


@pytest.mark.parametrize("narrow", [{"hosts": ("plain.example",)}, {"own_hosts": ("plain.example",)}])
async def test_hosts_narrow_the_network(try_out, narrow):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE, PLAIN), **narrow) as trial:
        allowed = await trial.call({"urls": ["http://plain.example/"]})
        refused = await trial.call({"urls": ["https://api.example.com/users"]})
        deeds = trial.deeds(refused)
    assert allowed.value["users"] == ["plain"]
    assert "api.example.com is not among the allowed hosts (plain.example)" in refused.value["error"]
    assert shown(deeds) == [("connect", "api.example.com:443", True)]


async def test_a_forced_fault_leaves_what_was_achieved(try_out):
    async with try_out(FETCH, requires=NETWORK, answers=(PAGE, SECOND), fail_from=2) as trial:
        results = [await trial.call({"urls": ["https://api.example.com/users"] * 3}) for _ in range(2)]
    assert [result.value["users"] for result in results] == [["first"]] * 2
    assert all("503" in result.value["error"] for result in results)


async def test_without_the_capability_there_is_no_network(try_out):
    async with try_out(FETCH, answers=(PAGE,)) as trial:
        result = await trial.call({"urls": ["https://api.example.com/users"]})
        deeds = trial.deeds(result)
    assert result.value["users"] == []
    assert deeds
    assert {(deed.act, deed.denied) for deed in deeds} <= {("connect", True)}


async def test_the_authority_lies_where_the_tool_can_read_it_and_alone(try_out):
    code = """
import os
def sample():
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    paths = {os.environ[name] for name in names}
    return [sorted(map(os.path.basename, paths)), open(paths.pop()).read()]
"""
    async with try_out(code, requires=NETWORK, answers=(PAGE,)) as trial:
        names, text = (await trial.call({})).value
    assert names == [AUTHORITY]
    assert (text.count("BEGIN CERTIFICATE"), "PRIVATE" in text) == (1, False)


async def test_a_probe_runs_in_the_place_of_the_tool(try_out):
    code = "import helper\nprint('hello')\ndef sample(a, *, b=2):\n    return a + b\n"
    probe = """
import inspect
def probe():
    import sample
    return {"signature": str(inspect.signature(sample.sample)), "helper": sample.helper.NUMBER, "file": sample.__file__}
"""
    async with try_out(code, files={"helper.py": b"NUMBER = 7\n"}) as trial:
        result = await trial.load(probe)
        again = await trial.load("def probe():\n    return 1\n")
        called = await trial.call({"a": 1})
    assert (result.error, result.value["signature"], result.value["helper"]) == (None, "(a, *, b=2)", 7)
    assert Path(result.value["file"]).name == "sample.py"
    assert result.meta["stdout"] == "hello\n"
    assert (again.value, called.value) == (1, 3)


async def test_what_an_import_does_is_seen(try_out):
    code = "try:\n    open('/etc/shadow')\nexcept OSError:\n    pass\ndef sample():\n    return 1\n"
    async with try_out(code) as trial:
        result = await trial.load("def probe():\n    import sample\n")
        deeds = trial.deeds(result)
    assert shown(deeds) == [("read", "/etc/shadow", True)]


async def test_an_import_that_fails_says_so(try_out):
    async with try_out("1 / 0\ndef sample():\n    return 1\n") as trial:
        result = await trial.load("def probe():\n    import sample\n")
    assert "ZeroDivisionError" in result.error.message


async def test_a_tool_that_is_no_file_of_code_is_not_tried(operator):
    with pytest.raises(ToolError, match="sample is not a file of code; only those are tried"):
        async with operator._requests.trials(host_tool(), TrialTerms()):
            pass
    assert folders() == []


async def test_an_answer_that_no_server_could_give_is_refused_before_anything_runs(try_out):
    with pytest.raises(ToolError, match="recorded answer 1: status 42 ends no request"):
        async with try_out(FETCH, requires=NETWORK, answers=(recorded_answer("https://a.example/", status=42),)):
            pass


async def test_where_nothing_can_be_seen_nothing_is_proved(try_out, monkeypatch):
    monkeypatch.setattr(notifications, "_ACTIONS", "/nowhere/actions")
    with pytest.raises(
        ToolError, match="a candidate is proved only where its calls can be observed, .*; build where the kernel"
    ) as caught:
        async with try_out(ADD):
            pass
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE
