"""What every journal keeps to."""

import threading
import time

import pytest

from toolcrib import Call, Crib, tool
from toolcrib.core.journal import FileJournal, MemoryJournal


@pytest.fixture(params=["memory", "files"])
def journal(request, tmp_path):
    journal = MemoryJournal() if request.param == "memory" else FileJournal(tmp_path / "journal")
    yield journal
    journal.close()


def a_line(event="call", name="tools/x@1.0.0", error=None, facts=None, call_id="1", tool_id=""):
    return (event, time.monotonic(), call_id, name, "ann", 0.25, error, facts, tool_id)


def test_a_line_says_what_happened_to_whom_and_when(journal):
    before = time.time()
    journal.record(a_line())
    journal.record(a_line(error="TIMEOUT", facts={"cost": 3}))
    journal.record(a_line("note", facts={"data": {"a": 1}}))
    first, second, third = journal.read()
    assert before - 1 < first.pop("time") < time.time() + 1
    assert first == {"event": "call", "id": "1", "tool": "tools/x@1.0.0", "caller": "ann", "ok": True, "ms": 250.0}
    assert (second["ok"], second["error"], second["cost"]) == (False, "TIMEOUT", 3)
    assert third["data"] == {"a": 1}
    assert "ok" not in third


def test_an_empty_journal_has_no_lines(journal):
    assert list(journal.read()) == []


def test_lines_are_read_as_often_as_one_likes(journal):
    journal.record(a_line())
    assert [[line["id"] for line in journal.read()] for _ in range(2)] == [["1"], ["1"]]
    journal.close()
    assert len(list(journal.read())) == 1
    journal.record(a_line())
    assert len(list(journal.read())) == 2


def test_further_facts_cannot_pass_for_the_line_itself(journal):
    journal.record(a_line(error="BLOCKED", facts={"ok": True, "caller": "root", "error": None, "event": "x"}))
    (line,) = journal.read()
    assert (line["ok"], line["caller"], line["error"], line["event"]) == (False, "ann", "BLOCKED", "call")


def test_what_callers_choose_is_bounded_and_does_not_cost_other_lines(journal):
    journal.record(a_line(call_id="first"))
    for name in ("x" * 1_000_000, "\ud800", "a\nb\x00", None, 5):
        journal.record(a_line(name=name, call_id=name))
    for value in ({"a": "\ud800"}, {1: object()}, {"n": 2**70}, {"s": {1, 2}}):
        journal.record(a_line("note", facts={"data": value}))
    journal.record(a_line(call_id="last"))
    lines = list(journal.read())
    assert len(lines) == 11
    assert (lines[0]["id"], lines[-1]["id"]) == ("first", "last")
    assert all(len(line["tool"]) <= 200 and len(line["id"]) <= 200 for line in lines)
    assert [line["tool"] for line in lines[2:4]] == ["?", "a\nb\x00"]


def test_threads_lose_no_line(journal):
    def work(number):
        for turn in range(300):
            journal.record(a_line(call_id=f"{number}-{turn}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    ids = [line["id"] for line in journal.read()]
    assert len(ids) == len(set(ids)) == 1800


@pytest.mark.spec("S4-24")
@pytest.mark.parametrize("kept", [True, False])
async def test_the_lines_of_a_crib_hold_neither_arguments_nor_values(project, kept):
    @tool
    def login(password: str) -> str:
        """Log in."""
        if password == "hunter3":
            raise ValueError(password)
        return f"secret-{password}"

    async with Crib(project if kept else None, tools=[login], builtins={"enabled": False}) as crib:
        await crib.call("login", password="hunter2")
        await crib.call("login", password="hunter3")
        await crib.call("login", passwort="hunter2")
        await crib.call(Call(name="absent", arguments={"password": "hunter2"}, caller="ann"))
        lines = list(crib.journal.read())
    assert [(line["tool"], line["ok"], line.get("error")) for line in lines] == [
        ("host/login@1.0.0", True, None),
        ("host/login@1.0.0", False, "INTERNAL"),
        ("host/login@1.0.0", False, "VALIDATION"),
        ("absent", False, "NOT_FOUND"),
    ]
    known = {"event", "time", "id", "tool", "caller", "ok", "ms", "error", "refused", "traceback"}
    assert {key for line in lines for key in line} == known
    assert "hunter" not in str(lines)
