"""Requests with credentials: each server that reads them agrees, and no caller sees them."""

import asyncio
import base64
import calendar
import hmac
import html
import json
import re
import time
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms

from authorization_site import CLIENT_ID, CLIENT_SECRET, AuthorizationSite
from sample_tools import http_call
from toolcrib import Kind, ToolError
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.oauth import OAuthTokens
from toolcrib.lib.http_auth import Message
from toolcrib.lib.http_auth.aws import AwsKey, sign_aws
from toolcrib.lib.http_syntax import parse_url

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
HMAC = {
    "type": "hmac",
    "key": "${secret:KEY}",
    "string": "v0:${timestamp}:${body}",
    "headers": {"X-Timestamp": "${timestamp}", "X-Signature": "v0=${signature}"},
}
AWS = {
    "type": "aws_sigv4",
    "access_key_id": "${secret:AWS_ID}",
    "secret_access_key": "${secret:AWS_KEY}",
    "session_token": "${secret:AWS_SESSION}",
    "region": "eu-north-1",
    "service": "s3",
}
SECRETS = {
    "TOKEN": "token-7f3a-51c9",
    "PASSWORD": "pässword:7f3a",
    "KEY": "sesame-7f3a-51c9",
    "AWS_ID": "AKID7F3A51C9XYZW",
    "AWS_KEY": "aws-key-7f3a/51c9+xyz",
    "AWS_SESSION": "aws-session-7f3a-51c9",
    "CLIENT": CLIENT_SECRET,
    "REFRESH": "",
}


@pytest.fixture
def site():
    with AuthorizationSite() as running:
        yield running


@pytest.fixture
def bench(bench, secrets_of):
    bench.secrets = secrets_of(**{name: value for name, value in SECRETS.items() if value})
    return bench


@pytest.fixture
async def allowed(bench, site):
    """The bench may reach the authorization server and its interface."""
    bench.hosts = [site.endpoint]
    bench.private = [site.endpoint]
    return bench


def head_of(site, index=-1):
    """The headers of a request that arrived, by their names in small letters."""
    lines = site.requests[index].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def oauth(site, grant="client_credentials", **facts):
    return {
        "type": "oauth2",
        "grant": grant,
        "token_url": site.url("/token"),
        "client_id": CLIENT_ID,
        "client_secret": "${secret:CLIENT}",
        **facts,
    }


async def test_a_bearer_token_is_sent_as_it_is(bench, serve, answer):
    site = await serve(answer({}))
    await bench.value(http_call(url=site.url("/"), auth={"type": "bearer", "token": "${secret:TOKEN}"}))
    assert head_of(site)["authorization"] == f"Bearer {SECRETS['TOKEN']}"


async def test_name_and_password_are_sent_in_base64(bench, serve, answer):
    site = await serve(answer({}))
    auth = {"type": "basic", "username": "ann", "password": "${secret:PASSWORD}"}
    await bench.value(http_call(url=site.url("/"), auth=auth))
    scheme, _, pair = head_of(site)["authorization"].partition(" ")
    assert (scheme, base64.b64decode(pair).decode()) == ("Basic", "ann:pässword:7f3a")


@pytest.mark.parametrize("url", ["/a", "/a?", "/a?x=1"])
async def test_a_key_goes_into_the_query_or_into_a_header(bench, serve, answer, url):
    site = await serve(answer({}))
    auth = {"type": "api_key", "key": "${secret:KEY}"}
    await bench.value(http_call(url=site.url(url), auth={**auth, "query": "api key"}))
    query = parse_qs(urlsplit(site.targets[0].split()[1]).query)
    assert query["api key"] == [SECRETS["KEY"]]
    assert ("x" in query) is ("x" in url)
    await bench.value(http_call(url=site.url(url), auth={**auth, "header": "X-Key", "prefix": "Token "}))
    assert head_of(site)["x-key"] == f"Token {SECRETS['KEY']}"


@pytest.mark.spec("S1-86")
async def test_a_server_verifies_the_hmac_over_the_very_bytes_that_a_template_made(bench, serve, answer):
    verified = []

    def verify(request):
        head, _, body = request.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        signed = f"v0:{fields['X-Timestamp']}:".encode() + body
        expected = hmac.digest(SECRETS["KEY"].encode(), signed, "sha256").hex()
        is_near = abs(time.time() - int(fields["X-Timestamp"])) < 60
        verified.append((body, is_near and fields["X-Signature"] == f"v0={expected}"))
        return answer({"ok": True})

    site = await serve(verify)
    call = http_call(url=site.url("/hook"), method="POST", body='{"text": "${text}"}', auth=HMAC)
    tool = bench.tool(call, parameters=TEXT)
    for text in ("hello", 'ü "quoted" \\ \n ${text}', ""):
        outcome = await bench.run(tool, text=text)
        assert outcome.error is None
        assert json.loads(verified[-1][0]) == {"text": text}
    assert [is_good for _, is_good in verified] == [True] * 3


async def test_every_retry_is_signed_anew_with_its_own_time(bench, serve, answer):
    moments = iter(range(1_000, 2_000))
    bench.limits = {"clock": lambda: next(moments)}
    site = await serve([answer({}, status="503 Busy"), answer({}, status="503 Busy"), answer({})])
    auth = {**HMAC, "string": "${timestamp}.${nonce}", "headers": {**HMAC["headers"], "X-Nonce": "${nonce}"}}
    await bench.value(http_call(url=site.url("/"), auth=auth))
    heads = [head_of(site, index) for index in range(3)]
    assert len({head["x-signature"] for head in heads}) == 3
    assert len({head["x-timestamp"] for head in heads}) == 3
    assert len({head["x-nonce"] for head in heads}) == 3


async def test_every_page_is_signed_for_its_own_address(bench, serve, answer):
    pages = {"/list": {"items": [1], "next": "/list?page=2"}, "/list?page=2": {"items": [2]}}
    site = await serve(lambda request: answer(pages[request.split(b" ")[1].decode()]))
    auth = {**HMAC, "string": "${timestamp}${target}"}
    call = http_call(url=site.url("/list"), auth=auth, pagination={"type": "url", "next": "$.next", "items": "$.items"})
    assert await bench.value(call) == [1, 2]
    for index, target in enumerate(pages):
        sent = head_of(site, index)
        signed = f"{sent['x-timestamp']}{target}".encode()
        assert sent["x-signature"] == f"v0={hmac.digest(SECRETS['KEY'].encode(), signed, 'sha256').hex()}"


async def test_a_message_signature_is_verified_by_the_code_of_others(bench, serve, answer):
    key = ed25519.Ed25519PrivateKey.generate()
    bench.secrets.values["PEM"] = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    site = await serve(answer({}))
    auth = {"type": "http_signature", "key": "${secret:PEM}", "key_id": "k", "algorithm": "ed25519", "nonce": True}
    url = site.url("/pay?bill=7")
    await bench.value(http_call(url=url, method="POST", body="{}", auth={**auth, "expires_seconds": 60}))
    verifier = HTTPMessageVerifier(
        signature_algorithm=algorithms.ED25519,
        key_resolver=MappingKeyResolver(public_keys={"k": key.public_key()}, private_keys={}),
    )

    class Wire:
        method, headers = "POST", head_of(site)

    Wire.url = url
    (result,) = verifier.verify(Wire, body=site.body())
    assert result.parameters["expires"] == result.parameters["created"] + 60
    assert result.parameters["nonce"]
    assert head_of(site)["host"] == site.endpoint


@pytest.mark.parametrize("service", ["s3", "execute-api"])
async def test_a_request_to_aws_is_sent_in_the_spelling_that_was_signed(bench, serve, answer, service):
    site = await serve(answer({}))
    url = site.url("/a b(ü)/x?z=1&acl&q=!'".replace(" ", "%20"))
    call = http_call(
        url=url, method="PUT", headers={"X-Amz-Meta-A": "1"}, body="text", auth={**AWS, "service": service}
    )
    await bench.value(call)
    sent = head_of(site)
    target = site.targets[0].split()[1]
    assert target == "/a%20b%28%C3%BC%29/x?z=1&acl=&q=%21%27"
    message = Message(
        method="PUT",
        url=parse_url(site.url(target)),
        headers={"X-Amz-Meta-A": "1", "Content-Type": sent["content-type"]},
        body=site.body(),
    )
    key = AwsKey(
        access_key_id=SECRETS["AWS_ID"],
        secret_access_key=SECRETS["AWS_KEY"],
        session_token=SECRETS["AWS_SESSION"],
        region="eu-north-1",
        service=service,
    )
    moment = time.strptime(sent["x-amz-date"], "%Y%m%dT%H%M%SZ")
    _, expected = sign_aws(message, key, now=calendar.timegm(moment))
    assert sent["authorization"] == expected["Authorization"]
    assert sent["x-amz-security-token"] == SECRETS["AWS_SESSION"]
    assert ("x-amz-content-sha256" in sent) is (service == "s3")


@pytest.mark.spec("S1-87")
async def test_a_refused_token_is_renewed_once_and_the_call_repeated_once(allowed, site):
    call = http_call(url=site.url("/api"), auth=oauth(site, scopes=["read"]))
    kept = allowed.runner()
    allowed.runner = lambda: kept
    assert await allowed.value(call) == {"city": "Oslo"}
    site.revoke()
    outcome = await allowed.run(allowed.tool(call))
    assert outcome.value == {"city": "Oslo"}
    assert outcome.meta["attempts"] == 2
    assert len(site.token_requests) == 2
    sent = [headers["Authorization"].removeprefix("Bearer ") for _, headers, _ in site.api_requests]
    assert sent == [sent[0], sent[0], site.good[-1]]


@pytest.mark.spec("S1-87")
async def test_an_expired_token_is_renewed_before_the_request_is_sent(allowed, site):
    site.server.life = 0
    call = http_call(url=site.url("/api"), auth=oauth(site))
    kept = allowed.runner()
    allowed.runner = lambda: kept
    for _ in range(2):
        outcome = await allowed.run(allowed.tool(call))
        assert (outcome.value, outcome.meta["attempts"]) == ({"city": "Oslo"}, 1)
    assert len(site.token_requests) == 2


@pytest.mark.spec("S1-87")
async def test_concurrent_calls_whose_token_is_refused_share_one_renewal(allowed, site):
    call = http_call(url=site.url("/api"), auth=oauth(site))
    kept = allowed.runner()
    allowed.runner = lambda: kept
    await allowed.value(call)
    site.revoke()
    outcomes = await asyncio.gather(*(allowed.run(allowed.tool(call)) for _ in range(20)))
    assert [outcome.value for outcome in outcomes] == [{"city": "Oslo"}] * 20
    assert len(site.token_requests) == 2


@pytest.mark.spec("S1-87")
async def test_a_refused_renewal_is_an_auth_error_and_nothing_is_sent(allowed, site):
    allowed.secrets.values["REFRESH"] = "refresh-that-is-over"
    auth = oauth(site, "refresh_token", refresh_token="${secret:REFRESH}")
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=auth)))
    assert outcome.error.kind is Kind.AUTH
    assert outcome.error.message.endswith("gave no token: invalid_grant; store a new one with: crib secret set REFRESH")
    assert site.api_requests == []


async def test_an_interface_that_refuses_every_token_is_not_a_reason_for_ever_new_ones(allowed, site):
    site.server.save_token = lambda token, request: None
    call = http_call(url=site.url("/api"), auth=oauth(site))
    kept = allowed.runner()
    allowed.runner = lambda: kept
    for _ in range(5):
        outcome = await allowed.run(allowed.tool(call))
        assert outcome.error.kind is Kind.AUTH
        assert "access-" not in json.dumps(outcome.error.to_json())
    assert len(site.token_requests) == 2
    assert len(site.api_requests) == 6


async def test_the_repeat_counts_as_an_attempt_of_the_limit(allowed, site):
    allowed.limits = {"max_retries": 0}
    site.server.save_token = lambda token, request: None
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=oauth(site))))
    assert (outcome.meta["attempts"], len(site.api_requests)) == (1, 1)


async def test_a_token_endpoint_that_is_away_is_tried_again_like_the_request(allowed, site):
    site.reply = (503, {}, {})
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=oauth(site))))
    assert (outcome.error.kind, outcome.error.retryable) == (Kind.TRANSIENT, True)
    assert (len(site.token_requests), site.api_requests) == (3, [])


@pytest.mark.parametrize(("after", "pauses", "asked"), [("3", [3, 3], 3), ("600", [], 1)])
async def test_a_token_endpoint_is_given_the_time_that_it_asks_for(allowed, site, after, pauses, asked):
    site.reply = (429, {}, {"Retry-After": after})
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=oauth(site))))
    assert (outcome.error.kind, outcome.error.retry_after) == (Kind.TRANSIENT, float(after))
    assert (allowed.pauses, len(site.token_requests), site.api_requests) == (pauses, asked, [])


async def test_the_time_of_the_tool_holds_for_its_token_too(allowed, site):
    site.go_on.clear()
    call = http_call(url=site.url("/api"), auth=oauth(site), timeout_ms=80)
    outcome = await allowed.run(allowed.tool(call))
    assert outcome.error.kind is Kind.TIMEOUT
    assert site.api_requests == []
    site.go_on.set()


async def test_a_missing_login_is_said_with_the_command_that_makes_it(allowed, site):
    auth = oauth(site, "authorization_code", login="CRM", authorization_url=site.url("/authorize"))
    tool = allowed.tool(http_call(url=site.url("/api"), auth=auth))
    with pytest.raises(ToolError, match="there is no login CRM yet; log in with: crib secret login CRM") as refusal:
        allowed.check(tool)
    assert refusal.value.kind is Kind.AUTH
    issued = site.issue()
    stored = OAuthTokens(
        access_token=issued.access_token,
        refresh_token=issued.refresh_token,
        token_url=site.url("/token"),
        client_id=CLIENT_ID,
    )
    allowed.secrets.values["CRM"] = stored.to_text()
    assert await allowed.value(tool.run.calls[0]) == {"city": "Oslo"}
    other = {**auth, "token_url": site.url("/token2")}
    with pytest.raises(ToolError, match="CRM belongs to another client or authorization server"):
        allowed.check(allowed.tool(http_call(url=site.url("/api"), auth=other)))
    allowed.secrets.values["CRM"] = "typed-by-hand"
    with pytest.raises(ToolError, match="CRM was not stored by a login"):
        allowed.check(tool)


async def test_a_token_endpoint_on_a_host_that_is_not_allowed_is_refused_before_anything_is_sent(bench, serve, answer):
    api, other = await serve(answer({})), await serve(answer({}))
    bench.hosts = [api.endpoint]
    auth = {
        "type": "oauth2",
        "grant": "client_credentials",
        "token_url": other.url("/token"),
        "client_id": "me",
        "client_secret": "${secret:CLIENT}",
    }
    with pytest.raises(ToolError) as refusal:
        bench.check(bench.tool(http_call(url=api.url("/"), auth=auth)))
    assert refusal.value.kind is Kind.HOST_NOT_ALLOWED
    assert (api.requests, other.requests) == ([], [])


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ({"type": "bearer", "token": "${secret:GONE}"}, "there is no secret of that name; .*crib secret set GONE"),
        ({"type": "bearer", "token": "${secret:LINES}"}, "holds spaces around it, or letters that cannot be sent"),
        ({**HMAC, "key_encoding": "hex"}, "auth: .*KEY.: the key is not hex; store it again"),
        (
            {"type": "http_signature", "key": "${secret:KEY}", "key_id": "k", "algorithm": "ed25519"},
            "the key is not a private key in PEM without a passphrase; store it again",
        ),
    ],
)
async def test_what_cannot_sign_is_refused_before_anything_is_sent(bench, auth, message):
    bench.hosts = ["api.example"]
    bench.secrets.values["LINES"] = "a\r\nX-Evil: 1"
    with pytest.raises(ToolError, match=message) as refusal:
        bench.check(bench.tool(http_call(url="https://api.example/", auth=auth)))
    assert "sesame" not in refusal.value.message
    assert "Evil" not in refusal.value.message


@pytest.mark.parametrize(
    ("status", "is_told"), [("401 Unauthorized", True), ("403 Forbidden", True), ("404 Not Found", False)]
)
async def test_a_refused_signature_says_by_how_much_the_clocks_differ(bench, serve, answer, status, is_told):
    site = await serve(answer({}, status=status, Date="Thu, 12 Jul 2018 18:36:58 GMT"))
    outcome = await bench.run(bench.tool(http_call(url=site.url("/"), auth=HMAC)))
    assert ("set the clock of this machine" in outcome.error.message) is is_told
    assert ("clockSkewSeconds" in outcome.error.details) is is_told


async def test_a_redirect_to_another_host_carries_no_credentials(bench, serve, answer):
    other = await serve(answer({}))
    lead = answer({}, status="307 Elsewhere", Location=other.url("/b"))
    site = await serve(lead)
    for auth in (
        HMAC,
        AWS,
        {"type": "bearer", "token": "${secret:TOKEN}"},
        {"type": "api_key", "key": "${secret:KEY}", "query": "k"},
    ):
        await bench.value(http_call(url=site.url("/a"), method="POST", body="{}", auth=auth))
        seen = other.requests[-1].lower()
        assert b"7f3a" not in seen
        assert b"signature" not in seen
        assert b"authorization" not in seen


def echo(answer):
    """A server that repeats what it is sent, in the ways servers do."""

    def reply(request):
        text = request.decode("latin-1")
        fields = dict(line.split(": ", 1) for line in text.split("\r\n\r\n")[0].split("\r\n")[1:])
        told = {"head": text, "fields": fields, "again": {value: name for name, value in fields.items()}}
        told["page"] = {name: html.escape(value).replace("+", "&#43;") for name, value in fields.items()}
        told["query"] = {name: quote(value) for name, value in fields.items()}
        # As the encoder of .NET and others write it.
        escaped = json.dumps(told).replace("+", "\\u002B").replace("/", "\\/")
        return answer(escaped.encode(), X_Echo=fields.get("Authorization", fields.get("X-Signature", "-")))

    return reply


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden"])
@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "token": "${secret:TOKEN}"},
        {"type": "basic", "username": "ann", "password": "${secret:PASSWORD}"},
        {"type": "api_key", "key": "${secret:KEY}", "query": "k"},
        HMAC,
        {**HMAC, "encoding": "base64"},
        AWS,
        {"type": "http_signature", "key": "${secret:KEY}", "key_id": "k", "algorithm": "hmac-sha256"},
    ],
    ids=lambda auth: auth["type"] if isinstance(auth, dict) else None,
)
@pytest.mark.spec("S1-86")
async def test_credentials_that_a_server_repeats_are_masked(bench, serve, answer, auth, status, caplog):
    def reply(request):
        return echo(lambda *facts, **more: answer(*facts, status=status, **more))(request)

    site = await serve(reply)
    caplog.set_level("DEBUG")
    outcome = await bench.run(bench.tool(http_call(url=site.url("/a"), auth=auth)))
    told = json.dumps([outcome.value, outcome.meta, outcome.error and outcome.error.to_json()]) + caplog.text
    sent = head_of(site)
    derived = [
        *SECRETS.values(),
        sent.get("authorization", "-" * 9).rpartition(" ")[2].rpartition("=")[2] or "-" * 9,
        sent.get("x-signature", "-" * 9).removeprefix("v0="),
        sent.get("signature", "-" * 9).removeprefix("sig1="),
    ]
    assert status != "200 OK" or "HTTP/1.1" in told
    for text in filter(None, derived):
        for spelled in (text, quote(text), quote(text, safe=""), html.escape(text).replace("+", "&#43;")):
            assert spelled not in told, text


async def test_an_access_token_that_a_server_repeats_is_masked(allowed, site):
    kept = allowed.runner()
    allowed.runner = lambda: kept
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=oauth(site))))
    assert outcome.error is None
    site.revoke()
    site.reply = (
        400,
        {"error": "invalid_grant", "error_description": f"no more for {site.server.issued[0].access_token}"},
        {},
    )
    outcome = await allowed.run(allowed.tool(http_call(url=site.url("/api"), auth=oauth(site))))
    assert "no more for ***" in outcome.error.message
    assert site.server.issued[0].access_token not in json.dumps(outcome.error.to_json())


async def test_credentials_are_not_on_a_request_until_it_is_sent(bench, serve, answer):
    site = await serve(answer({}))
    tool = bench.tool(http_call(url=site.url("/"), auth={"type": "bearer", "token": "${secret:TOKEN}"}))
    seen = []

    class Watching(Egress):
        async def fetch(self, request, **limits):
            seen.append(repr(request))
            return await super().fetch(request, **limits)

    bench.egress = Watching(private=[site.endpoint])
    await bench.run(tool)
    assert "7f3a" not in seen[0]


PAGE = (Path(__file__).parents[3] / "docs" / "http-auth.md").read_text(encoding="utf-8")
SHOWN = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


@pytest.mark.parametrize("auth", SHOWN, ids=lambda auth: auth.get("grant", auth["type"]))
async def test_a_declaration_that_the_page_shows_is_sent(bench, serve, answer, site, auth):
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for name in re.findall(r"secret:(\w+)", json.dumps(auth)):
        bench.secrets.values[name] = {"BANK_KEY": pem, "PAY_KEY": "c2VzYW1l"}.get(name, "sesame-7f3a")
    if auth["type"] == "oauth2":
        auth = {**auth, "token_url": site.url("/token"), "client_id": CLIENT_ID}
        bench.secrets.values |= {"STAFF_SECRET": CLIENT_SECRET, "CALENDAR_REFRESH": site.issue().refresh_token}
        site.server.client.is_public = auth["grant"] == "refresh_token"
    api = await serve(answer({"ok": True}))
    bench.hosts = bench.private = [api.endpoint, site.endpoint]
    url = api.url("/reports/2026?b=2&a=1")
    assert await bench.value(http_call(url=url, method="POST", body='{"text": "x"}', auth=auth)) == {"ok": True}
    # A request without credentials would have neither a longer target nor one of these headers.
    known = {"authorization", "x-signature", "signature", "x-key"}
    assert known & head_of(api).keys() or api.targets[0].endswith("&key=sesame-7f3a")


async def test_a_user_name_with_a_colon_is_refused_before_anything_is_sent(bench, serve, answer, secrets_of):
    site = await serve(answer(b"1"))
    bench.secrets = secrets_of(USER="ann:admin", PASSWORD="s3cret-word")
    auth = {"type": "basic", "username": "${secret:USER}", "password": "${secret:PASSWORD}"}
    with pytest.raises(ToolError, match="secret:USER.* holds a colon") as refused:
        await bench.run(bench.tool(http_call(url=site.url(), auth=auth)))
    assert (refused.value.kind, "admin" in refused.value.message, site.requests) == (Kind.AUTH, False, [])
