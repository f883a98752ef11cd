"""Writers that are killed: nothing torn, nothing acknowledged missing, nothing left behind, and no lock held."""

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from soaks import size
from toolcrib.infra.storage.file_store import FileStore
from warm_python import WarmPython

WRITER = """
import hashlib, itertools, os, sys
from pathlib import Path
from toolcrib.infra.storage.file_store import FileStore

def seal(text):
    body = (text * 400).encode()
    return hashlib.sha256(body).hexdigest().encode() + body

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")

store, me = FileStore(Path(sys.argv[1])), sys.argv[2]
say("ready")
for number in itertools.count():
    key = f"bundles/{me}/{number}"
    assert store.create(key, seal(f"{me} {number} "))
    say("created", key)
    store.replace(f"bundles/{me}/latest", seal(f"{number:08d} "))
    say("latest", me, number)
    if number % 3 == 2:
        assert store.remove(f"bundles/{me}/{number - 1}")
        say("removed", f"bundles/{me}/{number - 1}")
    with store.lock("bundle/shared", 30):
        count = int(store.get("bundles/shared/count") or b"0") + 1
        store.replace("bundles/shared/count", str(count).encode())
    say("counted", count)
"""


@contextmanager
def processes(program, *commands):
    """One process for each command, each ready; none is left afterwards."""
    started = []
    try:
        for command in commands:
            arguments = [sys.executable, "-c", program, *map(str, command)]
            started.append(WarmPython(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for process in started:
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def intact(document):
    return hashlib.sha256(document[64:]).hexdigest().encode() == document[:64]


def kill_writers(root, rounds, chance):
    """Kill four writers at random points, round after round; everything they said before that must hold."""
    count, counted = 0, []
    for turn in range(rounds):
        said = []
        with processes(WRITER, *((root, f"w{turn}-{number}") for number in range(4))) as writers:
            for writer in writers:
                said += [writer.stdout.readline() for _ in range(chance.randrange(1, 12))]
                time.sleep(chance.random() / 500)  # so that it is killed in the middle of something
                writer.kill()
            for writer in writers:
                said += writer.stdout.readlines()
        said = [line.split() for line in said]
        counted += [int(number) for verb, number, *_ in said if verb == "counted"]
        store = FileStore(root)
        check_documents({key: store.get(key) for key in store.stamps("bundles/")}, said)
        assert list(root.rglob("*.part")) == []
        # A writer that was killed under the lock does not keep it.
        with store.lock("bundle/shared", 5):
            count = int(store.get("bundles/shared/count") or b"0")
    # No two were under the lock at once, and what was counted was kept.
    assert len(counted) == len(set(counted))
    assert len(counted) <= count <= len(counted) + 4 * rounds


def check_documents(documents, said):
    """What the writers of a round said holds; of what each did last it may not have come to say it."""
    created = {key for verb, key, *_ in said if verb == "created"}
    removed = {key for verb, key, *_ in said if verb == "removed"}
    latest = {me: int(*number) for verb, me, *number in said if verb == "latest"}
    assert [key for key, document in documents.items() if "/w" in key and not intact(document)] == []
    assert not removed & set(documents)
    assert created - removed - set(documents) <= {f"bundles/{me}/{number - 1}" for me, number in latest.items()}
    for me, number in latest.items():
        assert int(documents[f"bundles/{me}/latest"][64:72]) in {number, number + 1}


@pytest.mark.spec("S1-82", "S1-84")
def test_killed_writers_leave_whole_documents_and_all_they_acknowledged(tmp_path):
    kill_writers(tmp_path, 4, random.Random(7))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_thousand_killed_writers_leave_whole_documents_and_all_they_acknowledged(tmp_path):
    kill_writers(tmp_path, size(250), random.Random(os.getpid()))


CREATOR = """
import json, sys, threading
from pathlib import Path
from toolcrib.infra.storage.file_store import FileStore
store = FileStore(Path(sys.argv[1]))
print("ready", flush=True)
for line in sys.stdin:
    key, start, won = f"bundles/b/{line.strip()}", threading.Barrier(16), []
    def create(number):
        start.wait(20)
        if store.create(key, f"{sys.argv[2]}.{number}".encode()):
            won.append(f"{sys.argv[2]}.{number}")
    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    [thread.start() for thread in threads]
    [thread.join(20) for thread in threads]
    print(json.dumps(won), flush=True)
"""


def race_of_creators(root, rounds):
    """Sixty-four creators in four processes go for one key, round after round."""
    with processes(CREATOR, *((root, number) for number in range(4))) as creators:
        for turn in range(rounds):
            for creator in creators:
                creator.stdin.write(f"{turn}\n")
                creator.stdin.flush()
            won = [winner for creator in creators for winner in json.loads(creator.stdout.readline())]
            assert len(won) == 1
            assert FileStore(root).get(f"bundles/b/{turn}") == won[0].encode()
    assert list(root.rglob("*.part")) == []


@pytest.mark.spec("S1-84")
def test_of_sixty_four_creators_in_four_processes_exactly_one_wins(tmp_path):
    race_of_creators(tmp_path, 5)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_of_sixty_four_creators_exactly_one_wins_two_hundred_times(tmp_path):
    race_of_creators(tmp_path, size(200))


def test_every_process_sees_the_generation_change_with_every_write_of_any(tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\nfrom toolcrib.infra.storage.file_store import FileStore\n"
        "store = FileStore(Path(sys.argv[1]))\nprint('ready', flush=True)\n"
        "for line in sys.stdin:\n    store.replace('bundles/b/1', line.encode())\n"
        "    print(store.generation('bundles'), flush=True)\n"
    )
    store, seen = FileStore(tmp_path), set()
    with processes(program, (tmp_path,), (tmp_path,)) as writers:
        for turn in range(60):
            writer = writers[turn % 2]
            writer.stdin.write("same\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == f"{store.generation('bundles')}\n"
            seen.add(store.generation("bundles"))
    assert len(seen) == 60


DISCARDER = """
import os, shutil, sys
from pathlib import Path
from toolcrib.infra.storage.file_store import FileStore
store = FileStore(Path(sys.argv[1]))
for number in range(20):
    store.create(f"bundles/b/{number}", b"")
def die(*arguments, **options):
    print("ready", flush=True)
    sys.stdin.read()
shutil.rmtree = die
store.discard("bundles/b")
"""


def test_what_a_killed_discarder_left_is_gone_for_everybody_and_deleted_by_the_next(tmp_path):
    with processes(DISCARDER, (tmp_path,)) as (discarder,):
        discarder.kill()
        discarder.wait(10)
    left = [path.name for path in (tmp_path / "bundles").iterdir()]
    assert len(left) == 1
    assert left[0].startswith(".crib-")
    store = FileStore(tmp_path)
    assert store.get("bundles/b/1") is None
    assert store.folders("bundles") == {}
    assert list((tmp_path / "bundles").iterdir()) == []
