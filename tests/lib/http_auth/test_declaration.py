"""The declaration `auth`: every defect is named at once with its place and cure, and no value is quoted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import ToolError
from toolcrib.lib.http_auth import Reference
from toolcrib.lib.http_auth.declaration import READERS, check_auth, headers_written, read_auth

OAUTH: dict[str, Any] = {
    "type": "oauth2",
    "grant": "client_credentials",
    "token_url": "https://id.example/token",
    "client_id": "me",
}
GOOD: dict[str, dict[str, Any]] = {
    "bearer": {"type": "bearer", "token": "${secret:T}"},
    "basic": {"type": "basic", "username": "ann", "password": "${env:P}"},
    "api_key": {"type": "api_key", "key": "${secret:K}", "query": "key"},
    "hmac": {
        "type": "hmac",
        "key": "${secret:K}",
        "string": "${timestamp}.${body}",
        "headers": {"X-Signature": "t=${timestamp},v1=${signature}"},
    },
    "http_signature": {"type": "http_signature", "key": "${secret:K}", "key_id": "k", "algorithm": "ed25519"},
    "aws_sigv4": {
        "type": "aws_sigv4",
        "access_key_id": "${secret:A}",
        "secret_access_key": "${secret:S}",
        "session_token": "${secret:T}",
        "region": "eu-north-1",
        "service": "s3",
    },
    "client_credentials": {**OAUTH, "client_secret": "${secret:C}", "scopes": "read write"},
    "refresh_token": {**OAUTH, "grant": "refresh_token", "refresh_token": "${secret:R}"},
    "authorization_code": {
        **OAUTH,
        "grant": "authorization_code",
        "login": "CRM",
        "authorization_url": "https://id.example/authorize",
        "redirect_url": "http://127.0.0.1:8400/callback",
        "issuer": "https://id.example",
    },
}


def problems(written, *, is_host_fixed=True, scheme="https"):
    return check_auth(written, is_host_fixed=is_host_fixed, scheme=scheme)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_declaration_has_no_problems(name):
    assert problems(GOOD[name]) == []
    assert read_auth(GOOD[name]).references() or name == "authorization_code"


def test_the_values_that_a_declaration_needs_are_known_by_name():
    assert read_auth(GOOD["aws_sigv4"]).references() == tuple(Reference("secret", name) for name in "AST")
    assert read_auth(GOOD["basic"]).references() == (Reference("env", "P"),)
    assert headers_written(GOOD["hmac"]) == {"x-signature"}
    assert "x-amz-security-token" in headers_written(GOOD["aws_sigv4"])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, ["auth: write a mapping such as"]),
        ("bearer", ["auth: write a mapping such as"]),
        ({}, ["auth.type: type is missing; the types are bearer, basic, api_key, hmac"]),
        ({"type": "kerberos"}, ["auth.type: is unknown; the types are"]),
        ({"type": ["bearer"]}, ["auth.type: is unknown"]),
        ({"type": "bearer"}, ['auth.token: is missing; write "token": "${secret:NAME}"']),
        (
            {"type": "bearer", "tokn": "${secret:T}"},
            ["auth.tokn: is unknown; did you mean token?", "auth.token: is miss"],
        ),
        ({"type": "bearer", "token": 7}, ['auth.token: name a secret, "${secret:NAME}"']),
        ({"type": "basic", "username": "a:b", "password": "${secret:P}"}, ["auth.username: holds a colon"]),
        ({"type": "basic", "username": "${x}", "password": "${secret:P}"}, ["auth.username: takes no slots"]),
        ({"type": "api_key", "key": "${secret:K}"}, ["auth.header: write where the key goes"]),
        (
            {"type": "api_key", "key": "${secret:K}", "header": "Host"},
            ["auth.header: header 'Host' is set by Toolcrib"],
        ),
        (
            {"type": "api_key", "key": "${secret:K}", "query": "k", "prefix": "Token "},
            ["auth.prefix: is for a header; remove it"],
        ),
        (
            {**GOOD["hmac"], "string": "${time}", "algorithm": "md5", "encoding": "base32"},
            [
                "auth.algorithm: write one of sha256",
                "auth.encoding: write one of hex",
                "auth.string: '${time}' is not a slot",
            ],
        ),
        (
            {**GOOD["hmac"], "headers": {"X": "${body}"}},
            [
                "auth.headers: no header carries ${signature}",
                "auth.headers: a header cannot carry the body",
                "auth.headers: the server needs ${timestamp}",
            ],
        ),
        (
            {**GOOD["hmac"], "headers": {"A\nB": "${signature}"}},
            ["auth.headers: header 'A\\nB'", "auth.headers: the server needs"],
        ),
        (
            {**GOOD["hmac"], "headers": [], "string": ""},
            ["auth.string: write what is signed", "auth.headers: write a mapping"],
        ),
        (
            {**GOOD["http_signature"], "components": ["@status", "@method", "@method"], "algorithm": "rot13"},
            [
                "auth.components: '@status' is not part",
                "auth.components: one of them is there twice",
                "auth.algorithm: write",
            ],
        ),
        (
            {**GOOD["http_signature"], "nonce": "yes", "expires_seconds": 0, "label": "A B"},
            [
                "auth.nonce: write true or false",
                "auth.expires_seconds: write an integer",
                "auth.label: write a short text",
            ],
        ),
        (
            {**GOOD["aws_sigv4"], "region": "eu/north", "payload": "some"},
            ["auth.region: write", "auth.payload: write one"],
        ),
        (
            {**OAUTH, "client_secret": "${secret:C}", "grant": "password"},
            ["auth.grant: write one of client_credentials, refresh_token"],
        ),
        (OAUTH, ["auth.client_secret: is missing"]),
        (
            {**GOOD["client_credentials"], "token_url": "http://id.example/token"},
            ["auth.token_url: write a URL with https; http is for this machine alone"],
        ),
        ({**GOOD["client_credentials"], "token_url": "https://${x}/t"}, ["auth.token_url: write a URL as text"]),
        ({**GOOD["client_credentials"], "token_url": "https://a:b@id.example/"}, ["auth.token_url: URL refused"]),
        ({**GOOD["client_credentials"], "scopes": ['a"b', "ü"]}, ["auth.scopes: a scope holds no spaces"]),
        (
            {**GOOD["client_credentials"], "parameters": {"scope": "x"}},
            ["auth.parameters.scope: is written by Toolcrib"],
        ),
        ({**GOOD["client_credentials"], "login": "X"}, ["auth.login: is unknown"]),
        ({**GOOD["authorization_code"], "login": "a b"}, ["auth.login: write a short text"]),
        (
            {**GOOD["authorization_code"], "redirect_url": "https://app.example/callback"},
            ["auth.redirect_url: the browser comes back to this machine"],
        ),
    ],
)
def test_every_defect_is_named_with_its_place_and_a_cure(written, expected):
    found = problems(written)
    assert len(found) == len(expected), found
    for beginning in expected:
        assert any(problem.startswith(beginning) for problem in found), (beginning, found)
    with pytest.raises(ToolError) as refusal:
        read_auth(written)
    assert refusal.value.details == {"problems": found}


@pytest.mark.parametrize("name", GOOD)
def test_a_secret_that_was_typed_by_mistake_is_refused_and_not_quoted(name):
    typed = "sk-live-9f1c"
    written = {key: typed if str(value).startswith("${secret:") else value for key, value in GOOD[name].items()}
    if written == GOOD[name]:
        written |= {"client_secret": typed}
    found = problems(written)
    assert found or name == "basic"
    assert typed not in " ".join(found)


def test_a_caller_never_chooses_who_gets_the_credentials():
    (problem,) = problems(GOOD["bearer"], is_host_fixed=False)
    assert problem == "auth: a caller would choose who gets the credentials; write scheme and host of the url out"


def test_an_unsigned_body_needs_https():
    written = {**GOOD["aws_sigv4"], "payload": "unsigned"}
    assert problems(written) == []
    assert problems(written, scheme="http")[0].startswith("auth.payload: an unsigned body can be changed on its way")


NAMES = sorted({name for written in GOOD.values() for name in written} | {"prefix", "header", "payload", "nonce", "x"})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["${secret:T}", "https://a.b/"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from([None, *READERS]), st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_any_document_is_a_declaration_or_has_problems(kind, written):
    found = problems(written | {"type": kind})
    assert all(problem.startswith("auth") and len(problem) < 2_000 for problem in found)
    if not found:
        read_auth(written | {"type": kind})
