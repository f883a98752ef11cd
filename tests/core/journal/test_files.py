"""The journal on disk: what was written stays whole, and a disk that fails costs lines and never a call."""

import os
import stat
import subprocess
import sys
import threading
import time

import orjson
import pytest
from every_line import at_every_line

from toolcrib import Crib, tool
from toolcrib.core import journal as module
from warm_python import WarmPython


def a_line(call_id="1"):
    return ("call", time.monotonic(), call_id, "tools/x@1.0.0", "ann", 0.25, None, None, "")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".toolcrib" / "journal"


@pytest.fixture
def journal(folder):
    journal = module.FileJournal(folder, clock=lambda: 0)
    yield journal
    journal.close()


def ids(journal) -> list[str]:
    return [line["id"] for line in journal.read()]


def test_what_is_recorded_is_on_disk_after_closing(journal, folder):
    journal.record(a_line())
    journal.close()
    (file,) = folder.iterdir()
    assert file.name == "1970-01-01.jsonl"
    assert orjson.loads(file.read_bytes())["id"] == "1"
    assert ids(module.FileJournal(folder)) == ["1"]


def test_every_folder_and_file_is_for_its_owners_eyes_only(journal, folder):
    before = os.umask(0)
    try:
        journal.record(a_line())
        journal.close()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, *folder.iterdir())]
    assert modes == [0o700, 0o700, 0o600]


def test_nothing_is_made_on_disk_before_there_is_something_to_write(journal, folder):
    journal.flush()
    assert list(journal.read()) == []
    journal.close()
    assert not folder.parent.exists()


def test_lines_reach_the_disk_by_themselves(folder, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.01)
    journal = module.FileJournal(folder)
    written = threading.Event()
    append = journal._append
    monkeypatch.setattr(journal, "_append", lambda data: (append(data), written.set()))
    for number in range(3):
        written.clear()
        journal.record(a_line(str(number)))
        assert written.wait(10)
    assert ids(module.FileJournal(folder)) == ["0", "1", "2"]
    journal.close()


def test_the_writer_ends_with_its_journal(folder):
    def writers():
        return [thread for thread in threading.enumerate() if thread.name == "toolcrib journal"]

    before = writers()
    closed, dropped = module.FileJournal(folder), module.FileJournal(folder)
    (one, two) = [thread for thread in writers() if thread not in before]
    closed.close()
    del dropped
    one.join(10)
    two.join(10)
    assert not one.is_alive()
    assert not two.is_alive()


@pytest.mark.parametrize("torn", [b'{"event":"call","id":"torn', b"\xff\xfe\n{", b"\0\0\0\0", b'"text"', b"\n\n["])
def test_a_line_torn_by_a_crash_costs_no_other_line(journal, folder, torn):
    journal.record(a_line("before"))
    journal.flush()
    (file,) = folder.iterdir()
    with file.open("ab") as end:
        end.write(torn)
    journal.record(a_line("after"))
    assert ids(journal) == ["before", "after"]


def test_days_are_kept_apart_and_read_in_order(folder):
    for day, name in ((86_400, "second"), (0, "first")):
        journal = module.FileJournal(folder, clock=lambda day=day: day)
        journal.record(a_line(name))
        journal.close()
    assert sorted(file.name for file in folder.iterdir()) == ["1970-01-01.jsonl", "1970-01-02.jsonl"]
    assert ids(module.FileJournal(folder)) == ["first", "second"]


def test_processes_that_share_a_folder_mix_and_lose_no_line(folder):
    program = (
        "import sys, time, pathlib\nfrom toolcrib.core.journal import FileJournal\n"
        "journal = FileJournal(pathlib.Path(sys.argv[1]))\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "for turn in range(400):\n"
        "    name = 'x' * (turn % 150)\n"
        "    journal.record(('call', time.monotonic(), f'{sys.argv[2]}-{turn}', name, 'ann', 0.1, None, None, ''))\n"
        "    if turn % 7 == 0: journal.flush()\n"
        "journal.close()"
    )
    command = [sys.executable, "-c", program, str(folder)]
    processes = [
        WarmPython([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.wait(30) for process in processes] == [0] * 4
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    found = [name.split("-") for name in ids(module.FileJournal(folder))]
    for number in range(4):
        # All of them, and in their order.
        assert [int(turn) for owner, turn in found if owner == str(number)] == list(range(400))
    # One who looks while another is writing may take that for a torn line, which costs an empty one.
    lines = [line for file in folder.iterdir() for line in file.read_bytes().splitlines() if line]
    assert len(lines) == len(found) == 1_600


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "kind", ["file in place of the folder", "link in place of the file", "pipe in place of the file"]
)
async def test_a_disk_that_refuses_never_breaks_a_call(project, caplog, kind):
    @tool
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    folder = project / ".toolcrib" / "journal"
    if kind == "file in place of the folder":
        folder.parent.mkdir()
        folder.write_text("")
    else:
        folder.mkdir(parents=True)
        for offset in (-86_400, 0, 86_400):
            day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + offset))
            place = folder / f"{day}.jsonl"
            place.symlink_to(project / "elsewhere") if "link" in kind else os.mkfifo(place)
    async with Crib(project, tools=[add], builtins={"enabled": False}) as crib:
        for number in range(1_100):
            assert (await crib.call("add", a=number)).value == number + 1
    assert "lines were not written" in caplog.text
    assert ("something else stands in place of its file" in caplog.text) == ("pipe" in kind)
    assert not (project / "elsewhere").exists()


def test_a_full_disk_in_the_middle_of_a_line_costs_no_later_line(journal, folder, monkeypatch, caplog):
    journal.record(a_line("before"))
    journal.flush()
    write, calls = os.write, []

    def fail(descriptor, data):
        calls.append(data)
        if len(calls) == 1:
            return write(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    journal.record(a_line("lost"))
    monkeypatch.setattr(os, "write", fail)
    journal.flush()
    monkeypatch.undo()
    assert "No space left on device" in caplog.text
    journal.record(a_line("after"))
    assert ids(journal) == ["before", "after"]


def test_a_call_never_waits_for_the_disk_and_a_disk_that_hangs_costs_bounded_memory(folder, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.001)
    monkeypatch.setattr(module, "PENDING_LINES", 5_000)
    journal = module.FileJournal(folder)
    started, go_on = threading.Event(), threading.Event()

    def hang(data):
        started.set()
        go_on.wait(20)

    monkeypatch.setattr(journal, "_append", hang)
    journal.record(a_line())
    assert started.wait(25)
    done = threading.Event()

    def work():
        for number in range(module.PENDING_LINES + 10):
            journal.record(a_line(str(number)))
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(10)
    assert len(journal._pending) == module.PENDING_LINES
    go_on.set()
    journal.close()


def test_without_a_thread_to_be_had_the_lines_wait_for_the_end(folder, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    journal = module.FileJournal(folder)
    journal.record(a_line("1"))
    journal.record(a_line("2"))
    monkeypatch.undo()
    assert "can't start new thread" in caplog.text
    assert ids(journal) == ["1", "2"]


def test_the_journal_in_memory_forgets_the_oldest():
    journal = module.MemoryJournal(kept=3)
    for number in range(5):
        journal.record(a_line(str(number)))
    assert ids(journal) == ["2", "3", "4"]


def test_garbage_collection_may_end_a_journal_at_every_line_of_its_writer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.001)
    stops = []

    def prepare():
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda writer: stops.append(writer._args[1]))
            journal = module.FileJournal(tmp_path)
        return lambda: module._write_behind(lambda: None, stops.pop()), journal.close, lambda: None

    at_every_line((module._write_behind, threading.Event.wait, threading.Condition.wait), prepare)
