"""Tokens of an authorization server: which count, what a refusal says, and what hostile tokens and a hostile issuer achieve."""

import asyncio
import base64
import hmac
import json
import time
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app_lifespan import local_app
from toolcrib import SettingsError, tool
from toolcrib.features.access import oauth
from toolcrib.lib.signed_tokens import TokenError, read_keys

RESOURCE = "http://127.0.0.1:8765/mcp"
METADATA = "http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def letters(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def number(value: int) -> str:
    return letters(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def jwk(key, kid: str, **more) -> dict:
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        found = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    elif isinstance(public, ec.EllipticCurvePublicKey):
        point = public.public_numbers()
        found = {"kty": "EC", "crv": "P-256", "x": letters(point.x.to_bytes(32)), "y": letters(point.y.to_bytes(32))}
    else:
        found = {"kty": "OKP", "crv": "Ed25519", "x": letters(public.public_bytes(Encoding.Raw, PublicFormat.Raw))}
    return {**found, "kid": kid, "use": "sig", **more}


def sign(algorithm: str, key, signed: bytes) -> bytes:
    if algorithm == "RS256":
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
    if algorithm == "PS256":
        return key.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    if algorithm == "ES256":
        first, second = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return first.to_bytes(32) + second.to_bytes(32)
    if algorithm == "EdDSA":
        return key.sign(signed)
    if algorithm == "HS256":
        return hmac.digest(key, signed, "sha256")
    return b""


class Issuer:
    """An authorization server that gives out what the test wants of it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.keys = [jwk(RSA, "rsa"), jwk(EC, "ec"), jwk(ED, "ed")]
        self.asked: list[str] = []
        self.answers: dict[str, bytes] = {}
        self.hangs = False

    def claims(self, **changes) -> dict:
        now = int(time.time())
        claims = {"iss": self.url, "aud": RESOURCE, "sub": "ann", "exp": now + 300, "iat": now, "scope": "read invoke"}
        return {key: value for key, value in {**claims, **changes}.items() if value is not None}

    def token(self, *, algorithm="RS256", key=RSA, kid="rsa", header=None, **claims) -> str:
        head = {"alg": algorithm, "typ": "at+jwt", "kid": kid, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        parts = [letters(json.dumps(part).encode()) for part in (head, self.claims(**claims))]
        signed = ".".join(parts)
        return f"{signed}.{letters(sign(algorithm, key, signed.encode()))}"

    def answer(self, path: str) -> bytes:
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/oauth-authorization-server":
            return ok({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        return ok({"keys": self.keys}) if path == "/keys" else b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def ok(document: object, content_type: str = "application/json") -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        content_type.encode(),
        len(body),
        body,
    )


@pytest.fixture
async def issuer():
    """An authorization server on this machine."""
    held = asyncio.Event()

    async def serve(reader, writer) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                if made.hangs:
                    await held.wait()
                writer.write(made.answer(head.split(b" ")[1].decode()))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made = Issuer(server.sockets[0].getsockname()[1])
    yield made
    held.set()
    server.close()


@tool
def add(first: int, second: int) -> int:
    """Add."""
    return first + second


@pytest.fixture
def served(make_world, issuer):
    """A server that trusts the issuer, and needs a token on loopback too."""
    return make_world(add, open_to_loopback=False, server={"oauth_issuer": issuer.url, "oauth_resource": RESOURCE})


async def ask(world, token: str | None, path="/crib/tools", method="GET", body=None):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return await world.client.ask(method, path, body, headers=headers)


CALL = {"first": 1, "second": 2}


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"),
    [("RS256", RSA, "rsa"), ("PS256", RSA, "rsa"), ("ES256", EC, "ec"), ("EdDSA", ED, "ed")],
)
async def test_a_token_of_the_issuer_counts(served, issuer, algorithm, key, kid):
    token = issuer.token(algorithm=algorithm, key=key, kid=kid)
    called = await ask(served, token, "/call/add", "POST", CALL)
    assert (called.status, called.json["value"]) == (200, 3)


async def test_the_caller_of_such_a_token_is_its_subject(served, issuer):
    await ask(served, issuer.token(sub="Ann Example"), "/call/add", "POST", CALL)
    assert [line["caller"] for line in served.crib.journal.read()] == ["oauth:Ann Example"]


async def test_a_token_of_ours_counts_beside_it(served):
    _, token = served.crib.tokens.create("ann", ("invoke",))
    assert (await ask(served, token, "/call/add", "POST", CALL)).json["value"] == 3


async def test_a_refusal_without_a_token_says_where_to_get_one(served):
    refused = await ask(served, None)
    expected = f'Bearer scope="invoke read", resource_metadata="{METADATA}"'
    assert (refused.status, refused.headers["www-authenticate"]) == (401, expected)


async def test_the_metadata_are_public_at_both_paths(served, issuer):
    found = [(await ask(served, None, f"/.well-known/oauth-protected-resource{path}")).json for path in ("", "/mcp")]
    assert (
        found
        == [
            {
                "resource": RESOURCE,
                "authorization_servers": [issuer.url],
                "scopes_supported": ["read", "invoke", "manage", "approve", "confirm", "setup"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Toolcrib",
            }
        ]
        * 2
    )


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
    ],
)
async def test_without_an_issuer_there_are_no_metadata_and_no_registration(make_world, path):
    world = make_world(open_to_loopback=False)
    assert {(await ask(world, None, path, method)).status for method in ("GET", "POST")} == {404}


async def test_a_missing_scope_is_named_together_with_those_that_are_there(served, issuer):
    refused = await ask(served, issuer.token(scope="read"), "/call/add", "POST", CALL)
    expected = f'Bearer error="insufficient_scope", scope="invoke read", resource_metadata="{METADATA}"'
    assert (refused.status, refused.headers["www-authenticate"]) == (403, expected)
    assert "may not invoke" in refused.json["detail"]


async def test_mcp_names_the_missing_scope_of_a_call_too(served, issuer):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "add", "arguments": {}, "_meta": meta}
    headers = {
        "authorization": f"Bearer {issuer.token(scope='read')}",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "add",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    refused = await served.client.post("/mcp", body, headers=headers)
    expected = f'Bearer error="insufficient_scope", scope="invoke read", resource_metadata="{METADATA}"'
    assert (refused.status, refused.headers["www-authenticate"]) == (403, expected)


async def test_scopes_may_stand_in_scp_as_a_list(served, issuer):
    token = issuer.token(scope=None, scp=["invoke", "openid"])
    assert (await ask(served, token, "/call/add", "POST", CALL)).status == 200
    assert (await ask(served, token)).status == 403


async def test_the_issuer_can_limit_a_token_to_some_tools(served, issuer):
    token = issuer.token(toolcrib_limits={"tools": ["nothing"]}, scope="read invoke manage")
    assert (await ask(served, token)).json["tools"] == []
    assert (await ask(served, token, "/call/add", "POST", CALL)).status == 404
    assert (await ask(served, token, served.bundle_path(), "PUT", served.bundle_body())).status == 403
    assert (await ask(served, issuer.token(toolcrib_limits={"tools": "add"}))).status == 401


FORGED = {
    "another audience": {"aud": "https://elsewhere.example/mcp"},
    "no audience": {"aud": None},
    "an audience that begins alike": {"aud": RESOURCE + "/more"},
    "another issuer": {"iss": "https://elsewhere.example"},
    "an issuer with a slash more": {"iss": "SLASH"},
    "expired": {"exp": time.time() - 3_600},
    "no expiry": {"exp": None},
    "an expiry that is not a number": {"exp": "tomorrow"},
    "an expiry that is true": {"exp": True},
    "not valid yet": {"nbf": time.time() + 3_600},
    "issued in the future": {"iat": time.time() + 3_600},
    "no subject": {"sub": None},
    "a subject with a line end": {"sub": "ann\nbob"},
    "a subject that is too long": {"sub": "a" * 1_000},
    "signed with another key": {"key": OTHER_RSA},
    "signed with another kind of key": {"algorithm": "ES256", "key": EC, "kid": "rsa"},
    "an unknown key": {"kid": "unknown"},
    "no key named, of several": {"kid": None, "key": OTHER_RSA},
    "the algorithm none": {"algorithm": "none"},
    "the algorithm None": {"algorithm": "None"},
    "a shared secret": {"algorithm": "HS256", "key": b"secret"},
    "a critical extension": {"header": {"crit": ["exp"]}},
    "an unencoded payload": {"header": {"b64": False}},
    "the type of another document": {"header": {"typ": "logout+jwt"}},
    "an algorithm that is a list": {"header": {"alg": ["RS256"]}},
    "a key id that is a path": {"kid": "../../etc/passwd"},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
async def test_a_token_that_is_not_for_us_does_not_count(served, issuer, forged):
    if forged.get("iss") == "SLASH":
        forged = {"iss": issuer.url + "/"}
    refused = await ask(served, issuer.token(**forged), "/call/add", "POST", CALL)
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')


async def test_the_public_key_is_no_shared_secret(served, issuer):
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (
        pem,
        pem.strip(),
        json.dumps(jwk(RSA, "rsa")).encode(),
        number(RSA.public_key().public_numbers().n).encode(),
    ):
        token = issuer.token(algorithm="HS256", key=secret)
        assert (await ask(served, token)).status == 401
    issuer.keys.append({"kty": "oct", "k": letters(b"secret"), "kid": "oct", "alg": "HS256"})
    assert (await ask(served, issuer.token(algorithm="HS256", key=b"secret", kid="oct"))).status == 401


@pytest.mark.parametrize(
    "change", ["signature", "claims", "padding", "fourth part", "last letter", "huge", "not ASCII"]
)
async def test_an_altered_token_does_not_count(served, issuer, change):
    token = issuer.token()
    head, claims, signature = token.split(".")
    altered = {
        "signature": f"{head}.{claims}.{letters(b'x' * 256)}",
        "claims": f"{head}.{letters(json.dumps(issuer.claims(scope='manage')).encode())}.{signature}",
        "padding": token + "==",
        "fourth part": token + ".x",
        # The last letter of 256 bytes carries four bits that mean nothing: another spelling of the same signature.
        "last letter": token[:-1] + chr(ord(token[-1]) + 1),
        "huge": issuer.token(more="x" * 100_000),
        "not ASCII": f"{head}.{claims}.é",
    }[change]
    assert (await ask(served, altered)).status == 401


async def test_clocks_may_differ_a_little(served, issuer):
    now = time.time()
    assert (await ask(served, issuer.token(exp=now - 5))).status == 200
    assert (await ask(served, issuer.token(nbf=now + 5, iat=now + 5))).status == 200


async def test_a_token_that_was_taken_is_not_taken_after_it_expired(issuer):
    now = [time.time()]
    authorization = oauth.Authorization(issuer.url, RESOURCE, clock=lambda: now[0])
    token = issuer.token(exp=now[0] + 10)
    assert (await authorization.check(token)).caller == "oauth:ann"
    now[0] += 10 + oauth.LEEWAY_SECONDS
    with pytest.raises(TokenError, match="expired"):
        await authorization.check(token)
    await authorization.close()


async def test_a_new_key_of_the_issuer_counts_after_a_while_and_an_old_one_no_longer(served, issuer, monkeypatch):
    assert (await ask(served, issuer.token())).status == 200
    issuer.keys = [jwk(OTHER_RSA, "new")]
    new = issuer.token(key=OTHER_RSA, kid="new")
    assert (await ask(served, new)).status == 401
    monkeypatch.setattr(oauth, "PAUSE_SECONDS", 0)
    assert (await ask(served, new)).status == 200
    assert (await ask(served, issuer.token(sub="bob"))).status == 401


async def test_tokens_with_unknown_keys_do_not_flood_the_issuer(served, issuer):
    tokens = [issuer.token(kid=f"unknown-{number}") for number in range(100)]
    replies = await asyncio.gather(*(ask(served, token) for token in tokens))
    assert {reply.status for reply in replies} == {401}
    assert issuer.asked.count("/keys") == 1


async def test_a_token_for_others_has_nothing_fetched(served, issuer):
    await ask(served, issuer.token(aud="https://elsewhere.example"))
    assert issuer.asked == []


METADATA_PATH = "/.well-known/oauth-authorization-server"
HOSTILE = {
    "HTML": {"/keys": ok(b"<html>sign in</html>", "text/html")},
    "no set of keys": {"/keys": ok([1, 2])},
    "too many keys": {"/keys": ok({"keys": [{}] * 101})},
    "keys that are none": {"/keys": ok({"keys": [1, {"kty": "RSA"}, {"kty": "RSA", "n": "!", "e": "AQAB"}]})},
    "too large": {"/keys": ok({"keys": [], "more": "x" * 300_000})},
    "a redirect to another host": {
        "/keys": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:9/keys\r\nContent-Length: 0\r\n\r\n"
    },
    "a redirect to itself": {
        "/keys": b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
        "/other": ok({"keys": [jwk(RSA, "rsa")]}),
    },
    "a failure": {"/keys": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"},
    "metadata of another issuer": {
        METADATA_PATH: ok({"issuer": "https://elsewhere.example", "jwks_uri": "https://elsewhere.example/keys"})
    },
    "keys at a private address": {METADATA_PATH: "PRIVATE"},
    "keys without TLS": {METADATA_PATH: "PLAIN"},
    "no address of keys": {METADATA_PATH: "NONE"},
}


@pytest.mark.parametrize("answers", HOSTILE.values(), ids=HOSTILE)
async def test_an_issuer_whose_keys_cannot_be_fetched_admits_no_token(served, issuer, answers):
    documents = {
        "PRIVATE": {"issuer": issuer.url, "jwks_uri": "http://127.0.0.1:9/keys"},
        "PLAIN": {"issuer": issuer.url, "jwks_uri": "http://keys.example/keys"},
        "NONE": {"issuer": issuer.url},
    }
    issuer.answers = {
        path: ok(documents[answer]) if isinstance(answer, str) else answer for path, answer in answers.items()
    }
    refused = await ask(served, issuer.token())
    assert refused.status in {401, 503}
    assert (await ask(served, issuer.token(scope="manage"))).status in {401, 503}
    _, token = served.crib.tokens.create("ann", ("read",))
    assert (await ask(served, token)).status == 200


async def test_an_issuer_that_hangs_blocks_no_caller_for_long(served, issuer, monkeypatch):
    monkeypatch.setattr(oauth, "ALL_SECONDS", 0.1)
    issuer.hangs = True
    refused = await ask(served, issuer.token())
    assert (refused.status, refused.headers["retry-after"]) == (503, "10")
    assert "nothing came within" in refused.json["detail"]
    monkeypatch.setattr(oauth, "ALL_SECONDS", 3_600)
    # Not asked again so soon.
    assert (await ask(served, issuer.token())).status == 503


async def test_known_keys_are_good_while_the_issuer_is_away(served, issuer, monkeypatch):
    assert (await ask(served, issuer.token())).status == 200
    issuer.answers = {"/keys": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"}
    monkeypatch.setattr(oauth, "FRESH_SECONDS", 0)
    monkeypatch.setattr(oauth, "PAUSE_SECONDS", 0)
    assert (await ask(served, issuer.token(sub="bob"))).status == 200
    monkeypatch.setattr(oauth, "STALE_SECONDS", 0)
    assert (await ask(served, issuer.token(sub="eve"))).status == 503


async def test_the_keys_are_found_by_openid_discovery_too(served, issuer):
    issuer.answers = {
        METADATA_PATH: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "/.well-known/openid-configuration": ok({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}),
    }
    assert (await ask(served, issuer.token())).status == 200


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"oauth_issuer": "https://issuer.example"}, "oauth_issuer needs server.oauth_resource"),
        ({"oauth_resource": "https://tools.example/mcp"}, "oauth_resource is set without server.oauth_issuer"),
        ({"oauth_issuer": "http://issuer.example", "oauth_resource": RESOURCE}, "write an address with https"),
        ({"oauth_issuer": "https://issuer.example", "oauth_resource": "tools"}, "oauth_resource"),
    ],
)
async def test_settings_that_would_trust_the_wrong_one_are_refused(make_world, settings, message):
    with pytest.raises(SettingsError, match=message):
        make_world(server=settings)


def test_weak_and_foreign_keys_are_passed_over():
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    keys = [
        jwk(weak, "weak"),
        jwk(RSA, "enc", use="enc"),
        jwk(RSA, "ops", key_ops=["sign"]),
        jwk(RSA, "good", alg="RS256"),
    ]
    found = read_keys({"keys": keys})
    assert [key.id for key in found] == ["good"]
    assert [found[0].is_for(algorithm) for algorithm in ("RS256", "PS256", "ES256")] == [True, False, False]


def test_an_application_can_be_made_without_reaching_the_issuer(make_world):
    world = make_world(server={"oauth_issuer": "https://issuer.example", "oauth_resource": RESOURCE})
    assert local_app(world.crib) is not None
