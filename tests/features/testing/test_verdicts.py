"""Which examples failed when they were last tried: kept by content, within bounds, and believed for nothing else."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from toolcrib import tool, tool_of
from toolcrib.features.testing import examples as module
from toolcrib.features.testing.case_files import find_cases
from toolcrib.testing import Case, CaseResult, FakeContext


@tool
def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


ADA, BO = {"name": "Ada"}, {"name": "Bo"}


def failing(path, tool):
    return module.read_failing(path).get(tool.content_hash, [])


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".toolcrib" / "examples.json"


@pytest.fixture
def made():
    return replace(tool_of(greet), examples=(ADA, BO))


def tried(*results, documented=True, **facts):
    """Cases of these arguments, each passed, failed or skipped."""
    for arguments, end in results:
        case = Case(name="a", arguments=arguments, is_documented=documented, **facts)
        yield case, CaseResult(name="a", passed=end == "passed", skipped="why" if end == "skipped" else "")


def test_what_failed_is_remembered_until_it_passes(path, made):
    module.remember(path, made, tried((ADA, "passed"), (BO, "failed")))
    assert failing(path, made) == [BO]
    module.remember(path, made, tried((ADA, "failed"), (BO, "passed")))
    assert failing(path, made) == [ADA]
    module.remember(path, made, tried((ADA, "passed"), (BO, "passed")))
    assert failing(path, made) == []
    assert module.read_failing(path) == {}


def test_what_was_not_tried_stays_as_it_was(path, made):
    module.remember(path, made, tried((ADA, "failed"), (BO, "failed")))
    module.remember(path, made, tried((ADA, "skipped"), (BO, "passed")))
    assert failing(path, made) == [ADA]
    module.remember(path, made, tried((ADA, "passed"), documented=False))
    module.remember(path, made, tried((ADA, "passed"), expect={"error": {"type": "AUTH"}}, context=FakeContext()))
    module.remember(path, made, ())
    assert failing(path, made) == [ADA]


def test_a_tool_that_reads_otherwise_is_another_one(path, made):
    module.remember(path, made, tried((ADA, "failed")))
    assert failing(path, replace(made, description="Greet again.")) == []
    assert failing(path, replace(made, bundle="other")) == [ADA]


def test_nothing_is_written_where_nothing_failed(path, made):
    module.remember(path, made, tried((ADA, "passed")))
    assert not path.exists()
    assert failing(path, made) == []


def test_the_examples_of_a_tool_are_cases_that_count(made):
    assert [case.is_documented for case in find_cases(made)] == [True, True]


def test_the_oldest_are_dropped(path, made, monkeypatch):
    monkeypatch.setattr(module, "MAX_TOOLS", 3)
    tools = [replace(made, version=f"1.0.{number}") for number in range(5)]
    for each in tools:
        module.remember(path, each, tried((ADA, "failed")))
    module.remember(path, tools[2], tried((ADA, "failed")))
    module.remember(path, made, tried((ADA, "failed")))
    assert [*module.read_failing(path)] == [tools[4].content_hash, tools[2].content_hash, made.content_hash]


def test_a_file_stays_within_its_bounds_with_any_content(path, made, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 500)
    for number in range(20):
        module.remember(path, replace(made, version=f"1.0.{number}"), tried(({"name": "x" * 60}, "failed")))
    assert path.stat().st_size <= 500
    assert failing(path, replace(made, version="1.0.19")) == [{"name": "x" * 60}]
    module.remember(path, made, tried(({"name": "x" * 600}, "failed")))
    assert module.read_failing(path) == {}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"5", b"\xff", b'{"a": NaN}', b"[" * 100_000, b" " * 5_000_000, b'{"HASH": 5}', b'{"HASH": [1, null, []]}'],
    ids=range(10),
)  # fmt: skip
def test_hostile_content_is_ignored_and_written_over(content, path, made):
    path.parent.mkdir()
    path.write_bytes(content.replace(b"HASH", made.content_hash.encode()))
    assert failing(path, made) == []
    module.remember(path, made, tried((ADA, "failed")))
    assert failing(path, made) == [ADA]


def test_a_link_or_a_pipe_in_its_place_is_not_followed_nor_waited_for(path, made, tmp_path):
    path.parent.mkdir()
    (tmp_path / "precious").write_text(json.dumps({made.content_hash: [ADA]}))
    path.symlink_to(tmp_path / "precious")
    assert failing(path, made) == []
    module.remember(path, made, tried((BO, "failed")))
    assert json.loads((tmp_path / "precious").read_text()) == {made.content_hash: [ADA]}
    path.unlink()
    os.mkfifo(path)
    assert failing(path, made) == []


def test_of_many_writers_at_once_no_record_is_lost(path, made):
    tools = [replace(made, version=f"1.0.{number}") for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(module.remember, path, each, [*tried((ADA, "failed"))]) for each in tools]:
            done.result(timeout=30)
    assert module.read_failing(path).keys() == {each.content_hash for each in tools}
    assert [file.name for file in path.parent.iterdir()] == ["examples.json"]
