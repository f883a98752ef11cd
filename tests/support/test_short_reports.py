"""What a worker tells: everything but that a set-up or an end went well and printed nothing."""

import pytest
from short_reports import is_unused

PRINTED = [("Captured stdout setup", "a line")]


@pytest.mark.parametrize(
    ("when", "outcome", "sections", "unused"),
    [
        ("setup", "passed", [], True),
        ("teardown", "passed", [], True),
        ("call", "passed", [], False),
        *((when, outcome, [], False) for when in ("setup", "call", "teardown") for outcome in ("failed", "skipped")),
        ("setup", "passed", PRINTED, False),
        ("teardown", "passed", PRINTED, False),
    ],
)
def test_only_the_reports_of_what_went_well_around_a_test_stay_unsent(when, outcome, sections, unused):
    report = pytest.TestReport("t", ("t", 1, "t"), {}, outcome, None, when, sections)
    assert is_unused(report._to_json()) is unused


def test_what_is_no_report_is_sent():
    assert not is_unused(None)
    assert not is_unused({"exitstatus": 0})
