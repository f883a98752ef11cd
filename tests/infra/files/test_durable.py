"""What was acknowledged is on disk; what failed left nothing; a reader sees the old or the new."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.files import durable
from warm_python import WarmPython

CALLS = ("open", "write", "fsync", "link", "rename", "mkdir", "fstat")
ERRORS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EMFILE]


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".toolcrib"


def attempt(action, *arguments):
    try:
        action(*arguments)
    except ToolError as error:
        return error
    return None


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


class TestCreate:
    def test_a_new_file_is_for_its_owner_alone_and_so_are_its_folders(self, home):
        old = os.umask(0)
        try:
            assert durable.create(home / "keys" / "key", b"key") is True
        finally:
            os.umask(old)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (home, home / "keys", home / "keys" / "key")]
        assert modes == [0o700, 0o700, 0o600]
        assert contents(home / "keys") == {"key": b"key"}

    def test_a_folder_that_exists_keeps_its_permissions(self, tmp_path):
        tmp_path.chmod(0o755)
        durable.create(tmp_path / "file", b"")
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755

    def test_a_name_that_is_taken_keeps_its_content(self, home):
        durable.create(home / "file", b"first")
        assert durable.create(home / "file", b"second") is False
        assert contents(home) == {"file": b"first"}

    def test_a_link_that_leads_nowhere_takes_the_name_too(self, home):
        home.mkdir()
        (home / "file").symlink_to("elsewhere")
        assert durable.create(home / "file", b"new") is False
        assert not (home / "elsewhere").exists()

    def test_of_many_creators_exactly_one_wins(self, home):
        start = threading.Barrier(8)

        def create(number):
            start.wait(timeout=10)
            return durable.create(home / "file", str(number).encode())

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(create, range(8)))
        assert won.count(True) == 1
        assert contents(home) == {"file": str(won.index(True)).encode()}

    @pytest.mark.parametrize("number", ERRORS)
    def test_whichever_call_fails_the_name_stays_free(self, home, faults, number):
        for n in range(1, 100):
            with faults(CALLS, n, number) as run:
                error = attempt(durable.create, home / "file", b"data")
            if error is None:
                break
            assert error.kind is Kind.PERMANENT
            assert str(home) in error.message
            assert contents(home) == {}
            home.exists() and home.rmdir()
        assert n > 7
        assert not run.failed
        assert contents(home) == {"file": b"data"}


class TestReplace:
    def test_a_file_is_made_or_replaced(self, home):
        durable.replace(home / "file", b"first, and longer")
        durable.replace(home / "file", b"second")
        assert contents(home) == {"file": b"second"}
        assert stat.S_IMODE((home / "file").stat().st_mode) == 0o600

    def test_a_link_is_replaced_and_not_written_through(self, home, tmp_path):
        home.mkdir()
        (tmp_path / "target").write_text("untouched")
        (home / "file").symlink_to("../target")
        durable.replace(home / "file", b"new")
        assert contents(home) == {"file": b"new"}
        assert (tmp_path / "target").read_text() == "untouched"

    @pytest.mark.parametrize("number", ERRORS)
    def test_whichever_call_fails_the_file_is_the_old_or_the_new(self, home, faults, number):
        for n in range(1, 100):
            home.mkdir(exist_ok=True)
            (home / "file").write_bytes(b"old")
            with faults(CALLS, n, number) as run:
                error = attempt(durable.replace, home / "file", b"new")
            if error is None:
                break
            assert contents(home) == {"file": b"new" if error.partial_side_effects else b"old"}
            assert not error.partial_side_effects or run.name == "fsync"
        assert n > 5
        assert not run.failed
        assert contents(home) == {"file": b"new"}

    def test_readers_see_one_whole_content_or_the_other(self, home):
        contents_of_a_round = [bytes([letter]) * 50_000 for letter in b"ab"]
        durable.replace(home / "file", contents_of_a_round[0])
        stop = threading.Event()
        torn = []

        def watch():
            while not stop.is_set():
                data = durable.read(home / "file", 100_000)
                if data not in contents_of_a_round:
                    torn.append(data)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for number in range(60):
            durable.replace(home / "file", contents_of_a_round[number % 2])
        stop.set()
        watcher.join(timeout=10)
        assert torn == []

    def test_short_writes_are_carried_on(self, home, monkeypatch):
        real = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:1000])))
        durable.replace(home / "file", b"0123456789" * 1000)
        assert contents(home) == {"file": b"0123456789" * 1000}


class TestOrderOfSyncs:
    """The file is synced before it gets its name, its folder after."""

    @pytest.fixture
    def order(self, monkeypatch):
        seen = []

        def watch(name, real):
            def call(*arguments, **options):
                folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
                seen.append("fsync folder" if folder else name)
                return real(*arguments, **options)

            return call

        for name in ("write", "fsync", "link", "rename", "mkdir"):
            monkeypatch.setattr(os, name, watch(name, getattr(os, name)))
        return seen

    def test_of_a_new_file(self, home, order):
        durable.create(home / "file", b"data")
        assert order == ["mkdir", "fsync folder", "write", "fsync", "link", "fsync folder"]

    def test_of_a_replaced_file(self, tmp_path, order):
        durable.replace(tmp_path / "file", b"data")
        assert order == ["write", "fsync", "rename", "fsync folder"]


class TestRead:
    def test_no_file_is_none(self, home):
        assert durable.read(home / "file", 10) is None

    def test_the_limit_itself_is_allowed_and_one_more_is_not(self, home):
        durable.create(home / "file", b"0123456789")
        assert durable.read(home / "file", 10) == b"0123456789"
        with pytest.raises(ToolError, match="has more than 9 bytes") as caught:
            durable.read(home / "file", 9)
        assert caught.value.kind is Kind.LIMIT_EXCEEDED

    def test_a_link_is_not_followed(self, home):
        durable.create(home / "file", b"data")
        (home / "link").symlink_to("file")
        with pytest.raises(ToolError) as caught:
            durable.read(home / "link", 10)
        assert caught.value.kind is Kind.BLOCKED

    def test_a_fifo_is_refused_without_blocking(self, home):
        home.mkdir()
        os.mkfifo(home / "fifo")
        with pytest.raises(ToolError, match="is not a regular file; move it away"):
            durable.read(home / "fifo", 10)

    def test_a_folder_that_is_a_file_is_an_error_and_not_none(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ToolError, match="goes through something that is not a folder"):
            durable.read(tmp_path / "file" / "below", 10)


WRITER = """
import os, sys
from pathlib import Path
from toolcrib.infra.files import durable
real = os.fsync
def die(descriptor):
    real(descriptor)
    print("written", flush=True)
    sys.stdin.read()
os.fsync = die
durable.replace(Path(sys.argv[1]), b"new")
"""


class TestSweep:
    def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_holds_is_kept(self, home):
        durable.create(home / "file", b"old")
        command = [sys.executable, "-c", WRITER, str(home / "file")]
        with WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"written\n"
            assert len(contents(home)) == 2
            assert durable.sweep(home) == 0
            assert len(contents(home)) == 2
            writer.kill()
        assert durable.sweep(home) == 1
        assert contents(home) == {"file": b"old"}

    def test_other_files_are_none_of_its_business(self, home):
        durable.create(home / ".crib-notes.part", b"")
        durable.create(home / "file.part", b"")
        (home / ".crib-0123456789abcdef.part").symlink_to("file.part")
        (home / ".crib-fedcba9876543210.part").mkdir()
        before = sorted(path.name for path in home.iterdir())
        assert durable.sweep(home) == 0
        assert sorted(path.name for path in home.iterdir()) == before

    def test_no_folder_has_nothing_to_sweep(self, home):
        assert durable.sweep(home) == 0

    def test_a_writer_whose_file_was_swept_before_it_was_locked_takes_another(self, home, monkeypatch):
        home.mkdir()
        real = fcntl.flock
        swept = []

        def sweep_first(descriptor, operation):
            if not swept:
                swept.append(None)
                swept[0] = durable.sweep(home)
            return real(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", sweep_first)
        durable.create(home / "file", b"data")
        assert swept == [1]
        assert contents(home) == {"file": b"data"}

    def test_a_writer_that_meets_a_sweep_at_work_takes_another(self, home, monkeypatch):
        home.mkdir()
        real = fcntl.flock
        busy = []

        def locked_once(descriptor, operation):
            if not busy:
                busy.append(Path(f"/proc/self/fd/{descriptor}").readlink())
                busy[0].unlink()
                raise BlockingIOError(errno.EWOULDBLOCK, "locked by a sweep")
            return real(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", locked_once)
        durable.create(home / "file", b"data")
        assert contents(home) == {"file": b"data"}


def test_no_descriptor_stays_open(home, faults):
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    durable.create(home / "file", b"")
    before = count()
    for n in range(1, 30):
        for action in (durable.create, durable.replace):
            with faults((*CALLS, "unlink"), n, errno.EIO):
                attempt(action, home / f"file{n}", b"data")
        with faults(CALLS, n, errno.EIO):
            attempt(durable.read, home / "file", 10)
    assert count() == before
