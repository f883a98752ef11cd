"""What every crib keeps to: one of this machine, and one behind the URL of a real server on loopback."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from loopback_server import Served, served

from toolcrib import (
    AnyCrib,
    Call,
    Chunk,
    Context,
    Cost,
    Crib,
    Intent,
    Kind,
    Progress,
    Result,
    RetryPolicy,
    ToolError,
    tool,
)
from toolcrib.adapters import Anthropic, Gemini, OpenAIChat, OpenAIResponses
from toolcrib.client.remote_crib import LOCAL_ONLY, RemoteCrib

SECONDS = 20
BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
LARGE = 60_000


@tool(
    tags=["maths"],
    timeout=5,
    calls_per_minute=1_000_000,
    cost=Cost(per_invocation=0.01),
    retry=RetryPolicy(max_attempts=2),
)
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


@tool(modes={"voice"})
def speak() -> str:
    """Say a word aloud."""
    return "said"


@tool(confirm=True)
def pay(amount: int) -> str:
    """Pay a bill."""
    return f"paid {amount}"


@tool
def fail() -> str:
    """Fail after it has begun."""
    raise ToolError(Kind.PERMANENT, "the printer is on fire", partial_side_effects=True, value="half a page")


@tool
def hand_over() -> dict:
    """Hand the caller to a person."""
    return {"success": True, "data": 1, "intents": [{"type": "HANDOFF", "reason": "angry"}]}


@tool
def long_text(letters: int) -> str:
    """Write a long text."""
    return "x" * letters


ENDED = threading.Event()


@tool
async def letters(word: str, context: Context) -> AsyncIterator[str]:
    """Spell a word."""
    try:
        for number, letter in enumerate(word, 1):
            context.progress(number, len(word), letter)
            yield letter
    finally:
        ENDED.set()


@tool
async def endless() -> AsyncIterator[int]:
    """Count for ever."""
    try:
        while True:
            yield 1
            await asyncio.sleep(0)
    finally:
        ENDED.set()


TOOLS: list[Callable[..., object]] = [add, speak, pay, fail, hand_over, long_text, letters, endless]


@dataclass
class World:
    """A crib under test, one of a person who may approve its calls, and a local one with the same tools."""

    crib: AnyCrib
    person: AnyCrib
    twin: Crib

    @property
    def is_local(self) -> bool:
        return not self.crib.url


def open_project(folder: Path) -> Crib:
    folder.mkdir()
    (folder / "toolcrib.toml").write_text("[builtins]\nenabled = false\n\n[calls]\nresult_bytes = 50_000\n")
    return Crib(folder, tools=TOOLS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(lambda: open_project(tmp_path_factory.mktemp("served") / "project")) as server:
        yield server


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crib]:
    with open_project(tmp_path_factory.mktemp("local") / "project") as crib:
        yield crib


@pytest.fixture(params=["local", "connected"])
def world(request: pytest.FixtureRequest, twin: Crib) -> Iterator[World]:
    if request.param == "local":
        yield World(crib=twin, person=twin, twin=twin)
        return
    server: Served = request.getfixturevalue("server")
    token = server.crib.tokens.create("ann", ("read", "invoke", "approve", "manage"))[1]
    with Crib.connect(server.url) as crib, Crib.connect(server.url, token=token) as person:
        yield World(crib=crib, person=person, twin=twin)


@pytest.fixture
def crib(world: World) -> AnyCrib:
    return world.crib


# --- the protocol ----------------------------------------------------------------------------------------------------------


def public(thing: type) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_both_meet_the_one_protocol_with_the_same_parameters():
    shared = public(AnyCrib) | set(AnyCrib.__annotations__)
    for kind in (Crib, RemoteCrib):
        for name in shared - {"url", "caller", "bundles", "requests", "approvals", "audit"}:
            promised, made = getattr(AnyCrib, name), getattr(kind, name)
            if isinstance(promised, property):
                assert isinstance(made, property), name
                continue
            offered = inspect.signature(made).parameters
            for parameter in inspect.signature(promised).parameters.values():
                assert parameter.name in offered, (kind, name, parameter)
                assert offered[parameter.name].kind is parameter.kind, (kind, name, parameter)


async def test_what_only_a_crib_of_this_machine_has_is_refused_with_what_helps(server):
    only_local = (
        public(Crib) - public(RemoteCrib) - {"connect", "url", "caller", "bundles", "requests", "approvals", "audit"}
    )
    instance = {"settings", "has_own_rules"}
    assert only_local | instance == set(LOCAL_ONLY)
    async with Crib.connect(server.url) as crib:
        for name in LOCAL_ONLY:
            with pytest.raises(AttributeError, match=f"the crib of a server has no {name}; [a-z]"):
                getattr(crib, name)
        with pytest.raises(AttributeError, match="the crib of a server has no nonsense$"):
            crib.nonsense  # noqa: B018 - that is what is tried


# --- calls -----------------------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_by_name_with_keywords_a_mapping_or_a_call(crib):
    for pending in (
        crib.call("add", first=2, second=3),
        crib.call("add", {"first": 2}, second=3),
        crib.call("add", {"first": 2, "second": 3}),
        crib.call(Call(name="add", arguments={"first": 2, "second": 3})),
        crib.call(Call(name="add", version="1.0.0", arguments={"first": 2, "second": 3})),
    ):
        result = await pending
        assert (result.ok, result.value, bool(result)) == (True, 5, True)
        assert result.meta["tool"].startswith("add") or "add" in result.meta["tool"]


def test_plain_code_calls_too_also_from_several_threads(crib):
    assert crib.call_sync("add", first=2).unwrap() == 3
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(crib.call_sync("add", first=5).value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert found == [6] * 4


async def test_plain_code_inside_a_loop_is_told_to_await(crib):
    with pytest.raises(RuntimeError, match=r"write: await crib\.call"):
        crib.call_sync("add", first=2)


async def test_several_calls_have_one_result_each_in_their_order(crib):
    calls = [Call(name="add", arguments={"first": number}) for number in range(3)]
    results = await crib.call_all([*calls, Call(name="nobody")])
    assert [result.value for result in results[:3]] == [1, 2, 3]
    assert results[3].error is not None
    assert results[3].error.kind is Kind.NOT_FOUND


async def test_a_refused_call_says_which_kind_of_refusal_it_is(crib, world):
    cases: list[tuple[Kind, Call]] = [
        (Kind.NOT_FOUND, Call(name="ad")),
        (Kind.NOT_FOUND, Call(name="add", version="9.9.9", arguments={"first": 1})),
        (Kind.VALIDATION, Call(name="add", arguments={"first": "one"})),
        (Kind.VALIDATION, Call(name="add", mode="song", arguments={"first": 1})),
        (Kind.MODE_RESTRICTED, Call(name="speak")),
        (Kind.CONFIRMATION_REQUIRED, Call(name="pay", arguments={"amount": 1})),
    ]
    for kind, call in cases:
        result, other = await crib.call(call), await world.twin.call(call)
        assert result.error is not None, call
        assert other.error is not None, call
        assert (result.error.kind, result.refused, bool(result)) == (kind, True, False), call
        # What gates say is the same, beside what helps: a cure of the command line is none for a client elsewhere.
        assert result.error.message.partition(";")[0] == other.error.message.partition(";")[0]
        with pytest.raises(ToolError):
            result.unwrap()


async def test_what_is_no_name_and_no_mapping_is_a_refused_result(crib):
    for pending in (crib.call(5), crib.call("add", [1])):
        assert (await pending).error.kind in {Kind.VALIDATION, Kind.NOT_FOUND}


async def test_a_failed_call_keeps_its_partial_value_and_its_effects(crib):
    result = await crib.call("fail")
    assert (result.ok, result.value, result.refused) == (False, "half a page", False)
    assert (result.error.kind, result.error.message) == (Kind.PERMANENT, "the printer is on fire")
    assert result.error.partial_side_effects


async def test_a_call_that_is_not_awaited_names_the_cure(crib):
    pending = crib.call("add", first=1)
    cure = r"write: await crib\.call\(\.\.\.\), or crib\.call_sync"
    with pytest.raises(AttributeError, match=rf"was not awaited has no value; {cure}"):
        pending.value  # noqa: B018 - that is what is tried
    for wrong in (bool, list, lambda call: call["value"]):
        with pytest.raises(TypeError, match=cure):
            wrong(pending)
    assert (await pending).value == 2
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        crib.call("add", first=1)
        gc.collect()
    assert any("await crib.call(...)" in str(one.message) and "never awaited" in str(one.message) for one in heard)


async def test_a_call_may_be_a_task_and_may_be_cancelled(crib):
    assert (await asyncio.create_task(crib.call("add", first=1))).value == 2
    ENDED.clear()
    task = asyncio.create_task(crib.call("endless"))
    assert "pending" in repr(task)
    done, _ = await asyncio.wait({task}, timeout=0.3)
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ENDED.wait, SECONDS)


# --- events ----------------------------------------------------------------------------------------------------------------


def assert_spelled(events: list[object]) -> None:
    assert events[:-1] == [
        Progress(progress=1, total=2, message="a"),
        Chunk(number=1, value="a"),
        Progress(progress=2, total=2, message="b"),
        Chunk(number=2, value="b"),
    ]
    assert isinstance(events[-1], Result)
    assert events[-1].value == ["a", "b"]


async def test_a_call_is_heard_while_it_runs(crib):
    async with asyncio.timeout(SECONDS):
        assert_spelled([event async for event in crib.stream("letters", word="ab")])
        [refused] = [event async for event in crib.stream("letters", word=1)]
    assert isinstance(refused, Result)
    assert (refused.error.kind, refused.refused) == (Kind.VALIDATION, True)


def test_plain_code_hears_it_too(crib):
    assert_spelled(list(crib.stream_sync("letters", word="ab")))


async def test_to_close_a_stream_is_to_cancel_the_call(crib):
    ENDED.clear()
    async with asyncio.timeout(SECONDS), aclosing(crib.stream("endless")) as events:
        assert isinstance(await anext(events), Chunk)
    assert await asyncio.to_thread(ENDED.wait, SECONDS)


def test_plain_code_may_close_it_too(crib):
    ENDED.clear()
    with closing(crib.stream_sync("endless")) as events:
        assert isinstance(next(events), Chunk)
    assert ENDED.wait(SECONDS)


class Link:
    """Hears a call."""

    can_ask = False
    takes_chunks = True

    def __init__(self) -> None:
        self.heard: list[object] = []

    def progress(self, progress, total, message) -> None:
        self.heard.append(message)

    def log(self, level, data, logger) -> None:
        self.heard.append(data)

    async def ask(self, question):
        raise NotImplementedError

    async def chunk(self, value) -> None:
        self.heard.append(value)


async def test_the_client_of_a_call_hears_it(crib):
    link = Link()
    result = await crib.call(Call(name="letters", arguments={"word": "ab"}, client=link))
    assert result.value == ["a", "b"]
    assert link.heard == ["a", "a", "b", "b"]


# --- tools -----------------------------------------------------------------------------------------------------------------


def facts_of_tool(found) -> dict[str, object]:
    """All that a tool says of itself but where it lies and what runs it."""
    names = [name for name in vars(found) if name not in {"run", "origin", "content_hash"}]
    return {name: getattr(found, name) for name in names} | {"hash": found.content_hash, "kind": found.kind}


def test_the_same_tools_are_found_with_all_that_is_known_of_them(crib, world):
    assert [found.name for found in crib.tools] == [found.name for found in world.twin.tools]
    for found, other in zip(crib.tools, world.twin.tools, strict=True):
        assert facts_of_tool(found) == facts_of_tool(other)
    for name in ("add", "pay", "functions/add@1.0.0"):
        entry, other = crib.find(name), world.twin.find(name)
        if other is None:
            assert entry is None
            continue
        assert (entry.enabled, facts_of_tool(entry.tool)) == (True, facts_of_tool(other.tool))
    assert crib.find("nobody") is None
    assert crib.find("") is None
    assert "add" in crib.suggest("ad")
    assert crib.documentation("add") == world.twin.documentation("add")


def test_tools_are_listed_shown_and_searched_as_json(crib, world):
    assert crib.list_tools() == world.twin.list_tools()
    assert [facts["name"] for facts in crib.list_tools(tags=["maths"])] == ["add"]
    assert crib.show_tool("add") == world.twin.show_tool("add")
    assert crib.show_tool("nobody") is None
    found, has_more = crib.search_tools("pay", limit=1)
    assert [facts["name"] for facts in found] == ["pay"]
    assert isinstance(has_more, bool)
    assert "pay" in [found.name for found in crib.find_tools("pay a bill", limit=3)]


def test_a_tool_is_switched_off_and_on(crib):
    address, _ = crib.switch_tool("long_text", on=False)
    entry = crib.find("long_text")
    assert (entry.enabled, entry.tool.address) == (False, address)
    assert crib.call_sync("long_text", letters=1).error.kind is Kind.DISABLED
    assert "long_text" not in [found.name for found in crib.offered()]
    crib.switch_tool("long_text", on=True)
    assert crib.call_sync("long_text", letters=1).value == "x"
    assert crib.switch_tool("nobody", on=True) is None


def test_the_audit_trail_is_listed_with_its_filters(crib):
    crib.switch_tool("add", on=False)
    address, _ = crib.switch_tool("add", on=True)
    newest, before = list(crib.audit.events(what=address, actor="local", since="2026-01-01"))[:2]
    assert (newest["what"], before["what"]) == ("tool.enabled", "tool.disabled")
    assert list(crib.audit.events(actor="nobody")) == []
    with pytest.raises(ToolError, match="write a date such as"):
        list(crib.audit.events(since="soon"))


def test_every_gate_says_what_it_would(crib):
    fine = crib.explain("add", first=1)
    assert (fine.allowed, fine.refusal) == (True, None)
    refused = crib.explain(Call(name="pay", arguments={"amount": 1})).refusal
    assert refused.gate == "confirmation"
    assert crib.explain("add", first="one").refusal.verdict.kind is Kind.VALIDATION


def test_a_large_value_is_read_in_pieces(crib):
    result = crib.call_sync("long_text", letters=LARGE)
    handle = result.meta["kept"]["handle"]
    piece = crib.read_result(handle, offset=10, length=20)
    assert (piece.text, piece.offset, piece.total, piece.next) == ("x" * 20, 10, LARGE, 30)
    with pytest.raises(ToolError):
        crib.read_result("00ff")


def test_there_are_no_problems(crib):
    assert list(crib.problems) == []


# --- models ----------------------------------------------------------------------------------------------------------------


def test_models_are_offered_the_same_tools_in_the_same_words(crib, world):
    for mode in (None, "text", "voice"):
        names = [found.name for found in crib.offered(mode)]
        assert names == [found.name for found in world.twin.offered(mode)]
        assert ("speak" in names) is (mode != "text")
    assert [found.name for found in crib.offered("text", names=["pay", "add", "pay", "speak"])] == ["pay", "add"]
    assert crib.offered(names=[]) == ()
    with pytest.raises(ToolError, match="Tool 'ad' not found; did you mean add") as raised:
        crib.offered(names=["ad"])
    assert raised.value.kind is Kind.NOT_FOUND
    for provider in ("openai", "openai-responses", "anthropic", "gemini", "mcp"):
        exports, others = crib.export(provider, mode="text"), world.twin.export(provider, mode="text")
        assert [(each.definition, each.losses) for each in exports] == [
            (each.definition, each.losses) for each in others
        ], provider
    assert crib.prompt("text").text == world.twin.prompt("text").text


ASKED = {"first": 2, "second": 40}
REPLIES: dict[type, Callable[[str, dict], object]] = {
    OpenAIChat: lambda name, given: {
        "tool_calls": [{"id": "c1", "function": {"name": name, "arguments": json.dumps(given)}}]
    },
    OpenAIResponses: lambda name, given: {
        "output": [{"type": "function_call", "call_id": "c1", "name": name, "arguments": json.dumps(given)}]
    },
    Anthropic: lambda name, given: {"content": [{"type": "tool_use", "id": "c1", "name": name, "input": given}]},
    Gemini: lambda name, given: {"parts": [{"function_call": {"id": "c1", "name": name, "args": given}}]},
}


@pytest.mark.parametrize("adapter", REPLIES, ids=lambda kind: kind.__name__)
async def test_a_model_holds_a_chat(crib, world, adapter):
    chat, reply = adapter(crib), REPLIES[adapter]
    assert chat.definitions == adapter(world.twin).definitions
    told = json.dumps(await chat.answer(reply("add", ASKED)))
    assert "42" in told
    assert "c1" in told
    assert "CONFIRMATION_REQUIRED" in json.dumps(await chat.answer(reply("pay", {"amount": 7})))
    asked: list[str] = []

    def agree(call: Call, problem: ToolError) -> bool:
        asked.append(call.name)
        return problem.kind is Kind.CONFIRMATION_REQUIRED

    confirming = adapter(crib, tools=["pay"], confirm=agree)
    assert "paid 7" in json.dumps(await confirming.answer(reply("pay", {"amount": 7})))
    assert asked == ["pay"]
    assert "there is no tool" in json.dumps(await confirming.answer(reply("add", ASKED)))


@pytest.mark.parametrize("adapter", REPLIES, ids=lambda kind: kind.__name__)
def test_a_model_holds_a_chat_with_plain_code(crib, adapter):
    chat = adapter(crib, session=crib.session(max_calls=1))
    reply = REPLIES[adapter]("add", ASKED)
    assert "42" in json.dumps(chat.answer_sync(reply))
    assert "BUDGET_EXCEEDED" in json.dumps(chat.answer_sync(reply))


def test_tools_are_handed_to_other_frameworks(crib):
    langchain = pytest.importorskip("langchain_core", reason="the extra is not installed")
    assert langchain is not None
    [made] = crib.as_langchain(tools=["add"])
    assert made.invoke({"first": 2, "second": 3}) == "5"


# --- sessions, confirmations, approvals ------------------------------------------------------------------------------------


async def test_a_session_counts_calls_and_turns(crib):
    session = crib.session(max_calls=3, max_turn_calls=1)
    call = Call(name="add", arguments={"first": 1}, session=session)
    assert (await crib.call(call)).ok
    assert (await crib.call(call)).error.kind is Kind.BUDGET_EXCEEDED
    session.next_turn()
    assert (await crib.call(call)).ok
    assert (session.calls, session.max_calls, session.mode, session.is_active) == (2, 3, "text", True)
    assert crib.explain(call).refusal.gate == "budget"
    session.close()
    session.close()
    assert not session.is_active


async def test_a_session_has_a_mode_and_tells_the_host_what_tools_ask_for(crib):
    heard: list[Intent] = []
    voice = crib.session(mode="voice", on_intent=heard.append)
    assert (await crib.call(Call(name="speak", session=voice))).value == "said"
    assert "speak" in [found.name for found in crib.offered("voice", voice)]
    assert crib.find("speak", voice).tool.name == "speak"
    result = await crib.call(Call(name="hand_over", session=voice))
    assert [intent.type for intent in heard] == [intent.type for intent in result.intents]
    with pytest.raises(ToolError, match="there is no mode|write text or voice"):
        crib.session(mode="song")


def test_a_server_keeps_no_state_of_its_clients(server):
    with Crib.connect(server.url) as crib:
        for given in ({"state": {"a": 1}}, {"send": print}):
            with pytest.raises(ToolError, match="leave (state|send) out, or run the session there"):
                crib.session(**given)
        with pytest.raises(ToolError, match="leave a out"):
            crib.session().set_state(a=1)


async def test_a_server_makes_no_call_in_a_session_that_was_closed(server):
    async with Crib.connect(server.url) as crib:
        session = crib.session()
        session.close()
        result = await crib.call(Call(name="add", arguments={"first": 1}, session=session))
        assert (result.error.kind, result.refused) == (Kind.SESSION_INACTIVE, True)


async def test_a_confirmed_call_runs_once(crib):
    call = Call(name="pay", arguments={"amount": 3})
    token = (await crib.call(call)).error.details["confirmation"]
    confirmed = Call(name="pay", arguments={"amount": 3}, confirmation=token)
    assert (await crib.call(confirmed)).value == "paid 3"
    assert (await crib.call(confirmed)).error.kind is Kind.CONFIRMATION_REQUIRED


async def test_a_call_that_waits_for_a_person_is_approved_and_runs_once(world):
    crib, approvals = world.crib, world.person.approvals
    call = Call(name="pay", arguments={"amount": 4}, consent="either")
    waiting = (await crib.call(call)).error.details["approval"]
    assert approvals.show(waiting).arguments == {"amount": 4}
    assert waiting in [found.id for found in approvals.list()]
    async with asyncio.timeout(SECONDS), aclosing(approvals.watch()) as news:
        async for found in news:
            if found.id == waiting:
                break
        assert found.state == "pending"
        assert (await approvals.wait(waiting, 0)).state == "pending"
        assert approvals.approve(waiting, note="fine").state == "approved"
        assert (await approvals.wait(waiting, 5)).state == "approved"
    assert (await crib.call(call)).value == "paid 4"
    refused = (await crib.call(Call(name="pay", arguments={"amount": 5}, consent="either"))).error.details["approval"]
    assert approvals.refuse(refused).state == "refused"
    with pytest.raises(ToolError, match="refused already"):
        approvals.approve(refused)
    with pytest.raises(ToolError):
        approvals.show("none")


# --- bundles and requests --------------------------------------------------------------------------------------------------


def test_bundles_are_stored_listed_switched_and_deleted(crib):
    bundles = crib.bundles
    bundle, is_new = bundles.put_bundle(
        BUNDLE, {"slug": "weather", "displayName": "Weather", "description": "x", "isEnabled": True}
    )
    assert (bundle.slug, is_new) == ("weather", True)
    assert "weather" in [found.slug for found in bundles.list_all()]
    assert bundles.switch_bundle(BUNDLE, False).enabled is False
    assert bundles.switch_bundle(BUNDLE, True).enabled is True
    assert bundles.document(BUNDLE, "none", "1.0.0") is None
    assert bundles.export_bundle(BUNDLE)[:2] == b"PK"
    assert bundles.delete_bundle(BUNDLE).soft_deleted_at
    with pytest.raises(ToolError):
        bundles.bundle("018faf50-b7b6-7a01-9a05-a22a6e0af1ff")


REQUEST = {
    "description": "Say a text in capitals",
    "inputs": [{"name": "text", "type": "string", "description": "What to say", "required": True}],
    "outputs": [{"name": "loud", "type": "string"}],
}


async def test_a_missing_tool_is_requested_followed_and_cancelled(crib):
    requests = crib.requests
    filed = requests.new({"name": "shout_words", **REQUEST}).filed
    assert requests.show(filed.id).name == "shout_words"
    assert filed.id in [found.id for found in requests.list("pending")]
    heard: list[str] = []

    async def follow() -> None:
        async for event in requests.watch(filed.id):
            heard.append(event.step)

    following = asyncio.create_task(follow())
    assert requests.cancel(filed.id, "found another way").status == "cancelled"
    await asyncio.wait_for(following, SECONDS)
    assert heard == [event.step for event in requests.history(filed.id)]
    assert requests.retry(filed.id).status == "pending"
    requests.cancel(filed.id)
    with pytest.raises(ToolError):
        requests.show("none")


async def test_a_tool_is_obtained_at_once_or_waited_for(crib):
    assert (await crib.obtain("add")).name == "add"
    with pytest.raises(ToolError, match="there is no tool 'nobody' and no open request"):
        await crib.obtain("nobody")
    with pytest.raises(ToolError) as raised:
        await crib.obtain("count_sheep", {"name": "count_sheep", **REQUEST}, seconds=0.05)
    assert raised.value.kind is Kind.TIMEOUT
    assert crib.requests.cancel(raised.value.details["requestId"]).status == "cancelled"


# --- life ------------------------------------------------------------------------------------------------------------------


async def test_a_crib_that_was_closed_may_be_asked_again_and_closed_twice(server):
    crib = Crib.connect(server.url)
    assert (await crib.call("add", first=1)).value == 2
    await crib.close()
    assert (await crib.call("add", first=1)).value == 2
    await crib.close()
    await crib.close()


def test_one_connection_serves_one_event_loop_after_the_other(server):
    with Crib.connect(server.url) as crib:
        assert asyncio.run(crib.call("add", first=1)).value == 2
        assert asyncio.run(crib.call("add", first=2)).value == 3
        assert crib.call_sync("add", first=3).value == 4


async def test_a_server_that_is_not_there_is_told_as_a_result():
    async with Crib.connect("http://127.0.0.1:1") as crib:
        result = await crib.call("add", first=1)
        assert (result.error.kind, "is a server running there" in result.error.message) == (Kind.TRANSIENT, True)
        [event] = [event async for event in crib.stream("add", first=1)]
        assert event.error.kind is Kind.TRANSIENT
        with pytest.raises(ToolError, match="is a server running there"):
            crib.offered()


async def test_a_token_that_is_limited_to_some_tools_limits_the_connected_crib_too(server):
    from toolcrib.features.access.view import make_view

    token = server.crib.tokens.create("bob", ("read", "invoke"), view=make_view(tools=("add",)))[1]
    async with Crib.connect(server.url, token=token) as crib:
        assert [found.name for found in crib.offered()] == ["add"]
        assert [found.name for found in crib.tools] == ["add"]
        assert [definition["function"]["name"] for definition in OpenAIChat(crib).definitions] == ["add"]
        assert crib.find("pay") is None
        assert (await crib.call("pay", amount=1)).error.kind is Kind.NOT_FOUND
        assert list(crib.problems) == []
    async with Crib.connect(server.url, token="crib_wrong") as crib:
        result = await crib.call("add", first=1)
        assert result.error.kind is Kind.AUTH
        assert "give another token: token=… in Python" in result.error.message
