"""Marked secrets go through everything that handles secrets, and turn up nowhere but where they were sent."""

import base64
import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.__main__ import main
from warm_python import WarmPython

BUNDLE = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
# Each in letters that every spelling writes differently, as far as its place takes them.
SECRETS = {
    "CANARY_QUERY": 'cänary/query+7f3a&=%"\\ <end>',
    "CANARY_PATH": "canary path?55e1#é",
    "CANARY_HEADER": "canary-header/19bd+~'==",
    "CANARY_BODY": 'canary "body" \\ 88a2 <ü>\nsecond line of the canary',
    "CANARY_PIN": "739184625011793",
}
ARGUMENTS = {"city": "Oslo"}
# The same secrets as credentials.
DECLARED = {
    "bearer": {"type": "bearer", "token": "${secret:CANARY_HEADER}"},
    "basic": {"type": "basic", "username": "ann", "password": "${secret:CANARY_BODY}"},
    "signed": {
        "type": "hmac",
        "key": "${secret:CANARY_QUERY}",
        "key_id": "${secret:CANARY_PIN}",
        "string": "${timestamp}.${body}",
        "headers": {"X-Signature": "${key_id} ${timestamp} ${signature}"},
    },
    "aws": {
        "type": "aws_sigv4",
        "access_key_id": "${secret:CANARY_PIN}",
        "secret_access_key": "${secret:CANARY_BODY}",
        "session_token": "${secret:CANARY_HEADER}",
        "region": "eu-north-1",
        "service": "s3",
    },
}


def coded_in(raw):
    """The letters of base64 that the bytes alone decide, independent of their neighbours."""
    for offset in range(3):
        first, last = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        for code in (base64.b64encode, base64.urlsafe_b64encode):
            yield code(bytes(offset) + raw).decode()[first:last]


def spelled(value):
    """What to look for: every way in which the value could be told, worked out by others than ours."""
    raw = value.encode()
    quoted = {urllib.parse.quote(raw, safe=safe) for safe in ("", "/", "/?:@!$'()*,", "/?:@!$&'()*+,;=")}
    quoted |= {urllib.parse.quote_plus(raw)}
    quoted |= {re.sub("%..", lambda found: found[0].lower(), text) for text in quoted}
    escaped = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    twice = {json.dumps(text)[1:-1] for text in escaped}
    coded = set()
    for text in {value, *quoted, *escaped}:
        coded.update(coded_in(text.encode()))
    return {value, *quoted, *escaped, *twice, *coded, raw.hex(), *value.splitlines()}


NEEDLES = {name: {text.encode() for text in spelled(value)} for name, value in SECRETS.items()}


def hits(data):
    """The names of the secrets that can be read in it."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return sorted(name for name, needles in NEEDLES.items() if any(needle in raw for needle in needles))


class Echo(http.server.BaseHTTPRequestHandler):
    """Repeats everything that it is sent, in many ways."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(address.query)
        self.server.heard.append((self.path, dict(self.headers), body))
        whole = f"{self.path} {query} {self.headers} ".encode() + body
        told = {
            "path": self.path,
            "unquoted": urllib.parse.unquote(address.path),
            "query": query,
            "headers": dict(self.headers),
            "body": body.decode(),
            "pin": int(self.headers.get("X-Pin", 0)),
            "base64": base64.b64encode(whole).decode(),
            "hex": body.hex(),
            query.get("key", ["none"])[0]: "as the name of a member",
            "filler": "x" * 3_000,
        }
        way = address.path.split("/")[1]
        getattr(self, f"answer_{way}")(json.dumps(told, ensure_ascii=False).encode(), address.query)

    do_GET = do_POST

    def answer_json(self, told, query):
        self.reply(200, told)

    def answer_text(self, told, query):
        self.reply(200, told, kind=f"text/plain; for={self.headers.get('X-Pin')}")

    def answer_broken(self, told, query):
        self.reply(200, told[:-5])

    def answer_refused(self, told, query):
        self.reply(400, told)

    def answer_unauthorized(self, told, query):
        self.reply(401, told)

    def answer_missing(self, told, query):
        self.reply(404, told)

    def answer_busy(self, told, query):
        self.reply(429, told)

    def answer_crashed(self, told, query):
        self.reply(500, told)

    def answer_redirected(self, told, query):
        self.reply(307, told, location=f"/json/again?{query}")

    def answer_away(self, told, query):
        self.reply(302, told, location=f"http://elsewhere.invalid/?{query}")

    def answer_misled(self, told, query):
        self.reply(302, told, location=f"http://{self.headers.get('X-Pin')}.invalid:port/{query}")

    def answer_packed(self, told, query):
        self.reply(200, told, encoding=f"x-{self.headers.get('X-Pin')}")

    def answer_lettered(self, told, query):
        self.reply(200, told, kind=f"text/plain; charset={self.headers.get('X-Pin')}")

    def answer_round(self, told, query):
        self.reply(302, told, location=self.path)

    def answer_cut(self, told, query):
        self.send_response(200)
        self.send_header("Content-Length", str(len(told) + 100))
        self.end_headers()
        self.wfile.write(told)
        self.close_connection = True

    def answer_garbage(self, told, query):
        self.wfile.write(b"HTTP/9.9 nonsense " + told[:500] + b"\r\n\r\n")
        self.close_connection = True

    def answer_slow(self, told, query):
        self.server.released.wait(25)
        self.close_connection = True

    def reply(self, status, told, *, kind="application/json", location="", encoding=""):
        self.send_response(status, "Told")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(told)))
        if location:
            self.send_header("Location", location)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_):
        pass


WAYS = sorted(name.removeprefix("answer_") for name in vars(Echo) if name.startswith("answer_"))


class EchoServer(http.server.ThreadingHTTPServer):
    """Notes what it is sent, and says nothing of those who go away."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Echo)
        self.heard = []
        self.released = threading.Event()

    def handle_error(self, *_):
        pass


@pytest.fixture
def echo():
    server = EchoServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join(25)


@pytest.fixture
def project(tmp_path, echo, monkeypatch):
    """A project whose secrets come from everywhere they can come from."""
    root, operator = tmp_path / "project", tmp_path / "operator"
    root.mkdir()
    operator.mkdir()
    (operator / "more.env").write_text(f"CANARY_HEADER={SECRETS['CANARY_HEADER']}\n")
    (operator / "more.env").chmod(0o600)
    monkeypatch.setenv("CANARY_PIN", SECRETS["CANARY_PIN"])
    place = f"127.0.0.1:{echo.server_port}"
    (root / "toolcrib.toml").write_text(
        f'grants."*" = ["net.http"]\nhttp_tools.hosts = ["{place}"]\ncalls.result_bytes = 2000\nhttp_tools.max_retries = 1\n'
        f'[egress]\nprivate = ["{place}"]\n'
        f'[secrets]\nenvironment = ["CANARY_PIN"]\nfile = "{operator / "more.env"}"\n'
    )
    with Crib(root) as crib:
        for name in ("CANARY_QUERY", "CANARY_PATH", "CANARY_BODY"):
            crib.secrets.set(name, SECRETS[name])
        crib.bundles.put_bundle(
            BUNDLE, {"slug": "canary", "displayName": "Canary", "isEnabled": True, "description": "x"}
        )
        for slug, document in documents(echo.server_port).items():
            crib.bundles.put_tool(BUNDLE, slug, "v1", document)
    return root


def documents(port):
    """A tool for each way to answer, and some that read the answer otherwise."""
    found = {way: document(port, way) for way in WAYS}
    found["text"]["impl"]["responseEncoding"] = "text"
    found["slow"]["impl"]["timeoutMs"] = 200
    found["extracted"] = document(port, "json", extractExpr="$.query")
    found["matched"] = document(port, "text", responseEncoding="text", extractExpr='key=([^&"]+)')
    found["emptied"] = document(port, "crashed", errorMode="empty")
    found["invalid"] = {**document(port, "json"), "outputSchema": {"type": "object", "maxProperties": 1}}
    found["nowhere"] = document(1, "json")
    for kind, auth in DECLARED.items():
        found[kind] = document(port, "json", headers={"X-Pin": "${CANARY_PIN}"}, auth=auth)
        found[f"{kind}-crashed"] = document(port, "crashed", headers={}, auth=auth)
    found["unfit"] = document(port, "json", headers={"X-Key": "${CANARY_BODY}"})
    found["uncalled"] = document(port, "json", bodyTemplate="${CANARY_BODY} ${CANARY_NONE}")
    return found


def document(port, way, **impl):
    return {
        "schemaVersion": "1",
        "displayName": f"Canary {way}",
        "description": "Sends every secret.",
        "type": "http",
        "isEnabled": True,
        "argSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "outputSchema": {},
        "impl": {
            "method": "POST",
            "urlTemplate": f"http://127.0.0.1:{port}/{way}/${{CANARY_PATH}}?q=${{city}}&key=${{CANARY_QUERY}}",
            "headers": {"Authorization": "Bearer ${CANARY_HEADER}", "X-Pin": "${CANARY_PIN}"},
            "bodyTemplate": '{"key": "${CANARY_BODY}", "city": "${city}"}',
            "responseEncoding": "json",
            "successCodes": [200],
            "timeoutMs": 5000,
            "errorMode": "fail",
            **impl,
        },
    }


def files_of(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def assert_everything_arrived(echo):
    """Otherwise nothing would be proved."""
    assert {path.split("/")[1] for path, _, _ in echo.heard} == set(WAYS)
    path, headers, body = echo.heard[-1]
    assert hits(path) == ["CANARY_PATH", "CANARY_QUERY"]
    assert hits(json.dumps(headers)) == ["CANARY_HEADER", "CANARY_PIN"]
    assert json.loads(body)["key"] == SECRETS["CANARY_BODY"]


def assert_untold(told):
    assert {name: found for name, text in told.items() if (found := hits(text))} == {}


@pytest.mark.parametrize("name", SECRETS)
def test_the_harness_finds_what_it_looks_for(name):
    value = SECRETS[name]
    for text in (value, json.dumps({"a": [value]}), urllib.parse.urlencode({"a": value}), repr({"a": value})):
        assert name in hits(text)
    assert name in hits(base64.b64encode(f"user:{value}".encode()))
    assert hits("nothing of the kind") == []


@pytest.mark.spec("S1-39")
@pytest.mark.timeout(60)
async def test_no_result_error_log_or_file_tells_a_secret(project, echo, caplog):
    caplog.set_level(0)
    told = {}
    async with Crib(project) as crib:
        for slug in documents(0):
            result = await crib.call(f"canary/{slug}", ARGUMENTS)
            told[f"result of {slug}"] = repr(result) + json.dumps(result.to_json(), default=str)
            told[f"explanation of {slug}"] = repr(crib.explain(f"canary/{slug}", ARGUMENTS))
            if isinstance(handle := result.meta.get("handle"), str):
                told[f"rest of {slug}"] = repr(crib.read_result(handle))
        told["wrong arguments"] = repr(await crib.call("canary/json", {"city": 5, "CANARY_PIN": 1}))
        told["tools"] = repr(crib.tools) + repr(crib.entries)
        for provider in ("openai", "anthropic", "gemini", "mcp"):
            told[f"export for {provider}"] = repr(crib.export(provider))
        told["prompt"] = repr(crib.prompt("text"))
        told["journal"] = repr(list(crib.journal.read()))
        told["metrics"] = repr(crib.metrics.read())
        told["bundles"] = repr(crib.bundles.list_tools(include_disabled=True)) + repr(crib.bundles.search("canary"))
        told["parts"] = repr(vars(crib)) + repr(crib.secrets) + repr(crib.settings) + repr(crib.secrets.places())
    told["log"] = caplog.text
    assert_everything_arrived(echo)
    assert "***" in told["result of json"]
    assert "call" in caplog.text
    assert_untold(told)
    assert_untold(files_of(project))


@pytest.mark.spec("S1-39")
def test_a_parameter_cannot_be_called_like_a_secret_and_the_refusal_tells_nothing(project):
    with Crib(project) as crib:
        clashing = document(1, "json")
        clashing["argSchema"] = {"type": "object", "properties": {"CANARY_QUERY": {"type": "string"}}}
        with pytest.raises(Exception, match="CANARY_QUERY") as refused:
            crib.bundles.put_tool(BUNDLE, "clashing", "v1", clashing)
        assert hits(repr(refused.value) + repr(getattr(refused.value, "details", ""))) == []
        crib.secrets.set("city", "canary-later")
        result = crib.call_sync("canary/json", ARGUMENTS)
    assert str(result.error.kind) == "VALIDATION"
    assert hits(repr(result)) == []


COMMANDS = [
    *(["list"], ["list", "--json"], ["show", "canary/json"], ["show", "canary/json", "--json"]),
    *(["explain", "canary/json", "city=Oslo"], ["explain", "canary/json", "--json", "city=Oslo"]),
    *(["call", way, "city=Oslo"] for way in ("canary/text", "canary/crashed", "canary/away", "canary/invalid")),
    *(["call", "--verbose", "canary/broken", "city=Oslo"], ["call", "--full", "canary/json", "city=Oslo"]),
    *(["search", "canary"], ["search", "--json", "canary"], ["search", "--question", "canary"], ["bundle", "list"]),
    *(["export", "--for", "openai"], ["prompt"], ["doc", "canary/json"], ["check"], ["stats"]),
    *(["secret", "list"], ["secret", "list", "--json"], ["token", "list"], ["secret", "set", "CANARY_PIN", "x"]),
]


@pytest.mark.spec("S1-39")
@pytest.mark.timeout(60)
def test_no_command_tells_a_secret(project, monkeypatch, capfd):
    monkeypatch.chdir(project)
    told = {}
    for words in COMMANDS:
        main(words)
        told[" ".join(words)] = "".join(capfd.readouterr())
    assert "CANARY_QUERY" in told["secret list"]
    assert "***" in told["call --full canary/json city=Oslo"]
    assert_untold(told)
    assert_untold(files_of(project))


@contextmanager
def served(project):
    command = [sys.executable, "-m", "toolcrib", "-C", str(project), "serve", "--port", "0"]
    process = WarmPython(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(port, method, path, document=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        body = None if document is None else json.dumps(document)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return f"{answer.status} {answer.headers} {answer.read().decode()}"
    finally:
        connection.close()


@pytest.mark.spec("S1-39")
@pytest.mark.timeout(60)
def test_no_answer_of_the_server_tells_a_secret_nor_does_its_log_or_its_command_line(project, echo):
    told, base = {}, f"/tools/bundles/{BUNDLE}"
    with served(project) as process:
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())[1])
        for slug, body in documents(echo.server_port).items():
            path = f"{base}/tools/{slug}/version/v1"
            told[f"invoke {slug}"] = ask(port, "POST", f"{path}/invoke", {"args": ARGUMENTS})
            told[f"read {slug}"] = ask(port, "GET", path)
            told[f"put {slug} again"] = ask(port, "PUT", path, body)
        for path in (
            "/tools",
            "/tools/search?q=canary",
            "/tools/bundles",
            base,
            "/metrics",
            "/crib/tools",
            "/crib/health",
        ):
            told[path] = ask(port, "GET", path)
        told["explain"] = ask(port, "POST", "/crib/explain", {"name": "canary/json", "arguments": ARGUMENTS})
        told["call"] = ask(port, "POST", "/call/canary%2Fjson", ARGUMENTS)
        told["command line"] = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.send_signal(signal.SIGTERM)
        told["output"], told["log"] = process.communicate(timeout=30)
        assert process.returncode == 0
    assert_everything_arrived(echo)
    assert told["invoke json"].startswith("200 ")
    assert "***" in told["invoke json"]
    assert '"request"' in told["log"]
    assert_untold(told)
    assert_untold(files_of(project))


def test_a_call_of_a_plain_file_loads_nothing_that_handles_secrets(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "toolcrib.toml").write_text("")
    (tmp_path / "tools" / "twice.py").write_text('def twice(a: int) -> int:\n    """Double it."""\n    return 2 * a\n')
    program = (
        "import sys\nfrom toolcrib.__main__ import main\ncode = main(['call', 'twice', 'a=2'])\n"
        "print(code, sorted(name for name in sys.modules if name.startswith(('cryptography', 'keyring', 'toolcrib.infra.secrets')) "
        "or name == 'toolcrib.features.access.tokens'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ},
    )
    assert ended.stdout.splitlines() == ["4", "0 []"]
