"""What clients get from servers that only exist as recorded answers."""

import asyncio
import json
import logging
import shutil
import socket
import ssl
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Kind, ToolError
from toolcrib.infra.egress import Request
from toolcrib.infra.egress.http1 import MAX_HEAD_BYTES
from toolcrib.infra.egress.proxy import Visit
from toolcrib.infra.egress.recorded import Authority, Recorded, RecordedReplies
from toolcrib.lib.http_syntax import parse_hosts, parse_url
from toolcrib.model.toolrequest import RecordedAnswer

PATIENCE = 10
USERS = RecordedAnswer(url="https://api.example.com/users", body='[{"name": "Ada"}]')
PLAIN = RecordedAnswer(url="http://plain.example/x", body="hello", headers={"X-Of-The-Site": "yes"})
URLLIB = """
import json, sys, urllib.request
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            print(json.dumps([answer.status, answer.read().decode()]))
    except urllib.error.HTTPError as error:
        print(json.dumps([error.code, error.read().decode()]))
    except OSError as error:
        print(json.dumps([0, str(error)]))
"""
HTTP_CLIENT = """
import http.client, json, os, ssl, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
line = http.client.HTTPSConnection(proxy.hostname, proxy.port, timeout=5)
line.set_tunnel("api.example.com", 443)
for _ in sys.argv[1:]:
    line.request("GET", "/users")
    answer = line.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]))
"""
AIOHTTP = """
import aiohttp, asyncio, json, sys
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        for url in sys.argv[1:]:
            async with session.get(url) as answer:
                print(json.dumps([answer.status, await answer.text()]))
asyncio.run(main())
"""
REQUESTS = """
import json, requests, sys
with requests.Session() as session:
    for url in sys.argv[1:]:
        answer = session.get(url, timeout=5)
        print(json.dumps([answer.status_code, answer.text]))
"""
HTTPX = """
import json, httpx2, sys
with httpx2.Client() as session:
    for url in sys.argv[1:]:
        answer = session.get(url, timeout=5)
        print(json.dumps([answer.status_code, answer.text]))
"""
CLIENTS = {"urllib": URLLIB, "http.client": HTTP_CLIENT, "aiohttp": AIOHTTP, "requests": REQUESTS, "httpx2": HTTPX}


@pytest.fixture
def run_script(tmp_path):
    """Run a script in a process of its own, which knows the proxy and the authority from its environment alone."""

    async def run(door, recorded, script, *words, program=(sys.executable, "-I", "-c")):
        authority = tmp_path / "authority.pem"
        authority.write_bytes(recorded.authority.pem)
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), door.url)
        trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), str(authority))
        process = await asyncio.create_subprocess_exec(
            *program,
            *([script] if script else []),
            *words,
            env={**proxies, **trust},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(2 * PATIENCE):
            output, _ = await process.communicate()
        return output.decode()

    return run


@pytest.fixture
def open_tunnel():
    """Connect to a host by CONNECT and speak TLS with it: `reader, writer = await open_tunnel(door, recorded, host)`."""

    async def connect(door, recorded, authority, name=None):
        trusted = ssl.create_default_context(cadata=recorded.authority.pem.decode())
        async with asyncio.timeout(PATIENCE):
            reader, writer = await door.open()
            writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            await writer.start_tls(trusted, server_hostname=name or authority.rpartition(":")[0].strip("[]"))
        return reader, writer

    return connect


def shake_hands(door, pem, name):
    """Speak TLS with api.example.com, as a client that trusts this authority and expects this name."""
    trusted = ssl.create_default_context(cadata=pem.decode())
    with socket.create_connection(("127.0.0.1", door.port), PATIENCE) as line:
        line.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 200 ")
        trusted.wrap_socket(line, server_hostname=name).close()


async def exchange(reader, writer, request):
    """Send a request on a connection that stays, and read the answer to it: status, headers, body."""
    async with asyncio.timeout(PATIENCE):
        if request:
            writer.write(request.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        has_body = not request.startswith("HEAD") and "content-length" in headers
        return (
            int(head[0].split()[1]),
            headers,
            await reader.readexactly(int(headers["content-length"])) if has_body else b"",
        )


def get(path, host="api.example.com", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


async def said(open_proxy, answers, *requests, hosts=None, **limits):
    """What one job is told, request by request, each on a connection of its own."""
    async with open_proxy(Recorded(answers), hosts, **limits) as door:
        return [await door.ask(f"{request} HTTP/1.1\r\nConnection: close\r\n\r\n") for request in requests], door.log


@pytest.mark.parametrize("client", CLIENTS)
async def test_ordinary_clients_are_answered_over_http_and_https(open_proxy, run_script, client):
    pytest.importorskip(client)
    recorded = Recorded([USERS, PLAIN])
    urls = ["https://api.example.com/users", "https://api.example.com/users"]
    urls += ["http://plain.example/x"] if client != "http.client" else []
    async with open_proxy(recorded) as door:
        printed = await run_script(door, recorded, CLIENTS[client], *urls)
    expected = [[200, USERS.body], [200, USERS.body], [200, "hello"]]
    assert [json.loads(line) for line in printed.splitlines()] == expected[: len(urls)], printed
    assert set(door.log.visits) == {Visit(parse_url(url).host, parse_url(url).port, allowed=True) for url in urls}


async def test_curl_is_answered_too(open_proxy, run_script):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed here")
    recorded = Recorded([USERS, RecordedAnswer(url="https://api.example.com/users", method="POST", status=201)])
    words = ["-q", "-s", "-S", "-m", "5", "-o", "/dev/null", "-w", "%{http_code} ", "https://api.example.com/users"]
    async with open_proxy(recorded) as door:
        first = await run_script(door, recorded, "", *words, program=(curl,))
        # curl asks first whether it may send so much.
        second = await run_script(door, recorded, "", "-d", "x" * 100_000, *words, program=(curl,))
    assert (first, second) == ("200 ", "201 ")


async def test_no_address_is_looked_up_and_no_connection_made(open_proxy, run_script):
    recorded = Recorded([USERS, PLAIN])
    seen, listens = set(), False
    # A hook stays until the interpreter ends.
    sys.addaudithook(lambda event, _: seen.add(event) if listens else None)
    async with open_proxy(recorded) as door:
        listens = True
        urls = [
            "https://api.example.com/users",
            "http://plain.example/x",
            "http://other.example/",
            "https://other.example/",
        ]
        printed = await run_script(door, recorded, URLLIB, *urls)
        listens = False
    assert [json.loads(line)[0] for line in printed.splitlines()] == [200, 200, 502, 0]
    assert "subprocess.Popen" in seen
    # Those of accepted clients are made too.
    assert {event for event in seen if event.startswith("socket.")} == {"socket.__new__"}


async def test_what_the_platform_itself_would_fetch_is_refused():
    with pytest.raises(ToolError, match=r"https://api\.example\.com: requests of the platform itself") as caught:
        await Recorded([USERS]).fetch(
            Request(url=parse_url(USERS.url)), hosts=None, max_bytes=100, timeout=1, max_sent_bytes=100
        )
    assert caught.value.kind is Kind.HOST_NOT_ALLOWED


async def test_the_answer_is_sent_as_it_was_recorded(open_proxy):
    answer = RecordedAnswer(
        url="http://plain.example/x",
        status=404,
        headers={
            "X-Rate": "7",
            "Content-Length": "9999",
            "Transfer-Encoding": "chunked",
            "content-encoding": "gzip",
            "Connection": "upgrade",
        },
        body="nö",
    )
    answers, _ = await said(open_proxy, [answer], "GET http://plain.example/x")
    status, rest = answers[0]
    assert status == 404
    lines, _, body = rest.partition("\r\n\r\n")
    assert lines.split("\r\n") == [
        "X-Rate: 7",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Length: 3",
        "Connection: close",
    ]
    assert body.encode("latin-1") == "nö".encode()


@pytest.mark.parametrize(
    ("status", "line"), [(200, "HTTP/1.1 200 OK"), (404, "HTTP/1.1 404 Not Found"), (299, "HTTP/1.1 299 ")]
)
async def test_the_first_line_is_that_of_a_server_in_earnest(open_proxy, status, line):
    answer = replace(PLAIN, status=status)
    async with open_proxy(Recorded([answer])) as door:
        reader, writer = await door.open()
        writer.write(f"GET {answer.url} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readuntil(b"\r\n")).decode() == f"{line}\r\n"


async def test_a_body_that_is_json_says_so_unless_the_answer_says_otherwise(open_proxy):
    answers = [
        RecordedAnswer(url="http://a.example/json", body='{"a": 1}'),
        RecordedAnswer(url="http://a.example/own", body='{"a": 1}', headers={"content-TYPE": "text/x-own"}),
    ]
    told, _ = await said(open_proxy, answers, "GET http://a.example/json", "GET http://a.example/own")
    assert "Content-Type: application/json\r\n" in told[0][1]
    assert "content-TYPE: text/x-own\r\n" in told[1][1]
    assert "application/json" not in told[1][1]


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("http://a.example/x", "GET http://a.example/x?anything=1&more"),
        ("http://a.example/x?b=2&a=1", "GET http://a.example/x?a=1&b=2"),
        ("http://a.example/x?q=a%20b", "GET http://a.example/x?q=a+b"),
        ("http://a.example/x?", "GET http://a.example/x"),
        ("http://a.example", "GET http://a.example/"),
        ("http://A.Example/x", "GET http://a.eXAMPLE/x"),
        ("http://a.example:80/x", "GET http://a.example/x"),
        ("http://a.example:8080/x", "GET http://a.example:8080/x"),
        ("http://127.0.0.1:9/x", "GET http://127.0.0.1:9/x"),
        ("http://localhost:9/x", "GET http://LOCALHOST:9/x"),
        ("http://[::1]:9/x", "GET http://[0:0:0::1]:9/x"),
        ("http://a.example/user@b", "GET http://a.example/user%40b"),
        ("http://a.example/%C3%B6", "GET http://a.example/%c3%b6"),
        ("http://bücher.example/x", "GET http://xn--bcher-kva.example/x"),
        ("http://a.example/x", "HEAD http://a.example/x"),
    ],
)
async def test_one_address_in_two_spellings_is_one_address(open_proxy, recorded, asked):
    told, log = await said(open_proxy, [RecordedAnswer(url=recorded, body="found")], asked)
    assert told[0][0] == 200
    assert [visit.allowed for visit in log.visits] == [True]


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("http://a.example/x?a=1", "GET http://a.example/x"),
        ("http://a.example/x?a=1", "GET http://a.example/x?a=2"),
        ("http://a.example/x?a=1", "GET http://a.example/x?a=1&b=2"),
        ("http://a.example/x?a=1", "GET http://a.example/x?a=1&a=1"),
        ("http://a.example/x?", "GET http://a.example/x?a="),
        ("http://a.example/x", "GET http://a.example/x/"),
        ("http://a.example/x", "GET http://a.example/X"),
        ("http://a.example/x", "POST http://a.example/x"),
        ("http://a.example/x", "GET http://a.example:81/x"),
        ("http://a.example/x", "GET http://b.a.example/x"),
        ("https://a.example:80/x", "GET http://a.example/x"),
    ],
)
async def test_another_address_is_refused_and_seen(open_proxy, recorded, asked):
    told, log = await said(open_proxy, [RecordedAnswer(url=recorded, body="found")], asked)
    method, _, url = asked.partition(" ")
    reason = (
        f"asked for {method} {url.partition('?')[0]}, which nothing recorded answers; "
        "add it to the answers of the request"
    )
    assert told[0][0] == 502
    assert told[0][1].endswith(f"\r\n\r\n{reason}\n")
    parsed = parse_url(url)
    assert log.visits == [Visit(parsed.host, parsed.port, allowed=False, reason=reason)]


async def test_an_answer_with_the_query_comes_before_one_without(open_proxy):
    answers = [
        RecordedAnswer(url="http://a.example/x", body="any"),
        RecordedAnswer(url="http://a.example/x?page=2", body="second"),
    ]
    told, _ = await said(open_proxy, answers, "GET http://a.example/x?page=2", "GET http://a.example/x?page=3")
    assert [rest.rpartition("\r\n")[2] for _, rest in told] == ["second", "any"]


async def test_several_answers_are_given_in_order_and_the_last_again_and_again(open_proxy):
    answers = [RecordedAnswer(url="http://a.example/x", body=body) for body in ("one", "two")]
    asked = ["GET http://a.example/x"] * 4
    recorded = Recorded(answers)
    for _ in range(2):  # each job hears them from the first on
        async with open_proxy(recorded) as door:
            told = [await door.ask(f"{each} HTTP/1.0\r\n\r\n") for each in asked]
        assert [rest.rpartition("\r\n")[2] for _, rest in told] == ["one", "two", "two", "two"]


async def test_a_tunnel_to_a_host_without_answers_is_refused_and_seen(open_proxy):
    async with open_proxy(Recorded([USERS])) as door:
        status, rest = await door.ask("CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        port, _ = await door.ask("CONNECT api.example.com:444 HTTP/1.1\r\n\r\n")
    assert (status, port) == (502, 502)
    assert "asked for CONNECT other.example, which nothing recorded answers" in rest
    assert [(visit.host, visit.port, visit.allowed) for visit in door.log.visits] == [
        ("other.example", 443, False),
        ("api.example.com", 444, False),
    ]


async def test_hosts_narrow_what_is_answered(open_proxy):
    answers = [PLAIN, RecordedAnswer(url="http://other.example/"), USERS]
    told, log = await said(
        open_proxy,
        answers,
        "GET http://plain.example/x",
        "GET http://other.example/",
        "CONNECT api.example.com:443",
        hosts=parse_hosts(["plain.example"]),
    )
    assert [status for status, _ in told] == [200, 403, 403]
    assert "other.example is not among the allowed hosts (plain.example)" in told[1][1]
    assert [visit.allowed for visit in log.visits] == [True, False, False]


async def test_one_connection_carries_many_requests(open_proxy, open_tunnel):
    recorded = Recorded([USERS, PLAIN, RecordedAnswer(url="http://second.example/", body="2")])
    async with open_proxy(recorded) as door:
        line = await open_tunnel(door, recorded, "api.example.com:443")
        secure = [(await exchange(*line, get("/users")))[2] for _ in range(3)]
        line = await door.open()
        first = await exchange(*line, get("http://plain.example/x", "plain.example"))
        second = await exchange(*line, get("http://second.example/", "second.example"))
    assert secure == [USERS.body.encode()] * 3
    assert (first[2], second[2], first[1]["connection"]) == (b"hello", b"2", "keep-alive")


async def test_requests_that_do_not_wait_for_answers_are_answered_in_order(open_proxy, open_tunnel):
    recorded = Recorded([RecordedAnswer(url=f"https://api.example.com/{path}", body=path) for path in "abc"])
    async with open_proxy(recorded) as door:
        reader, writer = await open_tunnel(door, recorded, "api.example.com:443")
        writer.write("".join(get(f"/{path}") for path in "abc").encode())
        assert [(await exchange(reader, writer, ""))[2] for _ in "abc"] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("request_head", ["GET {} HTTP/1.0\r\n\r\n", "GET {} HTTP/1.1\r\nConnection: x, Close\r\n\r\n"])
async def test_a_client_that_wants_one_answer_sees_the_end_of_it(open_proxy, request_head):
    async with open_proxy(Recorded([PLAIN])) as door:
        status, rest = await door.ask(request_head.format("http://plain.example/x"))
    assert (status, rest.rpartition("\r\n")[2]) == (200, "hello")
    assert "Connection: close\r\n" in rest


async def test_answers_without_a_body_have_none(open_proxy):
    answers = [
        RecordedAnswer(url="http://plain.example/x", body="hello"),
        RecordedAnswer(url="http://plain.example/gone", status=204, body="dropped"),
    ]
    async with open_proxy(Recorded(answers)) as door:
        line = await door.open()
        head = await exchange(*line, "HEAD http://plain.example/x HTTP/1.1\r\n\r\n")
        gone = await exchange(*line, get("http://plain.example/gone", "plain.example"))
        again = await exchange(*line, get("http://plain.example/x", "plain.example"))
    assert (head[1]["content-length"], gone[0], gone[1].get("content-length"), again[2]) == ("5", 204, None, b"hello")


async def test_head_has_answers_of_its_own_if_there_are_any(open_proxy):
    answers = [PLAIN, RecordedAnswer(url=PLAIN.url, method="head", status=405)]
    told, _ = await said(open_proxy, answers, "HEAD http://plain.example/x", "GET http://plain.example/x")
    assert [status for status, _ in told] == [405, 200]


async def test_bodies_are_read_to_their_end_and_dropped(open_proxy):
    post = RecordedAnswer(url="http://plain.example/x", method="POST", body="posted")
    async with open_proxy(Recorded([post])) as door:
        line = await door.open()
        start = "POST http://plain.example/x HTTP/1.1\r\n"
        sized = await exchange(*line, f"{start}Content-Length: 5\r\n\r\nabcde")
        chunked = await exchange(*line, f"{start}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        reader, writer = line
        writer.write(f"{start}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        waited = await exchange(*line, "abcde")
    assert [answer[2] for answer in (sized, chunked, waited)] == [b"posted"] * 3


async def test_the_server_fails_from_a_request_on(open_proxy, open_tunnel):
    recorded = Recorded([USERS, PLAIN], fail_from=2)
    for _ in range(2):  # counted anew for each job
        async with open_proxy(recorded) as door:
            assert (await door.ask("GET http://other.example/ HTTP/1.0\r\n\r\n"))[
                0
            ] == 502  # which is none of its requests
            line = await open_tunnel(door, recorded, "api.example.com:443")
            assert [(await exchange(*line, get("/users")))[0] for _ in range(2)] == [200, 503]
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await exchange(*line, get("/users"))
            assert await door.ask("GET http://plain.example/x HTTP/1.0\r\n\r\n") == (None, "")
            line = await open_tunnel(door, recorded, "api.example.com:443")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await exchange(*line, get("/users"))
        assert all(visit.allowed for visit in door.log.visits[1:])


@pytest.mark.parametrize(
    ("url", "authority", "name"),
    [
        ("https://127.0.0.1/x", "127.0.0.1:443", "127.0.0.1"),
        ("https://[::1]:8443/x", "[::1]:8443", "::1"),
        ("https://localhost/x", "LocalHost:443", "localhost"),
        ("https://under_score.example/x", "under_score.example:443", "under_score.example"),
        (f"https://{'.'.join(['a' * 60] * 4)}/x", f"{'.'.join(['a' * 60] * 4)}:443", None),
        ("https://bücher.example/x", "xn--bcher-kva.example:443", None),
    ],
)
async def test_a_certificate_names_the_host_for_every_kind_of_host(open_proxy, open_tunnel, url, authority, name):
    recorded = Recorded([RecordedAnswer(url=url, body="found")])
    async with open_proxy(recorded) as door:
        line = await open_tunnel(door, recorded, authority, name)
        assert (await exchange(*line, get("/x", authority)))[2] == b"found"


async def test_a_certificate_names_no_other_host(open_proxy):
    recorded = Recorded([USERS])
    async with open_proxy(recorded) as door:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            await asyncio.to_thread(shake_hands, door, recorded.authority.pem, "other.example")


async def test_a_client_that_does_not_trust_the_authority_is_told_so_and_seen(open_proxy):
    recorded = Recorded([USERS])
    async with open_proxy(recorded) as door:
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
            await asyncio.to_thread(shake_hands, door, Authority().pem, "api.example.com")
        await until(lambda: len(door.log.visits) == 2)
    assert [(visit.allowed, visit.reason) for visit in door.log.visits] == [
        (True, ""),
        (False, "the TLS handshake failed; trust the authority that SSL_CERT_FILE names"),
    ]


def test_an_authority_vouches_for_nothing_else():
    authority = Authority()
    context = ssl.create_default_context(cadata=authority.pem.decode())
    assert len(context.get_ca_certs()) == 1
    assert b"PRIVATE" not in authority.pem
    assert Authority().pem != authority.pem


async def test_a_tunnel_may_lead_to_a_plain_server(open_proxy):
    async with open_proxy(Recorded([PLAIN])) as door:
        reader, writer = await door.open()
        writer.write(b"CONNECT plain.example:80 HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert (await exchange(reader, writer, get("/x", "plain.example")))[2] == b"hello"


async def until(condition):
    """Wait for something that another task is about to do."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for belongs to the code under test
            await asyncio.sleep(0)


class TestHostileClients:
    """What is refused, cut short, or ended without a trace."""

    @pytest.mark.parametrize(
        "request_bytes",
        [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET https://api.example.com/users HTTP/1.1\r\n\r\n",
            b"BREW http://plain.example/x HTTP/1.1\r\n\r\n",
            b"GET http://plain.example/x HTTP/1.1\r\nA: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
            b"GET http://plain.example/x HTTP/1.1\r\n" + b"A: x\r\n" * 200 + b"\r\n",
            b"POST http://plain.example/x HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST http://plain.example/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
            b"CONNECT api.example.com HTTP/1.1\r\n\r\n",
            b"CONNECT user@api.example.com:443 HTTP/1.1\r\n\r\n",
            b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n\x16\x03\x01",
        ],
    )
    async def test_what_is_no_request_is_refused_and_seen(self, open_proxy, request_bytes):
        async with open_proxy(Recorded([USERS, PLAIN])) as door:
            status, _ = await door.ask(request_bytes)
        assert status == 400
        assert [visit.allowed for visit in door.log.visits][-1] is False

    @pytest.mark.parametrize(
        "request_text",
        [
            "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n",
            "CONNECT /users HTTP/1.1\r\n\r\n",
            "GET https://api.example.com/users HTTP/1.1\r\n\r\n",
            get(":443/users"),
            get("/users", "other.example"),
            get("/users", "api.example.com:444"),
            get("/users", more="Host: api.example.com\r\n"),
            get("/users", "user@api.example.com"),
            "\0\0\0\0\r\n\r\n",
        ],
    )
    async def test_a_tunnel_leads_to_one_host_alone(self, open_proxy, open_tunnel, request_text):
        recorded = Recorded([USERS, RecordedAnswer(url="https://other.example/users")])
        async with open_proxy(recorded) as door:
            status, _, body = await exchange(*await open_tunnel(door, recorded, "api.example.com:443"), request_text)
        assert status == 400
        assert b"refused: " in body
        assert [visit.allowed for visit in door.log.visits] == [True, False]

    async def test_who_is_slow_to_ask_is_told_to_leave(self, open_proxy):
        async with open_proxy(Recorded([PLAIN]), head_seconds=0.05) as door:
            status, rest = await door.ask(b"GET http://plain.example/x HTT")
        assert (status, "no complete request within 0.05 s" in rest) == (408, True)

    async def test_who_never_shakes_hands_is_dropped(self, open_proxy):
        async with open_proxy(Recorded([USERS]), head_seconds=0.05) as door:
            status, rest = await door.ask(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
        assert (status, rest) == (200, "\r\n")
        assert [visit.allowed for visit in door.log.visits] == [True, False]

    async def test_who_shakes_hands_with_nonsense_is_dropped(self, open_proxy):
        async with open_proxy(Recorded([USERS])) as door:
            reader, writer = await door.open()
            writer.write(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(get("/users").encode())
            async with asyncio.timeout(PATIENCE):
                with suppress(ConnectionError):
                    await reader.read()
        assert [visit.allowed for visit in door.log.visits] == [True, False]

    async def test_who_stays_without_asking_again_leaves_without_a_word(self, open_proxy):
        async with open_proxy(Recorded([PLAIN]), idle_seconds=0.05) as door:
            line = await door.open()
            await exchange(*line, get("http://plain.example/x", "plain.example"))
            async with asyncio.timeout(PATIENCE):
                assert await line[0].read() == b""
        assert [visit.allowed for visit in door.log.visits] == [True]

    async def test_who_sends_too_much_is_stopped(self, open_proxy):
        post = RecordedAnswer(url="http://plain.example/x", method="POST")
        async with open_proxy(Recorded([post]), sent_bytes=1000) as door:
            status, rest = await door.ask(
                b"POST http://plain.example/x HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000
            )
            later, _ = await door.ask(b"GET http://plain.example/x HTTP/1.1\r\n\r\n")
        assert (status, later) == (403, 403)
        assert "more than 1000 bytes were sent by this job" in rest

    async def test_who_stops_in_the_middle_of_a_body_is_dropped(self, open_proxy):
        post = RecordedAnswer(url="http://plain.example/x", method="POST")
        async with open_proxy(Recorded([post]), idle_seconds=0.05) as door:
            status, _ = await door.ask(b"POST http://plain.example/x HTTP/1.1\r\nContent-Length: 2000\r\n\r\nx")
        assert status is None

    async def test_more_visits_than_can_be_noted_are_counted(self, open_proxy):
        async with open_proxy(Recorded([PLAIN]), visits=2) as door:
            line = await door.open()
            for _ in range(5):
                await exchange(*line, get("http://plain.example/x", "plain.example"))
        assert (len(door.log.visits), door.log.dropped) == (2, 3)

    async def test_more_connections_than_allowed_are_told_so(self, open_proxy):
        async with open_proxy(Recorded([PLAIN]), connections=1) as door:
            held = await door.open()
            await exchange(*held, get("http://plain.example/x", "plain.example"))
            status, rest = await door.ask(b"GET http://plain.example/x HTTP/1.1\r\n\r\n")
        assert (status, "1 connections are open already" in rest) == (503, True)

    @pytest.mark.parametrize("secure", [False, True])
    async def test_nothing_is_left_of_clients_that_do_not_read(self, open_proxy, open_tunnel, secure, caplog):
        scheme = "https" if secure else "http"
        recorded = Recorded([RecordedAnswer(url=f"{scheme}://big.example/x", body="x" * 5_000_000)])
        recorded.authority.context_for("big.example")
        before = asyncio.all_tasks()
        async with open_proxy(recorded) as door:
            for _ in range(3):
                if secure:
                    _, writer = await open_tunnel(door, recorded, "big.example:443")
                    writer.write(get("/x", "big.example").encode())
                else:
                    _, writer = await door.open()
                    writer.write(get("http://big.example/x", "big.example").encode())
            await until(lambda: len([visit for visit in door.log.visits if visit.allowed]) >= 3 * (1 + secure))
        await until(lambda: asyncio.all_tasks() == before)
        assert caplog.records == []

    async def test_the_deadline_ends_everything(self, open_proxy):
        async with open_proxy(Recorded([PLAIN]), seconds=0.1) as door:
            reader, _ = await door.open()
            async with asyncio.timeout(PATIENCE):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            with pytest.raises(OSError):
                await door.open()

    async def test_no_descriptor_stays_open(self, open_proxy, open_tunnel):
        recorded = Recorded([USERS, PLAIN])
        recorded.authority.context_for("api.example.com")
        before = sorted(Path("/proc/self/fd").iterdir())
        async with open_proxy(recorded, head_seconds=0.05) as door:
            line = await open_tunnel(door, recorded, "api.example.com:443")
            await exchange(*line, get("/users"))
            await door.ask("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
            await door.ask("CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0)
        assert sorted(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (RecordedAnswer(url="ftp://a.example/"), "recorded answer 2: URL refused: it does not begin with http"),
        (RecordedAnswer(url="http://user:secret@a.example/"), "recorded answer 2: URL refused: it holds a user name"),
        (RecordedAnswer(url="http://a.example/", method="BREW"), "recorded answer 2: method 'BREW' is refused"),
        (RecordedAnswer(url="http://a.example/", status=101), "recorded answer 2: status 101 ends no request"),
        (RecordedAnswer(url="http://a.example/", status=600), "recorded answer 2: status 600 ends no request"),
        (RecordedAnswer(url="http://a.example/", headers={"A": "x\r\nB: y"}), "recorded answer 2: header 'A'"),
        (RecordedAnswer(url="http://a.example/", headers={"A\r\nB": "y"}), "recorded answer 2: header"),
        (RecordedAnswer(url="http://a.example/", headers={"A": "\u2603"}), "recorded answer 2: header 'A'"),
        (
            RecordedAnswer(url="http://a.example/", body="\ud800"),
            "recorded answer 2: its body contains a lone surrogate",
        ),
    ],
)
def test_an_answer_that_no_server_could_give_is_refused(answer, problem):
    with pytest.raises(ToolError, match=problem) as caught:
        Recorded([PLAIN, answer])
    assert caught.value.kind is Kind.VALIDATION
    assert "secret" not in caught.value.message


PAIRS = st.lists(st.tuples(st.text("ab", min_size=1, max_size=2), st.text("xy &=%+", max_size=3)), max_size=4)


@given(pairs=PAIRS)
def test_the_order_of_a_query_never_matters(pairs):
    from urllib.parse import urlencode

    answers = RecordedReplies([RecordedAnswer(url=f"http://a.example/?{urlencode(pairs)}", body="found")])
    for order in permutations(pairs):
        assert answers.begin().next("GET", parse_url(f"http://a.example/?{urlencode(order)}")) is not None


@given(bodies=st.lists(st.text(max_size=3), min_size=1, max_size=4), times=st.integers(1, 6))
def test_answers_come_in_order_and_the_last_stays(bodies, times):
    turns = RecordedReplies([RecordedAnswer(url="http://a.example/", body=body) for body in bodies]).begin()
    url = parse_url("http://a.example/")
    given_bodies = [turns.next("GET", url).body.decode() for _ in range(times)]
    assert given_bodies == (bodies + [bodies[-1]] * times)[:times]


@given(
    pieces=st.lists(
        st.sampled_from(
            [
                b"GET http://plain.example/x HTTP/1.1\r\n",
                b"POST http://plain.example/x HTTP/1.1\r\n",
                b"CONNECT api.example.com:443 HTTP/1.1\r\n",
                b"CONNECT plain.example:80 HTTP/1.1\r\n",
                b"GET /x HTTP/1.1\r\n",
                b"Host: plain.example\r\n",
                b"Content-Length: 3\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"Expect: 100-continue\r\n",
                b"\r\n",
                b"3\r\nabc\r\n",
                b"0\r\n\r\n",
                b"\x16\x03\x01",
                b"\xff\0",
            ]
        )
        | st.binary(max_size=8),
        max_size=12,
    )
)
def test_any_input_is_answered_or_ends_the_connection(pieces):
    complaints = []

    class Hear(logging.Handler):
        def emit(self, record):
            complaints.append(record.getMessage())

    async def talk():
        listener = socket.create_server(("127.0.0.1", 0))
        address = listener.getsockname()
        serve = Recorded([USERS, PLAIN]).proxy(None, deadline=time.monotonic() + PATIENCE)
        async with asyncio.timeout(PATIENCE), serve(listener):
            reader, writer = await asyncio.open_connection(*address)
            with suppress(ConnectionError):
                writer.write(b"".join(pieces))
                writer.write_eof()
                await reader.read()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    handler = Hear()
    logging.getLogger("toolcrib.egress").addHandler(handler)
    try:
        asyncio.run(talk())
    finally:
        logging.getLogger("toolcrib.egress").removeHandler(handler)
    assert complaints == []
