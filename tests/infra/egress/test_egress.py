import asyncio
import gc
import socket
import struct
import traceback

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.egress import MAX_REDIRECTS, Request
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.egress.dialler import AddressPolicy, Dialler, parse_private, resolve_name
from toolcrib.lib.http_syntax import parse_hosts, parse_url

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

KEY = "hunter2"


def moved(location, status=302):
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


async def test_a_listed_private_endpoint_is_reached(serve, open_egress, fetch):
    site = await serve(HELLO)
    response = await fetch(open_egress(site.endpoint), site.url("/x"))
    assert (response.status, response.body, response.hops) == (200, b"hello", 0)
    assert str(response.url) == site.url("/x")
    assert response.headers == {"content-length": "5"}


async def test_a_dialled_connection_never_blocks_the_event_loop_and_one_that_fails_names_its_host(serve):
    site = await serve(HELLO)
    policy = AddressPolicy(private=parse_private([site.endpoint]))
    dialler = Dialler(policy=policy, resolve=resolve_name)
    with await dialler.dial(parse_url(site.url())) as connection:
        assert connection.gettimeout() == 0
    site.server.close()
    with pytest.raises(ToolError) as refused:
        await dialler.dial(parse_url(site.url()))
    assert refused.value.details == {"host": site.endpoint, "reason": "connection refused"}


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/?",
        "/??a=b?",
        "/a/../b/./c",
        "//host/path",
        "/%2e%2e/%2F%zz%",
        "/a;b=c,d?e[]=1&f={g}|^`\"<>'()*!~$+@:=",
        "/K%C3%B6ln",
        "/a%0d%0aX-Injected:%201",
        "/http://other.example/",
        "/+%20+?a=+%2B",
    ],
)
async def test_the_wire_carries_the_parsed_url_byte_for_byte(serve, open_egress, fetch, target):
    site = await serve(HELLO)
    url = parse_url(site.url(target))
    await fetch(open_egress(site.endpoint), site.url(target))
    lines = site.requests[0].decode().split("\r\n")
    assert lines[0] == f"GET {url.target} HTTP/1.1"
    assert url.target == target
    assert lines[1] == f"Host: {url.authority}"


async def test_the_callers_header_replaces_ours_in_any_spelling(serve, open_egress, fetch):
    site = await serve(HELLO)
    await fetch(open_egress(site.endpoint), site.url(), headers={"user-agent": "mine"})
    lines = site.requests[0].decode().lower().split("\r\n")
    assert [line for line in lines if line.startswith("user-agent")] == ["user-agent: mine"]


async def test_the_host_header_holds_the_name_in_its_ascii_form(serve, open_egress, fetch, names):
    site = await serve(HELLO)
    egress = open_egress(site.endpoint, resolve=names(**{"xn--bcher-kva_example": [["127.0.0.1"]]}))
    await fetch(egress, f"http://Bücher.example:{site.port}/ä")
    assert site.requests[0].startswith(f"GET /%C3%A4 HTTP/1.1\r\nHost: xn--bcher-kva.example:{site.port}\r\n".encode())


ADDRESSES = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7F00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2001:0:7f00:1::]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[3fff::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
]


@pytest.mark.parametrize("host", ADDRESSES)
async def test_a_special_address_is_refused_without_a_connection(serve, open_egress, fetch, names, host):
    site = await serve(HELLO)
    resolve = names()
    with pytest.raises(ToolError, match="lies in") as caught:
        await fetch(open_egress(resolve=resolve), f"http://{host}:{site.port}/")
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert (site.connections, resolve.asked) == (0, [])


@pytest.mark.parametrize(
    "answers",
    [["127.0.0.1"], ["::1"], ["93.184.216.34", "127.0.0.1"], ["2606:4700::1", "::ffff:10.0.0.1"], ["fe80::1%lo"]],
)
async def test_a_name_is_refused_if_any_of_its_addresses_is(serve, open_egress, fetch, names, answers):
    site = await serve(HELLO)
    with pytest.raises(ToolError, match=r"mixed\.example: .* lies in .*egress\.private") as caught:
        await fetch(
            open_egress(resolve=names(mixed_example=[answers])),
            f"http://mixed.example:{site.port}/",
            hosts=parse_hosts([f"mixed.example:{site.port}"]),
        )
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert site.connections == 0


async def test_localhost_of_the_system_is_refused(serve, open_egress, fetch):
    site = await serve(HELLO)
    with pytest.raises(ToolError, match=r"localhost: .* lies in .*loopback"):
        await fetch(open_egress(), f"http://localhost:{site.port}/", hosts=parse_hosts([f"localhost:{site.port}"]))
    assert site.connections == 0


async def test_the_last_wall_stands_when_the_first_is_gone(serve, open_egress, fetch, monkeypatch):
    site = await serve(HELLO)
    monkeypatch.setattr(Egress, "check", lambda *_: None)
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 lies in 127\.0\.0\.0/8") as caught:
        await fetch(open_egress(), site.url())
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert site.connections == 0


async def test_the_checked_address_is_the_dialled_one_and_a_later_answer_is_checked_anew(
    serve, open_egress, fetch, names
):
    site = await serve(HELLO.replace(b"Content-Length", b"Connection: close\r\nContent-Length"))
    resolve = names(rebind_example=[["127.0.0.1"], ["127.0.0.2"]])
    egress = open_egress(site.endpoint, resolve=resolve)
    url, hosts = f"http://rebind.example:{site.port}/", parse_hosts([f"rebind.example:{site.port}"])
    assert (await fetch(egress, url, hosts=hosts)).body == b"hello"
    assert resolve.asked == [("rebind.example", site.port)]
    with pytest.raises(ToolError, match=r"rebind\.example: 127\.0\.0\.2 lies in"):
        await fetch(egress, url, hosts=hosts)
    assert site.connections == 1


async def test_a_pooled_connection_is_not_lent_to_a_host_that_is_not_allowed(serve, open_egress, fetch, names):
    site = await serve(HELLO)
    resolve = names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
    egress = open_egress(site.endpoint, resolve=resolve)
    only_a = parse_hosts([f"a.example:{site.port}"])
    for _ in range(3):
        await fetch(egress, f"http://a.example:{site.port}/", hosts=only_a)
    assert (site.connections, len(resolve.asked)) == (1, 1)
    with pytest.raises(ToolError, match=r"b\.example:.* is not among the allowed hosts"):
        await fetch(egress, f"http://b.example:{site.port}/", hosts=only_a)
    with pytest.raises(ToolError, match=r"a\.example:.* is not among the allowed hosts"):
        await fetch(egress, f"http://a.example:{site.port}/", hosts=parse_hosts([]))
    assert len(site.requests) == 3


async def test_a_host_outside_the_list_is_refused_without_asking_for_its_address(open_egress, fetch, names):
    resolve = names()
    with pytest.raises(ToolError) as caught:
        await fetch(open_egress(resolve=resolve), "http://evil.example/", hosts=parse_hosts(["*.good.example"]))
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert resolve.asked == []


async def test_a_host_list_opens_no_private_address(serve, open_egress, fetch):
    site = await serve(HELLO)
    with pytest.raises(ToolError, match="lies in"):
        await fetch(open_egress(), site.url(), hosts=parse_hosts([site.endpoint]))
    assert site.connections == 0


def test_a_refusal_can_be_seen_without_sending():
    egress = Egress()
    egress.check(parse_url("http://example.com/"), None)
    with pytest.raises(ToolError, match="not among the allowed hosts"):
        egress.check(parse_url("http://example.com/"), parse_hosts([]))
    with pytest.raises(ToolError, match="lies in"):
        egress.check(parse_url("http://10.0.0.1/"), None)


async def test_a_port_that_nothing_declares_is_refused_before_its_host_is_looked_up(open_egress, fetch, names):
    resolve = names()
    with pytest.raises(ToolError) as caught:
        await fetch(open_egress(resolve=resolve), "http://public.example:8080/")
    cure = 'list "public.example:8080" in the hosts of the tool, or as operator in hosts of [http_tools]'
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED
    assert caught.value.message == f"public.example:8080: a port other than 80 and 443 has to be declared; {cure}"
    with pytest.raises(ToolError, match="93.184.216.34:22: a port other than 80 and 443 has to be declared"):
        await fetch(open_egress(resolve=resolve), "http://93.184.216.34:22/")
    assert resolve.asked == []


def test_the_operator_may_open_a_port_of_a_host_to_tools_without_a_list():
    egress = Egress(allowed=["*.public.example:8443", "other.example"])
    egress.check(parse_url("https://api.public.example:8443/"), None)
    for url in ("https://api.public.example:8444/", "https://other.example:8443/"):
        with pytest.raises(ToolError, match="has to be declared"):
            egress.check(parse_url(url), None)
    with pytest.raises(ToolError, match="not among the allowed hosts"):
        egress.check(parse_url("https://api.public.example:8443/"), parse_hosts(["api.public.example"]))


@pytest.mark.parametrize("hosts", [None, ["public.example", "near.example"]], ids=["any host", "hosts without a port"])
async def test_a_listed_private_endpoint_opens_its_port_at_that_address_alone(serve, open_egress, fetch, names, hosts):
    site = await serve(HELLO)
    resolve = names(public_example=[["93.184.216.34"]], near_example=[["127.0.0.1"]])
    egress, listed = open_egress(site.endpoint, resolve=resolve), None if hosts is None else parse_hosts(hosts)
    assert (await fetch(egress, f"http://near.example:{site.port}/", hosts=listed)).body == b"hello"
    with pytest.raises(ToolError, match=r"public\.example:\d+: a port other than 80 and 443 has to be declared"):
        await fetch(egress, f"http://public.example:{site.port}/", hosts=listed)


async def test_a_redirect_is_followed_and_counted(serve, open_egress, fetch):
    site = await serve(
        lambda head: HELLO if b"GET /b/end?q HTTP" in head else moved("end?q" if b"/b/" in head else "/b/x")
    )
    response = await fetch(open_egress(site.endpoint), site.url("/a"))
    assert (response.body, response.hops, str(response.url)) == (b"hello", 2, site.url("/b/end?q"))


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("http://127.0.0.1:1/", Kind.HOST_NOT_ALLOWED),
        ("http://127.0.0.2/", Kind.HOST_NOT_ALLOWED),
        ("//127.0.0.2/", Kind.HOST_NOT_ALLOWED),
        ("http://169.254.169.254/latest/meta-data/", Kind.HOST_NOT_ALLOWED),
        ("http://[::ffff:127.0.0.1]/", Kind.HOST_NOT_ALLOWED),
        ("http://[::1]/", Kind.HOST_NOT_ALLOWED),
        ("http://internal.example/", Kind.HOST_NOT_ALLOWED),
        ("ftp://example.com/", Kind.PERMANENT),
        ("file:///etc/passwd", Kind.PERMANENT),
        ("http://2130706433/", Kind.PERMANENT),
        ("http://user:hunter2@example.com/", Kind.PERMANENT),
        ("/\\evil.example", Kind.PERMANENT),
        ("http://exa\tmple.com/", Kind.PERMANENT),
    ],
)
async def test_a_redirect_is_checked_like_a_first_request(serve, open_egress, fetch, names, location, kind):
    site = await serve(moved(location))
    egress = open_egress(site.endpoint, resolve=names(internal_example=[["10.0.0.7"]]))
    with pytest.raises(ToolError, match=f"redirected by http://{site.endpoint}: ") as caught:
        await fetch(egress, site.url("/start"))
    assert caught.value.kind is kind
    assert caught.value.details["redirectedBy"] == f"http://{site.endpoint}"
    assert "hunter2" not in caught.value.message
    assert len(site.requests) == 1


async def test_a_redirect_out_of_the_host_list_is_refused(serve, open_egress, fetch, names):
    site = await serve(lambda _: moved(f"http://b.example:{site.port}/"))
    resolve = names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
    with pytest.raises(ToolError, match=r"redirected by .*a\.example.*: b\.example:\d+ is not among"):
        await fetch(
            open_egress(site.endpoint, resolve=resolve),
            f"http://a.example:{site.port}/",
            hosts=parse_hosts(["a.example"]),
        )
    assert len(site.requests) == 1


async def test_a_redirect_loop_ends_after_five(serve, open_egress, fetch):
    site = await serve(moved("/again"))
    with pytest.raises(ToolError, match="more than 5 redirects") as caught:
        await fetch(open_egress(site.endpoint), site.url())
    assert caught.value.kind is Kind.PERMANENT
    assert not caught.value.retryable
    assert len(site.requests) == MAX_REDIRECTS + 1


async def test_a_redirect_status_without_a_target_is_an_answer(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nhm")
    response = await fetch(open_egress(site.endpoint), site.url())
    assert (response.status, response.body) == (302, b"hm")


SECRET = {"Authorization": "Bearer hunter2", "Cookie": "id=hunter2", "x-api-KEY": "hunter2", "X-Plain": "kept"}


async def test_secrets_and_body_stay_behind_when_the_origin_changes(serve, open_egress, fetch):
    there = await serve(HELLO)
    here = await serve(lambda _: moved(there.url("/take"), 307))
    await fetch(
        open_egress(here.endpoint, there.endpoint),
        here.url(),
        method="POST",
        headers={**SECRET, "Content-Type": "text/plain"},
        body=b"hunter2",
        secret_headers=frozenset({"X-Api-Key"}),
    )
    assert here.requests[0].count(b"hunter2") == 4
    assert there.requests[0].startswith(b"POST /take HTTP/1.1\r\n")
    assert b"X-Plain: kept" in there.requests[0]
    assert b"hunter2" not in there.requests[0]
    assert b"content-type" not in there.requests[0].lower()


async def test_secrets_do_not_come_back_when_the_redirect_returns(serve, open_egress, fetch):
    here = await serve(lambda head: HELLO if b"GET /back" in head else moved(there.url("/")))
    there = await serve(lambda _: moved(here.url("/back")))
    await fetch(open_egress(here.endpoint, there.endpoint), here.url(), headers={"Authorization": "hunter2"})
    assert [b"hunter2" in request for request in here.requests] == [True, False]


async def test_secrets_and_body_go_along_within_the_origin(serve, open_egress, fetch):
    site = await serve(lambda head: HELLO if b"/end" in head else moved("/end", 308))
    await fetch(open_egress(site.endpoint), site.url(), method="PUT", headers=SECRET, body=b"data")
    assert site.requests[1].startswith(b"PUT /end ")
    assert site.requests[1].endswith(b"\r\n\r\ndata")
    assert site.requests[1].count(b"hunter2") == 3


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "DELETE", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
    ],
)
async def test_the_method_after_a_redirect_is_the_usual_one(serve, open_egress, fetch, status, method, expected):
    site = await serve(lambda head: moved("/end", status) if b" / " in head else b"HTTP/1.1 204 Done\r\n\r\n")
    body = None if method in {"HEAD", "DELETE"} else b"data"
    await fetch(open_egress(site.endpoint), site.url(), method=method, body=body)
    assert site.requests[1].startswith(f"{expected} /end ".encode())
    assert site.requests[1].endswith(b"data") is (expected == method and body is not None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "1\r\nX-Injected: 1"),
        ("X-A", "1\nX-Injected: 1"),
        ("X-A", "1\rX"),
        ("X-A", "1\x00"),
        ("X-A", "\x7f"),
        ("X-A", "\ud800"),
        ("X-A\r\nX-Injected", "1"),
        ("X-A:", "1"),
        ("X A", "1"),
        ("", "1"),
        ("Höst", "1"),
        ("Host", "evil.example"),
        ("hOST", "evil.example"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive"),
        ("Proxy-Authorization", "x"),
        ("proxy-connection", "x"),
        ("Upgrade", "websocket"),
        ("TE", "trailers"),
        ("Expect", "100-continue"),
        ("Accept-Encoding", "br"),
    ],
)
def test_a_header_that_could_reframe_the_message_is_refused(name, value):
    with pytest.raises(ToolError, match="header") as caught:
        Request(url=parse_url("http://example.com/"), headers={name: value})
    assert caught.value.kind is Kind.VALIDATION
    assert "Injected: 1" not in caught.value.message


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "get", "", "GET / HTTP/1.1\r\nX: 1\r\n\r\nGET"])
def test_a_method_outside_the_list_is_refused(method):
    with pytest.raises(ToolError, match="use one of GET, HEAD"):
        Request(url=parse_url("http://example.com/"), method=method)


def test_a_request_shows_neither_headers_nor_body():
    request = Request(url=parse_url("http://example.com/?hunter2"), headers={"X": "hunter2"}, body=b"hunter2")
    assert "hunter2" not in repr(request)


async def test_more_bytes_than_may_be_sent_are_refused_before_connecting(serve, open_egress, fetch):
    site = await serve(HELLO)
    egress = open_egress(site.endpoint)
    with pytest.raises(ToolError, match="the request has 104 bytes, and the limit is 103") as caught:
        await fetch(egress, site.url(), method="POST", headers={"X-A": "1"}, body=b"x" * 100, max_sent_bytes=103)
    assert caught.value.kind is Kind.LIMIT_EXCEEDED
    assert site.connections == 0
    await fetch(egress, site.url(), method="POST", headers={"X-A": "1"}, body=b"x" * 100, max_sent_bytes=104)


async def test_proxies_and_netrc_of_the_environment_are_ignored(serve, open_egress, fetch, monkeypatch, tmp_path):
    proxy, site = await serve(HELLO), await serve(HELLO)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://{proxy.endpoint}")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("no_proxy", raising=False)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    await fetch(open_egress(site.endpoint, proxy.endpoint), site.url())
    assert proxy.connections == 0
    assert b"authorization" not in site.requests[0].lower()


async def test_cookies_are_not_kept(serve, open_egress, fetch):
    site = await serve(HELLO.replace(b"Content-Length", b"Set-Cookie: id=1; Path=/\r\nContent-Length"))
    egress = open_egress(site.endpoint)
    await fetch(egress, site.url())
    await fetch(egress, site.url())
    assert b"cookie" not in site.requests[1].lower()


async def test_a_refused_connection_may_be_tried_again(open_egress, fetch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ToolError) as caught:
        await fetch(open_egress(f"127.0.0.1:{port}"), f"http://127.0.0.1:{port}/?key=hunter2", method="POST")
    error = caught.value
    assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.TRANSIENT, True, False)
    assert error.message == f"http://127.0.0.1:{port}: connection refused"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_reset_connection_may_be_tried_again_and_says_whether_effects_may_remain(
    serve, open_egress, fetch, method
):
    async def reset(reader, writer):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    site = await serve(lambda _: reset)
    with pytest.raises(ToolError, match="the connection was closed before the response was complete") as caught:
        await fetch(open_egress(site.endpoint), site.url(f"/?key={KEY}"), method=method)
    error = caught.value
    assert (error.kind, error.retryable, error.partial_side_effects) == (Kind.TRANSIENT, True, method == "POST")
    assert KEY not in "".join(traceback.format_exception(error))


async def test_what_is_not_http_is_refused_without_quoting_it(serve, open_egress, fetch):
    async def greet(reader, writer):
        writer.write(b"SSH-2.0-OpenSSH hunter2\r\n")
        await writer.drain()

    site = await serve(lambda _: greet)
    with pytest.raises(ToolError, match="the response is not valid HTTP") as caught:
        await fetch(open_egress(site.endpoint), site.url(f"/?key={KEY}"))
    assert caught.value.kind is Kind.PERMANENT
    assert KEY not in "".join(traceback.format_exception(caught.value))


async def test_a_name_that_cannot_be_found_may_be_tried_again(open_egress, fetch):
    async def nowhere(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    async def empty(host, port):
        return []

    for resolve, reason in [(nowhere, "failed"), (empty, "found no address")]:
        with pytest.raises(ToolError) as caught:
            await fetch(open_egress(resolve=resolve), "http://nowhere.example/")
        assert caught.value.message == f"nowhere.example: looking up the name {reason}"
        assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)


async def test_a_slow_lookup_ends_at_its_own_deadline(open_egress, fetch, monkeypatch):
    async def never(host, port):
        await asyncio.Event().wait()

    monkeypatch.setattr("toolcrib.infra.egress.dialler.RESOLVE_SECONDS", 0.01)
    with pytest.raises(ToolError, match=r"looking up the name took longer than 0\.01 s") as caught:
        await fetch(open_egress(resolve=never), "http://slow.example/")
    assert (caught.value.kind, caught.value.retryable) == (Kind.TRANSIENT, True)


async def stall(reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    await writer.drain()
    await reader.read()


async def test_a_slow_body_ends_at_the_time_limit_and_leaves_no_connection(serve, open_egress, fetch):
    site = await serve(lambda _: stall)
    with pytest.raises(ToolError, match=r"no complete response within 0\.1 s") as caught:
        await fetch(open_egress(site.endpoint), site.url("/?key=hunter2"), seconds=0.1)
    assert (caught.value.kind, caught.value.retryable) == (Kind.TIMEOUT, True)
    assert "hunter2" not in caught.value.message
    async with asyncio.timeout(25):
        await site.gone.wait()


async def test_a_cancelled_fetch_leaves_no_connection(serve, open_egress, fetch):
    started = asyncio.Event()

    async def stall_loudly(reader, writer):
        started.set()
        await stall(reader, writer)

    site = await serve(lambda _: stall_loudly)
    task = asyncio.create_task(fetch(open_egress(site.endpoint), site.url()))
    async with asyncio.timeout(25):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await site.gone.wait()


async def test_many_at_once_each_get_their_own_answer(serve, open_egress, fetch):
    site = await serve(lambda head: b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + head[5:9])
    egress = open_egress(site.endpoint)
    responses = await asyncio.gather(*(fetch(egress, site.url(f"/{number}")) for number in range(1000, 1100)))
    assert [response.body for response in responses] == [str(number).encode() for number in range(1000, 1100)]


async def test_closing_ends_the_kept_connections_and_the_egress_can_go_on(serve, open_egress, fetch):
    site = await serve(HELLO)
    egress = open_egress(site.endpoint)
    await fetch(egress, site.url())
    assert not site.gone.is_set()
    await egress.close()
    async with asyncio.timeout(25):
        await site.gone.wait()
    await egress.close()
    assert (await fetch(egress, site.url())).status == 200


def test_one_egress_serves_one_loop_after_the_other_and_leaves_nothing_open(recwarn):
    from threading import Thread

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        ends = []

        def answer_twice():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    connection.recv(65536)
                    connection.sendall(HELLO)
                    ends.append(connection.recv(1))

        thread = Thread(target=answer_twice)
        thread.start()
        endpoint = "{}:{}".format(*listener.getsockname())
        egress = Egress(private=[endpoint])
        request = Request(url=parse_url(f"http://{endpoint}/"))
        for _ in range(2):
            response = asyncio.run(egress.fetch(request, hosts=None, max_bytes=10, timeout=5))
            assert response.body == b"hello"
        thread.join(25)
    del egress
    gc.collect()
    assert ends == [b"", b""]
    assert [str(warning.message) for warning in recwarn] == []


async def test_a_forgotten_egress_closes_its_connections(serve, fetch):
    site = await serve(HELLO)
    await fetch(Egress(private=[site.endpoint]), site.url())
    gc.collect()
    async with asyncio.timeout(25):
        await site.gone.wait()


async def test_an_interim_response_is_passed_over(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HELLO)
    assert (await fetch(open_egress(site.endpoint), site.url())).status == 200


async def test_an_unasked_switch_of_protocols_is_refused(serve, open_egress, fetch):
    site = await serve(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    with pytest.raises(ToolError, match="it switches to another protocol, which was not asked for") as caught:
        await fetch(open_egress(site.endpoint), site.url())
    assert caught.value.kind is Kind.PERMANENT
