"""Switches that are moved while something looks: no look that began before may have the last word."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sample_tools import host_tool
from toolcrib import Crib, Tool
from toolcrib.core.catalog import Catalog
from toolcrib.features.bundles.other_sources import Overlay, Sources, source_id
from toolcrib.infra.search.index import Index
from toolcrib.infra.storage import MemoryStore
from toolcrib.model.tool import Entry


def a_tool(name: str = "hello", bundle: str = "tools") -> Tool:
    return host_tool(name, bundle=bundle, description="d")


class Stored:
    """Switches that a test moves, also while they are read."""

    def __init__(self) -> None:
        self.off: frozenset[str] = frozenset()
        self.on_reading = lambda: None

    def why_off(self, tool: Tool) -> str:
        reason = "its own switch is off" if tool.slug in self.off else ""
        self.on_reading()
        return reason

    def generation(self) -> object:
        return self.off


def test_a_switch_that_is_moved_while_the_catalogue_reads_the_switches_is_not_forgotten():
    catalog, stored = Catalog(), Stored()
    catalog.use_switches(stored)
    catalog.add(a_tool())

    def move_once():
        stored.on_reading = lambda: None
        stored.off = frozenset({"hello"})
        catalog.find("hello")

    stored.on_reading = move_once
    assert catalog.find("hello") is not None
    assert not catalog.find("hello").enabled


def test_a_tool_that_comes_while_the_catalogue_is_built_is_not_forgotten():
    catalog, stored = Catalog(), Stored()
    catalog.use_switches(stored)
    catalog.add(a_tool())

    def add_once():
        stored.on_reading = lambda: None
        catalog.add(a_tool("late"))

    stored.on_reading = add_once
    catalog.find("hello")
    assert catalog.find("late") is not None


def make_sources(entries):
    store = MemoryStore()
    overlay = Overlay(store, lambda: 1_800_000_000.0)
    return Sources(entries, overlay, Index(None)), overlay


def is_on(snapshot) -> bool:
    (entry,) = snapshot.entries.values()
    return entry.enabled


def test_an_answer_that_was_asked_for_before_a_switch_does_not_undo_it():
    asked, go_on = threading.Event(), threading.Event()
    slow = threading.local()

    def entries():
        if getattr(slow, "is_slow", False):
            asked.set()
            assert go_on.wait(25)
        return [Entry(tool=a_tool())]

    sources, overlay = make_sources(entries)
    assert is_on(sources.look())

    def look_slowly():
        slow.is_slow = True
        sources.look_again()
        sources.look()

    thread = threading.Thread(target=look_slowly)
    thread.start()
    assert asked.wait(25)
    overlay.switch(source_id("tools"), "hello@1.0.0", enabled=False)
    sources.look_again()
    assert not is_on(sources.look())
    go_on.set()
    thread.join(25)
    assert not is_on(sources.look())


def test_an_answer_to_an_earlier_question_does_not_undo_a_later_one():
    asked, go_on = threading.Event(), threading.Event()
    slow = threading.local()
    held = ["hello"]

    def entries():
        names = [*held]
        if getattr(slow, "is_slow", False):
            asked.set()
            assert go_on.wait(25)
        return [Entry(tool=a_tool(name)) for name in names]

    sources, _ = make_sources(entries)
    sources.look()

    def look_slowly():
        slow.is_slow = True
        sources.look_again()
        sources.look()

    thread = threading.Thread(target=look_slowly)
    thread.start()
    assert asked.wait(25)
    held.append("later")
    sources.look_again()
    assert len(sources.look().entries) == 2
    go_on.set()
    thread.join(25)
    assert len(sources.snapshot.entries) == 2


def test_switches_count_at_once_however_long_it_takes_to_ask_the_sources(monkeypatch):
    asked = []

    def entries():
        asked.append(True)
        return [Entry(tool=a_tool())]

    sources, overlay = make_sources(entries)
    sources.look()
    monkeypatch.setattr("toolcrib.features.bundles.other_sources.ASKING_SHARE", 10**9)
    sources.look_again()
    sources.look()
    for enabled in (False, True, False):
        overlay.switch(source_id("tools"), "hello@1.0.0", enabled=enabled)
        assert is_on(sources.look()) is enabled
    assert len(asked) == 2


def test_sources_that_failed_are_asked_again():
    answers = iter([RuntimeError("not yet"), [Entry(tool=a_tool())]])

    def entries():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sources, _ = make_sources(entries)
    with pytest.raises(RuntimeError, match="not yet"):
        sources.look()
    assert not sources.were_asked
    assert is_on(sources.look())


def test_threads_that_come_at_once_share_one_catalogue_of_bundles(tmp_path):
    (tmp_path / "toolcrib.toml").touch()
    with Crib(tmp_path) as crib:
        together = threading.Barrier(8)

        def take(_: int) -> int:
            together.wait(25)
            return id(crib.bundles)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(take, range(8)))) == 1


def test_a_tool_of_a_file_that_one_process_switches_off_is_off_in_another(tmp_path, eventually):
    (tmp_path / "toolcrib.toml").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hello.py").write_text('def hello() -> str:\n    """Say."""\n    return "x"\n')
    with Crib(tmp_path) as one, Crib(tmp_path) as other:
        (kept,) = (kept for kept in one.bundles.list_tools().items if kept.slug == "hello")
        enabled = True
        is_seen = lambda: other.find("hello").enabled is enabled  # noqa: E731 - of each round
        for _ in range(30):
            enabled = not enabled
            one.bundles.switch_tool(kept.bundle.id, "hello", kept.version, enabled)
            assert one.find("hello").enabled is enabled
            eventually(lambda: other.bundles.list_tools(include_disabled=True) and is_seen())
