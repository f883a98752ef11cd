"""Which tools models are offered: looked up again only when something changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib import Crib, tool

MANY = 100
PLAIN = 'def {name}(number: int) -> int:\n    """Double it."""\n    return number * 2\n'
STORED = {
    "schemaVersion": "toolcrib-1",
    "displayName": "Weather report",
    "type": "http",
    "isEnabled": True,
    "argSchema": {"type": "object"},
    "outputSchema": {},
    "impl": {"urlTemplate": "https://weather.example/"},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with many plain files and a stored tool."""
    (tmp_path / "tools").mkdir()
    for number in range(MANY):
        (tmp_path / "tools" / f"double_{number}.py").write_text(PLAIN.format(name=f"double_{number}"))
    with Crib(tmp_path) as crib:
        bundle_id = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
        crib.bundles.put_bundle(bundle_id, {"slug": "mine", "displayName": "Mine", "isEnabled": True})
        crib.bundles.put_tool(bundle_id, "weather", "v1", STORED)
    return tmp_path


def calls_of(work: Callable[[], object]) -> int:
    """How many functions the work calls."""
    number = 0

    def count(frame, event, argument):
        nonlocal number
        number += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def test_tools_are_not_looked_up_again_when_nothing_changed(project):
    with Crib(project) as crib:
        first = crib.offered()
        # Each file is looked at with a dozen calls, twice if some time has passed; to look its tool up takes 80.
        assert calls_of(crib.offered) < 40 * MANY
        assert crib.offered() == first
        assert {"weather", "double_1"} <= {offered.name for offered in first}


def test_what_changes_is_offered_or_no_longer_offered_at_once(project):
    @tool
    def added(text: str) -> str:
        """Give it back."""
        return text

    with Crib(project) as crib:
        names = lambda mode=None: {offered.name for offered in crib.offered(mode)}  # noqa: E731 - asked for again and again
        before = names()
        assert names("voice") == before
        crib.add(added)
        assert names() == before | {"added"}
        (project / "tools" / "double_1.py").unlink()
        (project / "tools" / "treble.py").write_text(PLAIN.format(name="treble"))
        assert names() == names("voice") == (before | {"added", "treble"}) - {"double_1"}
        [kept] = crib.bundles.search("weather").items
        place = kept.kept.bundle.id, "weather", "v1"
        crib.bundles.switch_tool(*place, enabled=False)
        assert "weather" not in names()
        crib.bundles.switch_tool(*place, enabled=True)
        assert "weather" in names()
        crib.bundles.delete_tool(*place)
        assert "weather" not in names()
        own = crib.find("double_2").tool
        crib.bundles.switch_tool(crib.bundles.bundle_id_of(own), own.slug, own.version, enabled=False)
        assert "double_2" not in names()


def test_what_another_process_stores_is_offered(project, tmp_path):
    with Crib(project) as crib, Crib(project) as other:
        before = {offered.name for offered in crib.offered()}
        bundle_id = "018faf50-b7b6-7a01-9a05-a22a6e0af102"
        other.bundles.put_bundle(bundle_id, {"slug": "yours", "displayName": "Yours", "isEnabled": True})
        other.bundles.put_tool(bundle_id, "forecast", "v1", STORED)
        for _ in range(100_000):
            if (now := {offered.name for offered in crib.offered()}) != before:
                break
        assert now == before | {"forecast"}
