"""Locks between processes and threads."""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import warm_python
from toolcrib import Kind, ToolError
from toolcrib.infra.files.locks import _KNOWN, LOCAL, Locks, Turns, check_lockable, kind_of
from warm_python import WarmPython

HOLDER = """
import sys
from pathlib import Path
from toolcrib.infra.files.locks import Locks
with Locks(Path(sys.argv[1])).hold("store", 20):
    print("held", flush=True)
    sys.stdin.readline()
print("free", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "locks"


@pytest.fixture
def path(folder):
    return folder / "store.lock"


@contextmanager
def running(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def held_elsewhere(folder):
    """Another process holds the lock."""
    with running(HOLDER, folder) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder


def refusal(locks, seconds, name="store"):
    with pytest.raises(ToolError) as caught, locks.hold(name, seconds):
        pass
    return caught.value


def helpers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("lock ")]


def until(condition):
    """Look until it is so; it must be within ten seconds."""
    deadline = time.monotonic() + 25
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def own_descriptors():
    return [entry for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]


def waiters_for(path):
    """How many wait for the lock in the kernel."""
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return [words[6].rpartition(":")[2] for words in lines if words[1] == "->"].count(str(path.stat().st_ino))


def freeze_waiter(process, path):
    """Stop a process that waits in the kernel; a process that is really stopped does not wait there any more."""
    until(lambda: waiters_for(path) == 1)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: waiters_for(path) == 0)


class TestProcesses:
    def test_a_lock_that_another_process_holds_is_refused_at_the_deadline_with_its_number(self, folder):
        with held_elsewhere(folder) as holder:
            error = refusal(Locks(folder), 0.05)
        assert (error.kind, error.retryable) == (Kind.TRANSIENT, True)
        assert error.details == {"lock": "store", "pid": holder.pid}
        assert error.message == (
            f"the lock 'store' was not free within 0.05 s, process {holder.pid} holds it; try again"
        )

    def test_a_waiting_caller_gets_the_lock_when_it_is_let_go_of(self, folder, path):
        with held_elsewhere(folder) as holder:
            got = threading.Event()

            def wait():
                with Locks(folder).hold("store", 20):
                    got.set()

            waiter = threading.Thread(target=wait)
            waiter.start()
            until(lambda: waiters_for(path) == 1)
            assert not got.is_set()
            holder.stdin.write("\n")
            holder.stdin.flush()
            waiter.join(25)
            assert got.is_set()
        until(lambda: not helpers())

    @pytest.mark.spec("S1-84")
    def test_while_its_holder_is_frozen_others_are_refused_and_when_it_is_killed_they_get_it(self, folder):
        locks = Locks(folder)
        with held_elsewhere(folder) as holder:
            os.kill(holder.pid, signal.SIGSTOP)
            assert refusal(locks, 0.2).details["pid"] == holder.pid
            assert refusal(locks, 0.0).kind is Kind.TRANSIENT
            holder.kill()
            with locks.hold("store", 1):
                pass

    def test_a_process_that_is_frozen_while_waiting_holds_up_no_one_else(self, folder, path, monkeypatch):
        monkeypatch.setattr("toolcrib.infra.files.locks.PATIENCE", 0.1)
        with held_elsewhere(folder) as holder, running(HOLDER, folder) as frozen:
            freeze_waiter(frozen, path)
            holder.stdin.write("\n")
            holder.stdin.flush()
            with Locks(folder).hold("store", 20):
                os.kill(frozen.pid, signal.SIGCONT)
            assert frozen.stdout.readline() == "held\n"

    def test_a_caller_that_wants_the_lock_again_stands_behind_a_waiting_caller(self, folder, path):
        with ExitStack() as stack:
            with Locks(folder).hold("store", 1):
                waiter = stack.enter_context(running(HOLDER, folder))
                freeze_waiter(waiter, path)
            # The lock is free, and its waiter has not taken it yet.
            assert refusal(Locks(folder), 0.2).kind is Kind.TRANSIENT
            os.kill(waiter.pid, signal.SIGCONT)
            assert waiter.stdout.readline() == "held\n"

    def test_a_child_started_under_a_lock_does_not_hold_it(self, folder):
        program = (
            "from pathlib import Path\nfor entry in Path('/proc/self/fd').iterdir():\n"
            "    if entry.exists(): print(entry.readlink())"
        )
        command = [sys.executable, "-c", program]
        with Locks(folder).hold("store", 1):
            child = subprocess.run(command, stdout=subprocess.PIPE, text=True, close_fds=False, timeout=20, check=True)
            assert any(".lock" in str(entry.readlink()) for entry in own_descriptors())
        assert child.stdout
        assert ".lock" not in child.stdout

    def test_a_forked_child_holds_nothing_and_lets_go_of_nothing(self, folder):
        program = """
import os, sys
from pathlib import Path
from toolcrib.infra.files.locks import Locks
from toolcrib import ToolError
locks, down, up = Locks(Path(sys.argv[1])), os.pipe(), os.pipe()
with locks.hold("store", 5):
    child = os.fork()
    if child:
        os.write(down[1], b".")
        print(os.read(up[0], 20).decode(), flush=True)
if not child:
    # It comes out of what its parent went into, and the parent is still in.
    os.read(down[0], 1)
    try:
        with locks.hold("store", 0.1):
            os.write(up[1], b"two holders")
    except ToolError as error:
        os.write(up[1], error.kind.encode())
    os.read(down[0], 1)
    with locks.hold("store", 5):
        pass
    os.write(up[1], b"got in")
    os.read(down[0], 1)
    os._exit(0)
os.write(down[1], b".")
print(os.read(up[0], 20).decode(), flush=True)
os.write(down[1], b".")
os.waitpid(child, 0)
"""
        with running(program, folder) as process:
            assert process.communicate(timeout=20)[0] == "TRANSIENT\ngot in\n"

    def test_a_process_that_got_hold_of_the_descriptor_does_not_keep_the_lock(self, folder, path):
        with Locks(folder).hold("store", 1):
            copy = os.dup(_KNOWN.find(path)._descriptor)
        try:
            with held_elsewhere(folder):
                pass
        finally:
            os.close(copy)


class TestThreads:
    def test_a_lock_that_is_free_is_taken_without_a_helper(self, folder):
        locks, before = Locks(folder), set(threading.enumerate())
        for _ in range(3):
            with locks.hold("store", 1), locks.hold("bundle/1", 1):
                assert set(threading.enumerate()) <= before  # one of an earlier test may end meanwhile

    def test_one_helper_waits_for_any_number_of_threads_and_gives_back_a_lock_without_a_waiter(self, folder, path):
        with held_elsewhere(folder) as holder:
            threads = [threading.Thread(target=refusal, args=(Locks(folder), 0.3)) for _ in range(5)]
            for thread in threads:
                thread.start()
            until(lambda: waiters_for(path) == 1)
            assert len(helpers()) == 1
            for thread in threads:
                thread.join(25)
            refusal(Locks(folder), 0.05)
            # Everybody has gone away, and the helper still waits in the kernel.
            assert waiters_for(path) == len(helpers()) == 1
            holder.stdin.write("\n")
            holder.stdin.flush()
            until(lambda: not helpers())
            with held_elsewhere(folder):
                pass

    def test_a_helper_that_still_waits_serves_the_next_thread(self, folder, path):
        with held_elsewhere(folder) as holder:
            refusal(Locks(folder), 0.01)
            until(lambda: waiters_for(path) == 1)
            got = []

            def wait():
                with Locks(folder).hold("store", 20):
                    got.append(len(helpers()))

            waiter = threading.Thread(target=wait)
            waiter.start()
            until(lambda: _KNOWN.find(path)._request is not None)
            holder.stdin.write("\n")
            holder.stdin.flush()
            waiter.join(25)
        assert len(got) == 1

    def test_a_lock_taken_twice_through_another_store_of_the_same_folder_is_an_error(self, folder, tmp_path):
        (tmp_path / "link").symlink_to("locks")
        with Locks(folder).hold("store", 1):
            error = refusal(Locks(tmp_path / "link"), 20)
        assert error.kind is Kind.INTERNAL
        assert error.message == (
            "this thread holds the lock 'store' already; take it once, around everything that needs it"
        )

    def test_nothing_stays_open_and_nothing_is_remembered(self, folder):
        warm_python.start()
        locks = Locks(folder)
        with locks.hold("store", 1):
            pass
        before = len(own_descriptors())
        for number in range(20):
            with locks.hold(f"bundle/{number}", 1):
                pass
        with held_elsewhere(folder):
            refusal(locks, 0.01)
        until(lambda: not helpers())
        assert len(own_descriptors()) == before
        gc.collect()  # the refusal held on to its frames
        # Those of other tests may live on in frozen cycles.
        assert [place for place in _KNOWN._locks if str(folder) in str(place)] == []
        assert (folder / "store.lock").exists()


class TestFiles:
    def test_a_file_that_was_deleted_while_a_caller_waited_for_it_is_no_lock_any_more(self, folder, path):
        with Locks(folder).hold("store", 1):
            pass
        old = os.open(path, os.O_RDWR)
        fcntl.flock(old, fcntl.LOCK_EX)
        got = threading.Event()

        def wait():
            with Locks(folder).hold("store", 20):
                got.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        until(lambda: waiters_for(path) == 1)
        path.unlink()
        new = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(new, fcntl.LOCK_EX)
        os.close(old)
        until(lambda: waiters_for(path) == 1)
        assert not got.is_set()
        os.close(new)
        waiter.join(25)
        assert got.is_set()

    def test_a_link_in_place_of_a_lock_is_not_followed(self, folder, path, tmp_path):
        folder.mkdir()
        path.symlink_to(tmp_path / "elsewhere")
        assert refusal(Locks(folder), 1).kind is Kind.BLOCKED
        assert not (tmp_path / "elsewhere").exists()

    def test_a_pipe_in_place_of_a_lock_is_refused(self, folder, path):
        folder.mkdir()
        os.mkfifo(path)
        assert "is not a regular file" in refusal(Locks(folder), 1).message

    def test_locks_are_for_their_owner_alone(self, folder):
        with Locks(folder).hold("bundle/1", 1):
            pass
        modes = [(path.stat().st_mode & 0o777) for path in (folder, folder / "bundle", folder / "bundle" / "1.lock")]
        assert modes == [0o700, 0o700, 0o600]

    def test_a_file_system_that_is_not_known_to_be_local_is_refused_with_the_cure(self, tmp_path):
        assert kind_of(tmp_path) in LOCAL
        check_lockable(tmp_path)
        with pytest.raises(
            ToolError, match="lies on a file system of the unknown kind 0x9fa0, whose locks may not hold"
        ) as caught:
            check_lockable(Path("/proc"))
        assert caught.value.kind is Kind.PERMANENT
        assert "keep the project on a local disk (ext4, xfs, btrfs," in caught.value.message
        with pytest.raises(FileNotFoundError):
            check_lockable(tmp_path / "nowhere")

    def test_no_lock_is_taken_on_such_a_file_system(self):
        assert "whose locks may not hold between processes" in refusal(Locks(Path("/proc/self")), 1).message


class TestTurns:
    def test_threads_come_in_the_order_in_which_they_asked(self):
        turns, order = Turns(), []
        assert turns.enter(0)

        def go(number):
            assert turns.enter(time.monotonic() + 20)
            order.append(number)
            turns.leave()

        threads = []
        for number in range(20):
            threads.append(threading.Thread(target=go, args=(number,)))
            threads[-1].start()
            until(lambda number=number: len(turns._waiting) == number + 1)
        turns.leave()
        for thread in threads:
            thread.join(25)
        assert order == list(range(20))

    def test_a_caller_that_gives_up_is_passed_over(self):
        turns, outcomes = Turns(), []
        assert turns.enter(0)
        assert turns.mine
        thread = threading.Thread(target=lambda: outcomes.append((turns.mine, turns.enter(time.monotonic() + 0.01))))
        thread.start()
        thread.join(25)
        assert outcomes == [(False, False)]
        turns.leave()
        assert not turns.mine
        assert turns.enter(0)

    def test_a_caller_that_is_interrupted_while_waiting_lets_the_next_one_in(self):
        turns = Turns()
        entered, done = threading.Event(), threading.Event()

        def hold():
            turns.enter(time.monotonic() + 10)
            entered.set()
            done.wait(10)
            turns.leave()

        def interrupt(number, frame):
            raise KeyboardInterrupt

        holder = threading.Thread(target=hold)
        holder.start()
        assert entered.wait(10)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                turns.enter(time.monotonic() + 20)
        finally:
            signal.signal(signal.SIGALRM, before)
            done.set()
            holder.join(10)
        assert turns.enter(0)
