"""How often tools were called: exact in the end, by many processes at once, and never at a call's cost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from toolcrib import Crib, tool
from toolcrib.core import journal as metrics_module
from toolcrib.core import tallies as tallies_module
from toolcrib.core.journal import Count, FileJournal, MemoryJournal, Metrics
from toolcrib.lib.document_format import stable_id


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".toolcrib" / "metrics"


def a_line(tool_id="t1", *, event="call", facts=None, address="a/b@1", moment=None, error=None):
    return (event, time.monotonic() if moment is None else moment, "1", address, "ann", 0.1, error, facts, tool_id)


def calls(metrics):
    return {tool_id: count.calls for tool_id, count in metrics.read().items()}


def files(folder):
    return sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")


def look_at_once(monkeypatch):
    monkeypatch.setattr(metrics_module, "LOOK_SECONDS", 0)


@pytest.fixture(params=["memory", "files"])
def metrics(request, folder):
    metrics = Metrics(None if request.param == "memory" else folder)
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


def test_the_last_call_is_told_in_utc_and_never_goes_back(folder):
    now = 1_767_225_600.5
    metrics = Metrics(folder, lambda: now)
    start = time.monotonic()
    metrics.note([a_line(moment=start), a_line(moment=start + 5)])
    assert metrics.read()["t1"].last_called_at[:20] == "2026-01-01T00:00:05."
    metrics.note([a_line(moment=start - 3_600)])
    assert metrics.read()["t1"] == Count(3, metrics.read()["t1"].last_called_at)
    assert metrics.read()["t1"].last_called_at[:20] == "2026-01-01T00:00:05."
    metrics.close()


def test_what_was_handed_out_does_not_change_under_the_hands_of_its_reader(metrics):
    metrics.note([a_line("t1")])
    before = metrics.read()
    metrics.note([a_line("t1"), a_line("t2")])
    assert {tool_id: count.calls for tool_id, count in before.items()} == {"t1": 1}
    with pytest.raises(TypeError):
        before["t1"] = None


def test_counts_survive_the_process_and_grow_in_the_next(folder):
    for number in range(1, 4):
        metrics = Metrics(folder)
        metrics.note([a_line()])
        assert calls(metrics) == {"t1": number}
        metrics.close()
    assert calls(Metrics(folder)) == {"t1": 3}


def test_two_at_once_see_each_other(folder, monkeypatch):
    look_at_once(monkeypatch)
    one, other = Metrics(folder), Metrics(folder)
    for number in range(1, 6):
        one.note([a_line("t1")])
        other.note([a_line("t1"), a_line("t2")])
        assert calls(one) == calls(other) == {"t1": 2 * number, "t2": number}
    one.close()
    other.close()
    assert calls(Metrics(folder)) == {"t1": 10, "t2": 5}


def test_others_are_looked_at_no_more_often_than_needed(folder, monkeypatch):
    monkeypatch.setattr(metrics_module, "LOOK_SECONDS", 3_600)
    one, other = Metrics(folder), Metrics(folder)
    other.note([a_line()])
    assert calls(one) == {"t1": 1}
    other.note([a_line()])
    one.note([a_line("t2")])
    assert calls(one) == {"t1": 1, "t2": 1}
    assert one.read() == one.read()


def test_the_files_are_for_the_owner_alone_and_hold_one_line_for_each_time(folder):
    before = os.umask(0)
    try:
        metrics = Metrics(folder)
        metrics.note([a_line(), a_line("t2")])
        metrics.note([a_line()])
    finally:
        os.umask(before)
    (file,) = files(folder)
    assert file.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [{name: count[0] for name, count in json.loads(line).items()} for line in file.read_text().splitlines()] == [
        {"t1": 1, "t2": 1},
        {"t1": 1},
    ]


def test_summing_up_changes_no_count_and_leaves_one_file(folder, monkeypatch):
    look_at_once(monkeypatch)
    reader = Metrics(folder)
    for number in range(1, 8):
        metrics = Metrics(folder)
        metrics.note([a_line(), a_line(f"t{number}")])
        metrics.close()
        assert calls(reader)["t1"] == number + 1
    before = reader.read()
    assert len(files(folder)) == 7
    Metrics(folder).compact()
    assert files(folder) == []
    assert reader.read() == before == Metrics(folder).read()


def test_the_file_of_one_who_lives_is_not_taken_away(folder, monkeypatch):
    look_at_once(monkeypatch)
    living = Metrics(folder)
    living.note([a_line()])
    Metrics(folder).compact()
    assert len(files(folder)) == 1
    living.note([a_line()])
    assert calls(living) == calls(Metrics(folder)) == {"t1": 2}
    living.compact()
    assert files(folder) == []
    living.note([a_line()])
    assert calls(living) == calls(Metrics(folder)) == {"t1": 3}


def test_many_files_are_summed_up_by_whoever_closes(folder, monkeypatch):
    monkeypatch.setattr(metrics_module, "MANY_FILES", 4)
    for _ in range(10):
        metrics = Metrics(folder)
        metrics.note([a_line()])
        metrics.close()
        assert len(files(folder)) < 4
    assert calls(Metrics(folder)) == {"t1": 10}


def test_a_file_that_has_grown_large_is_summed_up(folder, monkeypatch):
    look_at_once(monkeypatch)
    monkeypatch.setattr(tallies_module, "FULL_BYTES", 200)
    metrics, reader = Metrics(folder), Metrics(folder)
    for number in range(1, 60):
        metrics.note([a_line()])
        assert calls(metrics) == calls(reader) == {"t1": number}
    assert sum(file.stat().st_size for file in files(folder)) < 400


def test_a_crash_between_the_sum_and_the_removal_counts_nothing_twice(folder, monkeypatch):
    for _ in range(3):
        metrics = Metrics(folder)
        metrics.note([a_line()])
        metrics.close()
    kept = {file: file.read_bytes() for file in files(folder)}
    Metrics(folder).compact()
    for file, data in kept.items():
        file.write_bytes(data)
    assert calls(Metrics(folder)) == {"t1": 3}
    Metrics(folder).compact()
    assert files(folder) == []
    assert calls(Metrics(folder)) == {"t1": 3}


@pytest.mark.parametrize("step", ["before it lists the files", "before it opens a file"])
def test_a_reader_that_is_overtaken_by_a_sum_never_sees_fewer_calls(folder, monkeypatch, step):
    for _ in range(5):
        metrics = Metrics(folder)
        metrics.note([a_line()])
        metrics.close()
    reader, overtaken = Metrics(folder), []
    place, name = {
        "before it lists the files": (tallies_module.Tallies, "_files"),
        "before it opens a file": (tallies_module, "_read_from"),
    }[step]
    work = getattr(place, name)

    def sum_up_first(*arguments):
        if not overtaken:
            overtaken.append(step)
            Metrics(folder).compact()
        return work(*arguments)

    monkeypatch.setattr(place, name, sum_up_first)
    assert calls(reader) == {"t1": 5}
    assert overtaken


@pytest.mark.parametrize(
    "tail",
    [
        b'{"t1":[5,"2026',
        b"\xff\xfe\n",
        b'{"t1":[-5,"x"]}\n',
        b'{"t1":[true,"x"]}\n',
        b'{"t1":5}\n',
        b"[]\n",
        b"\n",
        b"null\n",
    ],
)
def test_what_is_torn_or_not_ours_counts_nothing(folder, tail):
    metrics = Metrics(folder)
    metrics.note([a_line()])
    metrics.close()
    (file,) = files(folder)
    file.write_bytes(file.read_bytes() + tail)
    assert calls(Metrics(folder)) == {"t1": 1}
    Metrics(folder).compact()
    assert calls(Metrics(folder)) == {"t1": 1}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"layout": "x"}', '{"layout": "toolcrib metrics 1", "counts": {"t": 5}}']
)
def test_sums_that_are_broken_are_told_and_left_as_they_are(folder, text, caplog):
    metrics = Metrics(folder)
    metrics.note([a_line()])
    metrics.compact()
    (folder / "sums.json").write_text(text)
    for _ in range(3):
        metrics.note([a_line("t2")])
    assert metrics.read()["t2"].calls == 3
    metrics.compact()
    metrics.close()
    assert (folder / "sums.json").read_text() == text
    assert "holds no counts of ours; put back what was there, or remove it" in caplog.text
    assert len(caplog.records) == 2
    (folder / "sums.json").unlink()
    assert calls(Metrics(folder)) == {"t2": 3}


@pytest.mark.spec("S1-81")
@pytest.mark.parametrize("kind", ["file in place of the folder", "full disk", "half a line"])
def test_a_disk_that_refuses_costs_no_call_and_when_it_takes_writes_again_no_count(folder, monkeypatch, kind, caplog):
    metrics = Metrics(folder)
    if "file" in kind:
        folder.parent.mkdir()
        folder.write_text("")
    else:
        metrics.note([a_line()])
        write = os.write

        def fail(descriptor, data):
            if kind == "half a line":
                return write(descriptor, data[:7])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", fail)
    for _ in range(3):
        metrics.note([a_line()])
    here = 3 if "file" in kind else 4
    assert calls(metrics) == {"t1": here}
    assert len([record for record in caplog.records if "cannot write counts" in record.getMessage()]) == 1
    monkeypatch.undo()
    if "file" in kind:
        folder.unlink()
    metrics.note([a_line()])
    metrics.close()
    assert calls(Metrics(folder)) == {"t1": here + 1}


def test_calls_that_could_not_be_written_in_the_end_are_told(folder, caplog):
    folder.parent.mkdir()
    folder.write_text("")
    metrics = Metrics(folder)
    metrics.note([a_line(), a_line()])
    metrics.close()
    assert "metrics: 2 calls were not counted" in caplog.text


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_journal_hands_over_every_line_once(tmp_path, kind):
    handed = []
    journal = (
        MemoryJournal(kept=3, on_lines=handed.extend)
        if kind == "memory"
        else FileJournal(tmp_path, on_lines=handed.extend)
    )
    metrics = Metrics(None, gather=journal.flush)
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


def test_own_calls_count_at_once_though_the_journal_has_not_written_them(tmp_path, folder):
    def gather():
        journal.flush()

    metrics = Metrics(folder, gather=gather)
    journal = FileJournal(tmp_path / "journal", on_lines=metrics.note)
    for number in range(1, 5):
        journal.record(a_line())
        assert calls(metrics) == {"t1": number}
    journal.close()
    metrics.close()


PROGRAM = """
import sys, time, pathlib
from toolcrib.core.journal import FileJournal
from toolcrib.core.journal import Metrics
root, number, way = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
metrics = Metrics(root / "metrics")
journal = FileJournal(root / "journal", on_lines=metrics.note)
line = lambda: ("call", time.monotonic(), "1", "a/b@1", "ann", 0.1, None, None, "t1")
for turn in range(number):
    journal.record(line())
    if turn % 50 == 0:
        journal.flush()
        metrics.compact()
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
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(processes):
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.spec("S1-81")
def test_calls_of_several_processes_come_to_their_sum_and_never_go_back_on_the_way(tmp_path, monkeypatch):
    look_at_once(monkeypatch)
    processes = [start(tmp_path, 400, "close") for _ in range(4)]
    try:
        reader, seen, stop = Metrics(tmp_path / "metrics"), [0], threading.Event()

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
    assert calls(Metrics(tmp_path / "metrics")) == calls(reader) == {"t1": 1_600}


def test_what_was_written_survives_a_kill_and_is_summed_up_by_others(tmp_path, folder):
    process = start(tmp_path, 120, "stay")
    try:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
    finally:
        end([process])
    assert calls(Metrics(tmp_path / "metrics")) == {"t1": 120}
    Metrics(tmp_path / "metrics").compact()
    assert files(tmp_path / "metrics") == []
    assert calls(Metrics(tmp_path / "metrics")) == {"t1": 120}


@pytest.mark.timeout(60)
def test_what_was_counted_a_second_ago_survives_a_kill(tmp_path):
    process = start(tmp_path, 30, "wait")
    try:
        assert process.stdout.readline() == "ready\n"
        reader, deadline = Metrics(tmp_path / "metrics"), time.monotonic() + 20
        while calls(reader) != {"t1": 30}:
            assert time.monotonic() < deadline
        os.kill(process.pid, signal.SIGKILL)
    finally:
        end([process])
    assert calls(Metrics(tmp_path / "metrics")) == {"t1": 30}


@tool
def add(a: int) -> int:
    """Add one."""
    if a < 0:
        raise ValueError("too small")
    return a + 1


@pytest.mark.spec("S1-81")
@pytest.mark.parametrize("on_disk", [True, False])
async def test_calls_of_a_crib_are_counted_after_their_answer(project, on_disk):
    crib = Crib(project if on_disk else None, tools=[add], builtins=False)
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
        async with Crib(project, tools=[add], builtins=False) as again:
            assert calls(again.metrics) == {tool_id: 7}
