"""A session: what it counts, what it remembers, and its connection to the client."""

import asyncio
import gc
import threading
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, Session, ToolError
from toolcrib.model.session import CountedCall

PATIENCE = 10


def test_two_sessions_are_the_same_only_if_they_are_one():
    one, other = Session(id="s"), Session(id="s")
    assert one == one  # noqa: PLR0124 - that is what is tested
    assert one != other
    assert {one: 1}[one] == 1
    assert repr(one) == "Session(id='s', mode='text')"


def test_the_state_is_read_by_everybody_and_changed_by_the_host_alone():
    given = {"lang": "no"}
    session = Session(id="s", state=given)
    before = session.state
    with pytest.raises(TypeError):
        before["lang"] = "en"
    given["lang"] = "de"
    session.set_state(lang="fr", suppressAudio=True)
    assert before == {"lang": "no"}
    assert session.state == {"lang": "fr", "suppressAudio": True}
    with pytest.raises(TypeError):
        session.state["lang"] = "en"


@pytest.mark.parametrize("name", ["max_calls", "max_turn_calls", "max_turn_retrievals", "max_repeats"])
@pytest.mark.parametrize("bound", [-1, True, 1.5, "2"])
def test_a_bound_that_is_no_number_of_calls_is_refused(name, bound):
    with pytest.raises(ToolError, match=f"{name} of a session: write a whole number") as refusal:
        Session(id="s", **{name: bound})
    assert refusal.value.kind is Kind.VALIDATION


def test_a_call_that_may_never_be_made_once_is_no_bound_on_repeats():
    with pytest.raises(ToolError, match="from 1 on, not 0"):
        Session(id="s", max_repeats=0)
    assert Session(id="s", max_calls=0).admit(CountedCall(tool="t")) is None


def test_what_was_called_late_in_a_turn_is_remembered_for_that_turn():
    session = Session(id="s", max_repeats=1)
    step = CountedCall(tool="t", mark=b"m")
    turn = session.admit(step)
    session.next_turn()
    for _ in range(Session.MAX_EMPTY):
        session.note_empty("t", turn)
    assert not session.finds_nothing("t")
    assert session.admit(step) is not None


def test_a_call_that_was_not_made_after_all_is_taken_back_from_its_own_turn():
    session = Session(id="s", max_calls=1, max_turn_calls=1, max_turn_retrievals=1, max_repeats=1)
    step = CountedCall(tool="t", is_retrieval=True, mark=b"m")
    turn = session.admit(step)
    assert session.admit(step) is None
    session.uncount(step, turn)
    assert session.calls == 0
    assert session.admit(step) is not None


steps = st.builds(
    CountedCall, tool=st.sampled_from("ab"), is_retrieval=st.booleans(), mark=st.sampled_from([b"", b"x", b"y"])
)


@given(
    st.lists(st.one_of(steps, st.just("next turn"), st.sampled_from("ab")), max_size=40),
    *[st.none() | st.integers(0, 6)] * 3,
    st.none() | st.integers(1, 3),
)
def test_a_session_admits_what_a_plain_list_of_its_calls_would(acts, max_calls, max_turn, max_retrievals, max_repeats):
    session = Session(
        id="s",
        max_calls=max_calls,
        max_turn_calls=max_turn,
        max_turn_retrievals=max_retrievals,
        max_repeats=max_repeats,
    )
    made, turn, empty, current = [], [], [], session.admit(CountedCall(tool="first"))
    if current is not None:
        made, turn = [CountedCall(tool="first")], [CountedCall(tool="first")]

    def below(bound, calls):
        return bound is None or len(calls) < bound

    for act in acts:
        if act == "next turn":
            session.next_turn()
            turn, empty, current = [], [], None
        elif isinstance(act, str):
            if current is not None:
                session.note_empty(act, current)
                empty.append(act)
        else:
            expected = (
                below(max_calls, made)
                and below(max_turn, turn)
                and (not act.is_retrieval or below(max_retrievals, [step for step in turn if step.is_retrieval]))
                and (not act.mark or below(max_repeats, [step for step in turn if step.mark == act.mark]))
                and (not act.mark or empty.count(act.tool) < Session.MAX_EMPTY)
            )
            admitted = session.admit(act)
            assert (admitted is not None) is expected
            if admitted is not None:
                current = admitted
                made.append(act)
                turn.append(act)
        assert session.calls == len(made)


LOOK_UP = CountedCall(tool="t", is_retrieval=True)


class Slow:
    """A step that takes its time between being judged and being counted: meanwhile another thread wants the same place."""

    tool, mark = "t", b""
    notes: frozenset[str] = frozenset()

    def __init__(self, session):
        self.rival = threading.Thread(target=lambda: self.admitted.append(session.admit(LOOK_UP)))
        self.admitted = []
        self.looks = 0

    @property
    def is_retrieval(self):
        self.looks += 1
        if self.looks == 2:
            self.rival.start()
            # It cannot end before this step is counted; without a lock it would have ended long before.
            self.rival.join(0.2)
        return True


def test_of_two_threads_at_once_one_gets_the_last_place():
    session = Session(id="s", max_turn_retrievals=1)
    slow = Slow(session)
    mine = session.admit(slow)
    slow.rival.join(PATIENCE)
    assert slow.looks >= 2
    assert (mine is not None, slow.admitted) == (True, [None])
    assert session.calls == 1


class Client:
    """The other end of a connection; a message named "wait" stays under way."""

    def __init__(self):
        self.got = []
        self.given_up = []
        self.waiting = asyncio.Event()

    async def receive(self, message):
        if message == "wait":
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.append(message)
        self.got.append(message)


async def test_messages_reach_the_client_in_their_order():
    client = Client()
    session = Session(id="s", send=client.receive)
    await session.send({"type": "timeout"})
    await session.send([1])
    assert client.got == [{"type": "timeout"}, [1]]


async def test_without_a_connection_nothing_is_sent():
    with pytest.raises(ToolError) as refusal:
        await Session(id="s").send("x")
    assert refusal.value.kind is Kind.SESSION_INACTIVE
    assert refusal.value.message == "there is no connection to the client; nothing was sent"
    assert not refusal.value.partial_side_effects


@pytest.mark.parametrize("end", ["disconnect", "close"])
async def test_when_the_connection_closes_messages_under_way_and_later_ones_are_refused(end):
    client = Client()
    session = Session(id="s", send=client.receive)
    pending = asyncio.create_task(session.send("wait"))
    async with asyncio.timeout(PATIENCE):
        await client.waiting.wait()
        getattr(session, end)()
        with pytest.raises(ToolError, match="closed while the message was under way") as lost:
            await pending
        with pytest.raises(ToolError, match="no connection") as refused:
            await session.send("later")
        # One turn of the loop later the client's side has been given up too.
        await asyncio.sleep(0)
    assert lost.value.kind is refused.value.kind is Kind.SESSION_INACTIVE
    assert lost.value.partial_side_effects
    assert (client.got, client.given_up) == ([], ["wait"])
    assert session.is_active is (end == "disconnect")


async def test_a_client_that_does_not_let_go_holds_up_no_one_else_and_how_it_ends_is_no_news():
    let_go, waiting, news = asyncio.Event(), asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, facts: news.append(facts))

    async def stubborn(message):
        waiting.set()
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            await let_go.wait()
        raise ConnectionResetError

    session = Session(id="s", send=stubborn)
    pending = asyncio.create_task(session.send("x"))
    async with asyncio.timeout(PATIENCE):
        await waiting.wait()
        session.disconnect()
        with pytest.raises(ToolError, match="under way"):
            await pending
        let_go.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    del pending
    gc.collect()
    assert news == []


def test_a_message_of_a_closed_loop_may_end_while_its_own_thread_changes_the_session():
    async def never(message):
        await asyncio.Event().wait()

    session, loop = Session(id="s", send=never), asyncio.new_event_loop()
    pending = loop.create_task(session.send("x"))
    loop.run_until_complete(asyncio.sleep(0))
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False
    loop.close()

    def end():
        # As garbage collection does at any line; the loop refuses to cancel what is being sent.
        with session._lock, suppress(RuntimeError):
            pending.get_coro().close()

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(PATIENCE)
    assert not ending.is_alive()
    assert not session._under_way


async def test_a_connection_may_be_closed_from_another_thread():
    # In this mode the loop refuses everything that another thread does to it without waking it.
    asyncio.get_running_loop().set_debug(True)
    client = Client()
    session = Session(id="s", send=client.receive)
    pending = asyncio.create_task(session.send("wait"))
    async with asyncio.timeout(PATIENCE):
        await client.waiting.wait()
        await asyncio.to_thread(session.disconnect)
        with pytest.raises(ToolError, match="under way"):
            await pending


def test_a_connection_may_be_closed_after_the_loop_of_a_message_has_ended():
    client, left = Client(), []
    session = Session(id="s", send=client.receive)

    async def leave_behind():
        left.append(session.send("wait"))
        left[0].send(None)

    asyncio.run(leave_behind())
    session.disconnect()
    left[0].close()


async def test_what_the_clients_side_raises_is_raised():
    async def broken(message):
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        await Session(id="s", send=broken).send("x")


async def test_a_caller_that_is_cancelled_takes_its_message_along_even_as_the_connection_closes():
    client = Client()
    session = Session(id="s", send=client.receive)
    pending = asyncio.create_task(session.send("wait"))
    async with asyncio.timeout(PATIENCE):
        await client.waiting.wait()
        pending.cancel()
        session.disconnect()
        with pytest.raises(asyncio.CancelledError):
            await pending
        await asyncio.sleep(0)
    assert client.given_up == ["wait"]
