"""What both queues share: how things are stored, and that nothing is opened early."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from tool_requests import allowance_of
from toolcrib.features.requests.queues import (
    TEXT_BYTES,
    cut,
    is_text,
    read_allowance,
    spell_time,
    write_allowance,
)
from toolcrib.features.requests.queues.redis import RedisQueue
from toolcrib.features.requests.queues.sqlite import EmbeddedQueue
from toolcrib.model.toolrequest import Allowance, RecordedAnswer

answers = st.builds(
    RecordedAnswer,
    url=st.text(),
    method=st.text(),
    status=st.integers(0, 999),
    headers=st.dictionaries(st.text(), st.text(), max_size=3),
    body=st.text(),
)
allowances = st.builds(
    Allowance,
    capabilities=st.frozensets(st.text(), max_size=4),
    hosts=st.lists(st.text(), max_size=4).map(tuple),
    answers=st.lists(answers, max_size=3).map(tuple),
    unproved=st.booleans(),
)


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    for queue in (EmbeddedQueue(tmp_path / "queue.sqlite3"), RedisQueue("redis://127.0.0.1:1/0")):
        queue.close()
    assert list(tmp_path.iterdir()) == []


def test_registering_the_queues_loads_neither_of_them():
    script = "import sys, toolcrib.features.requests.queues; print(sorted({'sqlite3', 'redis', 'asyncio', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "[]\n"


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=50), st.integers(1, 400))
def test_a_text_that_is_cut_is_unicode_of_a_few_kilobytes_and_begins_as_it_did(text, times):
    whole = text * times
    short = cut(whole)
    assert is_text(short)
    assert len(short.encode()) <= TEXT_BYTES
    if is_text(whole) and len(whole.encode()) <= TEXT_BYTES:
        assert short == whole
    elif is_text(whole):
        assert whole.startswith(short.removesuffix("…"))
        assert len(short.encode()) > TEXT_BYTES - 8


@given(allowances)
def test_an_allowance_is_read_as_it_was_written(allowance):
    assert read_allowance(write_allowance(allowance)) == allowance


def test_nothing_is_allowed_by_an_empty_text():
    assert read_allowance("") == allowance_of()


moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


@given(moments, moments)
def test_the_later_time_is_the_greater_text(one, other):
    spelled = spell_time(one), spell_time(other)
    assert (one.replace(microsecond=one.microsecond // 1_000 * 1_000) <= other) == (spelled[0] <= spelled[1])
    assert spell_time(one.astimezone(timezone(timedelta(hours=9)))) == spelled[0]
    assert spelled[0].endswith("Z")
