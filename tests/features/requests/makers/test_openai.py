"""A model as a maker: what goes over the wire, judged by the vendor's own package, and what becomes of the answers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from toolcrib import Kind, RetryPolicy, SettingsError, ToolError
from toolcrib.features.requests.candidate import read_candidate
from toolcrib.features.requests.openai_maker import OpenAIMaker
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.secrets.secret import Secret

KEY = "sk-canary/7f3a+19bd55e188a2=="
MODEL = "some-model-1"
CODE = "def word_counter(*, text):\n    return {'words': len(text.split())}\n"
AT_ONCE = RetryPolicy(max_attempts=3, initial_delay=0.0)


def completion(content, finish_reason="stop", **message):
    """An answer as the wire has it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_705_312_800,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, **message},
                "logprobs": None,
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    }


def mistake(message, code=None):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


class StandIn(BaseHTTPRequestHandler):
    """An endpoint that answers with what lies ready, the last of it again and again."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(
            (self.path, {name.lower(): text for name, text in self.headers.items()}, json.loads(body))
        )
        answers = self.server.answers
        status, headers, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Endpoint:
    """The stand-in, and what it heard."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.answer(completion(f"```python\n{CODE}```"))

    def answer(self, body, status=200, **headers):
        """From now on it answers with this."""
        self.server.answers[:] = [(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)]

    def then(self, body, status=200):
        self.server.answers.append((status, {}, body))

    @property
    def heard(self):
        return self.server.heard


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that stops reading closes the connection
    server.answers, server.heard = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Endpoint(server)
    server.shutdown()
    thread.join(25)
    server.server_close()


@pytest.fixture
def maker_of(office, endpoint):
    def make(**more):
        office.egress = Egress(private=[f"127.0.0.1:{endpoint.port}"])
        given = {"url": endpoint.url, "model": MODEL, "key": Secret("BUILDER_KEY", KEY), "retries": AT_ONCE, **more}
        return OpenAIMaker(lambda: office.egress, **given)

    return make


async def refused(maker, task):
    with pytest.raises(ToolError) as refusal:
        await maker.make(task)
    return refusal.value


def everything_told(office, error):
    """All that could be read: what was said, the error with what led to it, and the workspace."""
    chain, told = error, []
    while chain is not None:
        told.append(f"{chain!r} {chain.to_json() if isinstance(chain, ToolError) else ''}")
        chain = chain.__cause__ or chain.__context__
    files = [path.read_text() for path in office.building.rglob("*") if path.is_file()]
    return "\n".join([*office.said, *told, *files])


async def test_a_model_writes_the_package(office, maker_of, endpoint):
    assert await maker_of().make(office.task()) is True
    candidate = read_candidate(office.building / "package", office.request)
    assert candidate.files == {"word_counter.py": CODE.encode()}
    ((path, headers, body),) = endpoint.heard
    assert (path, headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert body["model"] == MODEL
    assert office.said == [f"asked {MODEL} at http://127.0.0.1:{endpoint.port}", f"{MODEL} wrote word_counter.py"]


async def test_without_a_key_none_is_sent(office, maker_of, endpoint):
    assert await maker_of(key=None).make(office.task())
    assert "authorization" not in endpoint.heard[0][1]


async def test_the_model_is_told_the_order_the_schemas_and_the_contract(office, maker_of, endpoint):
    task = office.task()
    await maker_of().make(task)
    system, user = endpoint.heard[0][2]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "one fenced block of code for each file" in system["content"]
    assert task.brief in user["content"]
    assert "> - Must count words in any alphabet" in user["content"]
    assert json.dumps(office.request.parameters, indent=2) in user["content"]
    assert json.dumps(office.request.output_schema, indent=2) in user["content"]
    assert (office.building / "contract" / "test_contract.py").read_text() in user["content"]
    assert "last attempt" not in user["content"]


async def test_a_second_attempt_sees_the_complaints_and_its_own_files(office, maker_of, endpoint):
    endpoint.answer(
        completion(f"```python\n# file: word_counter.py\n{CODE}```\n```python\n# file: old.py\nold = 1\n```")
    )
    await maker_of().make(office.task())
    endpoint.answer(completion(f"```python\n{CODE}# better\n```"))
    await maker_of().make(office.task(attempt=2, complaints=("examples: counts 3, expected 4",)))
    user = endpoint.heard[1][2]["messages"][1]["content"]
    assert "> examples: counts 3, expected 4" in user
    assert f"# file: word_counter.py\n{CODE}" in user
    assert "# file: old.py\nold = 1\n" in user
    candidate = read_candidate(office.building / "package", office.request)
    assert candidate.files == {"word_counter.py": f"{CODE}# better\n".encode()}


@pytest.fixture
def vendors_package():
    """The vendor's package; it takes long to import, so only where it is used."""
    import openai

    return openai


@pytest.fixture
def client(vendors_package, endpoint):
    """The vendor's client of the stand-in."""
    with vendors_package.OpenAI(
        base_url=endpoint.url,
        api_key=KEY,
        max_retries=0,
        http_client=vendors_package.DefaultHttpxClient(trust_env=False),
    ) as client:
        yield client


def test_the_stand_in_speaks_as_the_vendors_client_expects(vendors_package, client):
    answer = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
    ChatCompletion = vendors_package.types.chat.ChatCompletion
    assert isinstance(answer, ChatCompletion)
    assert answer.choices[0].message.content == f"```python\n{CODE}```"
    ChatCompletion.model_validate(completion("x"), strict=True)


def test_the_stand_in_fails_as_the_vendors_client_expects(vendors_package, client, endpoint):
    endpoint.answer(mistake("slow down", "rate_limit_exceeded"), status=429)
    with pytest.raises(vendors_package.RateLimitError) as refusal:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
    assert refusal.value.code == "rate_limit_exceeded"


async def test_what_is_sent_is_what_the_vendors_client_sends_for_the_same_call(
    office, maker_of, endpoint, vendors_package, client
):
    from pydantic import TypeAdapter

    await maker_of().make(office.task())
    _, ours, body = endpoint.heard[0]
    Parameters = vendors_package.types.chat.completion_create_params.CompletionCreateParamsNonStreaming
    TypeAdapter(Parameters).validate_python(body)
    assert body.keys() <= Parameters.__required_keys__ | Parameters.__optional_keys__
    client.chat.completions.create(model=MODEL, messages=body["messages"])
    path, theirs, same = endpoint.heard[1]
    assert (path, same) == (endpoint.heard[0][0], body)
    compared = ("authorization", "content-type", "accept")
    assert [ours[name] for name in compared] == [theirs[name] for name in compared]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_an_endpoint_that_is_busy_is_asked_again(office, maker_of, endpoint, status):
    endpoint.answer(mistake("busy"), status=status)
    endpoint.then(completion(f"```python\n{CODE}```"))
    assert await maker_of().make(office.task())
    assert len(endpoint.heard) == 2
    assert (
        office.said[1] == f"http://127.0.0.1:{endpoint.port} answered with status {status}: busy; asked again in 0.0 s"
    )


async def test_an_endpoint_is_asked_again_when_it_says_so(office, maker_of, endpoint):
    endpoint.answer(mistake("busy"), status=429, retry_after="0.3")
    endpoint.then(completion(f"```python\n{CODE}```"))
    assert await maker_of().make(office.task())
    assert office.said[1].endswith("asked again in 0.3 s")


@pytest.mark.parametrize(
    ("asked", "seconds"), [("3600", 7_200.0), ("50", 30.0)], ids=["for too long", "past the deadline"]
)
async def test_an_endpoint_that_asks_for_more_patience_than_there_is_is_not_asked_again(
    office, maker_of, endpoint, asked, seconds
):
    endpoint.answer(mistake("come back later"), status=429, retry_after=asked)
    error = await refused(maker_of(), office.task(seconds=seconds))
    assert (error.kind, error.details["status"], len(endpoint.heard)) == (Kind.RATE_LIMIT, 429, 1)


async def test_an_endpoint_that_stays_busy_is_given_up(office, maker_of, endpoint):
    endpoint.answer(b"<html>bad gateway</html>", status=502)
    error = await refused(maker_of(), office.task())
    assert (error.kind, len(endpoint.heard)) == (Kind.TRANSIENT, 3)
    assert error.message.endswith("answered with status 502: <html>bad gateway</html>")


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, mistake("bad key"), Kind.AUTH, "bad key; look at the secret that builder.key names"),
        (404, mistake("no such model"), Kind.PERMANENT, "no such model; look at builder.url and builder.model"),
        (400, mistake("too many tokens"), Kind.PERMANENT, "status 400: too many tokens"),
        (429, mistake("no credit", "insufficient_quota"), Kind.RATE_LIMIT, "status 429: no credit"),
        (418, b"", Kind.PERMANENT, "status 418"),
        (400, b"\xff\x1b[2J", Kind.PERMANENT, "status 400: \ufffd[2J"),
        (400, [], Kind.PERMANENT, "status 400"),
        (304, b"", Kind.PERMANENT, "status 304"),
    ],
)
async def test_what_asking_again_does_not_cure_is_told_at_once(office, maker_of, endpoint, status, body, kind, words):
    endpoint.answer(body, status=status)
    error = await refused(maker_of(), office.task())
    assert (error.kind, error.retryable, len(endpoint.heard)) == (kind, False, 1)
    assert error.message.endswith(words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (completion(None, refusal="I will not"), "the model refused: I will not"),
        (completion(""), "the answer is empty"),
        (completion("```python\nx", "length"), "the answer was cut off"),
        (completion("No.", "content_filter"), "the answer was withheld"),
        (completion("Just split it."), "the answer holds no block of code"),
        (completion("```\na\n```\n```\nb\n```"), "block 1 of several names no file"),
        (completion("```python\n# file: ../../evil.py\nx\n```"), "'../../evil.py' cannot be a file of the package"),
        (b"hello", "the answer is not JSON"),
        (b"[" * 100_000, "the answer is not JSON"),
        (completion("x" * 10_000_000), "the response has 100"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_an_answer_that_cannot_be_used_is_a_complaint_and_leaves_the_package_alone(
    office, maker_of, endpoint, body, words
):
    endpoint.answer(body)
    task = office.task()
    starter = (office.building / "package" / "word_counter.py").read_bytes()
    error = await refused(maker_of(), task)
    assert error.kind is Kind.OUTPUT_INVALID
    assert words in error.message
    assert len(error.message) <= 1_000
    assert read_candidate(task.package, office.request).files == {"word_counter.py": starter}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, mistake(f"Incorrect API key provided: {KEY}")),
        (500, f"<pre>Authorization: Bearer {KEY}</pre>".encode()),
        (200, completion(None, refusal=f"I know {KEY} " * 100)),
        (200, completion(f"```python\nKEY = {KEY!r}\n```")),
        (200, mistake(f"{'x' * 990}{KEY}")),
    ],
)
async def test_the_key_is_never_told(office, maker_of, endpoint, caplog, status, body):
    caplog.set_level(0)
    endpoint.answer(body, status=status)
    error = await refused(maker_of(), office.task())
    told = everything_told(office, error) + caplog.text
    assert "canary" not in told
    assert "19bd" not in told


async def test_a_plain_word_that_stands_in_for_a_key_may_stand_in_code(office, maker_of, endpoint):
    assert await maker_of(key=Secret("BUILDER_KEY", "text")).make(office.task())


async def test_a_redirect_to_another_host_is_not_followed(office, maker_of, endpoint, page):
    endpoint.answer(b"", status=307, Location=f"http://127.0.0.1:{page.port}/v1/chat/completions")
    maker = maker_of()
    office.egress = Egress(private=[f"127.0.0.1:{endpoint.port}", f"127.0.0.1:{page.port}"])
    error = await refused(maker, office.task())
    assert error.kind is Kind.HOST_NOT_ALLOWED
    assert (len(endpoint.heard), page.heard) == (1, [])


async def test_a_private_address_has_to_be_listed_by_the_operator(office, endpoint):
    maker = OpenAIMaker(lambda: office.egress, url=endpoint.url, model=MODEL, retries=AT_ONCE)
    error = await refused(maker, office.task())
    assert error.kind is Kind.HOST_NOT_ALLOWED
    assert "egress" in error.message
    assert endpoint.heard == []


async def test_an_endpoint_that_is_not_there_is_given_up_within_the_deadline(office, maker_of, endpoint):
    endpoint.server.shutdown()
    endpoint.server.socket.close()
    error = await refused(maker_of(), office.task())
    assert (error.kind, len(office.said)) == (Kind.TRANSIENT, 3)


async def test_an_endpoint_that_never_answers_is_left_at_the_deadline(office, maker_of, silent):
    office.egress = Egress(private=[f"127.0.0.1:{silent}"])
    maker = OpenAIMaker(lambda: office.egress, url=f"http://127.0.0.1:{silent}/v1", model=MODEL)
    error = await refused(maker, office.task(seconds=0.3))
    assert error.kind is Kind.TIMEOUT


@pytest.fixture
def silent():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"url": "ftp://host/v1"}, "builder.url: "),
        ({"url": ""}, "builder.url: "),
        ({"url": "https://host/v1?key=1"}, "builder.url: leave out what follows the path"),
        ({"url": "https://host/v1#part"}, "builder.url: leave out what follows the path"),
        ({"url": "https://name:word@host/v1"}, "builder.url: "),
        ({"model": ""}, "builder.model names no model"),
    ],
)
def test_settings_that_cannot_be_obeyed_are_refused(given, words):
    with pytest.raises(SettingsError, match=words):
        OpenAIMaker(Egress, **{"url": "https://host/v1", "model": MODEL, **given})


async def test_a_link_that_was_left_for_the_package_is_not_written_through(office, maker_of, tmp_path):
    task = office.task()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (task.package / "word_counter.py").unlink()
    task.package.rmdir()
    task.package.symlink_to(elsewhere)
    assert await maker_of().make(task)
    assert list(elsewhere.iterdir()) == []
    assert read_candidate(task.package, office.request).files == {"word_counter.py": CODE.encode()}
