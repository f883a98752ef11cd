"""An attacker swaps a folder for a link to what is forbidden, in a tight loop, while the jail reads and writes through it."""

import ctypes
import os
import threading
from contextlib import contextmanager

import pytest

from soaks import examples
from toolcrib import ToolError
from toolcrib.infra.files.jail import Jail

pytestmark = pytest.mark.rounds
ROUNDS = examples(3000)
MOST_ROUNDS = 200_000
AT_WORKING_DIRECTORY = -100
EXCHANGE = 2

exchange = ctypes.CDLL(None, use_errno=True).renameat2


@contextmanager
def swapped(one, other):
    """The two names trade places over and over; there is no moment at which one is missing."""
    names = [AT_WORKING_DIRECTORY, os.fsencode(one), AT_WORKING_DIRECTORY, os.fsencode(other), EXCHANGE]
    assert exchange(*names) == 0, os.strerror(ctypes.get_errno())
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            exchange(*names)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=25)
    assert not thread.is_alive()


@pytest.fixture
def swapping(root):
    """`src` is a folder at one moment and a link to the outside at the next."""
    (root / "trap").symlink_to("../outside")
    with swapped(root / "src", root / "trap"):
        yield


def race(action):
    """Run until both the folder and the link were met, and often."""
    met = {"folder": 0, "link": 0}
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and all(met.values()):
            return
        try:
            action(number)
        except ToolError:
            met["link"] += 1
        else:
            met["folder"] += 1
    pytest.fail(f"the race was never run: {met}")


@pytest.mark.parametrize("path", ["src/file.txt", "src/../src/file.txt"])
def test_a_read_never_sees_the_outside(jail, swapping, path):
    def read(_):
        assert jail.read(path, 100) == b"inside"

    race(read)


def test_a_listing_never_sees_the_outside(jail, outside, swapping):
    (outside / "secret.txt").touch()

    def look(_):
        assert "secret.txt" not in {item.name for item in jail.list_folder("src", 100).items}

    race(look)


def test_a_write_never_reaches_the_outside(jail, outside, swapping, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # durability is not what is raced for

    def write(number):
        jail.write(("src/file.txt", "src/new.txt", f"src/made{number % 50}/new.txt")[number % 3], b"inside")

    race(write)
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("file.txt", "outside")]


def test_nothing_is_added_to_or_deleted_from_the_outside(jail, root, outside, swapping, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for number in range(50):
        (outside / f"made{number}").mkdir()

    def change(number):
        # Whichever of the two is the folder at the moment, its own items come and go.
        jail.append("src/file.txt", b"")
        jail.append("src/new.txt", b"x")
        jail.delete("src/new.txt")
        jail.make_folder(f"src/made{number % 50}")
        jail.delete(f"src/made{number % 50}")

    race(change)
    assert sorted(path.name for path in outside.iterdir()) == sorted(
        ["file.txt", *(f"made{number}" for number in range(50))]
    )
    assert (outside / "file.txt").read_text() == "outside"


def test_a_write_never_reaches_what_is_protected(root, open_beneath, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    tools = root / "tools"
    tools.mkdir()
    (tools / "file.txt").write_text("tool")
    (root / "trap").symlink_to("tools")

    def write(number):
        jail.write(("src/file.txt", "src/new.txt", f"src/made{number % 50}/new.txt")[number % 3], b"inside")

    with (
        Jail(root, is_sensitive=lambda _: False, protected=[tools], open_beneath=open_beneath) as jail,
        swapped(root / "src", root / "trap"),
    ):
        race(write)
    assert [(path.name, path.read_text()) for path in tools.iterdir()] == [("file.txt", "tool")]


def test_dots_are_judged_even_while_others_rename(jail, outside):
    (outside / "other").mkdir()
    with swapped(outside / "file.txt", outside / "other"):
        for _ in range(ROUNDS):
            assert jail.read("src/../src/../src/../src/file.txt", 100) == b"inside"
