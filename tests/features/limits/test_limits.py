"""Rates of tools and quotas of callers: exact for every process of a project, on every interface."""

import asyncio
import json
from contextlib import aclosing

import pytest

from toolcrib import Call, Context, Cost, Crib, Kind, ToolError, tool
from toolcrib.core.call_state import limited_to
from toolcrib.infra.usage_ledger import UsageLedger
from toolcrib.model.limits import Quota, read_quota

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "toolcrib.toml").write_text("")
    return tmp_path


@pytest.fixture
async def open_crib(project, clock):
    """Open a crib of the project as a process of its own would, with a clock that the test moves."""
    opened, ledgers = [], []

    def make(*tools, **more):
        crib = Crib(project, tools=tools, **more)
        ledgers.append(UsageLedger(project / ".toolcrib" / "limits.sqlite3", clock=clock))
        crib._resources.lend(usage_ledger=ledgers[-1])
        opened.append(crib)
        return crib

    yield make
    for crib in opened:
        await crib.close()
    for ledger in ledgers:
        ledger.close()


@tool(calls_per_minute=2)
def rare(n: int = 0) -> int:
    """Be rare."""
    return n


@tool
def plain(text: str = "") -> str:
    """Give the text back."""
    return text


def document(**changes):
    return {
        "schemaVersion": "toolcrib-1",
        "displayName": "Echo",
        "description": "Give back what it gets.",
        "type": "go",
        "isEnabled": True,
        "argSchema": {"type": "object"},
        "outputSchema": {},
        "impl": {"goFunc": "echo"},
        **changes,
    }


@pytest.mark.spec("S1-95")
async def test_the_rate_of_a_tool_is_one_for_all_processes_and_says_when_to_try_again(open_crib, clock):
    first, second = open_crib(rare), open_crib(rare)
    assert (await first.call("rare")).ok
    clock.now += 20
    assert (await second.call("rare")).ok
    for crib in (first, second):
        error = (await crib.call("rare")).error
        assert (error.kind, error.retryable, error.details["retryAfter"]) == (Kind.RATE_LIMIT, True, 40.0)
        assert error.message == "rare may be called 2 times a minute; try again in 40 s"
    clock.now += 40
    assert (await first.call("rare")).ok
    assert (await second.call("rare")).error.kind is Kind.RATE_LIMIT


@pytest.mark.spec("S1-95")
async def test_explaining_shows_what_is_left_and_uses_nothing_up(open_crib):
    crib = open_crib(rare)
    call = Call(name="rare")

    def note():
        (finding,) = [finding for finding in crib.explain(call).findings if finding.gate == "rate"]
        return finding.to_json().get("note", finding.verdict.reason)

    assert [note(), note()] == ["2 of 2 calls per minute left"] * 2
    await crib.call("rare")
    assert note() == "1 of 2 calls per minute left"
    await crib.call("rare")
    assert note() == "rare may be called 2 times a minute; try again in 60 s"
    assert not crib.explain(call).allowed


async def test_of_many_concurrent_calls_no_more_than_the_rate_run(open_crib):
    crib = open_crib(rare)
    results = await asyncio.gather(*(crib.call("rare") for _ in range(20)))
    assert sum(result.ok for result in results) == 2


async def test_a_call_that_is_refused_for_another_reason_does_not_count(open_crib):
    crib = open_crib(rare)
    for _ in range(5):
        assert (await crib.call("rare", n="one")).error.kind is Kind.VALIDATION
    assert [(await crib.call("rare")).ok for _ in range(3)] == [True, True, False]


async def test_what_cannot_be_counted_is_not_called(open_crib, project):
    (project / ".toolcrib").mkdir(mode=0o700)
    (project / ".toolcrib" / "limits.sqlite3").write_bytes(b"no database" * 200)
    crib = open_crib(rare, plain)
    error = (await crib.call("rare")).error
    assert error.kind is Kind.PERMANENT
    assert "move it away, and counting starts again" in error.message
    assert (await crib.call("plain", text="x")).ok


@pytest.mark.spec("S1-95")
@pytest.mark.parametrize("place", ["top", "impl"])
async def test_a_document_says_its_rate_at_the_top_or_in_impl(open_crib, place):
    crib = open_crib(functions={"echo": lambda context, arguments: arguments})
    crib.bundles.put_bundle(BUNDLE, {"slug": "acme", "displayName": "Acme", "isEnabled": True})
    rate = {"maxCallsPerMinute": 1}
    changes = rate if place == "top" else {"impl": {"goFunc": "echo", **rate}}
    kept = crib.bundles.put_tool(BUNDLE, "echo", "v1", document(**changes))
    assert kept.warnings == ()
    assert [(await crib.call("echo")).ok for _ in range(2)] == [True, False]


@pytest.mark.spec("S1-95")
@pytest.mark.parametrize("value", [0, -1, 1.5, "60", True, None, 10**7])
def test_a_rate_below_one_is_refused(project, value):
    with Crib(project) as crib:
        crib.bundles.put_bundle(BUNDLE, {"slug": "acme", "displayName": "Acme", "isEnabled": True})
        for changes in ({"maxCallsPerMinute": value}, {"impl": {"goFunc": "echo", "maxCallsPerMinute": value}}):
            with pytest.raises(ToolError, match="maxCallsPerMinute: must be an integer from 1") as caught:
                crib.bundles.put_tool(BUNDLE, "echo", "v1", document(**changes))
            assert caught.value.kind is Kind.VALIDATION
        both = {"maxCallsPerMinute": 1, "impl": {"goFunc": "echo", "maxCallsPerMinute": 1}}
        with pytest.raises(ToolError, match="write it once"):
            crib.bundles.put_tool(BUNDLE, "echo", "v1", document(**both))


YAML = """\
tool_id: page
tool_type: http
version: 1.0.0
executor_id: http_client
category: tests
description: Read a page
limits: {limits}
config:
  url: https://example.com/
"""


@pytest.mark.spec("S1-95")
@pytest.mark.parametrize(("limits", "rate"), [("{maxCallsPerMinute: 7}", 7), ("{maxCallsPerMinute: 0}", None)])
def test_a_script_says_its_rate_under_limits(project, limits, rate):
    folder = project / ".ai" / "tools" / "tests"
    folder.mkdir(parents=True)
    (folder / "page.yaml").write_text(YAML.replace("{limits}", limits))
    with Crib(project) as crib:
        entry = crib.find("page")
        if rate is None:
            assert entry is None
            assert any("limits" in problem.message and "from 1 to" in problem.message for problem in crib.problems)
        else:
            assert entry.tool.limits.calls_per_minute == rate


@pytest.mark.spec("S1-95")
def test_a_tool_folder_says_its_rate_under_limits(project, cli, monkeypatch):
    monkeypatch.chdir(project)
    assert cli("new", "count-words", "--python").code == 0
    path = project / "tools" / "count-words" / "schema.json"
    schema = json.loads(path.read_text())
    for limits in ({"maxCallsPerMinute": 0}, {"maxCallsPerMinute": "7"}, {"perMinute": 7}, 7):
        path.write_text(json.dumps({**schema, "limits": limits}))
        ended = cli("build")
        assert ended.code != 0
        assert '"limits": {"maxCallsPerMinute": 60}' in ended.out + ended.err
    path.write_text(json.dumps({**schema, "limits": {"maxCallsPerMinute": 7}}))
    assert cli("build").code == 0
    with Crib(project) as crib:
        assert crib.find("count_words").tool.limits.calls_per_minute == 7


class TestQuotas:
    async def test_calls_are_counted_for_one_caller_and_not_for_another(self, open_crib, clock):
        first, second = open_crib(plain), open_crib(plain)
        with limited_to(Quota(calls=2, per="hour")):
            assert (await first.call(Call(name="plain", caller="ada"))).ok
            assert (await second.call(Call(name="plain", caller="ada"))).ok
            error = (await first.call(Call(name="plain", caller="ada"))).error
            assert error.kind is Kind.RATE_LIMIT
            assert "the quota of ada is used up, which is 2 calls per hour; try again in" in error.message
            assert 3_600 <= error.details["retryAfter"] <= 3_630
            assert (await first.call(Call(name="plain", caller="bob"))).ok
        assert (await first.call(Call(name="plain", caller="ada"))).ok
        clock.now += 3_631
        with limited_to(Quota(calls=2, per="hour")):
            assert (await first.call(Call(name="plain", caller="ada"))).ok

    async def test_bytes_of_arguments_and_results_are_counted(self, open_crib):
        crib = open_crib(plain)
        with limited_to(Quota(bytes=250)):
            assert (await crib.call("plain", text="x" * 80)).ok
            (left,) = [finding.note for finding in crib.explain(Call(name="plain")).findings if finding.gate == "rate"]
            assert left == "77 of 250 bytes per day left"
            assert (await crib.call("plain", text="x" * 80)).error.kind is Kind.RATE_LIMIT
            assert (await crib.call("plain", text="x")).ok

    async def test_a_call_that_used_more_than_was_left_is_the_last(self, open_crib):
        @tool
        def long(n: int) -> str:
            """Be long."""
            return "x" * n

        crib = open_crib(long)
        with limited_to(Quota(bytes=100)):
            assert (await crib.call("long", n=500)).ok
            assert (await crib.call("long", n=1)).error.kind is Kind.RATE_LIMIT

    async def test_of_a_stream_that_its_reader_leaves_or_that_fails_what_was_sent_is_counted(self, open_crib):
        @tool
        async def flood(*, fails: bool = False):
            """Send much."""
            for _ in range(3):
                yield "x" * 1_000
            if fails:
                raise ToolError(Kind.PERMANENT, "broken")
            await asyncio.Event().wait()

        crib = open_crib(flood)

        def left():
            (note,) = [found.note for found in crib.explain(Call(name="flood")).findings if found.gate == "rate"]
            return int(note.partition(" ")[0].replace(",", ""))

        with limited_to(Quota(bytes=10_000)):
            async with asyncio.timeout(20), aclosing(crib.stream("flood")) as events:
                for _ in range(3):
                    await anext(events)
            assert left() <= 7_000
            async with asyncio.timeout(20), aclosing(crib.stream("flood", fails=True)) as events:
                last = [event async for event in events][-1]
            assert last.error.kind is Kind.PERMANENT
            assert left() <= 4_000

    async def test_of_a_result_that_is_kept_aside_all_of_it_is_counted(self, open_crib):
        @tool
        def long() -> str:
            """Be long."""
            return "x" * 50_000

        crib = open_crib(long, calls={"result_bytes": 10_000})
        with limited_to(Quota(bytes=40_000)):
            assert "kept" in (await crib.call("long")).meta
            assert (await crib.call("long")).error.kind is Kind.RATE_LIMIT

    async def test_time_is_counted_also_of_calls_that_fail_or_are_cancelled(self, open_crib):
        started = asyncio.Event()

        @tool
        async def slow() -> None:
            """Wait."""
            started.set()
            await asyncio.Event().wait()

        crib = open_crib(slow, plain)
        with limited_to(Quota(seconds=0.001)):
            task = asyncio.create_task(crib.call("slow"))
            await asyncio.wait_for(started.wait(), 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await crib.call("plain")).error.kind is Kind.RATE_LIMIT

    async def test_money_is_counted_before_the_call_also_of_tools_that_a_tool_calls(self, open_crib):
        @tool(cost=Cost(per_invocation=2.0, currency="EUR"))
        def dear() -> int:
            """Cost two."""
            return 1

        @tool
        async def asks(context: Context) -> bool:
            """Call another tool."""
            return (await context.call("dear")).ok

        crib = open_crib(dear, asks)
        with limited_to(Quota(money=5, currency="EUR", calls=100)):
            assert (await crib.call("dear")).ok
            assert (await crib.call("asks")).value is True
            assert (await crib.call("asks")).value is False
            assert (await crib.call("dear")).error.kind is Kind.RATE_LIMIT
            assert [
                usage.used for usage in crib._resources.get("call_limits").usages((), {"local": Quota(calls=100)})
            ] == [3]

    async def test_a_price_in_another_currency_than_the_quota_is_refused(self, open_crib):
        @tool(cost=Cost(per_invocation=2.0, currency="JPY"))
        def dear() -> int:
            """Cost two."""
            return 1

        with limited_to(Quota(money=5, currency="EUR")):
            error = (await open_crib(dear).call("dear")).error
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert "costs JPY, and the quota of its caller is in EUR" in error.message

    @pytest.mark.parametrize(
        "found",
        [
            *({}, [], {"per": "day"}, {"calls": 0}, {"calls": -1}, {"calls": True}, {"calls": 1.5}, {"bytes": "1"}),
            *({"calls": 1, "per": "year"}, {"calls": 1, "more": 2}, {"money": 1, "currency": ""}, {"calls": 10**13}),
            {"seconds": float("nan")},
        ],
    )
    def test_what_is_no_quota_is_refused(self, found):
        with pytest.raises(ToolError):
            read_quota(found)

    def test_a_quota_reads_as_it_was_written(self):
        quota = Quota(calls=5, money=2.5, currency="EUR", per="month")
        assert read_quota(quota.to_json()) == quota
        assert read_quota(None) is None


class TestTokens:
    def test_a_token_with_a_quota_may_not_manage(self, project):
        with Crib(project) as crib:
            made, _ = crib.tokens.create("ci", ["invoke"], quota=Quota(calls=5))
            assert crib.tokens.list()[0].quota == made.quota == Quota(calls=5)
            with pytest.raises(ToolError, match="a token with a quota may not manage"):
                crib.tokens.create("ci", ["manage"], quota=Quota(calls=5))

    def test_statistics_show_what_is_left(self, project, cli, monkeypatch):
        monkeypatch.chdir(project)
        assert cli("stats").out == "no tool of this project was called yet\n"
        (project / "tools").mkdir()
        (project / "tools" / "rare.py").write_text(
            'from toolcrib import tool\n\n\n@tool(calls_per_minute=4)\ndef rare() -> int:\n    """Be rare."""\n    return 1\n'
        )
        made = cli("token", "create", "ci", "--scope", "invoke", "--quota", "calls=10", "--per", "hour", "--json")
        token = json.loads(made.out)
        assert token["quota"] == {"per": "hour", "calls": 10}
        assert cli("call", "rare").code == 0
        told = json.loads(cli("stats", "--json").out)
        assert [(each["tool"], each["calls"]) for each in told["tools"]] == [("tools/rare@1.0.0", 1)]
        keys = ("subject", "name", "used", "left", "per")
        assert [tuple(each[key] for key in keys) for each in told["limits"]] == [
            ("tools/rare@1.0.0", "", 1.0, 3.0, "minute"),
            (token["id"], "ci", 0.0, 10.0, "hour"),
        ]
        shown = cli("stats").out
        assert "##........  4 calls per minute  3" in shown
        assert "1 call of 1 tool" in shown
        assert f"\nci ({token['id']})  0 " in shown

    @pytest.mark.parametrize("words", ["calls", "calls=many", "tea=5", "calls=1.5"])
    def test_a_quota_that_is_none_is_refused_at_the_command_line(self, project, cli, monkeypatch, words):
        monkeypatch.chdir(project)
        ended = cli("token", "create", "ci", "--scope", "invoke", "--quota", words)
        assert ended.code != 0
        assert "--quota" in ended.err
