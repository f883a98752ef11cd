"""Signing in to the web page: links work once and for a time, and sessions end."""

from __future__ import annotations

import pytest

from toolcrib import Crib, Kind, ToolError
from toolcrib.features.access.sign_in import LINK_SECONDS, SignIn, session_in, sign_in_of


@pytest.fixture
async def crib(project):
    """A crib of an empty project."""
    async with Crib(project) as crib:
        yield crib


def test_a_link_opens_one_session_that_may_approve(crib):
    sign_in = sign_in_of(crib)
    code = sign_in.make_code()
    token, text = sign_in.open_by_code(code)
    assert "approve" in token.scopes
    assert crib.tokens.check(text) == token
    with pytest.raises(ToolError, match="used before") as refusal:
        sign_in_of(crib).open_by_code(code)
    assert refusal.value.kind is Kind.AUTH


def test_a_link_expires(crib):
    now = [1_000_000.0]
    sign_in = SignIn(crib.tokens, lambda: b"key", crib.expiring("signin"), clock=lambda: now[0])
    code = sign_in.make_code()
    now[0] += LINK_SECONDS + 2
    with pytest.raises(ToolError, match="expired"):
        sign_in.open_by_code(code)


def test_a_link_of_another_project_and_any_altered_one_is_refused(crib):
    sign_in = sign_in_of(crib)
    foreign = SignIn(crib.tokens, lambda: b"another key", crib.expiring("signin")).make_code()
    own = sign_in.make_code()
    for code in (foreign, own[:-3] + "AAA", "B" + own[1:], own + "AAAA", "", "ü", "A" * 5_000):
        with pytest.raises(ToolError, match="not one of this server's"):
            sign_in.open_by_code(code)


def test_signing_out_ends_the_session_but_no_token_that_was_made_elsewhere(crib):
    sign_in = sign_in_of(crib)
    _, session = sign_in.open_by_code(sign_in.make_code())
    _, other = crib.tokens.create("somewhere", ["read"])
    sign_in.close(session)
    sign_in.close(other)
    assert crib.tokens.check(session) is None
    assert crib.tokens.check(other) is not None


def test_two_cookies_of_the_name_are_no_session():
    assert session_in("a=b; toolcrib_session=x") == "x"
    assert session_in("toolcrib_session=x; toolcrib_session=y") == ""
    assert session_in("") == ""
