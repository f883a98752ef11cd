"""Small files of others."""

import os
import threading
from pathlib import Path

import pytest

from toolcrib.infra.files import read_beginning, read_small


@pytest.fixture(params=[read_small, read_beginning])
def read(request):
    """Either way to read, which may not hang."""

    def read(path, limit=10):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(request.param(path, limit)), daemon=True)
        thread.start()
        thread.join(25)
        assert answers, "it hangs"
        return answers[0]

    return read


def test_a_regular_file_is_read_and_links_to_it_are_followed(read, tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read(tmp_path / "file") == b"0123456789"
    assert read(tmp_path / "link") == b"0123456789"


def test_a_file_that_is_too_large_is_read_to_the_limit_or_not_at_all(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789a")
    assert read_beginning(tmp_path / "file", 10) == b"0123456789"
    assert read_small(tmp_path / "file", 10) is None


@pytest.mark.parametrize("name", ["gone", "file/below", "folder", "pipe", "zero", "loop", "x" * 300, "a\0b", "linked"])
def test_what_is_no_regular_file_is_not_there(read, tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "linked").symlink_to("pipe")
    assert read(tmp_path / name) is None


def test_no_descriptor_is_left_open(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("file", "pipe", "gone"):
        read_small(tmp_path / name, 10)
        read_beginning(tmp_path / name, 10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
