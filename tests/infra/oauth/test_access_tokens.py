"""Access tokens: one renewal for everybody, stored before it is used, and a refusal that names its cure."""

import asyncio
import base64
import subprocess
import threading
import time
from pathlib import Path

import pytest

from authorization_site import CLIENT_ID, CLIENT_SECRET
from toolcrib import Kind, ToolError
from toolcrib.infra.oauth import OAuthTokens, read_tokens
from toolcrib.infra.oauth.access_tokens import MAX_STORED
from toolcrib.infra.secrets.lookup import KeptSecrets
from toolcrib.infra.secrets.secret import Masking
from toolcrib.lib.http_syntax import parse_hosts
from warm_python import WarmPython

SECONDS = 20
PROCESSES = 3


async def test_a_client_gets_a_token_with_its_secret_and_keeps_it(site, grant, open_tokens):
    tokens = open_tokens()
    first = await tokens.get(grant(scopes=("read",)), seconds=SECONDS)
    assert first in site.good
    assert await tokens.get(grant(scopes=("read",)), seconds=SECONDS) == first
    (headers, body) = site.token_requests[0]
    assert len(site.token_requests) == 1
    assert base64.b64decode(headers["Authorization"].split()[1]).startswith(b"crib%3A%201:client%2Bsecret%2F%25%26")
    assert body == "grant_type=client_credentials&scope=read"


async def test_the_secret_goes_into_the_body_where_the_server_wants_it_there(site, grant, open_tokens):
    assert await open_tokens().get(grant(client_auth="body"), seconds=SECONDS) in site.good
    headers, body = site.token_requests[0]
    assert "Authorization" not in headers
    assert "client_secret=client%2Bsecret%2F%25%26%C3%BC-7f3a" in body


async def test_another_process_takes_the_stored_token(site, grant, open_tokens):
    first = await open_tokens().get(grant(), seconds=SECONDS)
    assert await open_tokens().get(grant(), seconds=SECONDS) == first
    assert len(site.token_requests) == 1


async def test_another_scope_another_secret_and_another_parameter_get_tokens_of_their_own(site, grant, open_tokens):
    tokens = open_tokens()
    grants = [grant(), grant(scopes=("read",)), grant(parameters={"audience": "x"})]
    got = [await tokens.get(one, seconds=SECONDS) for one in grants]
    assert len(set(got)) == 3
    with pytest.raises(ToolError, match="invalid_client"):
        await tokens.get(grant(seed="new", client_secret="new"), seconds=SECONDS)


@pytest.mark.spec("S1-87")
@pytest.mark.parametrize("stored", [True, False])
async def test_concurrent_calls_share_one_refresh(site, grant, open_tokens, login, stored):
    tokens = open_tokens() if stored else open_tokens(folder=None)
    one = grant("authorization_code", login())
    site.go_on.clear()
    calls = [asyncio.create_task(tokens.get(one, seconds=SECONDS)) for _ in range(50)]
    assert await asyncio.to_thread(site.arrived.wait, SECONDS)
    site.go_on.set()
    assert len({await call for call in calls}) == 1
    assert len(site.token_requests) == 1


@pytest.mark.spec("S1-87")
def test_processes_that_renew_at_once_ask_the_server_once(site, login, tmp_path):
    """Each uses up the refresh token that it sends: a second one with the same token would end the login."""
    seed = tmp_path / "seed"
    seed.write_text(login(), encoding="utf-8")
    folder = tmp_path / "data"
    folder.mkdir()
    program = Path(__file__).with_name("renewing.py")
    # All are ready before the first may ask: they read the same old token.
    words = [str(program), site.endpoint, str(folder), str(seed)]
    started = [WarmPython(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    try:
        assert [child.stdout.readline() for child in started] == ["ready\n"] * PROCESSES
        for child in started:
            child.stdin.write("go\n")
            child.stdin.flush()
        got = {child.communicate(timeout=SECONDS)[0] for child in started}
    finally:
        for child in started:
            child.kill()
            child.communicate()
    assert got == {site.good[-1] + "\n"}
    assert len(site.token_requests) == 1


async def test_a_refused_token_is_renewed_and_what_another_process_renewed_is_taken(site, grant, open_tokens, login):
    one = grant("authorization_code", login())
    ours, theirs = open_tokens(), open_tokens()
    first = await ours.get(one, seconds=SECONDS)
    assert await theirs.get(one, seconds=SECONDS) == first
    site.revoke()
    second = await theirs.get(one, seconds=SECONDS, refused=first)
    assert second != first
    assert await ours.get(one, seconds=SECONDS, refused=first) == second
    assert len(site.token_requests) == 2


async def test_each_refresh_token_is_used_once_and_the_next_one_is_stored(site, grant, open_tokens, login):
    one, tokens = grant("authorization_code", login()), open_tokens()
    token = ""
    for _ in range(3):
        token = await tokens.get(one, seconds=SECONDS, refused=token)
    sent = [body.rpartition("refresh_token=")[2] for _, body in site.token_requests]
    assert len(set(sent)) == 3
    assert "scope" not in site.token_requests[0][1]
    # A process that starts later goes on with the newest.
    assert await open_tokens().get(one, seconds=SECONDS, refused=token) in site.good


async def test_a_refresh_token_that_was_typed_is_the_first_of_its_chain(site, grant, open_tokens):
    one, tokens = grant("refresh_token", site.issue().refresh_token), open_tokens()
    first = await tokens.get(one, seconds=SECONDS)
    assert await tokens.get(one, seconds=SECONDS, refused=first) in site.good
    assert len(site.token_requests) == 2


async def test_a_public_client_sends_its_name_and_no_secret(site, grant, open_tokens):
    site.server.client.is_public = True
    one = grant("refresh_token", site.issue().refresh_token, client_secret="")
    assert await open_tokens().get(one, seconds=SECONDS) in site.good
    headers, body = site.token_requests[0]
    assert "Authorization" not in headers
    assert "client_id=crib%3A+1" in body


@pytest.mark.spec("S1-87")
async def test_a_refused_refresh_is_an_auth_error_with_its_cure_and_is_not_asked_again_at_once(
    site, grant, open_tokens
):
    tokens, one = open_tokens(), grant("refresh_token", "stolen-7f3a")
    for _ in range(3):
        with pytest.raises(ToolError) as refusal:
            await tokens.get(one, seconds=SECONDS)
        assert refusal.value.kind is Kind.AUTH
        assert refusal.value.message == (
            f"the authorization server http://{site.endpoint} gave no token: invalid_grant; the cure"
        )
        facts = {"origin": f"http://{site.endpoint}", "status": 400, "error": "invalid_grant", "cure": "the cure"}
        assert refusal.value.details == facts
        assert not refusal.value.retryable
    assert len(site.token_requests) == 1


async def test_an_expired_login_without_a_refresh_token_asks_for_another_login(site, grant, open_tokens, login):
    one = grant("authorization_code", login(refresh_token=""))
    with pytest.raises(ToolError, match="has expired, and there is none to renew it with; the cure"):
        await open_tokens().get(one, seconds=SECONDS)
    assert site.token_requests == []


async def test_a_login_that_is_fresh_needs_no_request(site, grant, open_tokens, login):
    text = login(received_at=time.time(), expires_at=time.time() + 600)
    assert await open_tokens().get(grant("authorization_code", text), seconds=SECONDS) in site.good
    assert site.token_requests == []


async def test_a_login_with_less_than_a_tool_needs_is_refused_by_name(site, grant, open_tokens, login):
    one = grant("authorization_code", login("read"), scopes=("read", "write"))
    with pytest.raises(ToolError, match="did not grant the scope write; the cure"):
        await open_tokens().get(one, seconds=SECONDS)


async def test_a_caller_that_leaves_does_not_lose_the_new_token(site, grant, open_tokens, login):
    one, tokens = grant("authorization_code", login()), open_tokens()
    site.go_on.clear()
    call = asyncio.create_task(tokens.get(one, seconds=SECONDS))
    assert await asyncio.to_thread(site.arrived.wait, SECONDS)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    site.go_on.set()
    token = await tokens.get(one, seconds=SECONDS)
    assert [token] == site.good
    assert len(site.token_requests) == 1
    assert await open_tokens().get(one, seconds=SECONDS) == token


async def test_a_call_waits_no_longer_than_it_may(site, grant, open_tokens):
    site.go_on.clear()
    with pytest.raises(ToolError) as late:
        await open_tokens().get(grant(), seconds=0.05)
    assert (late.value.kind, late.value.retryable) == (Kind.TIMEOUT, True)
    site.go_on.set()


def test_calls_on_several_event_loops_share_one_refresh(site, grant, open_tokens, login):
    one, tokens = grant("authorization_code", login()), open_tokens()
    got = []
    threads = [
        threading.Thread(target=lambda: got.append(asyncio.run(tokens.get(one, seconds=SECONDS)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(got) == 8
    assert len(set(got)) == 1
    assert len(site.token_requests) == 1


async def test_a_process_that_dies_before_storing_leaves_an_error_with_a_cure_and_no_half_token(
    site, grant, open_tokens, login, tmp_path
):
    """The server has exchanged the refresh token, and its answer is lost: only another login helps."""
    text = login()
    seed = tmp_path / "seed"
    seed.write_text(text, encoding="utf-8")
    site.go_on.clear()
    (tmp_path / "data").mkdir()
    words = [
        str(Path(__file__).with_name("renewing.py")),
        site.endpoint,
        str(tmp_path / "data"),
        str(seed),
    ]
    child = WarmPython(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child.stdin.write("go\n")
        child.stdin.flush()
        assert await asyncio.to_thread(site.arrived.wait, SECONDS)
    finally:
        child.kill()
        child.communicate()
    # What the server does even if no client listens any more.
    used = read_tokens(text).refresh_token
    for issued in site.server.issued:
        issued.can_refresh = issued.can_refresh and issued.refresh_token != used
    site.go_on.set()
    with pytest.raises(ToolError, match="invalid_grant; the cure"):
        await open_tokens().get(grant("authorization_code", text), seconds=SECONDS)
    again = login()
    assert await open_tokens().get(grant("authorization_code", again), seconds=SECONDS) in site.good


async def test_a_token_that_cannot_be_stored_is_not_used_and_not_lost(site, grant, open_tokens, login, tmp_path):
    tokens, one = open_tokens(), grant("authorization_code", login())
    in_its_way = tmp_path / "data" / "access_tokens.json"
    in_its_way.mkdir()
    for _ in range(2):
        with pytest.raises(ToolError):
            await tokens.get(one, seconds=SECONDS)
    in_its_way.rmdir()
    token = await tokens.get(one, seconds=SECONDS)
    assert [token] == site.good
    assert len(site.token_requests) == 1
    assert await open_tokens().get(one, seconds=SECONDS) == token


async def test_stored_tokens_are_encrypted_private_and_bounded(site, grant, open_tokens, tmp_path):
    tokens = open_tokens()
    token = await tokens.get(grant(), seconds=SECONDS)
    path = tmp_path / "data" / "access_tokens.json"
    assert token not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    kept = KeptSecrets(tmp_path / "data", "access_tokens.json")
    kept._change(lambda sealed: {**sealed, **{f"T{number}": "" for number in range(MAX_STORED)}})
    # Those that cannot be read any more are the first to go.
    tokens.keep(grant(), OAuthTokens(access_token="abcdef-7f3a", received_at=time.time()))
    assert len(kept.names()) == MAX_STORED
    assert grant().key in kept.names()


async def test_tokens_are_masked_from_the_moment_they_are_known(grant, open_tokens):
    masking = Masking()
    token = await open_tokens(masking=masking).get(grant(), seconds=SECONDS)
    assert masking.hide(f"x {token} y") == "x *** y"
    later = Masking()
    assert await open_tokens(masking=later).get(grant(), seconds=SECONDS) == token
    assert later.hide(token) == "***"


async def test_thousands_of_tokens_do_not_push_secrets_out_of_the_mask(grant, open_tokens):
    masking = Masking()
    masking.add("a-stored-secret-7f3a")
    tokens, one = open_tokens(folder=None, masking=masking), grant()
    for number in range(1_100):
        tokens.keep(one, OAuthTokens(access_token=f"access-{number:06}", refresh_token=f"refresh-{number:06}"))
    assert masking.hide("a-stored-secret-7f3a access-001099 refresh-001098") == "*** *** ***"
    assert masking.hide("access-000001") == "access-000001"


async def test_without_a_project_tokens_last_as_long_as_the_process(site, grant, open_tokens, login):
    tokens, one = open_tokens(folder=None), grant("authorization_code", login())
    first = await tokens.get(one, seconds=SECONDS)
    assert await tokens.get(one, seconds=SECONDS) == first
    assert await tokens.get(one, seconds=SECONDS, refused=first) in site.good


async def test_a_clock_that_is_ahead_or_was_set_back_renews_a_token(site, grant, open_tokens):
    now = [1_000_000.0]
    tokens = open_tokens(clock=lambda: now[0])
    got = [await tokens.get(grant(), seconds=SECONDS)]
    for moment in (1_000_000.0 + 3600 - 31, 1_000_000.0 + 3600 - 29, 1_000_000.0):
        now[0] = moment
        got.append(await tokens.get(grant(), seconds=SECONDS))
    # 31 s before its end a token is still sent, 29 s before it no longer, and a clock set back by an hour trusts nothing.
    assert [got[0] == got[1], got[1] == got[2], got[2] == got[3]] == [True, False, False]


async def test_a_token_without_an_end_is_good_until_it_is_refused(site, grant, open_tokens):
    site.server.life = None
    now = [1_000_000.0]
    tokens = open_tokens(clock=lambda: now[0])
    first = await tokens.get(grant(), seconds=SECONDS)
    now[0] += 10**8
    assert await tokens.get(grant(), seconds=SECONDS) == first
    assert await tokens.get(grant(), seconds=SECONDS, refused=first) != first


async def test_a_host_that_is_not_allowed_gets_nothing(site, grant, open_tokens):
    with pytest.raises(ToolError) as refusal:
        await open_tokens().get(grant(hosts=parse_hosts(["id.example"])), seconds=SECONDS)
    assert refusal.value.kind is Kind.HOST_NOT_ALLOWED
    assert site.token_requests == []


@pytest.mark.parametrize("text", ["", "refresh-token", "a\nb\nc", '{"layout": "x"}\na\nb', "[]\na\nb", '{"a":1}\n'])
def test_a_text_that_is_no_login_is_not_read_as_one(text):
    assert read_tokens(text) is None


def test_what_is_stored_is_read_again_and_shows_no_token():
    tokens = OAuthTokens(access_token="a", refresh_token="r", received_at=1.5, expires_at=None, scope="x y")
    assert read_tokens(tokens.to_text()) == tokens
    assert "'a'" not in repr(tokens)
    assert CLIENT_ID not in repr(tokens)
    assert CLIENT_SECRET not in repr(tokens)
