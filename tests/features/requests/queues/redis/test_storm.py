"""Everything at once: Builders that are killed and frozen, a server that falls, freezes and loses connections."""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from soaks import size
from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import read_request
from warm_python import WarmPython

LEASE = 1.0
WORKER = """
import random, sys, tempfile, time
from pathlib import Path

from toolcrib import Kind, ToolError
from toolcrib.model.toolrequest import Made
from toolcrib.features.requests.queues.redis import RedisQueue

url, who, seconds, work, place = sys.argv[1:]
place, finished = Path(place), Path(place, "finished", who)
queue = RedisQueue(url)


def build(claim):
    name = next(line for line in claim.text.splitlines() if line.startswith("  name: ")).removeprefix("  name: ")
    private = Path(tempfile.mkdtemp(dir=place / "private"))
    time.sleep(random.uniform(0, float(work)))
    (private / "tool.py").write_text(name)
    if not queue.renew(claim):
        return
    try:
        private.rename(place / "tools" / name)
    except OSError:
        assert (place / "tools" / name / "tool.py").read_text() == name  # another builder wrote it before, completely
    made = Made(name=name, version="1.0.0", address=f"tools/{name}@1.0.0", path=f"tools/{name}", digest="d")
    if queue.finish(claim, made):
        with finished.open("a") as log:
            log.write(f"{claim.id} {claim.fence}\\n")


while True:
    try:
        queue.reconcile()
        while True:
            claim = queue.claim(who, float(seconds))
            if claim is None:
                queue.wait(0.2)
            else:
                build(claim)
    except ToolError as problem:
        if problem.kind is not Kind.TRANSIENT:
            raise
"""


class Storm:
    """Some workers on one server, and what goes wrong with them; all of it is repeatable by its seed."""

    def __init__(self, server, proxy, place, *, workers, work, seed):
        self.server, self.proxy, self.place, self.work = server, proxy, place, work
        self.random = random.Random(seed)
        self.started = 0
        self.faults = Counter()
        for folder in ("finished", "private", "tools"):
            (place / folder).mkdir()
        self.workers = [self.start() for _ in range(workers)]

    def start(self):
        self.started += 1
        words = [self.proxy.url, f"worker-{self.started}", LEASE, self.work, self.place]
        return WarmPython([sys.executable, "-c", WORKER, *map(str, words)])

    def strike(self):
        """Let one thing go wrong."""
        fault = self.random.choice(
            [self.kill, self.kill, self.freeze, self.drop, self.drop, self.delay, self.lose, self.fall, self.stall]
        )
        self.faults[fault.__name__] += 1
        fault()

    def kill(self):
        victim = self.victim()
        victim.kill()
        victim.wait(30)
        self.workers[self.workers.index(victim)] = self.start()

    def freeze(self):
        victim = self.victim()
        victim.send_signal(signal.SIGSTOP)
        threading.Timer(LEASE * 1.5, victim.send_signal, [signal.SIGCONT]).start()

    def victim(self):
        """One that is in the midst of things, if there is any: most of a short life is spent on starting."""
        at_work = {log.name for log in (self.place / "finished").iterdir()}
        return self.random.choice([each for each in self.workers if each.args[4] in at_work] or self.workers)

    def drop(self):
        self.proxy.drop()

    def lose(self):
        self.proxy.swallow = self.random.randint(1, 3)

    def delay(self):
        self.proxy.latency = self.random.choice([0.0, 0.01, 0.05])

    def fall(self):
        self.server.kill()
        self.server.start()

    def stall(self):
        self.server.freeze()
        time.sleep(self.random.uniform(0.05, 0.3))
        self.server.thaw()

    def calm(self):
        self.proxy.latency = self.proxy.swallow = 0

    def end(self):
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.kill()
            worker.wait(30)


def file_for_certain(queue, request):
    """File it until it is acknowledged, as a client does that is told that the outcome is unknown."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return queue.file(request)
        except ToolError as problem:
            if problem.kind is not Kind.TRANSIENT or time.monotonic() > deadline:
                raise


def weather(server, proxy, queue_at, spelled, *, requests, workers, work, faults, pause, seed):
    place = Path(tempfile.mkdtemp(prefix="storm-", dir=Path("/dev/shm") if Path("/dev/shm").is_dir() else None))
    storm = Storm(server, proxy, place, workers=workers, work=work, seed=seed)
    calm, far = queue_at(server.url), queue_at(proxy.url)
    ids = [f"req_202401{day:02}_{number:03}" for day in range(1, 32) for number in range(1, 1_000)][:requests]

    def file_all(order):
        for position in order:
            text = spelled(id=ids[position], name=f"tool_{position}", experiment=f"exp_{position % 97}")
            if position % 10:
                assert file_for_certain(far, read_request(text)).id == ids[position]
            else:
                store_for_certain(server, ids[position], text)

    try:
        filing = [
            threading.Thread(target=file_all, args=(order,)) for order in (range(requests), range(requests)[::-1])
        ]
        for thread in filing:
            thread.start()
        for _ in range(faults):
            time.sleep(storm.random.uniform(0, pause))
            storm.strike()
        storm.calm()
        for thread in filing:
            thread.join(120)
            assert not thread.is_alive()
        since, deadline = time.monotonic(), time.monotonic() + 120
        while count_ready(server) < requests:
            assert time.monotonic() < deadline, "something was lost"
            time.sleep(0.05)
        seconds = time.monotonic() - since
    finally:
        storm.end()
    try:
        return check(server, calm, place, ids) | {
            "faults": dict(storm.faults),
            "seconds after the last fault": round(seconds, 1),
        }
    finally:
        shutil.rmtree(place)


def store_for_certain(server, request_id, text):
    """A foreign client, who writes the hash by the document's own command and says it by the other one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(redis.RedisError, OSError), redis.Redis.from_url(server.url, decode_responses=True) as client:
            key = f"tool_requests:{request_id}"
            client.hset(key, mapping={"status": "pending", "yaml": text})
            client.publish("fullsend:builder_requests", text)
            return
    pytest.fail("the server never came back")


def count_ready(server):
    with suppress(redis.RedisError), redis.Redis.from_url(server.url) as client:
        return client.zcard("toolcrib:tool_requests:by:ready")
    return 0


def check(server, queue, place, ids):
    queue.reconcile()  # what a foreign client wrote last may still stand in a hash
    filed = queue.requests(limit=len(ids) + 1)
    assert sorted(each.id for each in filed) == sorted(ids)
    assert {each.status for each in filed} == {"ready"}
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        assert {client.hget(f"tool_requests:{each}", "status") for each in ids} == {"ready"}
        payloads = [json.loads(client.hget(f"tool_requests:{each}", "crib_ready")) for each in ids]
    assert [payload["request_id"] for payload in payloads] == ids
    ends = Counter(
        event.step for each in ids for event in queue.history(each) if event.step in {"ready", "failed", "released"}
    )
    assert ends == {"ready": len(ids), "released": len(ids)}
    finished = Counter(
        line.split()[0] for log in (place / "finished").iterdir() for line in log.read_text().split("\n") if line
    )
    assert max(finished.values()) == 1, "a request was finished twice"
    assert {folder.name for folder in (place / "tools").iterdir()} == {
        f"tool_{position}" for position in range(len(ids))
    }
    assert all(experiment.ready for experiment in queue.experiments())
    released = Counter(experiment for payload in payloads for experiment in payload["experiments"])
    assert set(released) == {f"exp_{position % 97}" for position in range(len(ids))}
    again = sum(each.attempts - 1 for each in filed)
    return {"requests": len(ids), "built again": again}


@pytest.fixture
def stormy(start_server, proxy_to, queue_at, spelled):
    server = start_server("--appendonly", "yes", "--appendfsync", "always")

    def run(**size):
        return weather(server, proxy_to(server.port), queue_at, spelled, **size)

    return run


@pytest.mark.spec("S0-34", "S0-36")
def test_nothing_is_lost_or_finished_twice_in_a_storm(stormy):
    stormy(requests=60, workers=3, work=0.1, faults=12, pause=0.25, seed=8)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_nothing_is_lost_or_finished_twice_in_a_great_storm(stormy, capsys):
    figures = stormy(
        requests=size(2_000), workers=8, work=0.4, faults=size(240), pause=0.5, seed=int(os.environ.get("STORM", "8"))
    )
    with capsys.disabled():
        print(f"\n{figures}")
