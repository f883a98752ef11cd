"""The Builder: from a request to a published tool, through every kind of interruption."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tool_requests import allowance_of
from toolcrib import Kind, SettingsError, ToolError
from toolcrib.features.requests.builder import GIVEN_BACK, MAX_LOST_LEASES, UnfitError, count_lost_leases
from toolcrib.features.requests.candidate import publish, read_candidate
from toolcrib.features.requests.claim import MAX_PROGRESS_NOTES, read_task
from toolcrib.features.requests.command_maker import CommandMaker
from toolcrib.features.requests.delivery import PersonMaker
from toolcrib.features.requests.workspace import find_package, write_workspace
from toolcrib.infra.programs.executables import Executables
from toolcrib.infra.sandbox.jobs import MEGABYTE
from toolcrib.model.toolrequest import Event
from warm_python import WarmPython


@asynccontextmanager
async def running(builder):
    """A Builder at work until the end of the block."""
    stop = asyncio.Event()
    work = asyncio.create_task(builder.run(stop))
    try:
        yield work
    finally:
        stop.set()
        async with asyncio.timeout(25):
            await work


@pytest.fixture
def operator(tmp_path_factory):
    """A folder of the operator's, outside of the project."""
    return tmp_path_factory.mktemp("operator")


def command_maker(shop, folder, code, *, disk_bytes=50 * MEGABYTE):
    """The real maker that runs a program of the operator's, which lies outside the project."""
    (folder / "maker.py").write_text(code)
    resources = shop.crib._resources
    return CommandMaker(
        resources.get("sandbox"),
        resources.get("workspace_policy"),
        command=("python", str(folder / "maker.py")),
        find=Executables(os.environ["PATH"], (shop.root,), shop.root).installed,
        egress=lambda: resources.get("egress"),
        project=(shop.root,),
        disk_bytes=disk_bytes,
    )


class Away:
    """A queue that cannot be reached while it is `away`, or once for each of the acts that it `refuses_once`."""

    def __init__(self, queue):
        self._queue = queue
        self.away = False
        self.refuses_once = set()
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name):
        def ask(*arguments, **more):
            if self.away or name in self.refuses_once:
                self.refuses_once.discard(name)
                self._loop.call_soon_threadsafe(self.asked.set)
                raise ToolError(Kind.TRANSIENT, "the queue cannot be reached; nothing was stored", retryable=True)
            return getattr(self._queue, name)(*arguments, **more)

        return ask


@pytest.mark.spec("S0-35", "S0-36", "S0-37", "S0-38")
async def test_a_request_goes_all_the_way_from_its_filing_to_the_call_of_the_live_tool(shop, operator):
    code = f"import pathlib\npathlib.Path('package/word_counter.py').write_text({shop.code()!r})\nprint('written')\n"
    filed = shop.file("word_counter", priority="high", experiment_blocked="exp_words")
    assert filed.status == "pending"
    [waiting] = shop.queue.experiments()
    assert not waiting.ready
    builder = shop.builder(command_maker(shop, operator, code), setup=shop.setup)
    async with running(builder):
        over = await shop.until_over(filed.id)
    assert (over.status, over.tool, over.error) == ("ready", "tools/word-counter@1.0.0", "")
    steps = [step for step in shop.steps(filed.id) if step != "progress"]
    assert steps == ["filed", "building", "making", "proving", "published", "ready", "released"]
    assert "written" in shop.texts(filed.id, "progress")
    assert (shop.tools / "word_counter" / "tool.json").is_file()
    result = await shop.crib.call("word_counter", text="it counts words")
    assert result.value == {"words": 3}
    [experiment] = shop.queue.experiments()
    assert experiment.ready
    assert list(shop.builds.iterdir()) == []


@pytest.mark.spec("S0-29")
async def test_the_urgent_is_built_first_and_of_the_equally_urgent_the_oldest(shop, writer):
    for number, priority in enumerate(["low", "high", "medium", "low", "high"]):
        shop.file(f"tool_{number}", priority=priority)
    maker = writer("def run(text):\n    return {}\n")
    builder = shop.builder(maker)
    while await builder.build_one() is not None:
        pass
    built = [maker_task.request.name for maker_task in maker.tasks]
    assert built == ["tool_1", "tool_4", "tool_2", "tool_0", "tool_3"]


@pytest.mark.spec("S0-33")
async def test_what_was_filed_while_no_builder_ran_is_built_when_one_starts(shop, writer):
    filed = shop.file("word_counter")
    async with running(shop.builder(writer(shop.code()))):
        over = await shop.until_over(filed.id)
    assert over.status == "ready"


async def test_an_idle_builder_is_woken_by_a_request(shop, writer):
    async with running(shop.builder(writer(shop.code()))):
        await asyncio.to_thread(shop.queue.wait, 0.0)
        filed = shop.file("word_counter")
        assert (await shop.until_over(filed.id)).status == "ready"


WORKER = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {support!r}]
import conftest
from toolcrib.features.requests.builder import Builder

class Marking(conftest.Writer):
    async def make(self, maker_task):
        with open({marks!r}, "a") as marks:
            marks.write(f"{{maker_task.request.name}} {{sys.argv[1]}}\\n")
        if sys.argv[2] == "hang":
            print("hanging", flush=True)
            await asyncio.Event().wait()
        return await super().make(maker_task)

async def main():
    shop = conftest.Shop(Path({root!r}))
    maker = Marking("def run(text):\\n    return {{}}\\n")
    builder = shop.builder(maker, owner=sys.argv[1], lease_seconds=float(sys.argv[3]))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    while await builder.build_one() is not None:
        pass

asyncio.run(main())
"""


@pytest.fixture
def worker(shop, tmp_path):
    """Start a Builder in a process of its own; it begins when its standard input ends."""
    marks = tmp_path / "marks"
    here = Path(__file__)
    folders = {"tests": str(here.parent), "support": str(here.parents[3] / "support")}
    code = WORKER.format(**folders, root=str(shop.root), marks=str(marks))
    script = tmp_path / "worker.py"
    script.write_text(code)
    started = []

    def start(owner, how="write", lease=30.0):
        words = [sys.executable, str(script), owner, how, str(lease)]
        process = WarmPython(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    start.marks = lambda: marks.read_text().splitlines()
    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.spec("S0-34")
def test_two_builders_in_two_processes_build_each_request_once(shop, worker):
    names = [f"tool_{number}" for number in range(8)]
    filed = [shop.file(name) for name in names]
    builders = [worker("first"), worker("second")]
    for process in builders:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in builders:
        assert process.wait(30) == 0
    assert sorted(line.split()[0] for line in worker.marks()) == names
    assert {shop.queue.get(one.id).status for one in filed} == {"ready"}
    assert all(shop.steps(one.id).count("ready") == 1 for one in filed)


async def test_what_a_killed_builder_left_is_built_by_another_when_its_lease_is_over(shop, worker, writer):
    filed = shop.file("word_counter")
    process = worker("killed", "hang", 0.6)
    process.stdin.write("\n")
    process.stdin.flush()
    assert await asyncio.to_thread(process.stdout.readline) == "hanging\n"
    process.send_signal(signal.SIGKILL)
    process.wait(25)
    assert shop.queue.get(filed.id).status == "building"
    async with running(shop.builder(writer(shop.code()), owner="alive")):
        over = await shop.until_over(filed.id)
        assert over.status == "ready"
    assert shop.texts(filed.id, "building") == ["killed", "alive"]
    async with running(shop.builder(writer(shop.code()))), asyncio.timeout(25):
        while shop.builds.exists() and any(shop.builds.iterdir()):
            await asyncio.to_thread(shop.queue.wait, 0.02)


@pytest.mark.spec("S0-35")
async def test_a_malformed_request_fails_with_its_reason_and_the_next_one_is_built(shop, writer):
    bad = shop.queue.file(replace(shop.request("first_tool"), text="tool_request: [", id="req_20240115_001"))
    good = shop.file("word_counter")
    async with running(shop.builder(writer(shop.code()))):
        assert (await shop.until_over(good.id)).status == "ready"
    failed = shop.queue.get(bad.id)
    assert failed.status == "failed"
    assert failed.error == "request:2: did not find expected node content; correct the YAML there"


@pytest.mark.spec("S0-36")
async def test_what_the_gate_refuses_each_time_fails_with_its_words_and_is_not_announced(shop, writer):
    filed = shop.file("word_counter", experiment_blocked="exp_words")
    maker = writer("# wrong: no function\n", "# wrong: no outputs\n")
    over = await shop.builder(maker).build_one()
    assert over.status == "failed"
    assert over.error == "refused after 3 attempts: no outputs"
    assert over.tool == ""
    assert shop.texts(filed.id, "refused") == ["no function", "no outputs", "no outputs"]
    assert {"ready", "published", "released"}.isdisjoint(shop.steps(filed.id))
    assert not shop.queue.experiments()[0].ready
    assert list(shop.tools.iterdir()) == []


async def test_a_maker_hears_what_was_wrong_and_may_mend_it(shop, writer):
    shop.file("word_counter")
    maker = writer("# wrong: no function\n", shop.code())
    over = await shop.builder(maker).build_one()
    assert over.status == "ready"
    assert [each.complaints for each in maker.tasks] == [(), ("no function",)]
    assert [each.attempt for each in maker.tasks] == [1, 2]
    assert "no function" in maker.tasks[1].brief


async def test_what_the_gate_cannot_prove_is_not_tried_again(shop, writer):
    shop.file("word_counter")
    maker = writer("# wrong: not provable, add examples\n# unprovable\n")
    over = await shop.builder(maker).build_one()
    assert (over.status, over.error) == ("failed", "not provable, add examples")
    assert len(maker.tasks) == 1


async def test_the_real_gate_refuses_a_tool_that_says_the_same_to_everything(shop, writer):
    filed = shop.file("word_counter", examples=[])
    maker = writer("def word_counter(text: str) -> dict:\n    return {'words': 3}\n")
    over = await shop.builder(maker, setup=shop.setup).build_one()
    assert over.status == "failed"
    assert "not provable, add examples" in over.error
    assert len(maker.tasks) == 1
    assert shop.steps(filed.id).count("making") == 1


async def test_an_untestable_request_is_not_written(shop, writer):
    shop.file("web_reader", capabilities=["net.http"])
    maker = writer(shop.code("web_reader"))
    setup = replace(shop.setup, capabilities=frozenset({"net.*"}))
    over = await shop.builder(maker, setup=setup).build_one()
    assert "not provable" in over.error
    assert maker.tasks == []


async def test_a_request_that_asks_for_more_than_the_operator_allows_fails_before_it_is_written(shop, writer):
    filed = shop.file("web_reader", capabilities=["net.http"])
    maker = writer(shop.code("web_reader"))
    over = await shop.builder(maker).build_one()
    assert "net.http" in over.error
    assert "builder.capabilities" in over.error
    assert maker.tasks == []
    shop.queue.retry(filed.id)
    shop.queue.allow(filed.id, allowance_of("net.http", unproved=True))
    assert (await shop.builder(maker).build_one()).status == "ready"


@pytest.mark.spec("S0-37")
async def test_every_experiment_that_waits_for_the_tool_is_released(shop, writer):
    ids = [shop.file("word_counter", experiment_blocked=f"exp_{number}").id for number in range(3)]
    assert len(set(ids)) == 1
    await shop.builder(writer(shop.code())).build_one()
    assert [experiment.ready for experiment in shop.queue.experiments()] == [True, True, True]


@pytest.mark.spec("S0-37")
async def test_a_tool_that_no_experiment_waits_for_is_ready_all_the_same(shop, writer):
    shop.file("word_counter")
    assert (await shop.builder(writer(shop.code())).build_one()).status == "ready"
    assert shop.queue.experiments() == []


@pytest.mark.spec("S0-01")
async def test_a_tool_that_is_there_already_is_not_built_a_second_time(shop, writer):
    (shop.tools / "word_counter.py").write_text(shop.code())
    shop.file("word_counter")
    maker = writer(shop.code())
    over = await shop.builder(maker).build_one()
    assert over.status == "failed"
    assert "tools/word-counter@1.0.0 is registered already" in over.error
    assert maker.tasks == []


async def test_what_was_published_before_a_fall_is_announced_and_not_made_again(shop, writer, tmp_path):
    filed = shop.file("word_counter")
    claim = shop.queue.claim("fallen", 0.0)
    (tmp_path / "word_counter.py").write_text(shop.code())
    order = read_task(claim, shop.setup)
    publish(read_candidate(tmp_path / "word_counter.py", order.request), order.request, project_tools=shop.tools)
    maker = writer("raise SystemExit")
    over = await shop.builder(maker).build_one()
    assert (over.status, over.tool) == ("ready", "tools/word-counter@1.0.0")
    assert maker.tasks == []
    assert shop.texts(filed.id, "published") == ["tools/word_counter, before"]


async def test_what_was_published_for_another_request_is_not_announced(shop, writer):
    shop.file("word_counter")
    await shop.builder(writer(shop.code())).build_one()
    again = shop.file("word_counter", description="Another request")
    over = await shop.builder(writer(shop.code())).build_one()
    assert (over.id, over.status) == (again.id, "failed")


async def test_a_person_gets_a_workspace_and_the_request_waits_without_a_lease(shop):
    filed = shop.file("word_counter")
    over = await shop.builder(PersonMaker()).build_one()
    assert (over.status, over.held) == ("building", True)
    package = find_package(shop.builds, filed.id)
    assert (package / "word_counter.py").is_file()
    assert (package.parent / "contract" / "test_contract.py").is_file()
    assert await shop.builder(PersonMaker()).build_one() is None
    shop.later += 1_000_000.0
    assert await shop.builder(PersonMaker()).build_one() is None


@pytest.mark.spec("S0-34")
async def test_a_cancelled_request_ends_its_maker_and_nothing_is_published(shop, stuck):
    filed = shop.file("word_counter")
    maker = stuck()
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(maker).build_one())
        await maker.began.wait()
        building = shop.queue.get(filed.id)
        assert (building.status, building.owner) == ("building", "builder-1")
        shop.queue.cancel(filed.id, "nobody wants it")
        over = await work
    assert maker.ended.is_set()
    assert over.status == "cancelled"
    assert shop.steps(filed.id)[-1] == "cancelled"
    assert list(shop.tools.iterdir()) == []
    assert not maker.folder.exists()


async def test_a_claim_that_another_builder_has_taken_ends_the_maker_and_says_nothing(shop, stuck):
    filed = shop.file("word_counter")
    maker = stuck()
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(maker, lease_seconds=0.5).build_one())
        await maker.began.wait()
        shop.later += 1_000.0
        taken = await asyncio.to_thread(shop.queue.claim, "somebody else", 1_000.0, filed.id)
        await work
    assert maker.ended.is_set()
    assert shop.queue.renew(taken)
    assert {"failed", "returned"}.isdisjoint(shop.steps(filed.id))
    assert f"{filed.id}: the claim is lost" in shop.said


async def test_a_request_that_is_cancelled_while_it_is_published_is_not_announced(shop, writer):
    filed = shop.file("word_counter", experiment_blocked="exp_words")

    def publish_late(candidate, request, allowance):
        made = shop.setup.publish(candidate, request, allowance)
        shop.queue.cancel(filed.id, "nobody wants it")
        return made

    over = await shop.builder(writer(shop.code()), setup=shop.trusting_with(publish=publish_late)).build_one()
    assert over.status == "cancelled"
    assert {"ready", "released"}.isdisjoint(shop.steps(filed.id))
    assert (shop.tools / "word_counter").is_dir()


async def test_nothing_is_published_once_the_claim_is_of_another_builder(shop, writer):
    filed = shop.file("word_counter")

    async def prove_long(path, request, allowance, deadline, say):
        proof = await shop.trusting.prove(path, request, allowance, deadline, lambda _: None)
        shop.later += 1_000.0
        await asyncio.to_thread(shop.queue.claim, "somebody else", 1_000.0, filed.id)
        return proof

    setup = shop.trusting_with(prove=prove_long)
    over = await shop.builder(writer(shop.code()), setup=setup).build_one()
    assert (over.status, over.owner) == ("building", "somebody else")
    assert list(shop.tools.iterdir()) == []


async def test_a_builder_that_is_told_to_stop_gives_back_what_it_builds_at_once(shop, stuck, writer):
    filed = shop.file("word_counter")
    maker, stop = stuck(), asyncio.Event()
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(maker, lease_seconds=1_000.0).run(stop))
        await maker.began.wait()
        stop.set()
        await work
    assert shop.queue.get(filed.id).status == "pending"
    assert shop.texts(filed.id, "returned") == [GIVEN_BACK]
    assert (await shop.builder(writer(shop.code())).build_one()).status == "ready"


async def test_a_builder_that_is_cancelled_gives_back_what_it_builds(shop, stuck):
    filed = shop.file("word_counter")
    maker = stuck()
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(maker).build_one())
        await maker.began.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert shop.queue.get(filed.id).status == "pending"


async def test_an_idle_builder_stops_at_once(shop, writer):
    stop = asyncio.Event()
    work = asyncio.create_task(shop.builder(writer("")).run(stop))
    await asyncio.to_thread(shop.queue.reconcile)
    stop.set()
    await asyncio.wait_for(work, 25)


class Raising:
    name = "raising"

    def __init__(self, *problems):
        self.problems = list(problems)

    async def make(self, maker_task):
        if self.problems:
            raise self.problems.pop(0)
        (maker_task.package / f"{maker_task.request.name}.py").write_text("def run(text):\n    return {}\n")
        return True

    async def close(self):
        """Nothing was started."""


async def test_a_maker_that_raises_anything_fails_its_request_and_the_next_one_is_built(shop, caplog):
    first, second = shop.file("first_tool"), shop.file("second_tool")
    async with running(shop.builder(Raising(RuntimeError("the key is sk-123")))):
        assert (await shop.until_over(second.id)).status == "ready"
    failed = shop.queue.get(first.id)
    assert failed.error == "building it failed with RuntimeError; the log of the Builder says more"
    assert "sk-123" in caplog.text


@pytest.mark.parametrize("problem", [asyncio.CancelledError, GeneratorExit])
async def test_a_maker_that_breaks_off_by_itself_does_not_take_the_builder_along(shop, problem):
    first, second = shop.file("first_tool"), shop.file("second_tool")
    async with running(shop.builder(Raising(problem()))):
        assert (await shop.until_over(second.id)).status == "ready"
    failed = shop.queue.get(first.id)
    assert (failed.status, failed.error) == ("failed", f"the maker broke off with {problem.__name__}")


async def test_a_maker_that_came_to_nothing_may_try_again_and_knows_why(shop):
    filed = shop.file("word_counter")
    maker = Raising(ToolError(Kind.PERMANENT, "the program ended with exit code 1"))
    assert (await shop.builder(maker).build_one()).status == "ready"
    assert shop.texts(filed.id, "refused") == ["the program ended with exit code 1"]


async def test_a_maker_that_nothing_can_help_is_not_asked_again(shop):
    shop.file("word_counter")
    maker = Raising(
        ToolError(Kind.HOST_NOT_ALLOWED, "the endpoint is not allowed; see egress.private"), AssertionError()
    )
    over = await shop.builder(maker).build_one()
    assert over.error == "the endpoint is not allowed; see egress.private"


@pytest.mark.parametrize(
    "problem",
    [
        ToolError(Kind.AUTH, "put it right"),
        ToolError(Kind.EXECUTOR_NOT_FOUND, "put it right"),
        SettingsError("put it right"),
    ],
)
async def test_a_maker_that_could_make_nothing_ends_the_builder_and_no_request_fails_for_it(shop, problem):
    filed, other = shop.file("word_counter"), shop.file("other_tool")
    async with asyncio.timeout(25):
        with pytest.raises(UnfitError, match="put it right"):
            await shop.builder(Raising(*[problem] * 9)).run(asyncio.Event())
    assert [shop.queue.get(one.id).status for one in (filed, other)] == ["pending"] * 2
    assert shop.steps(filed.id) == ["filed", "building", "making", "progress", "returned"]
    assert shop.texts(filed.id, "progress") == ["put it right"]
    assert shop.texts(filed.id, "returned") == [GIVEN_BACK]
    assert shop.steps(other.id) == ["filed"]


async def test_a_maker_that_never_ends_is_ended_and_the_next_request_is_built(shop, stuck, monkeypatch):
    monkeypatch.setattr("toolcrib.features.requests.builder.OVERTIME_SECONDS", 0.0)
    filed = shop.file("first_tool")
    maker = stuck()
    over = await shop.builder(maker, seconds=1.0).build_one()
    assert over.status == "failed"
    assert over.error == "building it took longer than 1 seconds; see builder.seconds"
    assert maker.ended.is_set() == maker.began.is_set()
    assert shop.steps(filed.id)[-1] == "failed"


async def test_a_maker_that_does_not_heed_its_end_holds_up_no_one_else(shop, monkeypatch, caplog):
    monkeypatch.setattr("toolcrib.features.requests.builder.GRACE_SECONDS", 0.05)
    began, done, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Deaf(Raising):
        async def make(self, maker_task):
            began.set()
            while not done.is_set():
                try:
                    await done.wait()
                except asyncio.CancelledError:
                    continue
            return True

    shop.file("word_counter")
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(Deaf()).build_one(stop))
        await began.wait()
        stop.set()
        over = await work
    assert over.status == "pending"
    assert "it is abandoned" in caplog.text
    done.set()


async def test_a_builder_that_is_stopped_while_it_lays_a_workspace_out_leaves_none(shop, stuck, monkeypatch):
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    async def stop_and_let_the_builder_see_it():
        stop.set()
        for _ in range(100):
            await asyncio.sleep(0)

    def write_slowly(folder, request, **more):
        asyncio.run_coroutine_threadsafe(stop_and_let_the_builder_see_it(), loop).result(10)
        return write_workspace(folder, request, **more)

    monkeypatch.setattr("toolcrib.features.requests.builder.write_workspace", write_slowly)
    maker = stuck()
    shop.file("word_counter")
    async with asyncio.timeout(25):
        over = await shop.builder(maker).build_one(stop)
    assert over.status == "pending"
    assert not maker.began.is_set()
    assert list(shop.builds.iterdir()) == []


async def test_a_package_with_a_link_in_it_is_refused_by_name(shop):
    class Linking(Raising):
        async def make(self, maker_task):
            link = maker_task.package / "secrets.txt"
            link.unlink(missing_ok=True)
            link.symlink_to("/etc/passwd")
            return await super().make(maker_task)

    filed = shop.file("word_counter")
    over = await shop.builder(Linking()).build_one()
    assert over.status == "failed"
    assert "secrets.txt" in over.error
    assert len(shop.texts(filed.id, "refused")) == 3
    assert Path("/etc/passwd").exists()


async def test_a_maker_that_writes_too_much_fails_with_the_setting_and_the_next_request_is_built(
    shop, operator, writer
):
    code = "import itertools\nfor n in itertools.count():\n    open(f'package/{n}.bin', 'wb').write(bytes(1_000_000))\n"
    filed = shop.file("word_counter")
    over = await shop.builder(command_maker(shop, operator, code, disk_bytes=MEGABYTE), attempts=1).build_one()
    assert over.status == "failed"
    assert "builder.disk_mb" in over.error
    assert not (shop.builds / filed.id).exists()
    shop.file("next_tool")
    assert (await shop.builder(writer(shop.code())).build_one()).status == "ready"


async def test_everything_that_a_maker_left_behind_is_removed(shop):
    class Messy(Raising):
        async def make(self, maker_task):
            closed = maker_task.folder / "closed" / "deep"
            closed.mkdir(parents=True)
            (closed / "file").write_text("here")
            (maker_task.folder / "link").symlink_to(shop.tools)
            closed.chmod(0)
            closed.parent.chmod(0)
            return await super().make(maker_task)

    shop.file("word_counter")
    await shop.builder(Messy()).build_one()
    assert list(shop.builds.iterdir()) == []
    assert shop.tools.is_dir()


async def test_what_a_maker_says_need_not_even_be_text(shop):
    class Odd(Raising):
        async def make(self, maker_task):
            for saying in ("half \ud800", None, "\x00", b"\xff", "", "\u202e"):
                maker_task.say(saying)
            return await super().make(maker_task)

    shop.file("word_counter")
    assert (await shop.builder(Odd()).build_one()).status == "ready"


async def test_a_talkative_maker_does_not_push_out_what_became_of_its_work(shop):
    class Talking(Raising):
        async def make(self, maker_task):
            for number in range(10_000):
                maker_task.say(f"line {number} " + "x" * 10_000)
            return await super().make(maker_task)

    filed = shop.file("word_counter")
    await shop.builder(Talking()).build_one()
    assert len(shop.texts(filed.id, "progress")) == MAX_PROGRESS_NOTES
    assert max(map(len, shop.texts(filed.id, "progress"))) == 500
    assert shop.steps(filed.id)[:3] == ["filed", "building", "making"]
    assert shop.steps(filed.id)[-1] == "ready"


async def test_a_queue_that_is_away_for_a_while_costs_nothing(shop, writer):
    queue = Away(shop.queue)

    class Cutting(Raising):
        async def make(self, maker_task):
            queue.away = True
            await queue.asked.wait()
            queue.away = False
            return await super().make(maker_task)

    filed = shop.file("word_counter")
    async with asyncio.timeout(25):
        over = await shop.builder(Cutting(), queue=queue).build_one()
    assert over.status == "ready"
    steps = [step for step in shop.steps(filed.id) if step != "progress"]
    assert steps == ["filed", "building", "making", "proving", "published", "ready"]


async def test_a_queue_that_is_away_when_the_tool_is_announced_hears_of_it_later(shop, writer):
    queue = Away(shop.queue)

    def publish_and_cut(candidate, request, allowance):
        queue.away = True
        return shop.setup.publish(candidate, request, allowance)

    async def come_back():
        await queue.asked.wait()
        queue.away = False

    filed = shop.file("word_counter", experiment_blocked="exp_words")
    setup = shop.trusting_with(publish=publish_and_cut)
    async with asyncio.timeout(25):
        over, _ = await asyncio.gather(
            shop.builder(writer(shop.code()), setup=setup, queue=queue).build_one(), come_back()
        )
    assert over.status == "ready"
    assert shop.steps(filed.id)[-3:] == ["published", "ready", "released"]
    assert shop.queue.experiments()[0].ready


async def test_a_queue_that_is_lost_in_the_very_moment_is_told_again(shop, writer):
    queue = Away(shop.queue)
    queue.refuses_once = {"renew", "note", "finish"}
    filed = shop.file("word_counter")
    assert (await shop.builder(writer(shop.code()), queue=queue).build_one()).status == "ready"
    assert shop.steps(filed.id).count("ready") == 1
    queue.refuses_once = {"fail"}
    shop.file("other_tool")
    assert (await shop.builder(writer("# wrong: all of it\n"), queue=queue).build_one()).status == "failed"


async def test_what_was_not_announced_in_time_is_announced_by_the_next_builder(shop, writer):
    queue = Away(shop.queue)

    def publish_and_cut(candidate, request, allowance):
        queue.away = True
        return shop.setup.publish(candidate, request, allowance)

    filed = shop.file("word_counter")
    setup = shop.trusting_with(publish=publish_and_cut)
    async with asyncio.timeout(25):
        with pytest.raises(ToolError, match="cannot be reached"):
            await shop.builder(writer(shop.code()), setup=setup, queue=queue, lease_seconds=0.5).build_one()
    shop.later += 10.0
    other = writer("raise SystemExit")
    assert (await shop.builder(other).build_one()).status == "ready"
    assert other.tasks == []
    assert shop.steps(filed.id).count("ready") == 1


async def test_a_queue_that_is_away_longer_than_the_lease_ends_the_maker(shop, stuck):
    queue, maker = Away(shop.queue), stuck()
    filed = shop.file("word_counter")
    async with asyncio.timeout(25):
        work = asyncio.create_task(shop.builder(maker, queue=queue, lease_seconds=0.5).build_one())
        await maker.began.wait()
        queue.away = True
        await maker.ended.wait()
        with pytest.raises(ToolError):
            await work
    assert shop.queue.get(filed.id).status == "building"


async def test_a_builder_goes_on_when_its_queue_is_back(shop, writer):
    queue = Away(shop.queue)
    queue.away = True
    async with running(shop.builder(writer(shop.code()), queue=queue)):
        await asyncio.wait_for(queue.asked.wait(), 25)
        filed = shop.file("word_counter")
        queue.away = False
        assert (await shop.until_over(filed.id)).status == "ready"


async def test_a_request_that_takes_every_builder_down_is_not_tried_for_ever(shop, writer):
    filed = shop.file("word_counter")
    for number in range(MAX_LOST_LEASES):
        assert shop.queue.claim(f"fallen-{number}", 1.0) is not None
        shop.later += 10.0
    over = await shop.builder(writer(shop.code())).build_one()
    assert over.status == "failed"
    assert "lost its lease" in over.error
    shop.queue.retry(filed.id)
    assert (await shop.builder(writer(shop.code())).build_one()).status == "ready"


def test_only_claims_that_came_to_nothing_by_themselves_are_falls():
    def events(*steps):
        return [
            Event(number=number, at="", step=step.partition(":")[0], text=step.partition(":")[2])
            for number, step in enumerate(steps, 1)
        ]

    given_back = f"returned:{GIVEN_BACK}"
    assert count_lost_leases(events("filed", "building")) == 0
    assert count_lost_leases(events("filed", "building", "building")) == 1
    assert count_lost_leases(events("filed", "building", "making", "returned:the lease of b expired", "building")) == 1
    assert count_lost_leases(events("filed", "building", given_back, "building", given_back, "building")) == 0
    assert count_lost_leases(events("building", "building", "failed:x", "retried", "building")) == 0
    assert count_lost_leases(events("building", "building", "held", "building", "building")) == 1


async def test_nothing_is_built_where_there_is_nothing_to_build(shop, writer):
    assert await shop.builder(writer("")).build_one() is None
    assert shop.said == []
