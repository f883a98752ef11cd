"""Ids of requests say the day and the number on it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from toolcrib import Kind, ToolError
from toolcrib.features.requests.document import is_request_id, request_day, spell_id


@pytest.mark.parametrize("text", ["req_20240115_001", "req_20240115_002", "req_20240120_001", "req_20240229_999"])
def test_the_format_with_a_day_that_exists_is_an_id(text):
    assert is_request_id(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "req_2024_1",
            "req_20240115_1",
            "req_20240115_0001",
            "REQ_20240115_001",
            "req_20240230_001",
            "req_20230229_001",
        ),
        *(" req_20240115_001", "req_20240115_001\n", "req_٢٠٢٤٠١١٥_٠٠١", "req_00000000_001", "req_2024011５_001"),
    ],
)
def test_anything_else_is_none(text):
    assert not is_request_id(text)


@pytest.mark.spec("S0-05")
def test_the_day_of_an_id_is_that_of_utc():
    late = datetime(2024, 1, 15, 23, 30, tzinfo=timezone(timedelta(hours=-2)))
    assert request_day(late) == "20240116"
    assert request_day(datetime(2024, 1, 15, tzinfo=UTC)) == "20240115"


def test_numbers_have_three_digits():
    assert [spell_id("20240115", number) for number in (1, 42, 999)] == [
        "req_20240115_001",
        "req_20240115_042",
        "req_20240115_999",
    ]


@pytest.mark.spec("S0-41")
@pytest.mark.parametrize("number", [1_000, 1_001, 10**9])
def test_the_thousandth_request_of_a_day_is_refused(number):
    with pytest.raises(ToolError) as caught:
        spell_id("20240115", number)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert caught.value.message == (
        "20240115 has its 999 requests already; file this one tomorrow, or under an id of your own"
    )


@pytest.mark.parametrize(("day", "number"), [("20240230", 1), ("", 1), ("2024-01-15", 1), ("20240115", -1)])
def test_a_number_or_day_that_cannot_be_is_refused(day, number):
    with pytest.raises(ToolError) as caught:
        spell_id(day, number)
    assert caught.value.kind is Kind.VALIDATION
