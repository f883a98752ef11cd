"""A jail over a small project, opened in either of the two ways, with something worth stealing outside."""

import os
from contextlib import contextmanager
from pathlib import PurePosixPath

import pytest

from toolcrib.infra.files.jail import Jail
from toolcrib.infra.files.safe_paths import open_by_kernel, open_by_walk


def is_sensitive(path):
    return bool({".env", ".ssh"} & set(PurePosixPath(path).parts))


@pytest.fixture(params=[open_by_kernel, open_by_walk], ids=["kernel", "walk"])
def open_beneath(request):
    return request.param


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file.txt").write_text("outside")
    return folder


@pytest.fixture
def root(tmp_path, outside):
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "file.txt").write_text("inside")
    (folder / "notes.txt").write_text("notes")
    return folder


@pytest.fixture
def make_jail(open_beneath):
    jails = []

    def make(folder):
        jails.append(Jail(folder, is_sensitive=is_sensitive, open_beneath=open_beneath))
        return jails[-1]

    yield make
    for jail in jails:
        jail.close()


@pytest.fixture
def jail(make_jail, root):
    return make_jail(root)


class Run:
    """Counts the calls and fails the n-th of them."""

    def __init__(self, n, number):
        self.n = n
        self.number = number
        self.name = ""
        self.failed = False

    def wrap(self, name, function):
        def call(*arguments, **options):
            self.n -= 1
            if self.n == 0:
                self.name, self.failed = name, True
                raise OSError(self.number, os.strerror(self.number))
            return function(*arguments, **options)

        return call


@pytest.fixture
def faults(monkeypatch):
    @contextmanager
    def inject(names, n, number):
        run = Run(n, number)
        with monkeypatch.context() as patch:
            for name in names:
                patch.setattr(os, name, run.wrap(name, getattr(os, name)))
            yield run

    return inject
