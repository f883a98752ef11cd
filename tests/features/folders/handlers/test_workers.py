"""Workers of handlers: kept from call to call, bounded over all tools, and gone when they are not wanted any more."""

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from toolcrib import Crib, Kind, Session
from toolcrib.infra.programs import worker_pool as module
from warm_python import run_python

PID = "export const execute = ({ args }) => ({ ok: true, data: process.pid });"
COUNT = "let n = 0; export const execute = () => ({ ok: true, data: [process.pid, ++n] });"
# Asks its client for leave to go on, so that a test decides when the call ends.
WAIT = """
export async function execute({ args, context }) {
  await context.messaging.send(args.word ?? "go");
  return { ok: true, data: process.pid };
}
"""


class Gate:
    """A client that hears a message and answers when it is told to."""

    def __init__(self):
        self.heard = asyncio.Event()
        self.may_go = asyncio.Event()
        self.session = Session(id="s", send=self.send)

    async def send(self, message):
        self.heard.set()
        await self.may_go.wait()


@pytest.fixture
def under_way(folders):
    """Begin a call that lasts until its gate is opened."""

    async def under_way(tool):
        gate = Gate()
        task = asyncio.ensure_future(folders.data(tool, session=gate.session, word="x"))
        async with asyncio.timeout(25):
            await gate.heard.wait()
        return gate, task

    return under_way


async def test_a_worker_is_kept_for_the_next_call(folders):
    tool = folders.tool("counter", COUNT)
    calls = [await folders.data(tool) for _ in range(3)]
    assert [number for _, number in calls] == [1, 2, 3]
    assert len({process for process, _ in calls}) == 1


async def test_each_call_may_have_a_process_of_its_own(folders, has_gone):
    folders.fresh = True
    tool = folders.tool("counter", COUNT)
    calls = [await folders.data(tool) for _ in range(2)]
    assert [number for _, number in calls] == [1, 1]
    for process, _ in calls:
        assert await has_gone(process)


async def test_calls_at_once_have_a_worker_each(folders, under_way):
    tool = folders.tool("waiter", WAIT)
    begun = [await under_way(tool) for _ in range(3)]
    for gate, _ in begun:
        gate.may_go.set()
    assert len({await task for _, task in begun}) == 3


async def test_beyond_the_limit_calls_wait_in_their_order(folders, under_way):
    folders.workers = 1
    tool = folders.tool("waiter", WAIT)
    gate, first = await under_way(tool)
    done = []
    waiting = [asyncio.ensure_future(folders.data(tool, session=_open_session())) for _ in range(3)]
    for number, task in enumerate(waiting):
        task.add_done_callback(lambda _, number=number: done.append(number))
    await asyncio.sleep(0)
    gate.may_go.set()
    assert len({await first, *await asyncio.gather(*waiting)}) == 1
    assert done == [0, 1, 2]


async def test_room_is_made_by_ending_the_worker_that_waited_longest(folders, has_gone):
    folders.workers = 2
    old, middle, new = (folders.tool(name, PID) for name in ("old", "middle", "new"))
    oldest, kept = await folders.data(old), await folders.data(middle)
    await folders.data(new)
    assert await has_gone(oldest)
    assert await folders.data(middle) == kept


async def test_a_waiting_call_of_another_tool_gets_the_place_of_the_next_worker_that_is_free(
    folders, under_way, has_gone
):
    folders.workers = 1
    gate, first = await under_way(folders.tool("waiter", WAIT))
    other = asyncio.ensure_future(folders.data(folders.tool("other", PID)))
    await asyncio.sleep(0)
    gate.may_go.set()
    process = await first
    assert await other != process
    assert await has_gone(process)


async def test_a_call_that_finds_no_worker_in_its_time_is_refused_with_advice(folders, under_way):
    folders.workers = 1
    tool = folders.tool("waiter", WAIT)
    gate, first = await under_way(tool)
    with pytest.raises(Exception, match="no process became free") as caught:
        await folders.call(tool, seconds=0.1)
    assert (caught.value.kind, caught.value.retryable) == (Kind.OVERLOADED, True)
    assert "folders.workers" in caught.value.message
    gate.may_go.set()
    await first


async def test_the_queue_is_bounded(folders, under_way):
    folders.workers = 1
    folders.runner._workers._queue = 1
    tool = folders.tool("waiter", WAIT)
    gate, first = await under_way(tool)
    second = asyncio.ensure_future(folders.data(tool, session=_open_session()))
    await asyncio.sleep(0)
    with pytest.raises(Exception, match="1 processes are busy and 1 more calls wait") as caught:
        await folders.call(tool)
    assert caught.value.kind is Kind.OVERLOADED
    gate.may_go.set()
    assert await first == await second


async def test_who_leaves_the_queue_leaves_no_trace_in_it(folders, under_way):
    folders.workers = 1
    tool = folders.tool("waiter", WAIT)
    gate, first = await under_way(tool)
    impatient = asyncio.ensure_future(folders.data(tool))
    await asyncio.sleep(0)
    impatient.cancel()
    patient = asyncio.ensure_future(folders.data(tool, session=_open_session()))
    await asyncio.sleep(0)
    gate.may_go.set()
    assert await first == await patient


async def test_one_that_is_cancelled_when_its_turn_has_come_hands_it_on(folders, under_way):
    folders.workers = 1
    tool = folders.tool("waiter", WAIT)
    gate, first = await under_way(tool)
    cancelled, next_one = (asyncio.ensure_future(folders.data(tool, session=_open_session())) for _ in range(2))
    await asyncio.sleep(0)
    # In the very moment in which the first is done, before the second runs again.
    first.add_done_callback(lambda _: cancelled.cancel())
    gate.may_go.set()
    assert await first == await next_one
    assert cancelled.cancelled()


async def test_a_cancelled_call_ends_its_worker(folders, under_way, has_gone):
    tool = folders.tool("both", WAIT.replace("await context", "if (args.word) await context"))
    process = await folders.data(tool)
    _, task = await under_way(tool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await has_gone(process)
    assert await folders.data(tool) != process


async def test_a_call_that_is_cancelled_while_its_worker_starts_leaves_nothing(folders):
    tool = folders.tool("sample", PID)
    task = asyncio.ensure_future(folders.data(tool))
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await folders.data(tool)
    workers = folders.runner._workers
    async with asyncio.timeout(25):
        while len(workers._all) > 1:  # noqa: ASYNC110 - its end is what is waited for
            await asyncio.sleep(0.01)
    assert workers._free == folders.workers - 1


async def test_a_worker_that_has_nothing_to_do_ends_after_a_while(folders, has_gone, monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    tool = folders.tool("sample", PID)
    process = await folders.data(tool)
    assert await has_gone(process)
    assert await folders.data(tool) != process


async def test_a_worker_that_is_used_does_not_end(folders, monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.3)
    tool = folders.tool("sample", PID)
    await folders.data(tool)
    processes: set[int] = set()
    # On a busy machine two calls may lie further apart than a worker waits; then it is begun anew.
    async with asyncio.timeout(40):
        began = last = time.monotonic()
        while last < began + 0.8:
            processes.add(await folders.data(tool))
            await asyncio.sleep(0.02)
            last, before = time.monotonic(), last
            if last - before > 0.15:
                processes.clear()
                began = last
    assert len(processes) == 1


async def test_an_old_worker_is_not_used_again(folders, has_gone, monkeypatch):
    monkeypatch.setattr(module, "OLDEST_SECONDS", 0.0)
    tool = folders.tool("sample", PID)
    process = await folders.data(tool)
    assert await has_gone(process)


async def test_close_leaves_no_process_and_ends_what_runs(folders, under_way, has_gone):
    idle = await folders.data(folders.tool("sample", PID))
    tool = folders.tool("waiter", WAIT)
    running = await folders.data(tool, session=_open_session())
    _, task = await under_way(tool)
    async with asyncio.timeout(25):
        await folders.runner.close()
    with pytest.raises(AssertionError, match="the crib was closed while the tool ran"):
        await task
    for process in (idle, running):
        assert not _is_alive(process)


async def test_close_turns_away_who_waits(folders, under_way):
    folders.workers = 1
    tool = folders.tool("waiter", WAIT)
    _, first = await under_way(tool)
    waiting = asyncio.ensure_future(folders.call(tool))
    await asyncio.sleep(0)
    await folders.runner.close()
    with pytest.raises(Exception, match="the crib was closed while the call waited"):
        await waiting
    with pytest.raises(AssertionError, match="the crib was closed"):
        await first


async def test_a_worker_holds_no_place_among_the_jobs_of_the_sandbox(folders):
    before = folders.sandbox._slots._free
    await folders.data(folders.tool("sample", PID))
    assert folders.sandbox._slots._free == before


def test_loops_that_come_and_go_have_workers_of_their_own(folders_of):
    folders = folders_of()
    tool = folders.tool("sample", PID)
    first = asyncio.run(folders.data(tool))
    assert not _is_alive(first)
    assert asyncio.run(folders.data(tool)) != first
    asyncio.run(folders.runner.close())


def test_a_worker_of_a_loop_that_stands_still_is_ended_by_close(folders_of):
    folders = folders_of()
    tool = folders.tool("sample", PID)
    with asyncio.Runner() as runner:
        process = runner.run(folders.data(tool))
        assert runner.run(folders.data(tool)) == process
        asyncio.run(folders.runner.close())
        assert not _is_alive(process)


def test_a_worker_of_a_loop_that_stands_still_makes_room(folders_of, has_gone):
    folders = folders_of()
    folders.workers = 1
    tool = folders.tool("sample", PID)
    with asyncio.Runner() as runner:
        process = runner.run(folders.data(tool))
        assert asyncio.run(folders.data(tool)) != process
        assert asyncio.run(has_gone(process))
    asyncio.run(folders.runner.close())


def test_a_worker_of_a_loop_in_another_thread_is_ended_by_close(folders_of):
    folders = folders_of()
    tool = folders.tool("sample", PID)
    found, may_end = [], threading.Event()

    async def stay():
        found.append(await folders.data(tool))
        began.set()
        await asyncio.to_thread(may_end.wait, 20)

    began = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(stay()))
    thread.start()
    try:
        assert began.wait(20)
        asyncio.run(folders.runner.close())
        assert not _is_alive(found[0])
    finally:
        may_end.set()
        thread.join(20)


# What Python has to say of loops that are closed so, it says somewhere else than in this process.
STRANDED = '''
import asyncio, gc, sys
from pathlib import Path
from toolcrib import Crib
from toolcrib import Tool
from toolcrib.model.tool import Handler

root = Path(sys.argv[1])
code = b"export const execute = async ({ args }) => { if (args.stay) await new Promise(() => {}); return { ok: true, data: process.pid }; };"
(root / "sample").mkdir()
(root / "sample" / "handler.js").write_bytes(code)
run = Handler(root=root, folder="sample", language="javascript", files={"sample/handler.js": code})
tool = Tool(name="sample", description="x", parameters={"type": "object"}, run=run)
crib = Crib(tools=[tool], workspace={"folder": root}, folders={"workers": 1})

async def call():
    return (await crib.call("sample")).value

class Collecting:
    """A lock that collects garbage while it is held, as may happen at any time."""

    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.acquire()
        gc.collect()

    def __exit__(self, *_):
        gc.collect()
        self.lock.release()

async def leave():
    process = await call()
    workers = next(iter(crib._resources.runners._made.values()))._workers
    workers._lock = Collecting(workers._lock)
    staying = asyncio.ensure_future(crib.call("sample", stay=True))
    while workers._idle:
        await asyncio.sleep(0.01)
    return process, staying

for begin in (lambda: loop.run_until_complete(call()), lambda: loop.run_until_complete(leave())[0]):
    loop = asyncio.new_event_loop()
    process = begin()
    loop.close()
    print(process, asyncio.run(call()))
asyncio.run(crib.close())
'''


def test_a_loop_that_was_closed_with_its_worker_takes_no_place_for_ever(tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", STRANDED, str(tmp_path)]
    ended = run_python(words, capture_output=True, text=True, timeout=50)
    assert ended.returncode == 0, ended.stderr
    pairs = [list(map(int, line.split())) for line in ended.stdout.splitlines()]
    assert len({process for pair in pairs for process in pair}) == 4
    assert not any(_is_alive(process) for pair in pairs for process in pair)


@pytest.mark.spec("S2-31")
async def test_two_clients_at_once_get_their_own_answers(folders):
    code = """
    let calls = 0;
    export async function execute({ args, context }) {
      calls += 1;
      console.log(context.clientId);
      if (args.n % 3) await new Promise((done) => setTimeout(done, args.n % 5));
      context.audit.log("seen", { n: args.n, client: context.clientId });
      await context.messaging.send([context.clientId, args.n]);
      return { ok: true, data: [context.clientId, args.n] };
    }
    """
    folders.workers = 3
    tool = folders.tool("server", code)

    async def client(name):
        heard = []

        async def send(message):
            heard.append(message)

        session = Session(id=name, send=send)
        for number in range(50):
            outcome = await folders.call(tool, caller=name, session=session, n=number)
            assert (outcome.value, outcome.meta["stdout"]) == ([name, number], f"{name}\n")
        assert heard == [[name, number] for number in range(50)]

    await asyncio.gather(*(client(f"client-{number}") for number in range(4)))
    assert len(folders.audits) == 200


def test_a_crib_that_is_closed_leaves_no_process(folders_of):
    folders = folders_of()
    tool = folders.tool("sample", PID)
    with Crib(tools=[tool], workspace={"folder": str(folders.project)}) as crib:
        results = [crib.call_sync("sample") for _ in range(2)]
    assert [result.error for result in results] == [None, None]
    assert results[0].value == results[1].value
    assert not _is_alive(results[0].value)


def _open_session():
    async def send(message):
        return None

    return Session(id="open", send=send)


def _is_alive(process):
    """Whether it still does anything; one that has ended may not have been buried yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
