"""How often tools were called: exact in the end, by many processes at once, and never at a call's cost."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from toolcrib import Crib, tool
from toolcrib.core.journal import FileJournal, MemoryJournal, read_lines
from toolcrib.infra import call_counts as metrics_module
from toolcrib.lib.names import stable_id
from warm_python import WarmPython


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".toolcrib" / "counts.sqlite3"


def a_line(tool_id="t1", *, event="call", facts=None, address="a/b@1", moment=None, error=None):
    return (event, time.monotonic() if moment is None else moment, "1", address, "ann", 0.1, error, facts, tool_id)


def calls(metrics):
    return {tool_id: count.calls for tool_id, count in metrics.read().items()}


def look_at_once(monkeypatch):
    monkeypatch.setattr(metrics_module, "LOOK_SECONDS", 0)


@pytest.fixture(params=["memory", "files"])
def metrics(request, path):
    metrics = metrics_module.Metrics(None if request.param == "memory" else path)
    yield metrics
    metrics.close()


def test_calls_are_counted_by_the_id_of_the_tool(metrics):
    metrics.note([a_line("t1"), a_line("t2"), a_line("t1")])
    metrics.note([a_line("t1")])
    assert calls(metrics) == {"t1": 3, "t2": 1}


def test_a_tool_without_an_id_goes_by_that_of_its_address(metrics):
    metrics.note([a_line("", address="host/add@1.0.0")])
    assert calls(metrics) == {stable_id("tool", "host/add@1.0.0"): 1}


def test_what_was_refused_and_what_is_no_call_does_not_count(metrics):
    metrics.note([a_line(facts={"refused": True}), a_line(event="note"), a_line(event="audit:call")])
    assert calls(metrics) == {}
    metrics.note([a_line(facts={"refused": False, "cost": 3}), a_line(facts={}), a_line(error="TIMEOUT")])
    assert calls(metrics) == {"t1": 3}


def test_the_last_call_is_told_in_utc_and_never_goes_back(path):
    now = 1_767_225_600.5
    metrics = metrics_module.Metrics(path, lambda: now)
    start = time.monotonic()
    metrics.note([a_line(moment=start), a_line(moment=start + 5)])
    assert metrics.read()["t1"].last_called_at[:20] == "2026-01-01T00:00:05."
    metrics.note([a_line(moment=start - 3_600)])
    assert metrics.read()["t1"] == metrics_module.Count(3, metrics.read()["t1"].last_called_at)
    assert metrics.read()["t1"].last_called_at[:20] == "2026-01-01T00:00:05."
    metrics.close()


def test_what_was_handed_out_does_not_change_under_the_hands_of_its_reader(metrics):
    metrics.note([a_line("t1")])
    before = metrics.read()
    metrics.note([a_line("t1"), a_line("t2")])
    assert {tool_id: count.calls for tool_id, count in before.items()} == {"t1": 1}
    with pytest.raises(TypeError):
        before["t1"] = None


def test_counts_survive_the_process_and_grow_in_the_next(path):
    for number in range(1, 4):
        metrics = metrics_module.Metrics(path)
        metrics.note([a_line()])
        assert calls(metrics) == {"t1": number}
        metrics.close()
    assert calls(metrics_module.Metrics(path)) == {"t1": 3}


def test_two_at_once_see_each_other(path, monkeypatch):
    look_at_once(monkeypatch)
    one, other = metrics_module.Metrics(path), metrics_module.Metrics(path)
    for number in range(1, 6):
        one.note([a_line("t1")])
        other.note([a_line("t1"), a_line("t2")])
        assert calls(one) == calls(other) == {"t1": 2 * number, "t2": number}
    one.close()
    other.close()
    assert calls(metrics_module.Metrics(path)) == {"t1": 10, "t2": 5}


def test_others_are_looked_at_no_more_often_than_needed(path, monkeypatch):
    monkeypatch.setattr(metrics_module, "LOOK_SECONDS", 3_600)
    one, other = metrics_module.Metrics(path), metrics_module.Metrics(path)
    other.note([a_line()])
    assert calls(one) == {"t1": 1}
    other.note([a_line()])
    one.note([a_line("t2")])
    assert calls(one) == {"t1": 1, "t2": 1}
    assert one.read() == one.read()


def test_the_file_is_for_its_owner_alone(path):
    before = os.umask(0)
    try:
        metrics = metrics_module.Metrics(path)
        metrics.note([a_line()])
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["counts.sqlite3"]


def test_a_process_that_counts_nothing_and_finds_nothing_makes_no_file_and_loads_no_database(tmp_path):
    program = (
        "import sys, pathlib\nfrom toolcrib.infra.call_counts import Metrics\n"
        "metrics = Metrics(pathlib.Path(sys.argv[1]) / 'counts.sqlite3')\n"
        "metrics.note([])\nassert dict(metrics.read()) == {}\nmetrics.close()\n"
        "assert 'sqlite3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=30)
    assert list(tmp_path.iterdir()) == []


def test_only_what_changed_is_read_again(path, monkeypatch):
    look_at_once(monkeypatch)
    writer, reader = metrics_module.Metrics(path), metrics_module.Metrics(path)
    writer.note([a_line(f"t{number}") for number in range(50)])
    assert len(calls(reader)) == 50
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE counts SET calls = 1000 WHERE tool = 't7'")
    writer.note([a_line("t8")])
    assert (calls(reader)["t7"], calls(reader)["t8"]) == (1, 2)


def test_a_file_that_was_taken_away_is_begun_anew(path, monkeypatch):
    look_at_once(monkeypatch)
    metrics, reader = metrics_module.Metrics(path), metrics_module.Metrics(path)
    metrics.note([a_line(), a_line()])
    assert calls(reader) == {"t1": 2}
    path.unlink()
    metrics.note([a_line("t2")])
    assert calls(metrics) == calls(reader) == {"t2": 1}


DAMAGES = {
    "not a database": lambda path: path.write_bytes(b"something else " * 1_000),
    "cut off": lambda path: os.truncate(path, 5_000),
    "a page overwritten": lambda path: path.write_bytes(path.read_bytes()[:4_096] + b"\xff" * 8_192),
    "of another layout": lambda path: (path.unlink(), sqlite3.connect(path).executescript("CREATE TABLE other (x)")),
    "without its table": lambda path: sqlite3.connect(path).executescript("DROP TABLE counts"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_put_aside_and_counted_anew_from_the_journal(tmp_path, path, monkeypatch, damage, caplog):
    look_at_once(monkeypatch)

    def opened():
        metrics = metrics_module.Metrics(path, history=lambda: read_lines(tmp_path / "journal"))
        return metrics, FileJournal(tmp_path / "journal", on_lines=metrics.note)

    metrics, journal = opened()
    for line in (a_line(), a_line(), a_line("t2"), a_line(facts={"refused": True}), a_line("", address="a/b@1")):
        journal.record(line)
    journal.close()
    before = dict(metrics.read())
    DAMAGES[damage](path)
    metrics, journal = opened()
    journal.record(a_line())
    journal.close()
    assert metrics.read()["t1"].calls == 3
    assert {key: count for key, count in metrics.read().items() if key != "t1"} == {
        key: count for key, count in before.items() if key != "t1"
    }
    assert dict(metrics_module.Metrics(path).read()) == dict(metrics.read())
    assert path.with_name("counts.sqlite3.damaged").exists()
    (record,) = caplog.records
    assert "counting again from the journal" in record.getMessage()
    metrics.close()


def test_a_damaged_file_is_mended_by_a_reader_too(tmp_path, path, monkeypatch):
    metrics = metrics_module.Metrics(path)
    journal = FileJournal(tmp_path / "journal", on_lines=metrics.note)
    journal.record(a_line())
    journal.close()
    path.write_text("something else")
    assert calls(metrics_module.Metrics(path, history=lambda: read_lines(tmp_path / "journal"))) == {"t1": 1}
    assert calls(metrics_module.Metrics(path)) == {"t1": 1}


@pytest.mark.spec("S1-81")
@pytest.mark.parametrize("kind", ["file in place of the folder", "full disk", "folder in place of the file"])
def test_a_disk_that_refuses_fails_no_call_and_when_it_takes_writes_again_loses_no_count(
    path, monkeypatch, kind, caplog
):
    metrics = metrics_module.Metrics(path)
    if kind == "file in place of the folder":
        path.parent.write_text("")
    elif kind == "folder in place of the file":
        path.mkdir(parents=True)
    else:
        metrics.note([a_line()])
        connect = sqlite3.connect

        def connect_to_full_disk(*arguments, **options):
            connection = connect(*arguments, **options)
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_to_full_disk)
    # So many tools that they need more room than there is.
    several = [a_line(f"{'t' * 100}{number}") for number in range(200)]
    for _ in range(3):
        metrics.note(several)
    assert {calls(metrics)[line[8]] for line in several} == {3}
    assert len([record for record in caplog.records if "cannot write counts" in record.getMessage()]) == 1
    monkeypatch.undo()
    if path.parent.is_file():
        path.parent.unlink()
    elif path.is_dir():
        path.rmdir()
    metrics.note([a_line()])
    metrics.close()
    kept = calls(metrics_module.Metrics(path))
    assert {kept[line[8]] for line in several} == {3}
    assert kept["t1"] == (2 if kind == "full disk" else 1)


def test_counts_wait_while_another_process_keeps_the_file_locked(path, monkeypatch, caplog):
    look_at_once(monkeypatch)
    monkeypatch.setattr(metrics_module, "BUSY_SECONDS", 0.01)
    metrics = metrics_module.Metrics(path)
    metrics.note([a_line()])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        metrics.note([a_line()])
        assert calls(metrics) == {"t1": 2}
        other.execute("COMMIT")
    assert "cannot write counts" in caplog.text
    assert "locked" in caplog.text
    metrics.close()
    assert calls(metrics_module.Metrics(path)) == {"t1": 2}


def test_calls_that_could_not_be_written_in_the_end_are_told(path, caplog):
    path.parent.write_text("")
    metrics = metrics_module.Metrics(path)
    metrics.note([a_line(), a_line()])
    metrics.close()
    assert "metrics: 2 calls were not counted" in caplog.text


def test_a_call_may_end_while_its_own_thread_hands_lines_over(monkeypatch):
    """Garbage collection ends calls of closed event loops at any line."""
    monkeypatch.setattr("toolcrib.core.journal.KEPT_LINES", 2)
    handed = []

    def hand(lines):
        handed.extend(lines)
        for name in ("late", "later") if len(handed) == 2 else ():
            journal.record(a_line(name))

    journal = MemoryJournal(on_lines=hand)
    recording = threading.Thread(target=lambda: [journal.record(a_line()) for _ in range(2)], daemon=True)
    recording.start()
    recording.join(20)
    assert not recording.is_alive()
    journal.flush()
    assert len(handed) == 4


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_journal_hands_over_every_line_once(tmp_path, kind):
    handed = []
    journal = (
        MemoryJournal(kept=3, on_lines=handed.extend)
        if kind == "memory"
        else FileJournal(tmp_path, on_lines=handed.extend)
    )
    metrics = metrics_module.Metrics(None, gather=journal.flush)
    lines = [a_line(f"t{number}") for number in range(25_000)]
    threads = [
        threading.Thread(target=lambda part: [journal.record(line) for line in part], args=(lines[start::4],))
        for start in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    metrics.read()
    assert sorted(handed) == sorted(lines)
    journal.close()
    assert len(handed) == len(lines)


def test_a_journal_that_cannot_write_still_hands_over_its_lines(tmp_path):
    (tmp_path / "journal").write_text("")
    handed = []
    journal = FileJournal(tmp_path / "journal", on_lines=handed.extend)
    journal.record(a_line())
    journal.close()
    assert len(handed) == 1


def test_own_calls_count_at_once_though_the_journal_has_not_written_them(tmp_path, path):
    def gather():
        journal.flush()

    metrics = metrics_module.Metrics(path, gather=gather)
    journal = FileJournal(tmp_path / "journal", on_lines=metrics.note)
    for number in range(1, 5):
        journal.record(a_line())
        assert calls(metrics) == {"t1": number}
    journal.close()
    metrics.close()


PROGRAM = """
import sys, time, pathlib
from toolcrib.infra.call_counts import Metrics
from toolcrib.core.journal import FileJournal
root, number, way = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
metrics = Metrics(root / "counts.sqlite3")
journal = FileJournal(root / "journal", on_lines=metrics.note)
line = lambda: ("call", time.monotonic(), "1", "a/b@1", "ann", 0.1, None, None, "t1")
for turn in range(number):
    journal.record(line())
    if turn % 50 == 0:
        journal.flush()
if way == "close":
    journal.close()
    metrics.close()
elif way == "stay":
    journal.flush()
print("ready", flush=True)
sys.stdin.readline()
"""


def start(root, number, way):
    command = [sys.executable, "-c", PROGRAM, str(root), str(number), way]
    return WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(processes):
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.spec("S1-81")
def test_calls_of_several_processes_come_to_their_sum_and_never_go_back_on_the_way(tmp_path, monkeypatch):
    look_at_once(monkeypatch)
    processes = [start(tmp_path, 400, "close") for _ in range(4)]
    try:
        reader, seen, stop = metrics_module.Metrics(tmp_path / "counts.sqlite3"), [0], threading.Event()

        def watch():
            while not stop.is_set():
                seen.append(calls(reader).get("t1", 0))

        watching = threading.Thread(target=watch)
        watching.start()
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        stop.set()
        watching.join(20)
    finally:
        end(processes)
    assert seen == sorted(seen)
    assert calls(metrics_module.Metrics(tmp_path / "counts.sqlite3")) == calls(reader) == {"t1": 1_600}


def test_what_was_written_survives_a_kill(tmp_path):
    process = start(tmp_path, 120, "stay")
    try:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
    finally:
        end([process])
    assert calls(metrics_module.Metrics(tmp_path / "counts.sqlite3")) == {"t1": 120}


@pytest.mark.timeout(60)
def test_what_was_counted_a_second_ago_survives_a_kill(tmp_path):
    process = start(tmp_path, 30, "wait")
    try:
        assert process.stdout.readline() == "ready\n"
        reader, deadline = metrics_module.Metrics(tmp_path / "counts.sqlite3"), time.monotonic() + 25
        while calls(reader) != {"t1": 30}:
            assert time.monotonic() < deadline
        os.kill(process.pid, signal.SIGKILL)
    finally:
        end([process])
    assert calls(metrics_module.Metrics(tmp_path / "counts.sqlite3")) == {"t1": 30}


@tool
def add(a: int) -> int:
    """Add one."""
    if a < 0:
        raise ValueError("too small")
    return a + 1


@pytest.mark.spec("S1-81")
@pytest.mark.parametrize("on_disk", [True, False])
async def test_calls_of_a_crib_are_counted_after_their_answer(project, on_disk):
    crib = Crib(project if on_disk else None, tools=[add], builtins={"enabled": False})
    (entry,) = [entry for entry in crib.entries if entry.tool.name == "add"]
    tool_id = entry.tool.id or stable_id("tool", entry.tool.address)
    before = time.strftime("%Y-%m-%dT%H:%M", time.gmtime())
    for number in range(1, 8):
        await crib.call("add", a=number - 3)
        assert crib.metrics.read()[tool_id].calls == number
    await crib.call("add", b=1)
    await crib.call("absent")
    assert calls(crib.metrics) == {tool_id: 7}
    assert crib.metrics.read()[tool_id].last_called_at >= before
    await crib.close()
    if on_disk:
        async with Crib(project, tools=[add], builtins={"enabled": False}) as again:
            assert calls(again.metrics) == {tool_id: 7}
