"""The file of the queue: for the eyes of its owner, never thrown away, and clear words where it cannot be used."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.features.requests.queues.sqlite_database import LAYOUT

SOMEBODY = 65534


def run(script, *words):
    """What a script prints that runs in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_is_opened_before_it_is_needed(path, open_one):
    queue = open_one()
    assert not path.parent.exists()
    assert queue.get("req_20240115_001") is None
    assert path.exists()


def test_the_file_and_what_lies_beside_it_are_for_its_owner_alone(path, queue, a_request):
    queue.file(a_request())
    files = sorted(file for file in path.parent.rglob("*") if file.is_file())
    beside = ["queue.sqlite3", "queue.sqlite3-shm", "queue.sqlite3-wal"]
    assert [file.name for file in files] == ["queue.line", "queue.lock", *beside]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_change_is_on_disk_when_its_method_returns(queue, a_request):
    queue.file(a_request())
    writer = queue._file._opened[-1]._writer
    assert writer.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert writer.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_what_happened_before_the_first_look_wakes_no_waiter(queue, open_one, a_request):
    open_one().file(a_request())
    queue.requests()
    assert not queue.wait(0)
    open_one().file(a_request("other_tool"))
    assert queue.wait(0)
    assert not queue.wait(0)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4_000])
def test_a_file_that_is_no_database_is_named_and_left_as_it_is(path, queue, a_request, content):
    path.parent.mkdir()
    path.write_bytes(content)
    for door in (lambda: queue.file(a_request()), queue.requests, lambda: queue.wait(0)):
        with pytest.raises(ToolError, match="nothing was stored, put a copy of it back, or move it away") as caught:
            door()
        assert caught.value.kind is Kind.PERMANENT
        assert repr(str(path)) in caught.value.message
    assert path.read_bytes() == content


def test_a_damaged_file_is_named_and_left_as_it_is(path, open_one, a_request):
    filled = open_one()
    for number in range(50):
        filled.file(a_request(f"tool_{number}"))
    filled.close()
    content = bytearray(path.read_bytes())
    content[4_096:] = b"\xa5" * (len(content) - 4_096)
    path.write_bytes(content)
    queue = open_one()
    with pytest.raises(ToolError, match="is damaged; nothing was stored, put a copy of it back") as caught:
        queue.file(a_request("one_more"))
    assert caught.value.kind is Kind.PERMANENT
    queue.close()
    assert path.read_bytes() == content


def test_a_file_of_a_newer_version_is_named_and_left_as_it_is(path, open_one, a_request):
    first = open_one()
    first.file(a_request())
    first.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    connection.close()
    content = path.read_bytes()
    queue = open_one()
    for door in (lambda: queue.file(a_request("one_more")), queue.requests):
        with pytest.raises(
            ToolError, match="was written by another version of Toolcrib.*nothing was stored, use"
        ) as caught:
            door()
        assert caught.value.kind is Kind.PERMANENT
    assert path.read_bytes() == content


@pytest.mark.parametrize("statement", ["CREATE TABLE requests (id)", "PRAGMA user_version = 1", ""])
def test_a_database_of_another_program_is_left_alone(path, queue, a_request, statement):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    content = path.read_bytes()
    with pytest.raises(ToolError, match="is a database, but not a queue of Toolcrib; nothing was stored"):
        queue.file(a_request())
    assert path.read_bytes() == content


def test_a_file_that_others_keep_busy_is_tried_again_later(path, open_one, a_request):
    queue = open_one(busy_seconds=0.05)
    filed = queue.file(a_request())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ToolError, match="is locked by another process; nothing was stored, try again") as caught:
        queue.file(a_request("other_tool"))
    assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
    assert queue.requests() == [filed]  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    assert queue.file(a_request("other_tool")).name == "other_tool"


def test_a_process_that_is_frozen_in_the_midst_of_a_change_keeps_others_only_so_long(path, open_one, a_request):
    queue = open_one(busy_seconds=0.05)
    filed = queue.file(a_request())
    other, held, over = open_one(), threading.Event(), threading.Event()

    def keep():
        with other._file.writing():
            held.set()
            over.wait(30)

    keeper = threading.Thread(target=keep)
    keeper.start()
    held.wait(30)
    with pytest.raises(ToolError, match="nothing was stored: .* was not free within 0.05 s") as caught:
        queue.file(a_request("other_tool"))
    assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)
    assert queue.requests() == [filed]
    over.set()
    keeper.join(30)
    assert queue.file(a_request("other_tool")).name == "other_tool"


def test_a_second_queue_in_the_process_does_not_drop_the_locks_of_the_first(path, queue, open_one, a_request):
    queue.file(a_request())
    second = open_one()
    second.file(a_request("other_tool"))
    second.close()
    # Only who is alone with a file may take its log away.
    attempt = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
        try:
            print(connection.execute("PRAGMA journal_mode = DELETE").fetchone())
        except sqlite3.OperationalError as problem:
            print(problem)
    """
    assert run(attempt, path) == ["database is locked"]
    assert len(queue.requests()) == 2


def test_a_file_in_the_place_of_the_folder_is_explained(path, queue, a_request):
    path.parent.write_bytes(b"in the way")
    with pytest.raises(ToolError, match="nothing was stored") as caught:
        queue.file(a_request())
    assert str(path) in caught.value.message


def test_a_file_that_was_taken_away_is_begun_anew(path, queue, a_request):
    queue.file(a_request("old_tool"))
    shutil.rmtree(path.parent)
    assert queue.requests() == []
    assert queue.wait(0)
    filed = queue.file(a_request("new_tool"))
    other = EmbeddedQueue(path)
    assert other.requests() == [filed]
    other.close()


def test_nothing_is_begun_beside_the_log_of_a_file_that_is_gone(path, queue, a_request):
    queue.file(a_request("old_tool"))
    path.unlink()
    with pytest.raises(ToolError, match="nothing was stored: .*is gone, but its log is still there") as caught:
        queue.file(a_request("new_tool"))
    assert caught.value.kind is Kind.PERMANENT
    assert not path.exists()


def test_a_queue_that_was_closed_says_so(queue, a_request):
    queue.file(a_request())
    queue.close()
    for door in (lambda: queue.file(a_request()), queue.requests, queue.reconcile):
        with pytest.raises(ToolError, match="was closed; nothing was stored, open it again"):
            door()


def test_a_disk_that_is_really_full_refuses_and_keeps_what_it_has(path):
    lines = run(
        f"""
        import ctypes, importlib.util, sys
        from pathlib import Path
        from toolcrib import ToolError
        from toolcrib.features.requests.queues.sqlite import EmbeddedQueue

        spec = importlib.util.spec_from_file_location("parts", {str(__file__).replace("test_file", "conftest")!r})
        parts = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(parts)
        library = ctypes.CDLL(None, use_errno=True)
        place = Path(sys.argv[1]).parent
        place.mkdir()
        if library.unshare(0x00020000) or library.mount(b"none", b"/", None, 0x44000, None):
            print("no file system can be mounted here"); sys.exit(77)
        if library.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, b"size=512k"):
            print("no file system can be mounted here"); sys.exit(77)
        queue, kept = EmbeddedQueue(Path(sys.argv[1])), []
        try:
            for number in range(1_000):
                kept.append(queue.file(parts.a_request(f"tool_{{number}}", experiment="exp")))
        except ToolError as error:
            print(error.kind, "the disk is full; nothing was stored, free some space" in error.message)
        print(queue.requests() == kept, len(kept) > 5)
        queue.close()
        library.mount(b"tmpfs", str(place).encode(), b"tmpfs", 32, b"size=4m")
        queue = EmbeddedQueue(Path(sys.argv[1]))
        print(queue.requests() == kept)
        print(queue.file(parts.a_request("one_more")).id[-3:] == f"{{len(kept) + 1:03}}")
        queue.close()
        """,
        path,
    )
    assert lines == ["PERMANENT True", "True True", "True", "True"]


def test_a_folder_that_may_not_be_written_is_explained():
    # Root may write everywhere, so that it becomes another user, who must be able to enter this folder.
    folder = Path(tempfile.mkdtemp(prefix="queues-"))
    folder.chmod(0o555)
    lines = run(
        f"""
        import os, sys
        from pathlib import Path
        from toolcrib import ToolError
        from toolcrib.features.requests.queues.sqlite import EmbeddedQueue

        if os.geteuid() == 0:
            os.setuid({SOMEBODY})
        try:
            EmbeddedQueue(Path(sys.argv[1])).reconcile()
        except ToolError as error:
            print(error.kind, error.message)
        """,
        folder / "queue.sqlite3",
    )
    assert len(lines) == 1
    assert lines[0].startswith("PERMANENT the queue cannot be used, and nothing was stored")
    assert "change the permissions" in lines[0]
    folder.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_file_of_another_program_is_explained(a_request):
    folder = Path(tempfile.mkdtemp(prefix="queues-"))
    folder.chmod(0o755)
    queue = EmbeddedQueue(folder / "queue.sqlite3")
    queue.file(a_request())
    queue.close()
    lines = run(
        f"""
        import ctypes, os, sys
        from pathlib import Path
        from toolcrib import ToolError
        from toolcrib.features.requests.queues.sqlite import EmbeddedQueue

        os.setuid({SOMEBODY})
        for door in (EmbeddedQueue.requests, EmbeddedQueue.reconcile):
            try:
                door(EmbeddedQueue(Path(sys.argv[1])))
            except ToolError as error:
                print(error.kind, "cannot be opened; nothing was stored, let this user write" in error.message)
        """,
        folder / "queue.sqlite3",
    )
    assert lines == ["PERMANENT True", "PERMANENT True"]
    shutil.rmtree(folder)


def test_a_forked_child_opens_the_file_for_itself(path):
    lines = run(
        f"""
        import importlib.util, os, sys
        from pathlib import Path
        from toolcrib.features.requests.queues.sqlite import EmbeddedQueue

        spec = importlib.util.spec_from_file_location("parts", {str(__file__).replace("test_file", "conftest")!r})
        parts = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(parts)
        queue = EmbeddedQueue(Path(sys.argv[1]))
        queue.file(parts.a_request("before_tool"))
        mine = queue._file._opened[-1]
        with queue._file.writing():
            # A child forked in the midst of a change has neither the change nor the lock.
            child = os.fork()
            if not child:
                os._exit(0 if len(queue.requests()) == 1 and queue._file._opened[-1] is not mine else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            child = os.fork()
            if not child:
                queue.close()
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        child = os.fork()
        if not child:
            queue.file(parts.a_request("child_tool"))
            queue.close()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        queue.file(parts.a_request("after_tool"))
        print([filed.name for filed in queue.requests()], queue._file._opened[-1] is mine)
        queue.close()
        """,
        path,
    )
    assert lines == ["0", "0", "0", "['before_tool', 'child_tool', 'after_tool'] True"]
