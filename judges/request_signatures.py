"""Signatures of ours against botocore and http-message-signatures: random requests, each signed by both or verified by them.

`python judges/request_signatures.py [RECORD]`: with a path it writes what botocore makes of some requests, which the suite compares.
"""

from __future__ import annotations

import json
import random
import secrets
import string
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms

from toolcrib.lib.http_auth import Message
from toolcrib.lib.http_auth.aws import AwsKey, sign_aws, spell_target
from toolcrib.lib.http_auth.http_message import Parameters, load_key, sign_message
from toolcrib.lib.http_syntax import parse_url

ROUNDS = 2_000
NOW = 1_440_938_160.0  # the moment of AWS's own examples
LETTERS = string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@ /%üß€😀"
VERIFIERS = {
    "ed25519": algorithms.ED25519,
    "hmac-sha256": algorithms.HMAC_SHA256,
    "ecdsa-p256-sha256": algorithms.ECDSA_P256_SHA256,
    "ecdsa-p384-sha384": algorithms.ECDSA_P384_SHA384,
    "rsa-pss-sha512": algorithms.RSA_PSS_SHA512,
    "rsa-v1_5-sha256": algorithms.RSA_V1_5_SHA256,
}


def by_botocore(message: Message, key: AwsKey, *, is_body_signed: bool) -> dict[str, str]:
    """The headers that botocore adds to a request."""
    moment = datetime.fromtimestamp(NOW, UTC)
    botocore.auth.get_current_datetime = lambda *_, **__: moment
    request = AWSRequest(method=message.method, url=str(message.url), headers=dict(message.headers), data=message.body)
    request.context["payload_signing_enabled"] = is_body_signed
    signer = botocore.auth.S3SigV4Auth if key.service == "s3" else botocore.auth.SigV4Auth
    credentials = Credentials(key.access_key_id, key.secret_access_key, key.session_token or None)
    if key.service == "s3" and not is_body_signed:
        # It leaves the body of an upload unsigned where its MD5 is sent.
        request.context["has_streaming_input"] = True
    signer(credentials, key.service, key.region).add_auth(request)
    return dict(request.headers.items())


def sample(draw: random.Random) -> tuple[Message, AwsKey, bool]:
    """A request in any letters."""

    def text(most: int, letters: str = LETTERS) -> str:
        return "".join(draw.choices(letters, k=draw.randint(0, most)))

    service = draw.choice(["s3", "execute-api", "dynamodb", "sts"])
    path = "/" + "/".join(text(8).replace(" ", "%20").replace("%", "%25") for _ in range(draw.randint(0, 4)))
    query = "&".join(f"{text(5)}={text(8)}" for _ in range(draw.randint(0, 4))).replace("%", "%25").replace(" ", "%20")
    url = parse_url(f"https://{service}.eu-north-1.amazonaws.com{path}" + (f"?{query}" if query else ""))
    headers = {"Content-Type": "application/json", "X-Amz-Target": f" a   b{text(5, string.ascii_letters)} "}
    body = text(50).encode()
    is_body_signed = service != "s3" or draw.choice((True, False))
    if not is_body_signed:
        headers["Content-MD5"] = "-"
    token = text(20, string.ascii_letters) if draw.choice((True, False)) else ""
    key = AwsKey(
        access_key_id="AKIDEXAMPLE",
        secret_access_key=text(40, string.ascii_letters + "+/") or "k",
        session_token=token,
        region="eu-north-1",
        service=service,
    )
    message = Message(
        method=draw.choice(["GET", "POST", "PUT", "DELETE"]), url=spell_target(url), headers=headers, body=body
    )
    return message, key, is_body_signed


def judge_aws(draw: random.Random) -> list[dict[str, Any]]:
    """Sign by both, and compare the signatures."""
    records = []
    for number in range(ROUNDS):
        message, key, is_body_signed = sample(draw)
        _, ours = sign_aws(message, key, now=NOW, is_body_signed=is_body_signed)
        theirs = by_botocore(message, key, is_body_signed=is_body_signed)
        if ours["Authorization"] != theirs["Authorization"]:
            sys.exit(f"request {number} is signed otherwise than by botocore: {message.url.target}\n{ours}\n{theirs}")
        records.append(
            {
                "method": message.method,
                "url": str(message.url),
                "headers": dict(message.headers),
                "body": message.body.decode(),
                "secret_access_key": key.secret_access_key,
                "session_token": key.session_token,
                "service": key.service,
                "signed_body": is_body_signed,
                "authorization": theirs["Authorization"],
            }
        )
    return records


class Wire:
    """A request as the verifier takes it."""

    def __init__(self, message: Message, added: dict[str, str]) -> None:
        self.method = message.method
        self.url = str(message.url)
        self.headers = {**message.headers, **added}


def make_key(algorithm: str) -> tuple[str, Any]:
    """A private key as text, and what verifies it."""
    if algorithm == "hmac-sha256":
        return "a shared key", b"a shared key"
    key: Any
    if algorithm == "ed25519":
        key = ed25519.Ed25519PrivateKey.generate()
    elif algorithm.startswith("ecdsa"):
        key = ec.generate_private_key(ec.SECP256R1() if "256-" in algorithm else ec.SECP384R1())
    else:
        key = rsa.generate_private_key(65_537, 2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return pem, key.public_key()


def judge_messages(draw: random.Random) -> None:
    """Sign, and have it verified; a changed request is refused."""
    parts = ("@method", "@target-uri", "@authority", "@path", "@query", "@request-target", "content-type", "@scheme")
    for algorithm, verifier_class in VERIFIERS.items():
        pem, public = make_key(algorithm)
        key = load_key(pem, algorithm)
        verifier = HTTPMessageVerifier(
            signature_algorithm=verifier_class,
            key_resolver=MappingKeyResolver(public_keys={'k "1"': public}, private_keys={}),
        )
        for _ in range(ROUNDS // 40):
            message, _, _ = sample(draw)
            components = (*draw.sample(parts, draw.randint(1, len(parts))), "content-digest")
            now = int(datetime.now(UTC).timestamp())
            parameters = Parameters(
                created=now, key_id='k "1"', algorithm=algorithm, expires=now + 60, nonce="n\\1", tag="app"
            )
            _, added = sign_message(message, key, parameters, components=components, label="sig1")
            verifier.verify(Wire(message, added), body=message.body)


def main() -> None:
    """Judge both, and record if asked to."""
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    records = judge_aws(random.Random(seed))  # noqa: S311 - the samples can be drawn again
    judge_messages(random.Random(seed))  # noqa: S311 - likewise
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(records[:40], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        f"{ROUNDS} requests were signed as botocore signs them; http-message-signatures verified {ROUNDS // 40} of each algorithm"
    )


if __name__ == "__main__":
    main()
