"""Many processes at one store: one winner, nothing acknowledged is lost, and every history could have happened one by one."""

import json
import random
import subprocess
import sys
from collections import defaultdict

import pytest

from soaks import size
from toolcrib.features.bundles.facade import Bundles
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage.file_store import FileStore
from warm_python import WarmPython

PRELUDE = """
import json, os, random, sys, threading, time
from pathlib import Path
from toolcrib.features.bundles.facade import Bundles
from toolcrib import ToolError
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage.file_store import FileStore

root, bundle_id, me, number, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
DOCUMENT = {
    "schemaVersion": "toolcrib-1", "displayName": me, "type": "http", "isEnabled": True,
    "argSchema": {"type": "object"}, "outputSchema": {}, "impl": {"urlTemplate": "https://example.com/"},
}

def open_bundles():
    return Bundles(FileStore(Path(root)), Index(None), entries=list, functions={}, key=lambda: b"k" * 32)

def say(*words):
    # One write for each line, whichever thread says it.
    os.write(1, json.dumps(words).encode() + b"\\n")

def attempt(door, *arguments):
    try:
        return door(*arguments), None
    except ToolError as problem:
        return None, str(problem.kind)

bundles = open_bundles()
bundles.list_tools()
say("ready")
sys.stdin.readline()
"""

# Several threads want the same pair, round after round.
RACE = """
start = threading.Barrier(seed)

def race(thread):
    mine = open_bundles()
    for turn in range(number):
        start.wait(60)
        kept, kind = attempt(mine.put_tool, bundle_id, f"race-{turn}", "v1", DOCUMENT | {"displayName": f"{me}.{thread}"})
        say(turn, f"{me}.{thread}", kind)

threads = [threading.Thread(target=race, args=(thread,)) for thread in range(seed)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""

# Random operations on a few pairs; what was asked, when it began and ended, and what came of it.
HISTORY = """
chance = random.Random(seed)
for turn in range(number):
    slug, enabled = f"{me}-{chance.randrange(4)}", chance.random() < 0.5
    what = chance.choice(["put", "switch", "get", "get", "delete"])
    began = time.monotonic_ns()
    if what == "put":
        kept, kind = attempt(bundles.put_tool, bundle_id, slug, "v1", DOCUMENT | {"isEnabled": enabled})
    elif what == "switch":
        kept, kind = attempt(bundles.switch_tool, bundle_id, slug, "v1", enabled)
    elif what == "get":
        kept, kind = attempt(bundles.tool, bundle_id, slug, "v1")
    else:
        kept, kind = attempt(bundles.delete_tool, bundle_id, slug, "v1")
    ended = time.monotonic_ns()
    say(slug, what, enabled, began, ended, kind, None if kept is None else [kept.id, kept.enabled])
"""

# The same on many pairs, a few operations each: all processes come to a pair at about the same time.
SHORT_HISTORIES = HISTORY.replace("chance.randrange(4)", "turn // 3 + chance.randrange(2)")

# Writes on and on until it is killed.
WRITER = """
for turn in range(10**6):
    slug = f"{me}-{turn}"
    bundles.put_tool(bundle_id, slug, "v1", DOCUMENT)
    say("put", slug, True)
    bundles.switch_tool(bundle_id, slug, "v1", False)
    say("switched", slug, False)
    if turn % 3 == 0:
        bundles.delete_tool(bundle_id, slug, "v1")
        say("deleted", slug, None)
"""


def open_bundles(root):
    return Bundles(FileStore(root), Index(None), entries=list, functions={}, key=lambda: b"k" * 32)


@pytest.fixture
def bundle_id(tmp_path, put_bundle):
    return put_bundle(open_bundles(tmp_path / "store"))


@pytest.fixture
def start(tmp_path, bundle_id):
    """Start a process with a script; it waits until it is told to go."""
    started = []

    def go(script, me, number=0, seed=0):
        command = [
            sys.executable,
            "-c",
            PRELUDE + script,
            str(tmp_path / "store"),
            bundle_id,
            me,
            str(number),
            str(seed),
        ]
        process = WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield go
    for process in started:
        process.kill()
        process.communicate()


def run_together(processes):
    """What the processes say that begin at once."""
    for process in processes:
        assert json.loads(process.stdout.readline()) == ["ready"]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(line) for text in said for line in text.splitlines()]


def race(start, bundle_id, root, *, processes, threads, rounds):
    said = run_together([start(RACE, f"p{number}", rounds, threads) for number in range(processes)])
    assert len(said) == processes * threads * rounds
    won = {}
    for turn, who, kind in said:
        assert kind in (None, "CONFLICT")
        if kind is None:
            assert won.setdefault(turn, who) == who
    assert sorted(won) == list(range(rounds))
    bundles = open_bundles(root)
    assert {turn: bundles.tool(bundle_id, f"race-{turn}", "v1").tool.display_name for turn in won} == won


@pytest.mark.spec("S1-84", "S1-48")
def test_of_many_writers_of_one_pair_one_wins_and_the_others_conflict(start, bundle_id, tmp_path):
    race(start, bundle_id, tmp_path / "store", processes=3, threads=3, rounds=5)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_of_sixty_four_writers_one_wins_every_time(start, bundle_id, tmp_path):
    race(start, bundle_id, tmp_path / "store", processes=4, threads=16, rounds=size(200))


def check_histories(start, *, processes, operations, seed, script=HISTORY):
    # Pairs of its own: the checker takes it that a history begins with nothing stored.
    said = run_together([start(script, f"turn-{seed}", operations, seed + n) for n in range(processes)])
    histories = defaultdict(list)
    for slug, *line in said:
        histories[slug].append(line)
    for history in histories.values():
        assert is_linearizable(sorted(history, key=lambda line: line[2])), "\n".join(map(str, history))
    return len(histories)


def is_linearizable(history):
    """Whether the operations on one key could have happened one after the other, each between its beginning and its end."""
    everything = (1 << len(history)) - 1

    # A stack of our own: a long history is deeper than Python recurses.
    seen, open_ends = {(0, None)}, [(0, None)]
    while open_ends:
        done, state = open_ends.pop()
        if done == everything:
            return True
        waiting = [number for number in range(len(history)) if not done >> number & 1]
        first_end = min(history[number][3] for number in waiting)
        # What began first is tried first, so it goes onto the stack last.
        for number in reversed([number for number in waiting if history[number][2] <= first_end]):
            fits, after = apply(history[number], state)
            reached = (done | 1 << number, after)
            if fits and reached not in seen:
                seen.add(reached)
                open_ends.append(reached)
    return False


def apply(line, state):
    """Whether this could be the answer where the tool is (id, enabled) or None, and what it is then."""
    what, enabled, _, _, kind, answer = line
    if what == "put":
        if state is not None or kind is not None:
            return state is not None and kind == "CONFLICT", state
        return answer[1] == enabled, tuple(answer)
    if state is None or kind is not None:
        return state is None and kind == "NOT_FOUND", state
    if what == "delete":
        return True, None
    after = (state[0], enabled if what == "switch" else state[1])
    return tuple(answer) == after, after


def test_the_checker_tells_histories_apart():
    put, gone = ["put", True, 0, 1, None, ["a", True]], ["get", True, 2, 3, "NOT_FOUND", None]
    assert is_linearizable([put, ["get", True, 2, 3, None, ["a", True]]])
    assert not is_linearizable([put, gone])
    assert is_linearizable([[*put[:2], 0, 9, *put[4:]], gone])
    assert not is_linearizable([["get", True, 2, 3, None, ["a", True]]])
    assert not is_linearizable([put, ["put", True, 2, 3, None, ["b", True]]])
    assert not is_linearizable([put, ["get", True, 2, 3, None, ["a", False]]])
    assert is_linearizable([put, ["delete", True, 2, 5, None, None], ["get", True, 3, 4, None, ["a", True]]])


@pytest.mark.spec("S1-84")
def test_every_history_could_have_happened_one_by_one(start):
    check_histories(start, processes=3, operations=60, seed=random.randrange(10**6))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_histories_could_have_happened_one_by_one(start):
    for turn in range(size(20)):
        check_histories(start, processes=8, operations=250, seed=1_000 * turn)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_five_thousand_short_histories_could_have_happened_one_by_one(start):
    checked = sum(
        check_histories(start, processes=8, operations=600, seed=10**6 + 1_000 * turn, script=SHORT_HISTORIES)
        for turn in range(size(25))
    )
    assert checked >= 200 * size(25)


def kill_writers(start, bundle_id, root, *, rounds):
    """Kill writers in the middle of things; afterwards all they were told is so, and every file is whole."""
    expected, chance = {}, random.Random(rounds)
    for turn in range(rounds):
        process = start(WRITER, f"w{turn}")
        process.stdin.write("\n")
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(chance.randrange(2, 25))]
        process.kill()
        lines += process.communicate(timeout=60)[0].splitlines()
        for line in lines:
            what, *rest = json.loads(line)
            if what != "ready":
                expected[rest[0]] = rest[1]
    bundles = open_bundles(root)
    assert bundles.problems() == []
    for slug, enabled in expected.items():
        there = {kept.slug: kept for kept in ask(bundles, bundle_id, slug)}
        # Each writer's last tool may have gone one step further than it could say.
        if enabled is None:
            assert there == {}
        elif slug != last_of(expected, slug):
            assert there[slug].enabled == enabled
    assert not [path for path in (root / "bundles").rglob("*") if path.name.startswith(".")]


def ask(bundles, bundle_id, slug):
    from toolcrib import ToolError

    try:
        return [bundles.tool(bundle_id, slug, "v1")]
    except ToolError:
        return []


def last_of(expected, slug):
    writer = slug.partition("-")[0]
    return [other for other in expected if other.partition("-")[0] == writer][-1]


@pytest.mark.spec("S1-82", "S1-84")
def test_what_a_killed_writer_was_told_is_so_and_every_file_is_whole(start, bundle_id, tmp_path):
    kill_writers(start, bundle_id, tmp_path / "store", rounds=3)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_what_many_killed_writers_were_told_is_so(start, bundle_id, tmp_path):
    kill_writers(start, bundle_id, tmp_path / "store", rounds=size(200))


def test_the_limit_holds_across_processes(start, bundle_id, tmp_path):
    script = RACE.replace("mine = open_bundles()", "mine = limited()").replace(
        'f"race-{turn}"', 'f"{me}-{thread}-{turn}"'
    )
    limited = """
def limited():
    store = FileStore(Path(root))
    return Bundles(store, Index(None), entries=list, functions={}, key=lambda: b"k" * 32, max_tools=7)
"""
    said = run_together([start(limited + script, f"p{number}", 3, 2) for number in range(2)])
    assert len(said) == 12
    assert sorted(kind or "" for _, _, kind in said) == [""] * 7 + ["LIMIT_EXCEEDED"] * 5
    assert len(open_bundles(tmp_path / "store").list_tools(page_size=256).items) == 7
