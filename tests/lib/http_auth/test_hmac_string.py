"""HMAC over a declared string: the examples that vendors publish, and what a declaration can say."""

import base64
import hashlib
import hmac

import pytest

from toolcrib import ToolError
from toolcrib.lib.http_auth import Message
from toolcrib.lib.http_auth.hmac_string import Attempt, decode_key, read_pieces, sign_string, write_time
from toolcrib.lib.http_syntax import parse_url

NOW = 1_531_420_618.25


def sign(message, string, headers, *, key, now=NOW, nonce="n-1", **facts):
    facts = {"key_id": "k1", "algorithm": "sha256", "encoding": "hex", "timestamp": "unix", **facts}
    return sign_string(
        message,
        Attempt(now=now, nonce=nonce),
        key=key,
        string=read_pieces(string, with_signature=False),
        headers={name: read_pieces(text, with_signature=True) for name, text in headers.items()},
        **facts,
    )[1]


def request(body=b"", **facts):
    return Message(**{"method": "POST", "url": parse_url("https://a.example/x/y?b=2&a=1"), "body": body, **facts})


def test_the_example_of_slack():
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
        b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
        b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {"X-Slack-Signature": "v0=${signature}", "X-Slack-Request-Timestamp": "${timestamp}"}
    signed = sign(request(body), "v0:${timestamp}:${body}", headers, key=b"8f742231b10e8888abcd99yyyzzz85a5")
    assert signed == {
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        "X-Slack-Request-Timestamp": "1531420618",
    }


def test_the_example_of_github():
    headers = {"X-Hub-Signature-256": "sha256=${signature}"}
    assert sign(request(b"Hello, World!"), "${body}", headers, key=b"It's a Secret to Everybody") == {
        "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    }


def test_the_example_of_standard_webhooks():
    key = decode_key("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64")
    headers = {"webhook-signature": "v1,${signature}", "webhook-id": "${nonce}"}
    signed = sign(
        request(b'{"test": 2432232314}'),
        "${nonce}.${timestamp}.${body}",
        headers,
        key=key,
        now=1_614_265_330,
        nonce="msg_p5jXN8AQM9LWM0D4loKWxJek",
        encoding="base64",
    )
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_every_part_of_the_request_can_be_signed():
    string = (
        "${method}|${scheme}|${host}|${url}|${target}|${path}|${query}|${sorted_query}|${header:X-Day}|${key_id}|"
        "${body_sha256}|${body_sha256_base64}|${body_sha512}|${body_md5_base64}|$${body}"
    )
    body = b"\xff\x00 raw"
    message = request(body, headers={"x-day": " Mon "})
    plain = (
        "POST|https|a.example|https://a.example/x/y?b=2&a=1|/x/y?b=2&a=1|/x/y|b=2&a=1|a=1&b=2|Mon|k1|"
        f"{hashlib.sha256(body).hexdigest()}|{base64.b64encode(hashlib.sha256(body).digest()).decode()}|"
        f"{hashlib.sha512(body).hexdigest()}|{base64.b64encode(hashlib.md5(body).digest()).decode()}|${{body}}"
    )
    signed = sign(message, string, {"X": "${signature}"}, key=b"k", algorithm="sha512", encoding="base64url")
    expected = base64.urlsafe_b64encode(hmac.digest(b"k", plain.encode(), "sha512")).decode()
    assert signed == {"X": expected}


def test_the_body_is_signed_byte_for_byte():
    body = bytes(range(256))
    assert sign(request(body), "${body}", {"X": "${signature}"}, key=b"k") == {
        "X": hmac.digest(b"k", body, "sha256").hex()
    }


@pytest.mark.parametrize("text", ["${signature}", "${nothing}", "${header:}", "${body", "${}", "${arg:x}"])
def test_an_unknown_slot_is_refused_with_the_known_ones(text):
    with pytest.raises(ToolError, match=r"is not a slot of a signature; write one of body, body_md5"):
        read_pieces(text, with_signature=False)


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("unix", "1531420618"),
        ("unix_ms", "1531420618250"),
        ("iso8601", "2018-07-12T18:36:58Z"),
        ("http", "Thu, 12 Jul 2018 18:36:58 GMT"),
    ],
)
def test_time_is_written_as_the_server_expects_it(spelling, text):
    assert write_time(NOW, spelling) == text


def test_keys_are_read_in_their_encoding_and_never_quoted():
    assert decode_key("aGk", "base64") == decode_key("aGk=", "base64") == decode_key("6869", "hex") == b"hi"
    assert decode_key("-_-_", "base64") == base64.urlsafe_b64decode("-_-_")
    for text, encoding in (("sesame!", "base64"), ("sesame", "hex")):
        with pytest.raises(ValueError) as refusal:
            decode_key(text, encoding)
        assert str(refusal.value) == f"the key is not {encoding}"
