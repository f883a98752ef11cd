"""`crib prepare`: steps on standard error, and on standard output what is installed where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wheels import make_wheel

NEEDY = '''# /// script
# dependencies = ["crib-sample>=1"]
# ///
def needy() -> int:
    """Give the answer."""
    import crib_sample

    return crib_sample.ANSWER
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and a folder of wheels that is all there is to install from."""
    wheels, project = tmp_path / "wheels", tmp_path / "project"
    wheels.mkdir()
    make_wheel(wheels)
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
        monkeypatch.setenv(f"{installer}_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")  # uv has no variable that means no index
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (project / "tools").mkdir(parents=True)
    (project / "toolcrib.toml").write_text("")
    (project / "tools/needy.py").write_text(NEEDY)
    (project / "tools/modest.py").write_text('def modest() -> int:\n    """Ask for nothing."""\n    return 1\n')
    return project


def test_steps_go_to_standard_error_and_what_is_installed_where_to_standard_output(
    project: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    ended = cli("prepare", "-C", str(project), "needy")
    assert ended.code == 0
    steps = ended.err.splitlines()
    assert steps[0].startswith("crib: making an environment with ")
    assert "crib: installing crib-sample>=1" in steps
    (place,) = (tmp_path / "cache/toolcrib/environments").iterdir()
    assert ended.out == f"needy runs with {place}/bin/python\ninstalled in {place}: crib_sample 1.0\n"
    called = cli("call", "-C", str(project), "needy")
    assert (called.code, called.out) == (0, "42\n")

    again = cli("prepare", "-C", str(project), "needy")
    assert (again.code, again.err) == (0, "")
    assert again.out.endswith(f"installed already in {place}: crib_sample 1.0\n")


def test_a_file_that_asks_for_nothing_has_nothing_installed(
    project: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    ended = cli("prepare", "-C", str(project), "modest")
    assert (ended.code, ended.out, ended.err) == (0, "modest asks for nothing\n", "")
    assert not (tmp_path / "cache/toolcrib/environments").exists()
