"""The key of a project: made once, readable by its owner only, and refused if another user could have read it."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from toolcrib import SettingsError
from toolcrib.infra.secrets.lookup import KEY_BYTES, load_key, new_key
from warm_python import WarmPython


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".toolcrib" / "key"


def test_a_key_is_made_at_first_use_and_stays(path):
    key = load_key(path)
    assert len(key) == KEY_BYTES
    assert load_key(path) == key
    assert path.read_bytes() == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert new_key() != new_key()


def test_the_key_is_private_for_any_umask(path):
    before = os.umask(0)
    try:
        load_key(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_many_processes_that_start_at_once_agree_on_one_key(path):
    program = (
        "import sys, pathlib\nfrom toolcrib.infra.secrets.lookup import load_key\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nprint(load_key(pathlib.Path(sys.argv[1])).hex())"
    )
    command = [sys.executable, "-c", program, str(path)]
    processes = [WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        keys = {process.communicate(timeout=20)[0] for process in processes}
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert keys == {f"{path.read_bytes().hex()}\n"}
    assert [file.name for file in path.parent.iterdir()] == ["key"]


def test_many_threads_that_start_at_once_agree_on_one_key(path):
    start, keys = threading.Barrier(8), []

    def load():
        start.wait(25)
        keys.append(load_key(path))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(25)
    assert len(keys) == 8
    assert len(set(keys)) == 1


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_key_that_others_can_reach_is_refused_with_the_cure(path, mode):
    load_key(path)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=r"others can read the key; remove the file .*, or run chmod 600"):
        load_key(path)
    path.chmod(0o600)
    load_key(path)


@pytest.mark.parametrize("size", [0, 1, KEY_BYTES - 1, KEY_BYTES + 1, 100_000])
def test_a_key_of_another_size_is_refused_with_the_cure(path, size):
    load_key(path)
    path.write_bytes(b"x" * size)
    with pytest.raises(SettingsError, match="must be 32 bytes; remove the file and a new one is made"):
        load_key(path)
    path.unlink()
    assert len(load_key(path)) == KEY_BYTES


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling"])
def test_what_is_no_plain_file_is_refused_and_never_waited_for(path, tmp_path, kind):
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    else:
        target = tmp_path / "planted"
        if kind == "link":
            target.write_bytes(b"k" * KEY_BYTES)
            target.chmod(0o600)
        path.symlink_to(target)
    with pytest.raises(SettingsError, match="remove the file and a new one is made"):
        load_key(path)
