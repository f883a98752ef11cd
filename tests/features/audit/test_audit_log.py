"""The chain of the audit trail: what every change of its files, every crash and every second process does to it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.audit.log import AuditLog
from toolcrib.infra.files import durable
from warm_python import WarmPython

DAY = 86_400
# 2026-11-18, noon, UTC.
NOON = 1_795_003_200


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(project, clock):
    return open_log(project, clock)


def open_log(project, clock, **more):
    settings = project / "toolcrib.toml"
    return AuditLog(project / ".toolcrib" / "audit", caller="ann", settings=settings, clock=clock, **more)


def write(log, *names):
    for name in names:
        with log.record("tool.saved", name):
            pass


def files_of(project):
    return sorted((project / ".toolcrib" / "audit").glob("*.jsonl"))


def lines_of(file):
    return file.read_bytes().splitlines(keepends=True)


def shown(log, **filters):
    return [event["about"] for event in log.events(**filters)][::-1]


def test_an_event_says_who_did_what_when_and_why(log, clock):
    with log.record("call.approved", "3f9c", why="checked", actor=("6c1d", "Ben"), facts={"tool": "pay"}):
        assert shown(log) == ["3f9c"]
    (event,) = log.events()
    assert event == {
        "number": 1,
        "time": "2026-11-18T12:00:00.000+00:00",
        "what": "call.approved",
        "about": "3f9c",
        "actor": "6c1d",
        "name": "Ben",
        "why": "checked",
        "facts": {"tool": "pay"},
        "before": "0" * 64,
    }


def test_events_are_selected(log, clock):
    write(log, "a")
    clock.now += 3_600
    with log.record("secret.set", "KEY", actor=("6c1d", "Ben")):
        pass
    assert shown(log) == ["a", "KEY"]
    assert shown(log, what="tool") == shown(log, actor="ann") == shown(log, what="a") == shown(log, before=2) == ["a"]
    assert shown(log, actor="Ben") == shown(log, actor="6c1d") == shown(log, since="2026-11-18T12:30:00Z") == ["KEY"]
    assert shown(log, since="2026-11-18T13:30:00+00:30") == ["KEY"]
    for text in ("yesterday", "2026-11-31", "9999-12-31T23:59:59-14:00"):
        with pytest.raises(ToolError, match="write a date such as"):
            shown(log, since=text)


def test_each_change_of_the_files_is_found(project, clock, log):
    write(log, *"abcde")
    (file,), head = files_of(project), project / ".toolcrib" / "audit" / "head"
    lines, kept = lines_of(file), head.read_bytes()
    second = json.loads(lines[1])
    changes = {
        "event 3 does not follow event 2: one was changed": [*lines[:1], lines[1].replace(b'"b"', b'"x"'), *lines[2:]],
        "event 4 does not follow event 2: one was changed": [*lines[:2], *lines[3:]],
        "event 3 does not follow event 1: one was changed": [lines[0], lines[2], lines[1], *lines[3:]],
        "event 5 is missing": lines[:4],
        "event 5 was changed": [*lines[:4], lines[4].replace(b'"e"', b'"x"')],
        "events 1 to 2 are missing, and no retention cut": lines[2:],
        "event 3 does not follow event 1": [lines[0], b"no event\n", *lines[2:]],
        "event 4 does not follow event 1": [
            lines[0],
            json.dumps({**second, "number": "2"}).encode() + b"\n",
            *lines[3:],
        ],
    }
    for problem, changed in changes.items():
        file.write_bytes(b"".join(changed))
        with pytest.raises(ToolError, match=problem):
            log.verify()
        # What is missing stays so, whatever comes after it.
        write(log, "f")
        with pytest.raises(ToolError, match="is not whole"):
            log.verify()
        head.write_bytes(kept)
    file.write_bytes(b"".join(lines))
    assert log.verify() == kept.decode().strip()


def test_a_deleted_log_is_missed_and_the_chain_goes_on_from_its_head(project, clock, log):
    write(log, *"abc")
    files_of(project)[0].unlink()
    with pytest.raises(ToolError, match="event 3 is missing"):
        log.verify()
    write(log, "d")
    assert [event["number"] for event in log.events()] == [4]
    with pytest.raises(ToolError, match="events 1 to 3 are missing, and no retention cut removed them"):
        log.verify()


def test_a_lost_head_is_told_and_written_anew(project, log):
    write(log, *"ab")
    head = project / ".toolcrib" / "audit" / "head"
    for content in (None, b"", b"\xff\n", b"9" * 900):
        head.unlink() if content is None else head.write_bytes(content)
        with pytest.raises(ToolError, match="its head is lost"):
            log.verify()
    head.unlink()
    write(log, "c")
    assert log.verify().startswith("3:")


def test_a_head_that_is_kept_elsewhere_finds_a_trail_that_was_written_anew(project, clock, log):
    write(log, *"ab")
    kept = log.verify()
    write(log, "c")
    assert log.verify(kept) == log.verify()
    for file in files_of(project):
        file.unlink()
    (project / ".toolcrib" / "audit" / "head").unlink()
    write(log, *"xyz")
    assert log.verify().startswith("3:")
    with pytest.raises(ToolError, match="event 2 was changed or cut"):
        log.verify(kept)
    with pytest.raises(ToolError, match="event 9 is missing"):
        log.verify(f"9:{'a' * 64}")
    for text in ("2", "2:", "two:abc", "9" * 9_000):
        with pytest.raises(ToolError, match="is not a head"):
            log.verify(text)


def test_a_process_that_dies_before_the_head_is_moved_loses_no_event(project, log):
    write(log, "a")
    head = project / ".toolcrib" / "audit" / "head"
    older = head.read_bytes()
    write(log, "b")
    head.write_bytes(older)
    assert log.verify().startswith("2:")
    write(log, "c")
    assert log.verify().startswith("3:")
    assert shown(log) == ["a", "b", "c"]


def test_a_full_disk_refuses_the_change_and_its_torn_line_does_not_break_the_chain(log, monkeypatch):
    write(log, "a")
    written = os.write

    def fill(descriptor, data):
        if bytes(data[:1]) != b"{":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(descriptor, data[:20])

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(ToolError, match="has no room: the disk is full") as refusal, log.record("tool.saved", "b"):
        pytest.fail("the change was made")
    assert refusal.value.kind is Kind.PERMANENT
    monkeypatch.undo()
    assert log.verify().startswith("1:")
    write(log, "c")
    assert (shown(log), log.verify()[:2]) == (["a", "c"], "2:")


def test_an_event_counts_where_only_its_head_found_no_room(log, monkeypatch):
    write(log, "a")

    def refuse(*_):
        raise ToolError(Kind.PERMANENT, "no room")

    monkeypatch.setattr(durable, "replace", refuse)
    write(log, "b", "c")
    monkeypatch.undo()
    assert log.verify().startswith("3:")
    write(log, "d")
    assert (shown(log), log.verify()[:2]) == (["a", "b", "c", "d"], "4:")


def test_no_change_is_made_where_something_else_stands_in_place_of_the_trail(project, log):
    write(log, "a")
    (file,), elsewhere = files_of(project), project / "elsewhere"
    elsewhere.write_bytes(b"")
    for name in (file, file.with_name("head"), file.parent.parent / "locks" / "audit.lock"):
        kept = name.rename(project / "kept")
        for stand_in in (lambda path: path.symlink_to(elsewhere), Path.mkdir, os.mkfifo):
            stand_in(name)
            with pytest.raises(ToolError), log.record("tool.saved", "b"):
                pytest.fail("the change was made")
            assert elsewhere.read_bytes() == b""
            name.rmdir() if stand_in is Path.mkdir else name.unlink()
        kept.rename(name)
    write(log, "b")
    assert (shown(log), log.verify()[:2]) == (["a", "b"], "2:")


def test_a_change_that_fails_is_recorded_as_failed(log):
    with pytest.raises(ZeroDivisionError), log.record("tool.saved", "a"):
        1 / 0  # noqa: B018 - it raises
    assert [(event["what"], event["why"]) for event in log.events()] == [
        ("tool.saved.failed", "division by zero"),
        ("tool.saved", ""),
    ]


def test_old_files_are_cut_with_a_mark_and_only_so(project, clock, log):
    for name in "abcde":
        write(log, name)
        clock.now += 10 * DAY
    assert len(files_of(project)) == 5
    second = files_of(project)[1]
    code = second.read_bytes()
    log = open_log(project, clock, keep_days=20)
    write(log, "f")
    assert [file.stem for file in files_of(project)] == ["2026-12-08", "2026-12-18", "2026-12-28", "2027-01-07"]
    assert [event["what"] for event in log.events()] == ["tool.saved", "audit.cut", *["tool.saved"] * 3]
    assert log.verify().startswith("7:")
    # As if the process had died before it removed the second file.
    second.write_bytes(code)
    assert log.verify().startswith("7:")
    second.unlink()
    files_of(project)[0].unlink()
    with pytest.raises(ToolError, match="events 1 to 3 are missing, and no retention cut removed them"):
        log.verify()


def test_a_wrong_clock_neither_cuts_the_trail_nor_changes_its_order(project, clock):
    log = open_log(project, clock, keep_days=30)
    for name, days in zip("abcd", (0, -400, 30_000, -30_000), strict=True):
        clock.now = NOON + days * DAY
        write(log, name)
    assert shown(log) == ["a", "b", "c", "d"]
    assert log.verify().startswith("4:")


def test_what_callers_choose_is_written_on_one_line_and_bounded(project, clock):
    log = open_log(
        project, clock, hide=lambda value: value if isinstance(value, dict) else value.replace("hunter2", "***")
    )
    names = ["a\nb\r\x00\x1b[2J", "\ud800", "\u2028\u202e", "x" * 1_000_000, '"}{"number":9']
    for name in names:
        with log.record("tool.saved", name, why="hunter2", actor=(name, name), facts={"place": name[:9]}):
            pass
    assert log.verify().startswith("5:")
    assert shown(log) == [name[:1_000].replace("\ud800", "?") for name in names]
    assert b"hunter2" not in files_of(project)[0].read_bytes()


@pytest.mark.parametrize("facts", [{"x": float("nan")}, {"x": 10**400}], ids=["nan", "endless"])
def test_an_event_that_no_reader_takes_is_refused_and_the_chain_stays_whole(log, facts):
    write(log, "a")
    with pytest.raises(ToolError, match="facts of an event must be"), log.record("order.released", "1", facts=facts):
        pytest.fail("the change was made")
    write(log, "b")
    assert log.verify().startswith("2:")


def test_processes_append_one_after_the_other(project, log):
    code = (
        "import sys; from pathlib import Path; from toolcrib.features.audit.log import AuditLog\n"
        "root = Path(sys.argv[1]); log = AuditLog(root / '.toolcrib/audit', caller='x', settings=root / 'toolcrib.toml')\n"
        "for number in range(10):\n"
        "    with log.record('tool.saved', f'{sys.argv[2]}-{number}'): pass\n"
    )
    words = [sys.executable, "-c", code, str(project)]
    running = [WarmPython([*words, name], stdout=subprocess.DEVNULL) for name in "abcd"]
    assert [process.wait(60) for process in running] == [0] * 4
    assert log.verify().startswith("40:")
    found = shown(log)
    assert sorted(found) == sorted(f"{name}-{number}" for name in "abcd" for number in range(10))
    assert [name for name in found if name[0] == "a"] == [f"a-{number}" for number in range(10)]
