"""Watching: built at once and after every change, and never a broken registry."""

import threading

import pytest

from toolcrib.build import watch
from toolcrib.features.folders.build import SECONDS


class Script:
    """Stands for the clock: does one step each time the watcher waits, and then ends it."""

    def __init__(self, *steps) -> None:
        self._steps = list(steps)

    def wait(self, timeout: float) -> bool:
        assert timeout == SECONDS
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False


@pytest.fixture
def watched(tools, tmp_path):
    """Watch while these steps happen; what was said of each build."""

    def run(*steps, **how):
        said = []
        watch(tools.root, say=said.append, stop=Script(*steps), cache=tmp_path / "cache", **how)
        return said

    return run


def nothing():
    pass


def test_it_builds_at_once_and_says_so(tools, watched):
    tools.add("a")
    (built,) = watched()
    assert (built.tools, built.written) == (("a",), True)


def test_without_a_change_nothing_more_is_said(tools, watched):
    tools.add("a")
    assert len(watched(nothing, nothing, nothing)) == 1


def test_every_change_is_built_and_said(tools, watched):
    tools.add("a")
    said = watched(
        lambda: tools.add("a", description="Another."),
        lambda: tools.add("b"),
        lambda: tools.write("_lib/x.js", "export const x = 1;\n"),
        lambda: tools.write("a/lib/deep/x.js", "export const x = 1;\n"),
        (tools.root / "b" / "doc.md").unlink,
        nothing,
    )
    assert [built.tools for built in said] == [("a",), ("a",), ("a", "b"), ("a", "b"), ("a", "b"), ("a",)]
    assert [built.ok for built in said] == [True] * 5 + [False]
    assert len({built.version for built in said}) == 6


def test_a_broken_state_keeps_the_old_registry_and_says_what_is_wrong(tools, watched):
    tools.add("a")
    registries = []
    said = watched(
        lambda: registries.append(tools.registry.read_bytes()),
        lambda: tools.write("a/schema.json", "{"),
        lambda: registries.append(tools.registry.read_bytes()),
        lambda: tools.add("a", description="Mended."),
        lambda: registries.append(tools.registry.read_bytes()),
    )
    assert [built.ok for built in said] == [True, False, True]
    assert said[1].problems[0].startswith("tools/a/schema.json:1")
    assert registries[0] == registries[1] != registries[2]


def test_changes_within_one_tick_of_the_clock_are_all_seen(tools, watched, monkeypatch):
    # A file system whose clock does not move on while files of one length take each other's place.
    monkeypatch.setattr("toolcrib.features.folders.build._stamp", lambda path: (0, 2**63, 0, 0))
    tools.add("a", description="One.")
    said = watched(*(lambda word=word: tools.add("a", description=word) for word in ("Two.", "Six.", "Ten.")), nothing)
    assert len({built.version for built in said}) == len(said) == 4


def test_a_root_that_goes_and_comes_back_does_not_end_it(tools, watched):
    tools.add("a")
    away = tools.root.with_name("away")
    said = watched(lambda: tools.root.rename(away), nothing, lambda: away.rename(tools.root), nothing)
    assert [built.ok for built in said] == [True, False, True]


def test_strictness_holds_for_every_build(tools, watched):
    tools.add("a")
    said = watched(lambda: tools.add("b", category="action", sideEffects="none"), strict=True)
    assert [built.ok for built in said] == [True, False]


def test_an_interrupt_ends_it_quietly(tools):
    def interrupt():
        raise KeyboardInterrupt

    said = []
    watch(tools.root, say=said.append, stop=Script(interrupt))
    assert len(said) == 1


def test_an_event_ends_it(tools):
    tools.add("a")
    stop, said = threading.Event(), []
    thread = threading.Thread(target=watch, args=(tools.root,), kwargs={"say": said.append, "stop": stop})
    thread.start()
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert len(said) == 1
