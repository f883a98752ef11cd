"""What the server tells about itself: a log in lines of JSON, and figures for a Prometheus."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import threading
import time

import pytest
import uvloop

from toolcrib.interfaces.http.exchange import Guarded, log_request, log_to
from toolcrib.interfaces.http.server_state import BUCKETS, MAX_TOOLS, UNKNOWN, HttpMetrics, Service
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.toolkit.http import CALLER, ID


def lines_of(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_the_duration_of_a_request_is_measured_in_fractions_of_a_millisecond(new_loop):
    async def compute(*_):
        time.sleep(0.0003)  # noqa: ASYNC251 - it stands for computing

    async def ignore(*_):
        return {}

    stream = io.StringIO()
    guarded = Guarded(compute, ServerSettings(), Service(ServerSettings()))
    with log_to(stream, hide=lambda text: text), asyncio.Runner(loop_factory=new_loop) as runner:
        for _ in range(10):
            runner.run(guarded({"type": "http", "method": "GET", "path": "/", "headers": []}, ignore, ignore))
    durations = [line["ms"] for line in lines_of(stream) if line["event"] == "request"]
    assert min(durations) >= 0.3
    assert any(duration % 1 for duration in durations)


async def test_a_request_is_one_line_without_its_query_and_body(serving):
    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text):
        served = await serving()
        client = await served.connect()
        assert (await client.ask("POST", "/echo?token=s3cret", b"also s3cret"))[0] == 200
        await served.until(lambda: not served.service.exchanges)
    [line] = [line for line in lines_of(stream) if line["event"] == "request"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line.pop("ms") >= 0
    assert line == {
        "level": "info",
        "event": "request",
        "requestId": "",
        "caller": "",
        "method": "POST",
        "route": "/echo",
        "status": 200,
        "bytes": 11,
    }
    assert "s3cret" not in stream.getvalue()


async def test_a_failure_that_the_application_lets_through_is_logged_with_its_own_request(serving):
    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text):
        served = await serving()
        # Sent ahead: the second begins while the first is being answered.
        ahead = [f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("pieces", "broken")]
        assert b"HTTP/1.1 500 " in await served.exchange(b"".join(ahead))
        await served.until(lambda: not served.service.exchanges)
    [line] = [line for line in lines_of(stream) if line["level"] == "error"]
    assert "on purpose" in line["traceback"]
    assert line["route"] == "/broken"


def test_a_failure_whose_text_is_not_unicode_is_logged_without_its_secrets(capsys):
    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text.replace("pässword", "***")):
        try:
            raise OSError("cannot open \udcff.txt with pässword")
        except OSError:
            logging.getLogger("toolcrib.http").exception("it failed")
        log_request({"method": "GET", CALLER: "\udcff"}, "/echo", 200, 0.1, 5)
    failure, request = lines_of(stream)
    assert failure["traceback"].endswith("OSError: cannot open \udcff.txt with ***")
    assert request["caller"] == "\udcff"
    # The logging package itself would write what was not masked.
    assert capsys.readouterr().err == ""


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_is_readable_and_cannot_control_it():
    screen = Screen()
    with log_to(screen, hide=lambda text: text.replace("s3cret", "***")):
        log_request({"method": "GET", ID: "r-1", CALLER: "ada"}, "/tools", 200, 0.0123, 88)
        logging.getLogger("toolcrib.catalog").warning("s3cret \x1b[2J")
    request, warning = screen.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d 200 GET /tools 12\.3 ms requestId=r-1 caller=ada bytes=88", request)
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning \*\*\* \\x1b\[2J logger=toolcrib\.catalog", warning)


def test_secrets_are_hidden_in_every_line_and_traceback():
    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text.replace("s3cret", "***")):
        logging.getLogger("toolcrib.runners").warning("calling %s", "https://x?key=s3cret")
        try:
            raise ValueError("no s3cret here")
        except ValueError:
            logging.getLogger("somebody.else").exception("failed")
    assert "s3cret" not in stream.getvalue()
    first, second = lines_of(stream)
    assert (first["level"], first["logger"], first["event"]) == (
        "warning",
        "toolcrib.runners",
        "calling https://x?key=***",
    )
    assert "ValueError: no *** here" in second["traceback"]


def test_a_line_about_a_request_is_a_record_like_any_other(caplog):
    caplog.set_level(logging.INFO, "toolcrib.http")
    scope = {"method": "GET", "toolcrib.caller": "local", "toolcrib.request_id": "r-1"}
    log_request(scope, "/tools", 200, 0.0123, 7)
    [record] = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("toolcrib.http", "INFO", "request")
    assert record.fields["requestId"] == "r-1"
    assert logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s %(threadName)s").format(record)


def test_logging_is_as_before_afterwards():
    named = [logging.getLogger(name) for name in ("", "toolcrib", "toolcrib.pipeline")]
    before = [(one.level, list(one.handlers)) for one in named]
    with log_to(io.StringIO(), hide=str):
        assert logging.getLogger("toolcrib.http").isEnabledFor(logging.INFO)
        assert not logging.getLogger("uvicorn.error").isEnabledFor(logging.INFO)
        assert not logging.getLogger("toolcrib.pipeline").isEnabledFor(logging.INFO)
    assert [(one.level, list(one.handlers)) for one in named] == before
    assert not [thread for thread in threading.enumerate() if thread.name == "toolcrib log"]


def test_a_message_that_cannot_be_written_stops_no_request():
    stream = io.StringIO()
    with log_to(stream, hide=lambda text: text):
        logging.getLogger("toolcrib").warning("half \ud800 of a character")
        logging.getLogger("toolcrib").warning("whole")
    assert "whole" in [line["event"] for line in lines_of(stream)]


def test_a_reader_who_does_not_read_stops_no_request(monkeypatch):
    monkeypatch.setattr("toolcrib.interfaces.http.exchange.MAX_LINES", 100)
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream, log_to(stream, hide=str):
        for number in range(5_000):
            logging.getLogger("toolcrib").warning("%s", "x" * 1_000 + str(number))
        heard = os.read(read, 100)
        assert heard.startswith(b'{"time":')
        reading = threading.Thread(target=_read_all, args=(read, found := []))
        reading.start()
    reading.join(timeout=25)
    assert re.search(rb"\d+ lines were dropped", b"".join(found))


def _read_all(descriptor: int, found: list[bytes]) -> None:
    while piece := os.read(descriptor, 65_536):
        found.append(piece)
    os.close(descriptor)


def test_metrics_are_well_formed_and_complete():
    service = Service(ServerSettings())
    service.metrics.note_request("/tools/{x}", "GET", 200, 0.003)
    service.metrics.note_request("/tools/{x}", "GET", 200, 99.0)
    service.metrics.note_call('od"d\\tool\n', "ok")
    text = service.metrics_text()
    sample = re.compile(
        r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+Inf-]+'
    )
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in text.splitlines())
    assert text.endswith("\n")
    assert 'toolcrib_http_requests_total{route="/tools/{x}",method="GET",status="200"} 2' in text
    assert 'toolcrib_calls_total{tool="od\\"d\\\\tool\\n",outcome="ok"} 1' in text
    assert 'toolcrib_http_request_seconds_bucket{route="/tools/{x}",status="2xx",le="0.005"} 1' in text
    assert 'toolcrib_http_request_seconds_bucket{route="/tools/{x}",status="2xx",le="+Inf"} 2' in text
    assert 'toolcrib_http_request_seconds_count{route="/tools/{x}",status="2xx"} 2' in text
    assert 'toolcrib_http_request_seconds_sum{route="/tools/{x}",status="2xx"} 99.003' in text
    named = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert named >= {"toolcrib_build_info", "process_resident_memory_bytes", "process_open_fds", "toolcrib_ready"}
    memory = re.search(r"^process_resident_memory_bytes (\d+)$", text, re.MULTILINE)
    assert int(memory[1]) > 1_000_000


@pytest.mark.parametrize("seconds", BUCKETS)
def test_a_bucket_holds_its_bound(seconds):
    metrics = HttpMetrics()
    metrics.note_request("/", "GET", 200, seconds)
    assert f'le="{seconds}"}} 1' in metrics.text({}, {})


def test_names_of_tools_that_never_end_do_not_fill_the_memory():
    metrics = HttpMetrics()
    for number in range(MAX_TOOLS + 500):
        metrics.note_call(f"tool-{number}", "ok")
        metrics.note_call(UNKNOWN, "NOT_FOUND")
    text = metrics.text({}, {})
    assert text.count("toolcrib_calls_total{") == MAX_TOOLS + 1
    assert 'toolcrib_calls_total{tool="(others)",outcome="ok"} 501' in text
    assert f'toolcrib_calls_total{{tool="(unknown)",outcome="NOT_FOUND"}} {MAX_TOOLS + 500}' in text
