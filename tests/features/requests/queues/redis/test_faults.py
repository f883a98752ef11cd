"""Servers that fall, freeze and refuse, answers that are lost, and Builders that die in the midst of things."""

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest
from redis import connection as library

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues import redis as queue_module
from toolcrib.features.requests.queues import redis_connection as link
from toolcrib.model.toolrequest import Allowance, Made, Status
from warm_python import WarmPython

ID = "req_20240115_001"
MADE = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)
KEEPING = ("--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
def request_of(spelled):
    """A request by its number; 0 is one that is still to get a number."""

    def make(number=1, **facts):
        if number:
            return read_request(spelled(id=f"req_20240115_{number:03}", **facts))
        return read_request(spelled(**facts).replace("  id: req_20240115_001\n", ""), numbered=False)

    return make


@pytest.mark.soak
def test_a_server_that_is_killed_at_any_point_of_a_hand_over_loses_and_doubles_nothing(
    queue_at, start_server, proxy_to, request_of, eventually
):
    server = start_server(*KEEPING)
    for number in range(1, 100):
        queue_at(server.url).file(request_of(number, name=f"tool_{number}"))
        proxy = proxy_to(server.port)
        left = [server.kill, *[int] * (number - 1)]  # calls before the pieces of the conversation; the last one kills
        proxy.before_piece = lambda left=left: left.pop()() if left else None
        queue = queue_at(proxy.url)
        finished = 0

        def hand_over(queue=queue, number=number):
            """Claim the request and finish it; true once it is ready."""
            nonlocal finished
            try:
                if claim := queue.claim("a", 0.2):
                    finished += bool(queue.finish(claim, MADE))
                queue.reconcile()
                return queue.get(f"req_20240115_{number:03}").status is Status.READY
            except ToolError as problem:
                if problem.kind is not Kind.TRANSIENT:
                    raise
                server.is_alive or server.start()

        eventually(hand_over)
        queue.close()
        was_over = bool(left)  # before the server was to be killed
        left.clear()
        proxy.drop()  # runs in the thread that kills, so it has done so if it was about to
        server.is_alive or server.start()
        assert finished <= 1
        assert queue_at(server.url).claim("another", 60) is None
        if was_over:
            return
    raise AssertionError("no hand-over passed without a fault")


class TestAServerThatIsDown:
    @pytest.mark.spec("S0-31")
    def test_a_request_is_refused_and_its_sender_is_told(self, queue_at, start_server, request_of):
        server = start_server(*KEEPING)
        queue = queue_at(server.url)
        queue.file(request_of(1))
        server.kill()
        with pytest.raises(ToolError, match="cannot be reached .*; nothing was stored: try again") as caught:
            queue.file(request_of(2, name="other_tool"))
        assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
        assert f"127.0.0.1:{server.port}" in caught.value.message
        server.start()
        assert [filed.id for filed in queue.requests()] == [ID]

    def test_every_door_says_so_and_a_waiting_caller_goes_on_waiting(
        self, queue_at, start_server, request_of, monkeypatch
    ):
        monkeypatch.setattr(link, "PAUSES", ())
        server = start_server()
        queue = queue_at(server.url)
        queue.file(request_of(1))
        claim = queue.claim("o", 60)
        server.kill()
        doors = (
            lambda: queue.get(ID),
            queue.requests,
            lambda: queue.claim("o", 60),
            lambda: queue.renew(claim),
            lambda: queue.finish(claim, MADE),
            lambda: queue.cancel(ID, ""),
            queue.experiments,
            queue.reconcile,
            queue.remarks,
        )
        for door in doors:
            with pytest.raises(ToolError, match="cannot be reached") as caught:
                door()
            assert caught.value.kind is Kind.TRANSIENT
        assert not queue.wait(0.05)
        assert not queue_at(server.url).wait(0.05)
        server.start()

    def test_a_caller_that_waited_is_woken_when_it_is_back(self, queue_at, start_server, request_of, eventually):
        server = start_server(*KEEPING)
        queue = queue_at(server.url)
        queue.file(request_of(1))
        eventually(lambda: not queue.wait(0.1))
        server.kill()
        server.start()
        queue_at(server.url).file(request_of(2, name="other_tool"))
        assert queue.wait(20)

    def test_what_was_acknowledged_survives_its_fall(self, queue_at, start_server, request_of):
        server = start_server(*KEEPING)
        queue = queue_at(server.url)
        acknowledged, stop = [], threading.Event()

        def file():
            for number in range(1, 900):
                if stop.is_set():
                    return
                acknowledged.append(queue.file(request_of(number, name=f"tool_{number}")).id)

        filing = threading.Thread(target=file)
        filing.start()
        for fall in range(1, 4):
            deadline = time.monotonic() + 25
            while len(acknowledged) < fall * 40:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            server.kill()
            known = list(acknowledged)
            server.start()
            kept = {filed.id for filed in queue.requests()}
            assert kept >= set(known)
        stop.set()
        filing.join(30)
        # Each fall came between a command and its answer for a filing client, and nothing was stored twice.
        assert [filed.id for filed in queue.requests()] == acknowledged
        assert {len(queue.history(request_id)) for request_id in acknowledged} == {1}

    def test_closing_wakes_a_caller_that_waits_for_its_answer(self, start_server, request_of):
        server = start_server()
        queue = queue_module.RedisQueue(server.url)
        queue.reconcile()
        server.freeze()
        problems = []

        def ask():
            with pytest.raises(ToolError) as caught:
                queue.file(request_of(1))
            problems.append(caught.value.message)

        asking = threading.Thread(target=ask)
        asking.start()
        until_it_waits = time.monotonic() + 25
        while not queue._link._open - set(queue._link._idle) - {queue._listener._connection}:
            assert time.monotonic() < until_it_waits
            time.sleep(0.001)
        queue.close()
        asking.join(3)  # an answer may take five
        assert not asking.is_alive()
        assert "was closed; open it again" in problems[0]
        server.thaw()
        with pytest.raises(ToolError, match="was closed; open it again"):
            queue.file(request_of(1))

    def test_the_thread_that_uses_a_connection_closes_it_itself(self, start_server):
        queue = queue_module.RedisQueue(start_server().url)
        used, idle = queue._link.connect(), queue._link.connect()
        queue._link._keep(idle)
        sockets = [used._sock, idle._sock]
        queue.close()
        # A descriptor that is closed while a thread reads from it may be that of another file at once.
        assert [socket.fileno() >= 0 for socket in sockets] == [True, False]
        with pytest.raises(library.ConnectionError):
            used.read_response()
        queue._link.drop(used)
        assert sockets[0].fileno() == -1

    def test_closing_does_not_wait_for_a_host_that_does_not_answer(self, eventually, monkeypatch):
        monkeypatch.setattr(queue_module, "CLOSE_SECONDS", 0.01)
        with ExitStack() as opened:
            listening = opened.enter_context(socket.socket())
            listening.bind(("127.0.0.1", 0))
            listening.listen(0)
            for _ in range(2):  # more than it may keep waiting, so that the next one gets no answer
                waiting = opened.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(listening.getsockname())
            queue = queue_module.RedisQueue(f"redis://127.0.0.1:{listening.getsockname()[1]}?socket_connect_timeout=1")
            queue.wait(0)
            eventually(lambda: queue._link._open)
            queue.close()
            assert queue._listener._thread.is_alive()
        queue._listener._thread.join(20)
        assert not queue._listener._thread.is_alive()

    @pytest.mark.parametrize("state", ["idle", "new"])
    def test_a_connection_that_is_closed_before_it_is_used_sends_nothing(
        self, start_server, request_of, monkeypatch, state
    ):
        queue = queue_module.RedisQueue(start_server().url)
        if state == "idle":
            queue.requests()
            monkeypatch.setattr(link, "_is_quiet", lambda _: queue._link.close() or True)
        else:
            reach = library.Connection._connect
            monkeypatch.setattr(library.Connection, "_connect", lambda self: queue._link.close() or reach(self))
        greeted = []
        monkeypatch.setattr(library.Connection, "on_connect_check_health", lambda *_, **__: greeted.append(1))
        with pytest.raises(ToolError, match="was closed; open it again"):
            queue.file(request_of(1))
        assert greeted == []
        queue.close()

    def test_a_connection_that_is_closed_while_it_is_opened_is_no_error_of_the_library(
        self, start_server, request_of, monkeypatch
    ):
        queue = queue_module.RedisQueue(start_server().url)
        read = library.Connection.read_response
        monkeypatch.setattr(
            library.Connection, "read_response", lambda self, **given: queue._link.close() or read(self, **given)
        )
        with pytest.raises(ToolError, match="was closed; open it again"):
            queue.file(request_of(1))
        queue.close()


class TestAnswersThatAreLost:
    @pytest.fixture
    def proxy(self, proxy_to, server, monkeypatch):
        monkeypatch.setattr(link, "PAUSES", (0.01, 0.01, 0.01))
        return proxy_to(server.port)

    @pytest.fixture
    def far(self, queue_at, proxy):
        queue = queue_at(proxy.url)
        queue.get("")
        return queue

    def test_a_command_counts_once_although_it_is_given_twice(self, far, proxy, request_of):
        def lose(act):
            proxy.swallow, before = 1, proxy.opened
            answer = act()
            assert (proxy.swallow, proxy.opened) == (0, before + 1)
            return answer

        filed = lose(lambda: far.file(request_of(0)))
        assert filed.requesters == 1
        assert len(far.requests()) == 1
        assert lose(lambda: far.file(request_of(0, experiment="exp_2"))).requesters == 2
        claim = lose(lambda: far.claim("o", 60))
        assert (claim.attempts, claim.fence) == (1, 1)
        assert lose(lambda: far.note(claim, "made"))
        assert lose(lambda: far.hold(claim, "by hand"))
        claim = lose(lambda: far.claim("o", 60, filed.id))
        assert lose(lambda: far.renew(claim))
        assert lose(lambda: far.give_back(claim, "stop"))
        assert lose(lambda: far.cancel(filed.id, "no")).status is Status.CANCELLED
        assert lose(lambda: far.retry(filed.id)).status is Status.PENDING
        assert lose(lambda: far.allow(filed.id, Allowance(unproved=True))).allowance.unproved
        assert lose(lambda: far.fail(far.claim("o", 60), "no"))
        far.retry(filed.id)
        assert lose(lambda: far.finish(far.claim("o", 60), MADE))
        steps = [event.step for event in far.history(filed.id)]
        assert steps == [
            *("filed", "merged", "building", "made", "held", "building", "returned", "cancelled", "retried", "allowed"),
            *("building", "failed", "retried", "building", "ready", "released", "released"),
        ]

    def test_a_connection_that_was_cut_while_nothing_happened_is_no_failure(self, far, proxy, request_of):
        far.file(request_of(1))
        proxy.drop()
        assert far.get(ID).status is Status.PENDING

    def test_when_every_answer_is_lost_it_says_that_it_does_not_know(self, far, proxy, request_of, queue):
        proxy.swallow = 1_000
        with pytest.raises(ToolError, match="the command may have taken effect: send it again") as caught:
            far.file(request_of(1))
        assert (caught.value.kind, caught.value.partial_side_effects) == (Kind.TRANSIENT, True)
        proxy.swallow = 0
        assert queue.get(ID).status is Status.PENDING  # it was
        assert far.file(request_of(1)) == queue.get(ID)

    def test_who_hangs_up_at_once_has_stored_nothing(self, queue_at, proxy, request_of, queue):
        proxy.refusing = True
        with pytest.raises(ToolError, match="nothing was stored"):
            queue_at(proxy.url).file(request_of(1))
        assert queue.requests() == []

    def test_a_slow_way_only_takes_longer(self, far, proxy, request_of):
        proxy.latency = 0.05
        assert far.file(request_of(1)).id == ID
        assert far.finish(far.claim("o", 60), MADE)

    def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(self, queue_at, start_server, request_of):
        server = start_server()
        queue = queue_at(f"{server.url}?socket_timeout=0.1")
        for number in (1, 2):
            queue.file(request_of(number, name=f"tool_{number}"))
        server.freeze()
        with pytest.raises(ToolError, match="cannot be reached"):
            queue.cancel(ID, "no")
        server.thaw()
        for _ in range(5):
            assert queue.get("req_20240115_002").name == "tool_2"
            assert queue.find_open("tool_9") is None
            assert queue.get(ID).name == "tool_1"

    def test_a_break_of_the_reader_leaves_no_answer_behind(self, queue, request_of, monkeypatch):
        queue.file(request_of(1))
        connection = queue._link._idle[-1]

        def interrupted():
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(connection, "read_response", interrupted)
            with pytest.raises(KeyboardInterrupt):
                queue.requests()
        assert queue.get(ID).id == ID
        assert connection not in queue._link._idle

    def test_what_was_stored_while_the_listener_was_cut_off_is_found_when_it_is_back(
        self, far, proxy, client, spelled, eventually
    ):
        far.reconcile()
        channel = "fullsend:builder_requests"
        eventually(lambda: client.pubsub_numsub(channel)[0][1] == 1)
        proxy.refusing = True
        proxy.drop()
        eventually(lambda: client.pubsub_numsub(channel)[0][1] == 0)
        client.hset(f"tool_requests:{ID}", mapping={"status": "pending", "yaml": spelled()})
        proxy.refusing = False
        eventually(lambda: client.hget(f"tool_requests:{ID}", "crib_status") == "pending")
        assert far.wait(20)

    def test_a_listener_notices_a_server_that_answers_no_more(self, queue_at, start_server, eventually, monkeypatch):
        monkeypatch.setattr(queue_module, "QUIET_SECONDS", 0.02)
        server = start_server()
        queue = queue_at(f"{server.url}?socket_timeout=0.1")
        queue.reconcile()
        eventually(lambda: queue._listener._connection)
        first = queue._listener._connection
        server.freeze()
        eventually(lambda: queue._listener._connection is not first)
        server.thaw()
        eventually(lambda: queue._listener._connection)


class TestAServerThatRefuses:
    def test_a_full_one_stores_nothing_and_says_so(self, queue_at, start_server, request_of):
        server = start_server("--maxmemory-policy", "noeviction")
        queue = queue_at(server.url)
        queue.get("")
        server.say("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(ToolError, match="its memory is full; nothing was stored") as caught:
            queue.file(request_of(1))
        assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
        server.say("CONFIG", "SET", "maxmemory", "0")
        assert queue.requests() == []
        assert queue.file(request_of(1)).id == ID

    def test_a_copy_takes_no_requests(self, queue_at, start_server, request_of):
        server = start_server("--replicaof", "127.0.0.1 1")
        with pytest.raises(ToolError, match="it is a read-only replica; nothing was stored, name the primary"):
            queue_at(server.url).file(request_of(1))

    def test_a_script_that_was_forgotten_is_sent_again(self, queue, server, request_of):
        queue.get("")
        server.say("SCRIPT", "FLUSH")
        assert queue.file(request_of(1)).id == ID

    def test_a_wrong_password_is_said_without_the_password(self, queue_at, start_server, request_of):
        server = start_server("--requirepass", "open-sesame")
        right = f"redis://:open-sesame@127.0.0.1:{server.port}/0"
        assert queue_at(right).file(request_of(1)).id == ID
        assert queue_at(server.url, password="open-sesame").get(ID).id == ID
        for wrong in (
            {"url": server.url, "password": "Sesam-Auf"},
            {"url": right.replace("open", "Sesam-Auf")},
            {"url": server.url},
        ):
            with pytest.raises(ToolError) as caught:
                queue_at(**wrong).file(request_of(2))
            assert caught.value.kind is Kind.AUTH
            assert "queue.secret" in caught.value.message
            assert "sesam" not in repr((caught.value.message, caught.value.details, caught.value.args)).lower()

    def test_a_server_that_repeats_the_greeting_does_not_give_the_password_away(self, queue_at, request_of):
        with socket.create_server(("127.0.0.1", 0)) as listening:

            def echo():
                while True:
                    try:
                        connection, _ = listening.accept()
                    except OSError:
                        return
                    with connection:
                        said = connection.recv(1_000)
                        connection.sendall(
                            b"-ERR unknown command, with args beginning with: " + said.replace(b"\r\n", b" ") + b"\r\n"
                        )

            echoing = threading.Thread(target=echo, daemon=True)
            echoing.start()
            url = f"redis://127.0.0.1:{listening.getsockname()[1]}"
            with pytest.raises(ToolError, match="nothing was stored") as caught:
                queue_at(url, password="open-sesame").file(request_of(1))
            assert "sesame" not in caught.value.message
            listening.shutdown(socket.SHUT_RDWR)
        echoing.join(25)


class TestRemarks:
    def test_a_server_that_forgets_in_a_fall_is_reported_with_the_cure(self, queue_at, start_server):
        (remark,) = queue_at(start_server().url).remarks()
        assert remark.endswith("keeps no append-only file: a crash loses requests; set appendonly yes")

    @pytest.mark.parametrize(
        ("policy", "is_told"),
        [("allkeys-lru", True), ("allkeys-random", True), ("volatile-lru", False), ("noeviction", False)],
    )
    def test_a_server_that_drops_keys_when_it_is_full_is_reported_with_the_cure(
        self, queue_at, start_server, policy, is_told
    ):
        server = start_server(*KEEPING, "--maxmemory", "100mb", "--maxmemory-policy", policy)
        remarks = queue_at(server.url).remarks()
        assert bool(remarks) is is_told
        assert not is_told or remarks[0].endswith("requests too; set maxmemory-policy noeviction")

    def test_a_user_who_may_not_ask_hears_nothing(self, queue_at, start_server, request_of):
        server = start_server()
        server.say("ACL", "SETUSER", "anna", "on", ">pw", "~*", "&*", "+@all", "-info")
        queue = queue_at(f"redis://anna:pw@127.0.0.1:{server.port}/0")
        assert queue.file(request_of(1)).id == ID
        assert queue.remarks() == []

    def test_a_user_who_may_not_use_scripts_is_told(self, queue_at, start_server, request_of):
        server = start_server()
        server.say("ACL", "SETUSER", "anna", "on", ">pw", "~*", "&*", "+@all", "-@scripting")
        with pytest.raises(ToolError, match="this user may not do that; nothing was stored") as caught:
            queue_at(f"redis://anna:pw@127.0.0.1:{server.port}/0").file(request_of(1))
        assert caught.value.kind is Kind.AUTH


HOLDER = """
import sys
from toolcrib.features.requests.queues.redis import RedisQueue
from toolcrib.model.toolrequest import Made

queue = RedisQueue(sys.argv[1])
while (claim := queue.claim("holder", float(sys.argv[2]))) is None:
    queue.wait(0.1)  # it may start before the request is filed
print(claim.id, flush=True)
sys.stdin.readline()
made = Made(name="t", version="1", address="late", path="tools/t", digest="d")
print(queue.renew(claim), queue.finish(claim, made), flush=True)
queue.close()
"""


@pytest.fixture
def holder(server):
    """Another process that claims for half a second and finishes when it is told to."""
    process = WarmPython(
        [sys.executable, "-c", HOLDER, server.url, "0.5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.communicate(timeout=30)


class TestBuildersThatDie:
    @pytest.mark.spec("S0-34")
    def test_what_a_killed_one_held_comes_back_after_its_lease(self, queue, holder, request_of, eventually):
        queue.file(request_of(1))
        assert holder.stdout.readline().strip() == ID
        holder.kill()
        holder.wait(30)
        claim = eventually(lambda: queue.claim("heir", 60))
        assert (claim.id, claim.attempts) == (ID, 2)
        assert queue.finish(claim, MADE)

    @pytest.mark.spec("S0-34")
    def test_a_frozen_one_cannot_finish_what_another_builder_claimed(
        self, queue, holder, request_of, subscribe, eventually
    ):
        hear = subscribe("builder:tool_ready")
        queue.file(request_of(1))
        assert holder.stdout.readline().strip() == ID
        holder.send_signal(signal.SIGSTOP)
        claim = eventually(lambda: queue.claim("heir", 60))
        holder.send_signal(signal.SIGCONT)
        assert holder.communicate("\n", timeout=30)[0].strip() == "False False"
        assert queue.get(ID).status is Status.BUILDING
        assert queue.finish(claim, MADE)
        assert hear()
        assert hear(0.1) is None
        assert queue.get(ID).tool == MADE.address
