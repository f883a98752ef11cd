"""A job that may use only some names of a folder reads, makes, changes and removes these, and nothing else by any system call."""

from dataclasses import replace

import pytest


@pytest.fixture
def only(confine, workspace):
    own = (workspace, workspace / "db", workspace / "db-wal")
    return replace(confine(), write=(workspace,), only=own)


# Each is tried with x as a neighbour that exists, as one that does not, and as a file elsewhere; y is the job's own.
ACTS = (
    *(
        "open(x)",
        "open(x, 'w')",
        "open(x, 'a')",
        "os.open(x, os.O_RDWR | os.O_CREAT)",
        "os.open(x, os.O_RDONLY | os.O_CREAT)",
    ),
    *("os.unlink(x)", "os.rename(x, y)", "os.rename(y, x)", "os.link(x, y + '-wal')", "os.link(y, x)"),
    *("os.symlink(y, x)", "os.mkdir(x)", "os.mkfifo(x)", "os.truncate(x, 0)", "os.chmod(x, 0o777)"),
    *(
        "os.rename(os.path.dirname(y), x)",
        "os.chmod(os.path.dirname(y), 0o777)",
        "os.open('.', os.O_TMPFILE | os.O_WRONLY)",
    ),
    *("os.open('victim', os.O_RDONLY, dir_fd=os.open(os.path.dirname(y), os.O_PATH))", "os.listdir('/etc/ssh')"),
    *("[os.symlink(x, y + '-wal'), open(y + '-wal')]", "[os.symlink(x, y + '-wal'), open(y + '-wal', 'w')]"),
)
TIDY = "import contextlib\nwith contextlib.suppress(OSError): os.unlink(y + '-wal')"

GROW = """
import mmap
file = os.open(y + "-wal", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
os.fchmod(file, 0o640)
os.pwrite(file, b"x" * 9_000_000, 0)
os.ftruncate(file, 5)
mmap.mmap(file, 5)[0:1] = b"y"
"""


async def test_other_names_are_out_of_reach(only, attempt, workspace, tmp_path) -> None:
    outside = tmp_path / "outside"
    (workspace / "sub").mkdir()
    (workspace / "db").write_text("data")
    for victim in (workspace / "victim", outside, workspace / "sub" / "victim"):
        victim.write_text("kept")
    before = {path: path.stat() for path in (workspace, workspace / "victim", outside)}
    for target in (workspace / "victim", workspace / "missing", outside, workspace / "sub" / "victim"):
        acts = [each for act in ACTS for each in (TIDY, act)]
        outcomes = (await attempt(acts, only, x=target, y=workspace / "db"))[1::2]
        assert {"done"}.isdisjoint(outcomes), (target, list(zip(ACTS, outcomes, strict=True)))
    (workspace / "db-wal").unlink(missing_ok=True)
    for path, facts in before.items():
        assert path.stat().st_mode == facts.st_mode
    assert sorted(path.name for path in workspace.iterdir()) == ["db", "file", "sub", "victim"]
    assert {victim.read_text() for victim in (workspace / "victim", outside, workspace / "sub" / "victim")} == {"kept"}
    assert (workspace / "db").read_text() == "data"


async def test_its_own_names_can_be_used_in_every_way_that_a_database_needs(only, attempt, workspace) -> None:
    (workspace / "db").write_text("data")
    (workspace / "db").chmod(0o640)
    acts = [
        "assert open(y).read() == 'data'",
        GROW,
        "os.unlink(y + '-wal')",
        "os.fsync(os.open(os.path.dirname(y), os.O_RDONLY))",
    ]
    assert await attempt(acts, replace(only, disk_bytes=8_000_000), y=workspace / "db") == ["done"] * len(acts)


async def test_a_name_that_is_another_files_too_is_not_opened(only, attempt, workspace) -> None:
    (workspace / "victim").write_text("kept")
    (workspace / "db").hardlink_to(workspace / "victim")
    assert await attempt(["open(y)", "open(y, 'r+')"], only, y=workspace / "db") == ["EPERM", "EPERM"]
