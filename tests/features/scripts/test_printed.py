import pytest

from sample_tools import host_tool
from toolcrib import Kind, ToolError
from toolcrib.features.scripts.process_driver import printed_value
from toolcrib.infra.sandbox.jobs import CompletedJob

TOOL = host_tool()


def ended(**facts):
    usual = {
        "exit_code": 0,
        "signal": None,
        "stdout": b"",
        "stderr": b"",
        "stdout_dropped": 0,
        "stderr_dropped": 0,
        "result": None,
        "result_too_long": False,
        "timed_out": False,
        "killed": 0,
        "gone": True,
        "cannot_start": "",
    }
    return CompletedJob(**{**usual, **facts})


@pytest.mark.parametrize(
    ("limit", "setting"),
    [("mem", "sandbox.memory_mb"), ("pids", "sandbox.processes"), ("disk", "sandbox.disk_mb")],
)
def test_a_limit_that_was_passed_is_named_with_its_setting(limit, setting):
    with pytest.raises(ToolError, match=f"sample used more .*setting {setting}") as caught:
        printed_value(TOOL, ended(exceeded=limit, exit_code=None, signal=9), 5)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert caught.value.details == {"limit": limit}
    assert not caught.value.retryable


def test_what_never_started_is_told_and_left_no_effects():
    with pytest.raises(ToolError, match="sample could not be started: no such file") as caught:
        printed_value(TOOL, ended(cannot_start="no such file", exit_code=127), 5)
    assert not caught.value.partial_side_effects
    assert not caught.value.retryable


def test_what_lies_where_every_job_has_a_folder_of_its_own_is_told_with_the_cure():
    problem = "[Errno 2] No such file or directory: '/dev/shm/project/tools'"
    with pytest.raises(ToolError, match="every job gets a /dev/shm of its own, so move the project elsewhere"):
        printed_value(TOOL, ended(cannot_start=problem, exit_code=127), 5)


def test_a_fault_of_the_own_folder_of_a_job_is_not_told_to_move():
    problem = "OSError: [Errno 24] Too many open files: '/dev/shm/scratch'"
    with pytest.raises(ToolError) as caught:
        printed_value(TOOL, ended(cannot_start=problem, exit_code=127), 5)
    assert caught.value.message == f"sample could not be started: {problem}"


def test_a_process_whose_end_was_not_seen_has_failed():
    with pytest.raises(ToolError, match="sample was killed"):
        printed_value(TOOL, ended(exit_code=None, stdout=b"half"), 5)


def test_only_the_end_of_a_long_complaint_is_told():
    with pytest.raises(ToolError) as caught:
        printed_value(TOOL, ended(exit_code=1, stderr=b"x" * 10_000 + b" the end"), 5)
    assert caught.value.message.endswith("x the end")
    assert len(caught.value.message) < 2_100
