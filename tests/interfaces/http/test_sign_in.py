"""A person who is signed in to the web page: the cookie reads, and a change must come from the page itself."""

from __future__ import annotations

import pytest

from toolcrib.features.access.sign_in import csrf_of, session_in, sign_in_of


@pytest.fixture
def guarded(make_world):
    """A server that knows its callers by tokens only."""
    return make_world(open_to_loopback=False)


async def test_the_page_reads_with_its_cookie_and_changes_only_with_the_value_that_the_server_gave_it(guarded):
    client = guarded.client
    signed = await client.post("/ui/session", {"code": sign_in_of(guarded.crib).make_code()})
    cookie = signed.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    sent = {"cookie": cookie.partition(";")[0]}
    person = (await client.get("/ui/session", headers=sent)).json
    assert "approve" in person["scopes"]
    assert person["csrf"] == csrf_of(session_in(sent["cookie"]))
    assert (await client.get("/crib/tools", headers=sent)).status == 200
    for value in (None, "", "x" * 32, "ü"):
        refused = await client.post("/crib/explain", {"name": "x"}, headers={**sent, "x-toolcrib-csrf": value})
        assert refused.status == 403
    allowed = await client.post("/crib/explain", {"name": "x"}, headers={**sent, "x-toolcrib-csrf": person["csrf"]})
    assert allowed.status == 200
    assert (
        await client.ask("DELETE", "/ui/session", headers={**sent, "x-toolcrib-csrf": person["csrf"]})
    ).status == 204
    assert (await client.get("/crib/tools", headers=sent)).status == 401


@pytest.mark.parametrize("body", [{}, {"code": "x", "token": "y"}, {"code": 1}, {"token": ["x"]}])
async def test_a_sign_in_names_either_a_code_or_a_token(guarded, body):
    client = guarded.client
    assert (await client.post("/ui/session", body)).status == 400


async def test_a_wrong_code_does_not_sign_in(guarded):
    client = guarded.client
    refused = await client.post("/ui/session", {"code": "AAAA"})
    assert refused.status in {401, 403}
    assert "set-cookie" not in refused.headers
