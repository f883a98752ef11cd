"""RFC 9421: our signatures are those of its examples, and a verifier of others takes them."""

import base64
import hmac
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms
from http_message_signatures.exceptions import InvalidSignature

from toolcrib import ToolError
from toolcrib.lib.http_auth import Message
from toolcrib.lib.http_auth.http_message import Parameters, check_component, load_key, sign_message, signature_base
from toolcrib.lib.http_syntax import parse_url

# The request and the keys of appendix B.
REQUEST = Message(
    method="POST",
    url=parse_url("https://example.com/foo?param=Value&Pet=dog"),
    headers={
        "Date": "Tue, 20 Apr 2021 02:07:55 GMT",
        "Content-Type": "application/json",
        "Content-Digest": "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
        "Content-Length": "18",
    },
    body=b'{"hello": "world"}',
)
ED25519_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
SHARED_KEY = base64.b64decode(
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
)
MAKERS = {
    "ed25519": (ed25519.Ed25519PrivateKey.generate, algorithms.ED25519),
    "ecdsa-p256-sha256": (lambda: ec.generate_private_key(ec.SECP256R1()), algorithms.ECDSA_P256_SHA256),
    "ecdsa-p384-sha384": (lambda: ec.generate_private_key(ec.SECP384R1()), algorithms.ECDSA_P384_SHA384),
    "rsa-pss-sha512": (lambda: rsa.generate_private_key(65_537, 2_048), algorithms.RSA_PSS_SHA512),
    "rsa-v1_5-sha256": (lambda: rsa.generate_private_key(65_537, 2_048), algorithms.RSA_V1_5_SHA256),
}


class Wire:
    """A request as the verifier takes it."""

    def __init__(self, message, added):
        self.method, self.url, self.headers = message.method, str(message.url), {**message.headers, **added}


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_the_base_of_the_examples_is_what_their_published_signatures_sign():
    components = ("date", "@method", "@path", "@authority", "content-type", "content-length")
    listed = " ".join(f'"{component}"' for component in components)
    described = f'({listed});created=1618884473;keyid="test-key-ed25519"'
    base = signature_base(REQUEST, components, described)
    published = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    assert base64.b64encode(load_key(ED25519_KEY, "ed25519").sign(base.encode())).decode() == published
    components = ("date", "@authority", "content-type")
    described = '("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"'
    base = signature_base(REQUEST, components, described)
    published = "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="
    assert base64.b64encode(hmac.digest(SHARED_KEY, base.encode(), "sha256")).decode() == published


@pytest.mark.parametrize("algorithm", MAKERS)
def test_a_verifier_of_others_takes_a_signature_and_refuses_it_for_a_changed_request(algorithm):
    make, theirs = MAKERS[algorithm]
    key = make()
    now = int(time.time())
    parameters = Parameters(
        created=now, key_id='a "key" \\1', algorithm=algorithm, expires=now + 60, nonce="n", tag="app"
    )
    message = Message(method="POST", url=REQUEST.url, headers={"Content-Type": "text/plain"}, body=b"hello")
    components = ("@method", "@target-uri", "@query", '@query-param;name="Pet"', "content-type", "content-digest")
    _, added = sign_message(message, load_key(pem(key), algorithm), parameters, components=components, label="sig1")
    verifier = HTTPMessageVerifier(
        signature_algorithm=theirs,
        key_resolver=MappingKeyResolver(public_keys={parameters.key_id: key.public_key()}, private_keys={}),
    )
    (result,) = verifier.verify(Wire(message, added), body=b"hello")
    assert result.parameters == {
        "created": now,
        "expires": now + 60,
        "nonce": "n",
        "alg": algorithm,
        "keyid": parameters.key_id,
        "tag": "app",
    }
    assert result.body == b"hello"
    moved = Message(method="POST", url=parse_url("https://example.com/foo?Pet=cat"), headers=message.headers)
    with pytest.raises(InvalidSignature):
        verifier.verify(Wire(moved, added), body=b"hello")
    with pytest.raises(InvalidSignature):
        verifier.verify(Wire(message, added), body=b"another body")


def test_a_verifier_of_others_takes_a_signature_with_a_shared_key():
    now = int(time.time())
    parameters = Parameters(created=now, key_id="k", algorithm="hmac-sha256")
    signature, added = sign_message(
        REQUEST, b"shared", parameters, components=("date", "@authority", "content-type"), label="sig-b25"
    )
    verifier = HTTPMessageVerifier(
        signature_algorithm=algorithms.HMAC_SHA256,
        key_resolver=MappingKeyResolver(public_keys={"k": b"shared"}, private_keys={}),
    )
    assert added["Signature"] == f"sig-b25=:{signature}:"
    (result,) = verifier.verify(Wire(REQUEST, added))
    assert result.label == "sig-b25"


@pytest.mark.parametrize(
    "component", ["@status", "@query-param", "Content-Type", "a b", "@nothing", '@query-param;name="a b"', "", 'x"y']
)
def test_what_is_no_part_of_a_request_is_refused(component):
    with pytest.raises(ToolError, match="is not part of a request"):
        check_component(component)


def test_a_header_that_is_not_sent_and_a_parameter_that_is_there_twice_cannot_be_signed():
    parameters = Parameters(created=1, key_id="k", algorithm="hmac-sha256")
    with pytest.raises(ToolError, match="the header x-missing, which the request does not have"):
        sign_message(REQUEST, b"k", parameters, components=("x-missing",), label="s")
    twice = Message(method="GET", url=parse_url("https://a.example/?a=1&a=2"))
    with pytest.raises(ToolError, match="which is there 2 times"):
        sign_message(twice, b"k", parameters, components=('@query-param;name="a"',), label="s")


def test_a_key_of_another_kind_or_none_at_all_is_refused_without_being_quoted():
    with pytest.raises(ValueError, match="the key is not one for rsa-pss-sha512"):
        load_key(ED25519_KEY, "rsa-pss-sha512")
    with pytest.raises(ValueError) as refusal:
        load_key("MC4CAQAwBQYDK2Vw", "ed25519")
    assert "MC4" not in str(refusal.value)
