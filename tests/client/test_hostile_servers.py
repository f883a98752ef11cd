"""Servers that lie, never end, break off or send their clients elsewhere: one clear complaint each, and nothing else."""

from __future__ import annotations

import copy
import itertools
import json
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import Call, Crib, Kind, ToolError, tool
from toolcrib.client.connection import Connection
from toolcrib.client.remote_crib import RemoteCrib
from toolcrib.toolkit.tool_facts import all_facts_of, facts_of

COMMANDS = [
    ("list",),
    ("list", "--json"),
    ("show", "x"),
    ("explain", "x"),
    ("call", "x"),
    ("call", "x", "a=1"),
    ("call", "x", "--full"),
    ("search", "x"),
    ("result", "0" * 48),
    ("enable", "x"),
    ("disable", "x/*"),
    ("bundle", "list"),
    ("bundle", "delete", "x"),
    ("request", "list"),
    ("request", "show", "req_20240115_001"),
    ("request", "watch", "req_20240115_001"),
    ("request", "cancel", "req_20240115_001"),
    ("request", "retry", "req_20240115_001"),
    ("request", "allow", "req_20240115_001", "--nothing"),
    ("experiments",),
]
HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS = itertools.chain([HEAD + b"Connection: close\r\n\r\n"], itertools.repeat(b"x" * 1_000_000))
OTHERS = {
    "nothing": [],
    "no HTTP": [b"220 mail.example ESMTP\r\n"],
    "half a head": [b"HTTP/1.1 200"],
    "half a body": [HEAD + b'Content-Length: 100\r\n\r\n{"tools": ['],
    "half a chunk": [HEAD + b"Transfer-Encoding: chunked\r\n\r\n50\r\n{"],
    "too long a body": [HEAD + b"Content-Length: 99999999999\r\n\r\n"],
    "a bomb": [HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + b"\x1f\x8b\x08" + b"\0" * 100],
    "a page": [HEAD + b"Connection: close\r\n\r\n<html>Welcome</html>"],
    "a text": [HEAD + b'Connection: close\r\n\r\n"ok"'],
    "an empty object": [HEAD + b"Connection: close\r\n\r\n{}"],
    "another object": [HEAD + b'Connection: close\r\n\r\n{"tools": "none", "ok": true, "bundles": [1]}'],
    "two readings": [HEAD + b'Connection: close\r\n\r\n{"ok": true, "ok": false}'],
    "too deep": [HEAD + b"Connection: close\r\n\r\n" + b'{"a":' * 5000 + b"1" + b"}" * 5000],
    "no text": [HEAD + b"Connection: close\r\n\r\n\xff\xfe\x00"],
    "nothing at all": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "a failure": [b"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n<h1>Oops</h1>"],
    "a failure in JSON": [b'HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n{"error": "oops"}'],
    "a problem of others": [
        b'HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n{"kind": "ODD", "detail": "x", "ok": false}'
    ],
    "a problem without words": [b'HTTP/1.1 404 Bad\r\nConnection: close\r\n\r\n{"kind": "NOT_FOUND", "detail": 1}'],
    "a problem of no kind": [b'HTTP/1.1 404 Bad\r\nConnection: close\r\n\r\n{"kind": [], "detail": "x"}'],
    "a path that is not there": [b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nNot Found"],
}


PAIRS: list[tuple[str, tuple[str, ...]]] = [
    (kind, words) for kind in OTHERS for words in (("list",), ("call", "x", "a=1"), ("call", "x", "--full"))
]
PAIRS += [("an empty object", words) for words in COMMANDS]


@pytest.mark.parametrize(("kind", "words"), PAIRS)
def test_what_is_no_answer_of_ours_is_told_in_a_line(puppet, cli, kind, words):
    puppet.say = lambda _: iter(OTHERS[kind])
    ended = cli(*words, "--url", puppet.url)
    assert ended.code == 1
    assert ended.out == "" or json.loads(ended.out)["ok"] is False
    assert puppet.url in ended.out + ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err.splitlines()) <= 2


def test_a_body_without_end_is_left_where_it_is_too_much(puppet, cli):
    puppet.say = lambda _: ENDLESS
    ended = cli("list", "--url", puppet.url)
    assert ended.code == 1
    assert "the limit is 32000000" in ended.err


def test_a_server_that_is_not_there_is_told_with_the_cure(cli):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for words in COMMANDS:
        ended = cli(*words, "--url", url)
        assert ended.code == 1
        told = ended.out + ended.err
        assert "connection refused; is a server running there that speaks http? Start one with: crib serve" in told


def test_an_unknown_name_is_told(cli):
    ended = cli("list", "--url", "http://nowhere.invalid")
    assert ended.code == 1
    assert "looking up the name failed; is a server running there that speaks http?" in ended.err


def test_a_server_that_does_not_speak_tls_is_told(puppet, cli):
    puppet.say = lambda _: iter([b"HTTP/1.1 400 Bad Request\r\n\r\n"])
    ended = cli("list", "--url", puppet.url.replace("http:", "https:"))
    assert ended.code == 1
    assert "does it speak https?" in ended.err


def test_a_certificate_without_a_known_issuer_is_told_with_the_cure(puppet, cli, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(key.private_bytes(*plain) + certificate.public_bytes(plain[0]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    puppet.secure = lambda connection: context.wrap_socket(connection, server_side=True)
    ended = cli("list", "--url", puppet.url.replace("http:", "https:"))
    assert ended.code == 1
    err = ended.err
    assert "the TLS certificate is not trusted" in err
    assert "SSL_CERT_FILE" in err
    assert puppet.heard == []


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_redirects_are_not_followed_and_no_token_goes_there(puppet, cli, monkeypatch, status):
    monkeypatch.setenv("CRIB_TOKEN", "crib_secret")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        puppet.answer({}, status=status, head=f"Location: http://127.0.0.1:{port}/crib/tools\r\n")
        for words in (("list",), ("call", "x", "--args", "{}")):
            ended = cli(*words, "--url", puppet.url)
            assert ended.code == 1
            err = ended.err
            assert f"sends its clients on to 127.0.0.1:{port}, which --url does not name" in err
            assert "crib_secret" not in err
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert all("Authorization: Bearer crib_secret" in head for head in puppet.heard)


def test_a_redirect_to_a_public_address_is_not_followed_either(puppet, cli):
    puppet.answer({}, status="302 Found", head="Location: http://1.1.1.1/crib/tools\r\n")
    ended = cli("list", "--url", puppet.url)
    assert ended.code == 1
    assert "sends its clients on to 1.1.1.1:80, which --url does not name" in ended.err


def test_a_server_that_sends_clients_to_itself_for_ever_is_left(puppet, cli):
    puppet.answer({}, status="302 Found", head="Location: /again\r\n")
    ended = cli("list", "--url", puppet.url)
    assert ended.code == 1
    assert "redirects" in ended.err
    assert len(puppet.heard) < 10


def test_a_list_without_end_is_left(puppet, cli):
    puppet.answer({"tools": [], "nextPageToken": "again", "bundles": []})
    for words in (("list",), ("bundle", "list")):
        ended = cli(*words, "--url", puppet.url)
        assert ended.code == 1
        assert "the list does not end" in ended.err


def test_a_result_without_end_is_left(puppet, cli):
    puppet.answer({"text": "", "offset": 0, "total": 9, "next": 1})
    ended = cli("result", "0" * 48, "--url", puppet.url)
    assert ended.code == 1
    assert "the result does not end" in ended.err


def test_what_a_server_says_cannot_move_the_cursor(puppet, cli):
    puppet.answer({"kind": "CONFLICT", "detail": "\x1b[2Jred"}, status="409 Conflict")
    for words in COMMANDS:
        ended = cli(*words, "--url", puppet.url)
        assert ended.code in (1, 3)
        out, err = ended.out, ended.err
        assert "\x1b" not in out + err


def test_a_refusal_at_the_door_of_the_server_is_a_refusal_of_the_call(puppet, cli):
    puppet.answer({"kind": "RATE_LIMIT", "detail": "too many", "retryable": True}, status="429 Too Many")
    ended = cli("call", "x", "--url", puppet.url)
    assert (ended.code, ended.err) == (3, "crib: too many\n      RATE_LIMIT (server)\n")


def test_a_server_behind_a_path_is_reached_there(puppet):
    puppet.answer({"tools": [], "nextPageToken": None})
    with RemoteCrib(f"{puppet.url}/behind/a/proxy/") as crib:
        assert crib.list_tools(tags=["a b"]) == []
    assert puppet.heard[0].startswith("GET /behind/a/proxy/crib/tools?tags=a+b&pageSize=256 HTTP/1.1\r\n")


def test_a_removal_is_believed_only_where_the_server_says_that_nothing_is_left(puppet):
    with RemoteCrib(puppet.url) as crib:
        puppet.answer(b"", status="204 No Content")
        crib.bundles.delete_tool("b", "a b", "v1")
        for body, status in ((b"", "200 OK"), ({"slug": "a"}, "200 OK"), (b"<html>", "200 OK")):
            puppet.answer(body, status=status)
            with pytest.raises(ToolError, match="not answer as|not as Toolcrib does"):
                crib.bundles.delete_tool("b", "a b", "v1")
    assert puppet.heard[0].startswith("DELETE /tools/bundles/b/tools/a%20b/version/v1 HTTP/1.1\r\n")


def test_a_name_is_looked_up_once_and_what_it_meant_then_is_all_that_is_reached(puppet):
    puppet.answer({"problems": []})
    asked = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with RemoteCrib(f"http://crib.internal:{puppet.port}") as crib:
        crib.server.connection = Connection(crib.url, None, resolve=resolve)  # the one seam to the name service
        assert [crib.problems, crib.problems] == [[], []]
    assert asked == [("crib.internal", puppet.port)]
    assert len(puppet.heard) == 2


def test_the_name_of_this_machine_is_a_permission_too(puppet):
    puppet.answer({"problems": ["a.py is broken"]})
    with RemoteCrib(f"http://localhost:{puppet.port}") as crib:
        assert [problem.message for problem in crib.problems] == ["a.py is broken"]


def test_what_only_the_host_of_a_crib_can_give_is_refused(puppet):
    with RemoteCrib(puppet.url) as crib:
        result = crib.call_sync(Call(name="x", grants=frozenset({"net.http"})))
        assert result.error.kind is Kind.VALIDATION
        with pytest.raises(ToolError, match="granted on the server"):
            crib.explain(Call(name="x", grants=frozenset()))
    assert puppet.heard == []


def test_a_call_whose_time_is_up_is_not_made(puppet):
    with RemoteCrib(puppet.url) as crib:
        result = crib.call_sync(Call(name="x", deadline=0.0))
    assert result.error.kind is Kind.TIMEOUT


def test_arguments_arrive_as_they_were_meant(puppet):
    puppet.answer({"ok": True, "value": 2**70, "intents": [], "meta": {}})
    with RemoteCrib(puppet.url, token="crib_t") as crib:
        assert crib.call_sync("say", {"text": "ü", "n": 2**70}, more=None).value == 2**70
    body = json.loads(puppet.heard[0].partition("\r\n\r\n")[2])
    assert body == {"text": "ü", "n": 2**70, "more": None}


def test_a_call_says_its_place_in_the_path_and_the_rest_in_headers(puppet):
    puppet.answer({"ok": True, "value": 1, "intents": [], "meta": {}})
    call = Call(name="a/b", bundle="x y", version="1.0", mode="voice", confirmation="t", id="mine")
    with RemoteCrib(puppet.url, token="crib_t") as crib:
        assert crib.call_sync(call).ok
    head = puppet.heard[0]
    assert head.startswith("POST /call/a%2Fb?bundle=x+y&version=1.0 ")
    for line in ("toolcrib-mode: voice", "toolcrib-confirmation: t", "x-request-id: mine"):
        assert line in head.lower(), line


def test_what_could_end_a_header_is_refused_before_anything_is_sent(puppet):
    with RemoteCrib(puppet.url, token="crib_t") as crib:
        for call in (Call(name="say", mode="a\r\nb"), Call(name="say", confirmation="ü")):
            assert "cannot be sent in a header" in crib.call_sync(call).error.message
    assert puppet.heard == []


@tool
def add(first: int, second: int = 1) -> int:
    """Add two numbers."""
    return first + second


with Crib(tools=[add]) as _crib:
    LISTED = [{**facts_of(_crib, entry), "order": place} for place, entry in enumerate(_crib.entries)]
    (_add,) = (entry for entry in _crib.entries if entry.tool.name == "add")
    SHOWN = {**all_facts_of(_crib, _add), "bundleID": "x", "cost": None}
    SHOWN["cost"] = {"per_invocation": 1, "per_minute": 0, "estimated_duration": 2, "estimate": 1, "currency": "USD"}
EXPLAINED = {
    "tool": "add",
    "findings": [
        {"gate": "a", "decision": "allow"},
        {"gate": "b", "decision": "deny", "reason": "no", "kind": "BLOCKED", "details": {}},
        {"gate": "c", "decision": "not reached"},
    ],
}
FAILED = {"type": "BLOCKED", "message": "no", "retryable": False, "partialSideEffects": False, "details": {"gate": "x"}}
FILED = {
    **dict.fromkeys(("id", "name", "createdAt", "updatedAt", "yaml"), "x"),
    **dict.fromkeys(("experiment", "tool", "error", "mergedInto", "owner"), None),
    "status": "failed",
    "priority": "high",
    "held": False,
    "attempts": 1,
    "requesters": 1,
    "allowance": {"capabilities": [], "hosts": [], "answers": 0, "unproved": False},
}
HAPPENED = {"number": 1, "at": "2024-01-15T00:00:00Z", "step": "filed", "text": "a\nb"}
WAITING = {"id": "exp", "status": "blocked", "waitsFor": ["x"], "requests": ["y"], "releasedAt": None}
DOCUMENTS = {
    ("request", "list"): {"requests": [FILED]},
    ("request", "show", "req_20240115_001"): {**FILED, "history": [HAPPENED]},
    ("request", "cancel", "req_20240115_001"): FILED,
    ("experiments",): {"experiments": [WAITING]},
    ("list",): {"tools": LISTED, "nextPageToken": None},
    ("show", "add"): {"tools": [SHOWN], "nextPageToken": None},
    ("explain", "add"): EXPLAINED,
    ("call", "add"): {"ok": False, "error": FAILED, "intents": [{"type": "x"}], "meta": {"kept": {}, "warnings": []}},
    ("search", "add"): {
        "tools": [
            {**dict.fromkeys(("name", "address", "bundle", "version", "foundBy", "description"), "x"), "score": 1}
        ],
        "nextPageToken": None,
    },
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_answer_that_is_wrong_anywhere_is_shown_or_refused_and_never_trips_the_program(puppet, cli, data):
    words = data.draw(st.sampled_from(list(DOCUMENTS)))
    document = copy.deepcopy(DOCUMENTS[words])
    path = data.draw(st.sampled_from([place for place in places(document) if place]))
    target = document
    for step in path[:-1]:
        target = target[step]
    if isinstance(target, dict) and data.draw(st.booleans()):
        del target[path[-1]]
    else:
        target[path[-1]] = data.draw(VALUES)
    puppet.answer(document)
    ended = cli(*words, "--url", puppet.url)
    assert ended.code in (0, 1, 3, 4, 5)
    out, err = ended.out, ended.err
    assert "Traceback" not in err
    assert "\x1b" not in out + err


STREAM = HEAD + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNK = b'event: chunk\ndata: {"number": 1, "value": 1, "checked": false}\n\n'


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ([STREAM + CHUNK], Kind.TRANSIENT, "broke off before the result of the call"),
        ([STREAM + b"event: chunk\ndata: {\n\n"], Kind.PERMANENT, "sends events that no server of Toolcrib sends"),
        (
            [STREAM + b"event: result\ndata: " + b"[" * 1_000 + b"]" * 1_000 + b"\n\n"],
            Kind.PERMANENT,
            "sends events that no server of Toolcrib sends",
        ),
        (
            [STREAM + b"event: chunk\ndata: {}\n\n"],
            Kind.PERMANENT,
            "does not answer as this version of Toolcrib expects",
        ),
        (
            [STREAM + b"event: result\ndata: []\n\n"],
            Kind.PERMANENT,
            "does not answer as this version of Toolcrib expects",
        ),
        (
            itertools.chain([STREAM], itertools.repeat(b"data: " + b"x" * 1_000_000 + b"\n", 40)),
            Kind.LIMIT_EXCEEDED,
            "an event of more than",
        ),
        ([HEAD + b"Connection: close\r\n\r\n<html>Welcome</html>"], Kind.PERMANENT, "not as Toolcrib does"),
    ],
    ids=["broken off", "no JSON", "deep JSON", "another shape", "another result", "endless", "a page"],
)
def test_a_stream_that_is_none_of_ours_ends_with_one_error(puppet, said, kind, message):
    puppet.say = lambda _: iter(said)
    with RemoteCrib(puppet.url) as remote:
        *_, result = remote.stream_sync("x")
    assert result.error.kind is kind
    assert message in result.error.message
    assert result.error.message.count("is this the URL") <= 1


def test_a_stream_whose_answer_never_begins_ends_with_the_time_of_the_call(puppet):
    left = threading.Event()

    def say(_):
        yield b"HTTP/1.1 200 OK\r\nX-Slow: a"
        left.wait(20)

    puppet.say = say
    with RemoteCrib(puppet.url) as remote:
        *_, result = remote.stream_sync(Call(name="x", deadline=time.monotonic() + 0.5))
        left.set()
    assert result.error.kind is Kind.TIMEOUT
    assert "no answer began within" in result.error.message
    assert result.error.partial_side_effects


def test_events_that_a_later_version_may_add_are_passed_over(puppet):
    result = b'event: result\r\ndata: {"ok": true, "value": 1, "intents": [], "meta": {}}\r\n\r\n'
    puppet.say = lambda _: iter([STREAM + b": hello\n\nevent: new\ndata: ?\n\n", CHUNK[:20], CHUNK[20:], result])
    with RemoteCrib(puppet.url) as remote:
        chunk, last = remote.stream_sync("x")
    assert (chunk.value, last.value) == (1, 1)
