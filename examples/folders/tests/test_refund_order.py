"""The tool refund_order, tried from pytest."""

from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.build import build
from toolcrib.testing import FakeContext, call_tool_sync, check_sync

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture
def crib():
    assert build(PROJECT / "tools", project=PROJECT).ok
    with Crib(PROJECT) as crib:
        yield crib


def test_all_that_its_document_and_its_cases_say(crib):
    check_sync(crib, "refund_order")


def test_a_client_that_has_gone_away_is_paid_nothing(crib):
    client = FakeContext(send="closed", confirm=True)
    result = call_tool_sync(crib, "refund_order", {"order_id": "A17", "amount": 5}, context=client)
    assert result.error.kind == "TRANSIENT"
    assert client.sent == []
