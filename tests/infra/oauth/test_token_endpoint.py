"""The answer of a token endpoint may be anything: each is a typed error that says what is wrong."""

import json
import time

import pytest

from toolcrib import Kind, ToolError
from toolcrib.infra.egress.client import Egress
from toolcrib.infra.oauth import token_endpoint
from toolcrib.lib.http_syntax import parse_url

GOOD = {"access_token": "abc-7f3a", "token_type": "bearer", "expires_in": 60}
JSON = {"Content-Type": "application/json"}


async def ask(site, client, reply=None, **facts):
    site.reply = reply
    egress = Egress(private=[site.endpoint])
    try:
        return await token_endpoint.ask_for_tokens(
            egress, client(**facts), "client_credentials", {}, clock=lambda: 1000.0
        )
    finally:
        await egress.close()


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        ((302, b"", {"Location": "https://evil.example/"}), Kind.AUTH, "it answers with a redirect"),
        ((307, b"", {"Location": "/token2"}), Kind.AUTH, "it answers with a redirect"),
        ((200, b"<html>Sign in</html>", {"Content-Type": "text/html"}), Kind.AUTH, "its answer is not JSON"),
        ((200, b"access_token=a", {"Content-Type": "application/x-www-form-urlencoded"}), Kind.AUTH, "is not JSON"),
        ((200, b"{", JSON), Kind.AUTH, "its answer"),
        ((200, b"[]", JSON), Kind.AUTH, "its answer is not an object"),
        ((200, b'{"access_token": "a", "access_token": "b"}', JSON), Kind.AUTH, "its answer"),
        ((200, {}, JSON), Kind.AUTH, "its answer holds no access token"),
        ((200, {**GOOD, "access_token": ""}, JSON), Kind.AUTH, "its access_token cannot be sent in a header"),
        ((200, {**GOOD, "access_token": 7}, JSON), Kind.AUTH, "its access_token cannot be sent in a header"),
        ((200, {**GOOD, "access_token": "a\r\nX: y"}, JSON), Kind.AUTH, "its access_token cannot be sent in a header"),
        ((200, {**GOOD, "access_token": "a" * 20_000}, JSON), Kind.AUTH, "its access_token cannot be sent in a header"),
        ((200, {**GOOD, "refresh_token": ["r"]}, JSON), Kind.AUTH, "its refresh_token cannot be sent in a header"),
        ((200, {**GOOD, "token_type": "mac"}, JSON), Kind.AUTH, "it gives tokens of a type other than bearer"),
        ((200, {**GOOD, "token_type": None}, JSON), Kind.AUTH, "it gives tokens of a type other than bearer"),
        ((200, {**GOOD, "scope": "read"}, JSON), Kind.AUTH, "did not grant the scope write; the cure"),
        ((200, {**GOOD, "scope": ["read", "write"]}, JSON), Kind.AUTH, "its scope is not text"),
        ((200, {"error": "invalid_grant"}, JSON), Kind.AUTH, "gave no token: invalid_grant; the cure"),
        ((401, {"error": "invalid_client"}, JSON), Kind.AUTH, "gave no token: invalid_client; the cure"),
        ((400, {"error": "ünknown\n"}, JSON), Kind.AUTH, "gave no token: status 400; the cure"),
        ((400, {"error": "a", "error_description": "why"}, JSON), Kind.AUTH, r"gave no token: a \(why\); the cure"),
        ((404, {}, JSON), Kind.AUTH, "it answered with status 404; check token_url of auth"),
        ((503, b"busy", {"Content-Type": "text/plain"}), Kind.TRANSIENT, "answered with status 503; try again later"),
        ((429, {"error": "slow_down"}, JSON), Kind.TRANSIENT, "answered with status 429; try again later"),
        (
            (200, b" " * (token_endpoint.MAX_BYTES + 1), JSON),
            Kind.LIMIT_EXCEEDED,
            f"and the limit is {token_endpoint.MAX_BYTES}",
        ),
        ((200, b"x" * 10, {**JSON, "Content-Encoding": "br"}), Kind.PERMANENT, "br"),
    ],
)
async def test_an_answer_that_is_no_token_is_a_typed_error(site, client, reply, kind, message):
    with pytest.raises(ToolError, match=message) as refusal:
        await ask(site, client, reply, scopes=("read", "write"))
    assert refusal.value.kind is kind
    assert refusal.value.retryable is (kind is Kind.TRANSIENT)
    assert "client+secret" not in json.dumps(refusal.value.to_json())
    # A redirect is not followed, and nothing is sent twice.
    assert len(site.token_requests) == 1


@pytest.mark.parametrize(
    ("life", "expires_at"),
    [
        *((60, 1060.0), ("60", 1060.0), (60.5, 1060.5), (0, 1000.0), (-5, 1000.0), (10**18, 1000.0 + 366 * 86_400)),
        *((None, None), ("soon", None), (True, None), ([], None), ("9" * 30, None)),
    ],
)
async def test_the_life_of_a_token_is_taken_as_far_as_it_makes_sense(site, client, life, expires_at):
    tokens = await ask(site, client, (200, {**GOOD, "expires_in": life}, JSON))
    assert tokens.expires_at == expires_at


async def test_more_scopes_than_were_asked_for_are_no_problem(site, client):
    tokens = await ask(site, client, (200, {**GOOD, "scope": "openid read,write"}, JSON), scopes=("read", "write"))
    assert tokens.scope == "openid read,write"


async def test_an_endpoint_that_hangs_is_given_up(site, client, monkeypatch):
    monkeypatch.setattr(token_endpoint, "SECONDS", 0.05)
    site.go_on.clear()
    with pytest.raises(ToolError) as late:
        await ask(site, client)
    assert (late.value.kind, late.value.retryable) == (Kind.TIMEOUT, True)
    site.go_on.set()


async def test_an_endpoint_without_a_listener_can_be_tried_again(site, client):
    with pytest.raises(ToolError) as refusal:
        await ask(site, client, token_url=parse_url("http://127.0.0.1:1/token"), hosts=None)
    assert refusal.value.kind in {Kind.TRANSIENT, Kind.HOST_NOT_ALLOWED}


async def test_variables_of_the_environment_do_not_decide_what_is_checked(site, client, monkeypatch):
    for name in ("OAUTHLIB_RELAX_TOKEN_SCOPE", "OAUTHLIB_INSECURE_TRANSPORT"):
        monkeypatch.setenv(name, "1")
    with pytest.raises(ToolError, match="did not grant the scope write"):
        await ask(site, client, (200, {**GOOD, "scope": "read"}, JSON), scopes=("write",))


async def test_real_tokens_of_a_real_server_are_taken(site, client):
    tokens = await ask(site, client, scopes=("read", "write"))
    assert tokens.access_token in site.good
    assert (tokens.expires_at, tokens.scope) == (4600.0, "read write")
    assert time.time() > tokens.received_at
