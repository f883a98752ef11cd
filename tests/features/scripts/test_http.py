"""One request per call: what its author wrote decides, a value only fills its place, and nothing is told of variables."""

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Call, Context, Kind, Tool, ToolError
from toolcrib.features.http_tools.request_template import compile_call
from toolcrib.features.http_tools.response import REASONS
from toolcrib.features.http_tools.runner import HttpRunner
from toolcrib.features.scripts.chain import Order, resolve
from toolcrib.features.scripts.host_drivers import HttpDriver
from toolcrib.infra.egress.client import Egress
from toolcrib.lib.system_tools import system_tools
from toolcrib.model.tool import Chained, Entry, HttpCall, Spelling

PRIMITIVES = {tool.name: tool for tool in system_tools()}

REMOTE_CALL = """
method: POST
url: "{url}"
headers:
  Content-Type: application/json
body:
  jsonrpc: "2.0"
  id: "{request_id}"
  method: "{rpc_method}"
  params: "{rpc_params}"
"""
PLATFORM = {"request_id": "call-7", "version": "9.9.9", "tool_version": "1.0.0", "client_id": "local"}
SECRET = "s3cret/+ value"
KNOWN_KEYS = (
    "write method, url, query, headers, body, success_codes, timeout_ms, response_encoding, extract, error_mode, "
    "retry, auth, pagination, cache, calls only"
)


def not_granted(name):
    raise ToolError(Kind.CAPABILITY_MISSING, f"{name} is not granted")


def order_for(config=None, arguments=None, *, declared=(), requires=("net.http",), hosts=None, variable=not_granted):
    """An order for a tool with this config, or for the primitive itself if there is none."""
    tool = PRIMITIVES["http_client"]
    if config is not None:
        run = Chained(kind="http", tool_type="http", executor="http_client", folder=Path(), config=config, hosts=hosts)
        properties = {name: {} for name in declared or arguments or {}}
        tool = Tool(
            name="sample",
            description="A sample.",
            parameters={"type": "object", "properties": properties},
            run=run,
            bundle="project",
            requires=frozenset(requires),
        )
    chain = resolve(tool, lambda name, _: Entry(tool=PRIMITIVES[name]))
    return Order(tool=tool, run=tool.run, chain=chain, arguments=arguments or {}, values=PLATFORM, variable=variable)


def context_for(order, seconds=10.0):
    return Context(
        tool=order.tool,
        call_id="call-7",
        caller="local",
        mode="text",
        deadline=time.monotonic() + seconds,
        seconds=seconds,
        session=None,
        call=None,
        audit=None,
    )


class NoSecrets:
    def get(self, name):
        return None

    def names(self):
        return []


def driver_over(egress, *, hosts=(), secrets=None, environment=None):
    return HttpDriver(
        HttpRunner(
            lambda: egress,
            hosts=hosts,
            secrets=secrets or NoSecrets(),
            version="9.9.9",
            environment=environment,
            max_response_bytes=10_000,
        )
    )


@dataclass
class Seen:
    """A request as the server read it."""

    method: str
    target: str
    headers: dict
    body: bytes = b""


@dataclass
class Server:
    """Answers every request with the next of its replies, and the last one from then on."""

    replies: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    stall: bool = False
    origin: str = ""

    def answers(self, body=b"", content_type="text/plain", status="200 OK", more=""):
        kind = f"Content-Type: {content_type}\r\n" if content_type else ""
        head = f"HTTP/1.1 {status}\r\n{kind}{more}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.replies.append(head.encode() + body)

    async def talk(self, reader, writer):
        with suppress(ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.seen.append(Seen(method, target, headers, body))
            if self.stall:
                await reader.read()
            else:
                writer.write(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])
                await writer.drain()
        writer.close()
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()


@pytest.fixture
async def server():
    served = Server()
    async with asyncio.timeout(25), await asyncio.start_server(served.talk, "127.0.0.1", 0) as listening:
        served.origin = "http://{}:{}".format(*listening.sockets[0].getsockname())
        yield served


@pytest.fixture
async def other():
    """A second origin."""
    served = Server()
    async with asyncio.timeout(25), await asyncio.start_server(served.talk, "127.0.0.1", 0) as listening:
        served.origin = "http://{}:{}".format(*listening.sockets[0].getsockname())
        yield served


@pytest.fixture
async def driver(server, other):
    egress = Egress(private=[served.origin.removeprefix("http://") for served in (server, other)])
    yield driver_over(egress)
    await egress.close()


@pytest.fixture
def call(driver):
    """Check and run, as the pipeline does."""

    async def call_once(order, seconds=10.0):
        driver.check(order, Call(name=order.tool.name))
        return await run_once(driver, order, seconds)

    return call_once


async def run_once(driver, order, seconds=10.0):
    outcome = await driver.run(order, context_for(order, seconds))
    if outcome.error is not None:
        raise outcome.error
    return outcome


async def refuse(awaitable):
    with pytest.raises(ToolError) as caught:
        await awaitable
    return caught.value


def refuse_check(driver, order):
    with pytest.raises(ToolError) as caught:
        driver.check(order, Call(name=order.tool.name))
    return caught.value


def everything_in(error):
    return json.dumps(error.to_json()) + repr(error) + repr(error.__cause__) + repr(error.value)


class TestRemoteCall:
    @pytest.mark.spec("S3-41")
    async def test_the_configured_body_is_posted_with_its_object_kept(self, call, server):
        server.answers(b'{"jsonrpc": "2.0", "id": "call-7", "result": {"ok": [1]}}', "application/json")
        arguments = {"url": f"{server.origin}/mcp?a=b", "rpc_method": "tools/call", "rpc_params": {"name": "x", "n": 2}}
        outcome = await call(order_for(yaml.safe_load(REMOTE_CALL), arguments, requires=["net.call"]))
        assert outcome.value == {"jsonrpc": "2.0", "id": "call-7", "result": {"ok": [1]}}
        facts = {"status": 200, "origin": server.origin, "attempts": 1, "contentType": "application/json"}
        assert outcome.meta == facts
        (seen,) = server.seen
        assert (seen.method, seen.target, seen.headers["content-type"]) == ("POST", "/mcp?a=b", "application/json")
        assert json.loads(seen.body) == {
            "jsonrpc": "2.0",
            "id": "call-7",
            "method": "tools/call",
            "params": {"name": "x", "n": 2},
        }

    @pytest.mark.spec("S3-41")
    def test_a_missing_url_is_refused_before_anything_is_sent(self, driver):
        declared = ["url", "rpc_method", "rpc_params"]
        order = order_for(yaml.safe_load(REMOTE_CALL), {"rpc_method": "a", "rpc_params": {}}, declared=declared)
        error = refuse_check(driver, order)
        assert error.kind is Kind.VALIDATION
        assert error.message == "config.url: {url} has no value; give url, or give the parameter a default"

    @pytest.mark.parametrize(
        "url",
        [
            5,
            None,
            ["http://127.0.0.1/"],
            "",
            "ftp://example.com/",
            "//example.com",
            "http://user:pw@example.com/",
            "http://a b/",
        ],
    )
    def test_a_url_of_the_caller_is_checked_like_any_other(self, driver, url):
        error = refuse_check(driver, order_for({"url": "{url}"}, {"url": url}))
        assert error.kind is Kind.VALIDATION
        assert "pw" not in error.message

    @pytest.mark.parametrize(
        "url", ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::1]/", "http://10.0.0.1/"]
    )
    def test_a_private_address_is_refused_before_anything_is_sent(self, driver, url):
        assert refuse_check(driver, order_for({"url": "{url}"}, {"url": url})).kind is Kind.HOST_NOT_ALLOWED


class TestUrl:
    @pytest.mark.parametrize(
        "url",
        [
            "{scheme}://example.com/",
            "https://{host}/",
            "https://api.{host}/x",
            "https://example.com:{port}/",
            "https://example.com{path}",
            "https://{user}@example.com/",
            "${BASE}/path",
            "{base}/path",
            " {url}",
            "http:{x}",
        ],
    )
    def test_no_slot_reaches_scheme_host_or_port(self, driver, url):
        values = dict.fromkeys(["scheme", "host", "port", "path", "user", "base", "url", "x"], "http")
        error = refuse_check(driver, order_for({"url": url}, values, variable=lambda _: "http://example.com"))
        assert error.kind is Kind.VALIDATION
        assert error.message == (
            "config.url: scheme, host and port take no slots; "
            'write scheme, host and port out, or let the whole url be one slot such as "{url}"'
        )

    async def test_values_fill_segments_and_query_values_and_nothing_more(self, call, server):
        server.answers(b"ok")
        config = {"url": f"{server.origin}/users/{{id}}/files?name={{name}}&n={{n}}"}
        await call(order_for(config, {"id": "a/b?c", "name": "x&admin=1#y", "n": [1, True]}))
        assert server.seen[0].target == "/users/a%2Fb%3Fc/files?name=x%26admin%3D1%23y&n=%5B1%2Ctrue%5D"

    @pytest.mark.parametrize(
        ("template", "value"),
        [("{x}", ".."), ("{x}", "."), ("{x}", ""), (".{x}", "."), ("%2E{x}", "."), ("{x}", "a/../b")],
    )
    def test_a_value_does_not_lead_to_another_path(self, driver, server, template, value):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/users/{template}/all"}, {"x": value}))
        assert error.kind is Kind.VALIDATION
        assert 'a value leaves a part of the path empty, "." or ".."' in error.message

    async def test_an_empty_value_may_stand_in_a_query(self, call, server):
        server.answers(b"ok")
        await call(order_for({"url": f"{server.origin}/a//b?q={{x}}"}, {"x": ""}))
        assert server.seen[0].target == "/a//b?q="

    async def test_the_id_of_the_request_may_be_a_segment_although_a_question_has_none(self, driver, server):
        order = order_for({"url": f"{server.origin}/{{request_id}}"})
        driver.check(replace(order, values={**PLATFORM, "request_id": ""}), Call(name="sample"))

    def test_the_config_wins_over_an_argument_of_the_same_name(self, driver, server):
        order = order_for({"url": f"{server.origin}/"}, {"url": "http://10.0.0.1/", "method": "DELETE"})
        driver.check(order, Call(name="sample"))

    @pytest.mark.parametrize("config", [{}, {"method": "GET"}, {"url": None}, {"url": 5}])
    def test_a_config_without_url_is_refused(self, driver, config):
        error = refuse_check(driver, order_for(config, {"url": "http://127.0.0.1/"}))
        assert error.kind is Kind.VALIDATION
        assert re.match(r"config: url is missing; write|config.url: must be text, not (null|5)", error.message)

    def test_what_is_unknown_in_a_config_is_refused_and_not_passed_over(self, driver):
        error = refuse_check(driver, order_for({"url": "https://example.com/", "proxy": {"type": "bearer"}}))
        assert error.message == "config.proxy: is unknown to http_client; " + KNOWN_KEYS

    def test_an_unknown_name_is_refused_before_anything_is_sent(self, driver, server):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/{{nobody}}"}))
        assert error.kind is Kind.VALIDATION
        assert error.message.startswith("config.url: {nobody} is neither a parameter nor a name of the platform")

    @given(st.text(max_size=20))
    def test_no_value_changes_where_the_request_goes(self, value):
        template = compile_call(HttpCall(url="https://example.com/a/{x}/b?q={x}"), Spelling.BRACES)
        if value == "" or not {".", ".."}.isdisjoint(re.split(r"[/\\\\]", value)):
            with pytest.raises(ToolError, match="a value leaves a part of the path empty"):
                template.write(lambda _: value)
            return
        encoded = quote(value, safe="")
        assert str(template.write(lambda _: value).url) == f"https://example.com/a/{encoded}/b?q={encoded}"


class TestHeaders:
    @pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
    def test_a_line_break_in_a_value_is_refused_and_not_repeated(self, driver, server, value):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/", "headers": {"X-A": "{x}"}}, {"x": value}))
        assert error.kind is Kind.VALIDATION
        assert "'X-A'" in error.message
        assert "Evil" not in error.message

    @pytest.mark.parametrize(
        "name",
        ["Host", "content-length", "Transfer-Encoding", "Connection", "Proxy-Authorization", "{x}", "X-{x}", "a b", ""],
    )
    def test_a_name_that_is_reserved_or_holds_a_slot_is_refused(self, driver, server, name):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/", "headers": {name: "1"}}, {"x": "X-A"}))
        assert error.kind is Kind.VALIDATION
        assert "header" in error.message

    @pytest.mark.parametrize("headers", ["X: 1", ["X: 1"], 5, "{x}"])
    def test_headers_that_are_no_mapping_are_refused(self, driver, server, headers):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/", "headers": headers}, {"x": "a"}))
        assert error.message == "config.headers: write a mapping of names to values"

    async def test_values_are_filled_in_and_a_header_that_was_not_given_is_left_out(self, call, server):
        server.answers(b"ok")
        headers = {"X-Agent": "crib/{version} for {client_id}", "X-Number": 5, "X-Optional": "{maybe}"}
        await call(order_for({"url": f"{server.origin}/", "headers": headers}, declared=["maybe"]))
        assert server.seen[0].headers["x-agent"] == "crib/9.9.9 for local"
        assert server.seen[0].headers["x-number"] == "5"
        assert "x-optional" not in server.seen[0].headers


class TestBody:
    @pytest.mark.parametrize(
        ("body", "headers", "sent", "content_type"),
        [
            ({"a": "{x}"}, {}, b'{"a": [1, "\xc3\xa4"]}', "application/json"),
            (["{x}"], {}, b'[[1, "\xc3\xa4"]]', "application/json"),
            ("{x}", {}, b'[1, "\xc3\xa4"]', "application/json"),
            ("x is {x}", {}, b'x is [1,"\xc3\xa4"]', "text/plain; charset=utf-8"),
            ("{t}", {}, b'a"b&c', "text/plain; charset=utf-8"),
            ("x={t}", {"content-type": "application/x-www-form-urlencoded"}, b"x=a%22b%26c", None),
            (
                '{"t": "<{t}>", "u": {t}}',
                {"Content-Type": "application/json"},
                b'{"t": "<a\\"b&c>", "u": "a\\"b&c"}',
                None,
            ),
            (5, {}, b"5", "application/json"),
            ({"m": ["<{t}>"]}, {"Content-Type": "application/json"}, b'{"m": ["<a\\"b&c>"]}', None),
            ({"m": "<{t}>"}, {"Content-Type": "application/x-www-form-urlencoded"}, b'{"m": "<a\\"b&c>"}', None),
        ],
    )
    async def test_a_body_is_json_or_text_as_it_was_written(self, call, server, body, headers, sent, content_type):
        server.answers(b"ok")
        config = {"method": "POST", "url": f"{server.origin}/", "headers": headers, "body": body}
        await call(order_for(config, {"x": [1, "ä"], "t": 'a"b&c'}))
        assert server.seen[0].body == sent
        assert server.seen[0].headers["content-type"] == (content_type or next(iter(headers.values())))

    @pytest.mark.parametrize("body", [{}, {"body": None}, {"body": "{x}"}])
    async def test_without_a_body_none_is_sent(self, call, server, body):
        server.answers(b"ok")
        await call(order_for({"method": "POST", "url": f"{server.origin}/", **body}, {"x": None}))
        assert server.seen[0].body == b""
        assert "content-type" not in server.seen[0].headers

    async def test_a_body_beyond_the_limit_is_not_sent(self, call, server):
        error = await refuse(
            call(order_for({"method": "POST", "url": f"{server.origin}/", "body": "{x}"}, {"x": "a" * 1_000_001}))
        )
        assert error.kind is Kind.LIMIT_EXCEEDED
        assert server.seen == []

    @pytest.mark.parametrize(("method", "sent"), [("put", "PUT"), (None, "GET"), ("{m}", "PATCH")])
    async def test_the_method_is_the_authors(self, call, server, method, sent):
        server.answers(b"ok")
        await call(order_for({"url": f"{server.origin}/", "method": method}, {"m": "patch"}))
        assert server.seen[0].method == sent

    @pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", 5, ["GET"]])
    def test_another_method_is_refused(self, driver, server, method):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/", "method": method}))
        assert error.kind is Kind.VALIDATION
        assert "use one of GET, HEAD" in error.message


class TestAnswer:
    @pytest.mark.parametrize(
        ("body", "content_type", "value"),
        [
            (b'{"a": [1, 1.5, null, true]}', "application/json", {"a": [1, 1.5, None, True]}),
            (b'"x"', "application/problem+json; charset=utf-8", "x"),
            ("Köln".encode(), "text/plain; charset=utf-8", "Köln"),
            (b"<a/>", "application/xml", "<a/>"),
            (b"\x00\x01", "image/png", "Binary content of type image/png, 2 bytes; not shown."),
            (b"\xff\xff", "text/plain", "Binary content of type text/plain, 2 bytes; not shown."),
            (b"hi", "", "Binary content of type unknown, 2 bytes; not shown."),
            (b"", "application/json", None),
        ],
    )
    async def test_it_is_json_text_or_a_size_as_it_says_itself(self, call, server, body, content_type, value):
        server.answers(body, content_type)
        assert (await call(order_for({"url": f"{server.origin}/"}))).value == value

    async def test_no_content_is_null(self, call, server):
        server.replies.append(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        outcome = await call(order_for({"url": f"{server.origin}/"}))
        assert (outcome.value, outcome.meta["status"]) == (None, 204)

    @pytest.mark.parametrize("body", [b"{", b'{"a": 1, "a": 2}', b"NaN", b"[" * 100 + b"]" * 100, b"\xff"])
    async def test_json_that_is_none_is_refused(self, call, server, body):
        server.answers(body, "application/json")
        error = await refuse(call(order_for({"url": f"{server.origin}/"})))
        assert (error.kind, error.retryable) == (Kind.OUTPUT_INVALID, False)
        assert error.message.startswith(f"{server.origin}: the answer cannot be used: ")

    async def test_an_answer_beyond_the_limit_is_refused(self, call, server):
        server.answers(b"a" * 10_001)
        assert (await refuse(call(order_for({"url": f"{server.origin}/"})))).kind is Kind.LIMIT_EXCEEDED

    @pytest.mark.spec("S3-56")
    @pytest.mark.parametrize("status", ["200 OK", "201 Created", "299 Odd", "304 Not Modified", "399 Odd"])
    async def test_every_status_from_200_to_399_is_a_success(self, call, server, status):
        server.replies.append(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode())
        assert (await call(order_for({"url": f"{server.origin}/"}))).meta["status"] == int(status[:3])

    @pytest.mark.spec("S3-35", "S3-56")
    @pytest.mark.parametrize(
        ("status", "kind", "again"),
        [
            (400, Kind.PERMANENT, False),
            (401, Kind.AUTH, False),
            (403, Kind.AUTH, False),
            (404, Kind.PERMANENT, False),
            (408, Kind.TRANSIENT, True),
            (422, Kind.PERMANENT, False),
            (429, Kind.RATE_LIMIT, True),
            (500, Kind.TRANSIENT, True),
            (503, Kind.TRANSIENT, True),
            (599, Kind.TRANSIENT, True),
        ],
    )
    async def test_every_other_status_is_a_failure_and_says_whether_to_try_again(
        self, call, server, status, kind, again
    ):
        server.answers(b"no such user", status=f"{status} No")
        error = await refuse(call(order_for({"url": f"{server.origin}/", "method": "POST"})))
        assert (error.kind, error.retryable, error.partial_side_effects) == (kind, again, True)
        told = f"{status} {REASONS.get(status, '')}".strip()
        assert error.message == f"{server.origin}: the server answered POST with status {told}: no such user"
        assert error.details == {"origin": server.origin, "status": status, "body": "no such user"}

    async def test_of_a_long_failure_the_head_is_told_and_of_a_binary_one_nothing(self, call, server):
        server.answers(b"a" * 5_000, status="500 No")
        server.answers(b"\0" * 5_000, "image/png", status="500 No")
        details = [(await refuse(call(order_for({"url": f"{server.origin}/"})))).details for _ in range(2)]
        assert details[0]["body"] == "a" * 2_000
        assert "body" not in details[1]

    @pytest.mark.parametrize(
        ("header", "low", "high"),
        [("120", 120, 120), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("9" * 400, 10**9, 10**9)],
    )
    async def test_the_wait_that_a_server_asks_for_is_told(self, call, server, header, low, high):
        server.answers(b"", status="503 No", more=f"Retry-After: {header}\r\n")
        error = await refuse(call(order_for({"url": f"{server.origin}/"})))
        assert low <= error.details["retryAfter"] <= high

    @pytest.mark.parametrize("header", ["soon", "-5", "1e400", "Wed, 99 Oct 2015"])
    async def test_a_wait_that_means_nothing_is_not_told(self, call, server, header):
        server.answers(b"", status="503 No", more=f"Retry-After: {header}\r\n")
        assert "retryAfter" not in (await refuse(call(order_for({"url": f"{server.origin}/"})))).details

    @pytest.mark.spec("S3-35", "S3-56")
    async def test_a_transport_error_may_be_tried_again(self, driver, server):
        server.replies.append(b"")
        error = await refuse(run_once(driver, order_for({"url": f"{server.origin}/"})))
        assert (error.kind, error.retryable) == (Kind.TRANSIENT, True)

    @pytest.mark.spec("S3-56")
    async def test_the_deadline_of_the_call_ends_the_request(self, driver, server):
        server.stall = True
        order = order_for({"url": f"{server.origin}/"})
        error = await refuse(run_once(driver, order, 0.2))
        assert error.kind is Kind.TIMEOUT
        assert error.details["timeoutMs"] == 200
        assert len(server.seen) == 1


class TestHostsAndCapabilities:
    @pytest.mark.spec("S3-64")
    @pytest.mark.parametrize("requires", [[], ["fs.read"], ["network"], ["shell.execute"]])
    async def test_a_tool_that_lists_no_net_capability_sends_nothing(self, driver, server, requires):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/"}, requires=requires))
        assert error.kind is Kind.CAPABILITY_MISSING
        assert error.message == "sample sends requests and requires no net capability; list net.http in its requires"
        assert server.seen == []

    async def test_the_hosts_of_the_tool_narrow_where_it_may_go(self, call, driver, server):
        server.answers(b"ok")
        endpoint = server.origin.removeprefix("http://")
        assert (await call(order_for({"url": f"{server.origin}/"}, hosts=(endpoint,)))).value == "ok"
        error = refuse_check(driver, order_for({"url": f"{server.origin}/"}, hosts=("example.com",)))
        assert error.kind is Kind.HOST_NOT_ALLOWED
        assert refuse_check(driver, order_for({"url": f"{server.origin}/"}, hosts=())).kind is Kind.HOST_NOT_ALLOWED

    async def test_a_redirect_beyond_the_hosts_is_refused(self, call, server, other):
        server.answers(status="302 Found", more=f"Location: {other.origin}/\r\n")
        other.answers(b"ok")
        endpoint = server.origin.removeprefix("http://")
        error = await refuse(call(order_for({"url": f"{server.origin}/"}, hosts=(endpoint,))))
        assert error.kind is Kind.HOST_NOT_ALLOWED
        assert other.seen == []


class TestVariables:
    async def test_a_variable_reaches_the_server_and_no_other_origin(self, call, server, other):
        server.answers(status="302 Found", more=f"Location: {other.origin}/\r\n")
        other.answers(b"ok")
        headers = {"X-Key": "key ${KEY}", "X-Open": "{x}"}
        order = order_for({"url": f"{server.origin}/", "headers": headers}, {"x": "1"}, variable=lambda _: "k-123456")
        assert (await call(order)).value == "ok"
        assert server.seen[0].headers["x-key"] == "key k-123456"
        assert other.seen[0].headers["x-open"] == "1"
        assert "x-key" not in other.seen[0].headers

    def test_a_variable_that_was_not_granted_is_refused_before_anything_is_sent(self, driver, server):
        error = refuse_check(driver, order_for({"url": f"{server.origin}/", "headers": {"X": "${KEY:-none}"}}))
        assert error.kind is Kind.CAPABILITY_MISSING
        assert error.message == "config.headers.X: KEY is not granted"

    async def test_a_server_that_repeats_a_variable_does_not_bring_it_into_the_error(self, call, server):
        echo = json.dumps(
            {"key": SECRET, "url": "/s3cret%2F%2B%20value", "plus": "s3cret%2F%2B+value", "b64": "czNjcmV0LysgdmFsdWU="}
        )
        server.answers(("a" * 480 + echo).encode(), "application/json", status="403 No")
        config = {"url": f"{server.origin}/?k=${{KEY}}", "headers": {"X-Key": "${KEY}"}}
        error = await refuse(call(order_for(config, variable=lambda _: SECRET)))
        told = everything_in(error)
        assert error.details["status"] == 403
        assert "***" in told
        for spelling in ("s3cret", "s3cr", "czNj"):
            assert spelling not in told

    @pytest.mark.parametrize(
        "config",
        [
            {"url": "${KEY}"},
            {"url": "https://example.com/", "method": "${KEY}"},
            {"url": "https://example.com/", "headers": {"X": "${KEY}\n"}},
            {"url": "http://127.0.0.1:1/${KEY}"},
        ],
    )
    def test_no_refusal_repeats_a_variable(self, driver, config):
        told = everything_in(refuse_check(driver, order_for(config, variable=lambda _: "S3CRET VALUE")))
        assert "S3CRET" not in told.upper()

    async def test_an_origin_that_is_a_variable_is_hidden_too(self, call, server):
        server.answers(b"ok")
        outcome = await call(order_for({"url": "${BASE}"}, variable=lambda _: server.origin))
        assert (outcome.value, outcome.meta["origin"]) == ("ok", "***")


class TestPrimitive:
    @pytest.mark.spec("S3-57", "S3-65")
    async def test_it_can_be_called_by_its_own_name(self, call, server):
        server.answers(b"{}", "application/json")
        arguments = {
            "method": "PUT",
            "url": f"{server.origin}/{{x}}?${{HOME}}",
            "headers": {"X-A": "{x}"},
            "body": {"a": "{x} ${HOME}"},
        }
        outcome = await call(order_for(None, arguments))
        (seen,) = server.seen
        assert outcome.value == {}
        assert (seen.method, seen.target, seen.headers["x-a"]) == ("PUT", "/{x}?${HOME}", "{x}")
        assert json.loads(seen.body) == {"a": "{x} ${HOME}"}

    @pytest.mark.parametrize(
        "arguments", [{}, {"url": 5}, {"url": "nowhere"}, {"url": "http://127.0.0.1/", "headers": 5}]
    )
    def test_what_cannot_be_sent_is_refused(self, driver, arguments):
        assert refuse_check(driver, order_for(None, arguments)).kind is Kind.VALIDATION
