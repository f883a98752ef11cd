"""A server that loses its data while several threads of a process use it: nothing open is lost, and nothing ends twice."""

import os
import random
import signal
import threading

import pytest

from soaks import examples
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues.redis import RedisQueue
from toolcrib.model.toolrequest import Made, Status

FIRST, SECOND, THIRD = (f"req_20240115_00{number}" for number in (1, 2, 3))
MADE = Made(name="t", version="1.0.0", address="tools/t@1.0.0", path="tools/t", digest="d" * 64)
REQUESTS, CHANGED = "fullsend:builder_requests", "toolcrib:tool_requests:changed"


@pytest.fixture
def file(queue, spelled):
    """File a request under an id."""
    return lambda request_id, **fields: queue.file(read_request(spelled(id=request_id, **fields)))


@pytest.fixture
def during(queue, monkeypatch, eventually):
    """Send a command, and have another thread act after the server has carried it out, before its caller gets the answer."""
    ask = queue._link.ask

    def send(command, *, act):
        acting = threading.Thread(target=act)

        def ask_once(*words):
            monkeypatch.setattr(queue._link, "ask", ask)
            answer = ask(*words)
            acting.start()
            # A thread that restores waits for the answers that are on their way.
            eventually(lambda: queue._commands._restorer or not acting.is_alive())
            return answer

        monkeypatch.setattr(queue._link, "ask", ask_once)
        answer = command()
        acting.join(20)
        assert not acting.is_alive()
        return answer

    return send


class TestAnAnswerOnItsWay:
    """Another thread notices that the data is lost before a command gets its answer."""

    def test_what_was_filed_is_filed_again(self, queue, client, file, during):
        file(SECOND, name="other_tool")
        during(lambda: file(FIRST), act=lambda: (client.flushall(), queue.requests()))
        assert queue.get(FIRST).status is Status.PENDING

    def test_the_first_command_of_a_process_is_no_exception(self, queue, client, file, during):
        during(lambda: file(FIRST), act=lambda: (client.flushall(), file(SECOND, name="other_tool")))
        assert sorted(filed.id for filed in queue.requests()) == [FIRST, SECOND]

    def test_what_has_ended_is_not_filed_again(self, queue, client, file, during):
        file(FIRST)
        claim = queue.claim("o", 60)
        assert during(lambda: queue.finish(claim, MADE), act=lambda: (client.flushall(), queue.requests()))
        assert queue.requests() == []

    def test_a_thread_that_restores_does_not_wait_for_ever(self, queue, client, file, during, monkeypatch):
        monkeypatch.setattr("toolcrib.features.requests.queues.redis_commands.LONGEST_SECONDS", 0.01)
        file(FIRST)
        queue._commands._in_flight += 1  # as if a thread had been interrupted
        client.flushall()
        assert queue.get(FIRST).status is Status.PENDING


class TestAnAnswerThatIsOvertaken:
    """Another thread changes a request before a command that has read it gets its answer."""

    def test_what_has_ended_meanwhile_does_not_come_back(self, queue, client, file, during):
        reads = {
            "get": lambda: queue.get(FIRST),
            "requests": queue.requests,
            "find_open": lambda: queue.find_open("amount_adder"),
            "file": lambda: file(FIRST),
        }
        for name, read in reads.items():
            file(FIRST)
            during(read, act=lambda: queue.finish(queue.claim("o", 60), MADE))
            client.flushall()
            assert queue.requests() == [], name

    def test_what_was_filed_meanwhile_is_not_forgotten(self, queue, client, file, during):
        file(SECOND, name="other_tool")
        during(lambda: queue.get(FIRST), act=lambda: file(FIRST))
        client.flushall()
        assert sorted(filed.id for filed in queue.requests()) == [FIRST, SECOND]

    def test_what_is_retried_after_its_end_is_remembered_again(self, queue, queue_at, server, client, file):
        file(FIRST)
        queue.cancel(FIRST, "")
        queue_at(server.url).retry(FIRST)
        assert queue.get(FIRST).status is Status.PENDING
        client.flushall()
        assert queue.get(FIRST).status is Status.PENDING


class TestAMessageThatArrivesLate:
    @pytest.fixture
    def hear_late(self, queue, client):
        """Collect the messages of what is done now, and let the queue hear them afterwards."""
        with client.pubsub(ignore_subscribe_messages=True) as messages:
            messages.subscribe(CHANGED, REQUESTS)

            def hear():
                while (message := messages.get_message(timeout=0.1)) is not None:
                    queue._hear(message["channel"], message["data"].encode())

            messages.get_message(timeout=5)
            messages.get_message(timeout=5)
            yield hear

    def test_it_does_not_bring_back_what_has_ended(self, queue, client, file, hear_late):
        file(FIRST)
        queue.finish(queue.claim("o", 60), MADE)
        client.flushall()
        hear_late()
        assert queue.requests() == []

    def test_it_brings_back_what_was_filed_by_a_process_that_has_ended(
        self, queue_at, server, client, queue, spelled, hear_late
    ):
        other = queue_at(server.url)
        other.file(read_request(spelled(id=FIRST)))
        other.close()
        client.flushall()
        hear_late()
        assert queue.get(FIRST).status is Status.PENDING

    def test_a_foreign_client_may_publish_again_what_has_ended_and_is_lost(
        self, queue, client, file, spelled, hear_late
    ):
        file(FIRST)
        queue.cancel(FIRST, "")
        client.flushall()
        client.publish(REQUESTS, spelled(id=FIRST))
        hear_late()
        assert queue.get(FIRST).status is Status.PENDING


def test_a_builder_knows_more_open_requests_than_one_list_shows(queue, queue_at, server, client, spelled):
    queue_at(server.url).file(read_request(spelled(id=FIRST)))
    copies = """
        for number = 1, 1010 do
          local id = string.format('req_20240116_%04d', number)
          redis.call('COPY', 'tool_requests:' .. ARGV[1], 'tool_requests:' .. id)
          redis.call('HSET', 'tool_requests:' .. id, 'crib_digest', id)
          redis.call('HSET', 'toolcrib:tool_requests:leaders', id, id)
          for _, index in ipairs({'by:pending', 'pending'}) do
            redis.call('ZADD', 'toolcrib:tool_requests:' .. index, number, id)
          end
        end
    """
    client.eval(copies, 0, FIRST)
    assert len(queue.requests()) == 1_000
    queue.reconcile()
    assert len(queue._open._seen) == 1_011


def test_a_process_that_only_files_forgets_what_other_processes_have_ended(queue, queue_at, server, file):
    builder = queue_at(server.url)
    for number in range(1, 101):
        file(f"req_20240115_{number:03}", name=f"tool_{number}")
        if number > 3:
            assert builder.finish(builder.claim("o", 60), MADE)
    assert len(queue._open._seen) < 20


def test_a_server_that_returns_to_an_earlier_state_gets_back_what_it_has_lost(queue_at, start_server, spelled):
    server = start_server()
    queue, other = queue_at(server.url), queue_at(server.url)
    for number, request_id in enumerate((FIRST, SECOND, THIRD)):
        if request_id == SECOND:
            server.say("SAVE")
        requester = other if request_id == THIRD else queue
        requester.file(read_request(spelled(id=request_id, name=f"tool_{number}")))
    server.kill()
    server.start()
    # The one that notices it tells the other one.
    assert queue.get(SECOND).status is Status.PENDING
    assert [filed.id for filed in other.requests()] == [FIRST, SECOND, THIRD]


def test_what_a_read_only_replica_refuses_is_restored_when_it_takes_requests_again(queue_at, start_server, spelled):
    server = start_server()
    queue = queue_at(server.url)
    queue.file(read_request(spelled(id=FIRST)))
    server.say("FLUSHALL")
    server.say("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(ToolError, match="it is a read-only replica"):
        queue.get(FIRST)
    server.say("REPLICAOF", "NO", "ONE")
    assert queue.get(FIRST).status is Status.PENDING


class Threads:
    """Two Builders, a requester and a reader on one queue, whose server loses its data before or after commands."""

    def __init__(self, queue, client, seed):
        self.queue, self.client, self.random = queue, client, random.Random(seed)
        self.ended, self.problems = [], []
        self.filed = threading.Event()
        self.rate = self.random.choice([0.02, 0.05, 0.1])
        self.ask, queue._link.ask = queue._link.ask, self.ask_and_lose

    def ask_and_lose(self, *words):
        self.lose()
        answer = self.ask(*words)
        self.lose()
        return answer

    def lose(self):
        if self.random.random() < self.rate:
            self.client.flushall()

    def run(self, requests):
        acts = (lambda: self.file(requests), self.build, self.build, self.read)
        threads = [threading.Thread(target=self.watch, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        self.rate = 0
        for _ in range(2):  # what has ended is not there after one more loss either
            self.build()
            self.client.flushall()
        self.build()

    def watch(self, act):
        try:
            act()
        except Exception as problem:  # it is told in the thread of the test
            self.problems.append(problem)

    def file(self, requests):
        for request in requests:
            self.certainly(lambda request=request: self.queue.file(request))
        self.filed.set()

    def build(self):
        owner = threading.current_thread().name
        while (claim := self.certainly(lambda: self.queue.claim(owner, 60))) is not None or not self.filed.is_set():
            if claim is None:
                continue
            end = self.random.choice([lambda: self.queue.finish(claim, MADE), lambda: self.queue.fail(claim, "no")])
            self.ended.extend([claim.id] * self.certainly(end))

    def read(self):
        acts = (self.queue.requests, self.queue.reconcile, lambda: self.queue.get(FIRST))
        while not self.filed.is_set():
            self.certainly(self.random.choice(acts))

    def certainly(self, act):
        while True:
            try:
                return act()
            except ToolError as problem:
                if problem.kind is not Kind.TRANSIENT:
                    raise


@pytest.mark.rounds
def test_each_request_ends_once_however_often_the_data_is_lost(server, client, spelled):
    ids = [f"req_20240115_{number:03}" for number in range(1, 13)]
    for seed in range(examples(20)):
        client.flushall()
        queue = RedisQueue(server.url)
        threads = Threads(queue, client, seed)
        try:
            threads.run([read_request(spelled(id=each, name=f"tool_{each}", experiment=each)) for each in ids])
        finally:
            queue.close()
        assert (threads.problems, sorted(threads.ended)) == ([], ids), seed


def test_where_restoring_fails_the_threads_that_waited_for_it_do_not_try_it_one_after_the_other(
    queue, client, file, monkeypatch
):
    file(FIRST)
    client.flushall()
    ask, together, attempts, told = queue._link.ask, threading.Barrier(4), [], []

    def ask_or_fail(*words):
        if b'"command":"changes"' in words[-1]:
            attempts.append(words)
            raise ToolError(Kind.TRANSIENT, "it does not answer", retryable=True)
        answer = ask(*words)
        together.wait(20)
        return answer

    def look():
        with pytest.raises(ToolError) as caught:
            queue.find_open("some_tool")
        told.append((caught.value.kind, caught.value.retryable))

    monkeypatch.setattr(queue._link, "ask", ask_or_fail)
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(attempts), told) == (1, [(Kind.TRANSIENT, True)] * 4)
    monkeypatch.setattr(queue._link, "ask", ask)
    assert queue.get(FIRST).status is Status.PENDING


def test_a_child_that_is_forked_while_open_requests_are_restored_restores_them_itself(queue, client, file, monkeypatch):
    file(FIRST)
    client.flushall()
    ask, begun, go_on = queue._link.ask, threading.Event(), threading.Event()

    def ask_or_stay(*words):
        if b'"command":"file"' in words[-1] and threading.current_thread() is restoring:
            begun.set()
            go_on.wait(60)
        return ask(*words)

    monkeypatch.setattr(queue._link, "ask", ask_or_stay)
    restoring = threading.Thread(target=queue.get, args=(FIRST,))
    restoring.start()
    assert begun.wait(20)
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            signal.alarm(30)  # ends a child that waits
            is_right = queue.get(FIRST) is not None
        finally:
            os._exit(not is_right)
    status = os.waitpid(child, 0)[1]
    go_on.set()
    restoring.join(20)
    assert (status, queue.get(FIRST).status) == (0, Status.PENDING)
