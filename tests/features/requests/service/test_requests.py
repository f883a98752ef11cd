"""What a crib does with requests: file, show, watch, deliver, cancel, retry, allow."""

import asyncio
import threading

import pytest

from tool_requests import allowance_of
from toolcrib import Kind, ToolError
from toolcrib.features.requests.tracker import MAX_TEXT_BYTES

ID = "req_20240115_001"


def refusal(act, *arguments, **more):
    with pytest.raises(ToolError) as raised:
        act(*arguments, **more)
    return raised.value


async def refused(work):
    with pytest.raises(ToolError) as raised:
        async with asyncio.timeout(30):
            await work
    return raised.value


@pytest.fixture
def held(yard):
    """A request that is left to a person."""
    filed = yard.requests.new(yard.fields(experiment_blocked="exp_words")).filed
    assert yard.queue.hold(yard.claim(), "left to a person")
    return filed


@pytest.mark.spec("S0-01")
def test_a_missing_tool_is_asked_for_once_and_wakes_the_builder(yard):
    yard.queue.wait(0.0)
    submitted = yard.requests.submit(yard.text(ID))
    assert (submitted.filed.id, submitted.filed.status, submitted.merged) == (ID, "pending", False)
    assert yard.queue.wait(5.0)
    assert [filed.id for filed in yard.queue.requests()] == [ID]


@pytest.mark.spec("S0-01")
def test_a_tool_that_is_registered_is_not_asked_for(yard):
    (yard.tools / "word_counter.py").write_text(yard.code())
    for act, wanted in ((yard.requests.submit, yard.text(ID)), (yard.requests.new, yard.fields())):
        error = refusal(act, wanted)
        assert error.kind is Kind.CONFLICT
        assert error.details == {"tool": "tools/word-counter@1.0.0"}
        assert "call it, or request a tool of another name" in error.message
    assert yard.requests.list() == []


@pytest.mark.spec("S0-04")
def test_the_same_text_again_is_no_second_request_even_when_its_tool_is_there(yard):
    yard.requests.submit(yard.text(ID))
    assert yard.requests.submit(yard.text(ID) + "\n\n").filed.id == ID
    yard.fulfil()
    assert yard.requests.submit(yard.text(ID)).filed.status == "ready"
    assert len(yard.requests.list()) == 1


@pytest.mark.spec("S0-04")
def test_another_text_under_the_same_id_is_refused_and_the_first_one_stays(yard):
    yard.requests.submit(yard.text(ID))
    error = refusal(yard.requests.submit, yard.text(ID, description="Something else"))
    assert error.kind is Kind.CONFLICT
    assert yard.requests.show(ID).text == yard.text(ID)


def test_a_request_gets_a_number_and_the_same_request_becomes_part_of_it(yard):
    first = yard.requests.new(yard.fields())
    second = yard.requests.new(yard.text())
    assert (first.merged, second.merged) == (False, True)
    assert first.filed.id == second.filed.id
    assert yard.requests.show(first.filed.id).requesters == 2
    third = yard.requests.submit(yard.text(ID))
    assert (third.merged, third.filed.merged_into) == (True, first.filed.id)


def test_warnings_come_with_what_was_filed_and_count_as_problems_where_that_is_wanted(yard, yards):
    wanted = yard.fields(name="counter")
    assert any("one word" in warning for warning in yard.requests.new(wanted).warnings)
    error = refusal(yard.requests.new, yard.fields(name="other"), strict=True)
    assert error.kind is Kind.VALIDATION
    strict = yards(requests={"strict": True})
    assert refusal(strict.requests.new, yard.fields(name="third")).kind is Kind.VALIDATION
    assert strict.requests.new(yard.fields(name="fourth"), strict=False).filed.name == "fourth"


@pytest.mark.parametrize(
    "text", ["", "tool_request: [", "[]", "a: 1", "\x00", "tool_request:\n  id: req_20240115_001\n", "💥" * 1000]
)
def test_what_is_no_request_is_refused_and_nothing_is_stored(yard, text):
    assert refusal(yard.requests.submit, text).kind is Kind.VALIDATION
    assert yard.requests.list() == []


def test_a_request_without_an_id_is_not_submitted_and_one_that_is_too_large_is_not_read(yard):
    assert refusal(yard.requests.submit, yard.text()).kind is Kind.VALIDATION
    assert refusal(yard.requests.new, "x" * (MAX_TEXT_BYTES + 1)).kind is Kind.LIMIT_EXCEEDED
    assert refusal(yard.requests.new, b"x" * (MAX_TEXT_BYTES + 1)).kind is Kind.LIMIT_EXCEEDED


@pytest.mark.parametrize("request_id", ["", "req_20240115_001", "../../etc/passwd", "x" * 10_000, "\ud800", "*"])
def test_an_unknown_id_is_told_with_the_cure_by_every_operation(yard, request_id):
    requests = yard.requests
    allow = lambda one: requests.allow(one, allowance_of())  # noqa: E731 - one of several acts
    for act in (requests.show, requests.history, requests.cancel, requests.retry, requests.package, allow):
        error = refusal(act, request_id)
        assert error.kind is Kind.NOT_FOUND
        assert "crib request list" in error.message
        assert len(error.message) < 1_000


def test_the_newest_are_listed_and_those_of_one_status(yard):
    for number in range(3):
        yard.requests.new(yard.fields(name=f"tool_{number}"))
    yard.claim()
    assert [filed.name for filed in yard.requests.list(limit=2)] == ["tool_1", "tool_2"]
    assert [filed.name for filed in yard.requests.list("building")] == ["tool_0"]
    assert len(yard.requests.list(limit=-5)) == 1


async def test_a_watcher_sees_every_event_in_order_until_it_is_over(yard):
    filed = yard.requests.new(yard.fields(experiment_blocked="exp_words")).filed
    seen = []
    began = asyncio.Event()

    async def watch():
        async for event in yard.requests.watch(filed.id):
            seen.append(event)
            began.set()

    async with asyncio.timeout(25):
        watching = asyncio.create_task(watch())
        await began.wait()
        claim = yard.claim()
        for number in range(5):
            yard.queue.note(claim, "making", f"attempt {number}")
        await asyncio.to_thread(yard.fulfil, claim)
        await watching
    assert [event.number for event in seen] == list(range(1, len(seen) + 1))
    assert [event.step for event in seen] == ["filed", "building", *["making"] * 5, "ready", "released"]


async def test_what_is_over_is_watched_from_any_event_on(yard):
    filed = yard.requests.new(yard.fields()).filed
    yard.fulfil()
    async with asyncio.timeout(25):
        seen = [event.step async for event in yard.requests.watch(filed.id, after=1)]
    assert seen == ["building", "ready"]
    error = await refused(anext(yard.requests.watch("req_20240115_009")))
    assert error.kind is Kind.NOT_FOUND


async def test_a_watch_survives_a_queue_that_is_away_for_a_while(yard, monkeypatch):
    filed = yard.requests.new(yard.fields()).filed
    queue = yard.crib._requests.queue
    real, asked, away = queue.history, threading.Event(), threading.Event()

    def history(*arguments):
        if away.is_set():
            asked.set()
            raise ToolError(Kind.TRANSIENT, "the queue cannot be reached")
        return real(*arguments)

    monkeypatch.setattr(queue, "history", history)
    seen = []

    async def watch():
        async for event in yard.requests.watch(filed.id):
            seen.append(event.step)

    async with asyncio.timeout(25):
        away.set()
        watching = asyncio.create_task(watch())
        assert await asyncio.to_thread(asked.wait, 10)
        yard.fulfil()
        away.clear()
        await watching
    assert seen == ["filed", "building", "ready"]


async def test_a_watch_ends_when_the_crib_is_closed(yard):
    filed = yard.requests.new(yard.fields()).filed
    events = yard.requests.watch(filed.id)
    async with asyncio.timeout(25):
        assert (await anext(events)).step == "filed"
        waiting = asyncio.create_task(anext(events))
        await asyncio.to_thread(yard.queue.wait, 0.1)
        yard.requests.close()
        error = await refused(waiting)
    assert error.kind is Kind.CANCELLED


@pytest.mark.spec("S0-35", "S0-37")
async def test_what_a_person_delivers_is_proved_published_and_announced(yard, held, tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "word_counter.py").write_text(yard.code())
    said = []
    async with asyncio.timeout(60):
        filed = await yard.requests.deliver(held.id, package, said.append)
    assert (filed.status, filed.tool) == ("ready", "tools/word-counter@1.0.0")
    assert said
    assert (await yard.crib.call("word_counter", text="a b c")).value == {"words": 3}
    assert yard.requests.experiments()[0].ready
    steps = [event.step for event in yard.requests.history(held.id) if event.step != "progress"]
    assert steps == ["filed", "building", "held", "building", "delivered", "published", "ready", "released"]


@pytest.mark.spec("S0-36")
async def test_what_the_gate_refuses_is_told_in_full_and_the_request_waits_on(yard, held, tmp_path):
    (tmp_path / "word_counter.py").write_text("def word_counter(text: str) -> dict:\n    return {'letters': 1}\n")
    error = await refused(yard.requests.deliver(held.id, tmp_path / "word_counter.py"))
    assert error.kind is Kind.VALIDATION
    assert any("words" in complaint for complaint in error.details["complaints"])
    filed = yard.requests.show(held.id)
    assert (filed.status, filed.held) == ("building", True)
    steps = [event.step for event in yard.requests.history(held.id)]
    assert "refused" in steps
    assert {"ready", "published"}.isdisjoint(steps)
    assert not yard.requests.experiments()[0].ready
    assert not (yard.tools / "word_counter").exists()


async def test_a_refused_delivery_leaves_an_unheld_request_to_the_builder(yard, tmp_path):
    filed = yard.requests.new(yard.fields()).filed
    error = await refused(yard.requests.deliver(filed.id, tmp_path / "nothing.py"))
    assert error.kind is Kind.VALIDATION
    now = yard.requests.show(filed.id)
    assert (now.status, now.held) == ("pending", False)


async def test_a_delivery_for_what_is_being_built_or_what_is_over_says_so(yard, tmp_path):
    filed = yard.requests.new(yard.fields()).filed
    claim = yard.claim()
    error = await refused(yard.requests.deliver(filed.id, tmp_path))
    assert (error.kind, "somebody builds" in error.message) == (Kind.CONFLICT, True)
    assert yard.queue.renew(claim)
    yard.fulfil(claim)
    error = await refused(yard.requests.deliver(filed.id, tmp_path))
    assert (error.kind, "ready already" in error.message) == (Kind.CONFLICT, True)


async def test_a_delivery_for_a_merged_request_is_one_for_what_is_built_in_its_place(yard, held, tmp_path):
    merged = yard.requests.submit(yard.text(ID)).filed
    assert merged.merged_into == held.id
    (tmp_path / "word_counter.py").write_text(yard.code())
    async with asyncio.timeout(60):
        filed = await yard.requests.deliver(ID, tmp_path / "word_counter.py")
    assert (filed.id, filed.status) == (ID, "ready")
    assert yard.requests.show(held.id).status == "ready"


async def test_a_delivery_that_is_cancelled_at_the_last_moment_is_not_announced(yard, held, tmp_path):
    (tmp_path / "word_counter.py").write_text(yard.code())
    setup = yard.crib._requests._setup

    def publish_late(candidate, request, allowance):
        made = setup.publish(candidate, request, allowance)
        yard.queue.cancel(held.id, "nobody wants it")
        return made

    late = type("LateSetup", (type(setup),), {"publish": staticmethod(publish_late)})
    yard.crib._requests._setup = late(**vars(setup))
    error = await refused(yard.requests.deliver(held.id, tmp_path / "word_counter.py"))
    assert (error.kind, "was not announced" in error.message) == (Kind.CONFLICT, True)
    assert yard.requests.show(held.id).status == "cancelled"
    assert not yard.requests.experiments()[0].ready


async def test_a_delivery_that_is_broken_off_leaves_the_request_to_be_delivered_again(yard, held, tmp_path):
    (tmp_path / "word_counter.py").write_text("import time\ntime.sleep(1000)\n" + yard.code())
    await yard.crib.sandbox_report()
    proving = asyncio.Event()
    async with asyncio.timeout(30):
        work = asyncio.create_task(
            yard.requests.deliver(held.id, tmp_path / "word_counter.py", lambda _: proving.set())
        )
        await proving.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert yard.requests.show(held.id).held


def test_what_is_cancelled_can_be_had_again(yard):
    filed = yard.requests.new(yard.fields()).filed
    assert yard.requests.cancel(filed.id, "r" * 10_000).status == "cancelled"
    assert len(yard.requests.show(filed.id).error) == 1_000
    assert refusal(yard.requests.cancel, filed.id).kind is Kind.CONFLICT
    assert yard.requests.retry(filed.id).status == "pending"
    assert refusal(yard.requests.retry, filed.id).kind is Kind.CONFLICT


def test_what_the_operator_allows_reaches_the_builder(yard):
    filed = yard.requests.new(yard.fields()).filed
    allowance = allowance_of("net.http", hosts=("example.com",), unproved=True)
    yard.requests.allow(filed.id, allowance)
    assert yard.claim().allowance == allowance


def test_what_failed_as_not_provable_is_allowed_more_and_then_built_again(yard):
    filed = yard.requests.new(yard.fields()).filed
    yard.queue.fail(yard.claim(), "not provable")
    assert yard.requests.allow(filed.id, allowance_of(unproved=True)).status == "failed"
    yard.requests.retry(filed.id)
    assert yard.claim().allowance.unproved


async def test_a_person_finds_the_package_that_was_laid_out(yard):
    filed = yard.requests.new(yard.fields()).filed
    assert yard.requests.package(filed.id) is None
    assert (await yard.crib.builder(maker="person").build_one()).held
    assert (yard.requests.package(filed.id) / "word_counter.py").is_file()
    error = await refused(yard.requests.deliver(filed.id, yard.requests.package(filed.id)))
    assert error.kind is Kind.VALIDATION


def test_a_crib_without_a_project_says_that_it_keeps_no_requests(crib_of):
    assert "project" in refusal(crib_of().requests.list).message
