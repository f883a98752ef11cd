"""Where the server is: every form of a URL, and what is wrong with one."""

import asyncio
import datetime as dt
import ipaddress
import ssl
import subprocess
import sys

import pytest

from toolcrib import Kind, SettingsError, ToolError
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.queues.redis import RedisQueue

ID = "req_20240115_001"


def test_a_socket_and_the_numbers_of_databases_are_understood(queue_at, server, spelled):
    queue_at(f"unix://{server.socket}?db=3").file(read_request(spelled()))
    assert queue_at(f"redis://127.0.0.1:{server.port}/3").get(ID).id == ID
    assert queue_at(f"redis://127.0.0.1:{server.port}?db=3").get(ID).id == ID
    assert queue_at(f"redis://127.0.0.1:{server.port}").get(ID) is None
    assert queue_at(f"unix://{server.socket}").get(ID) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://host",
        "host:6379",
        "redis://host:port/0",
        "redis://:secret/word@host:6379/0",
        "redis://:secret#word@host:6379/0",
        "redis://:secret?word@host:6379/0",
        "redis://host/secretword",
        "redis://host:99999999",
        "redis://host?secret=word",
        "redis://host?socket_timeout=secretword",
        "redis://[::secretword",
        "unix://",
        "unix://?db=1",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_being_repeated(url):
    with pytest.raises(SettingsError, match="queue.url: write redis://host:6379/0, rediss://") as caught:
        RedisQueue(url)
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "setting"),
    [
        ({"requests": ""}, "queue.requests"),
        ({"requests": "a b"}, "queue.requests"),
        ({"ready": "a\n"}, "queue.ready"),
        ({"hash_prefix": "x" * 300}, "queue.hash"),
        ({"hash_prefix": "toolcrib:x"}, "queue.hash"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_with_its_setting(names, setting):
    with pytest.raises(SettingsError, match=setting):
        RedisQueue("redis://host", **names)


def test_without_the_package_the_cure_is_named(tmp_path):
    program = """
import sys
sys.modules["redis"] = None
from toolcrib.features.requests.queues.redis import RedisQueue
try:
    RedisQueue("redis://host")
except Exception as problem:
    print(type(problem).__name__, problem)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert said.startswith("SettingsError queue.url names a Redis server")
    assert "pip install 'toolcrib[redis]'" in said


def test_nothing_is_opened_before_it_is_needed(proxy_to, server, spelled):
    proxy = proxy_to(server.port)
    queue = RedisQueue(proxy.url)
    assert proxy.opened == 0
    queue.file(read_request(spelled()))
    assert proxy.opened == 1  # a client that only files does not listen
    queue.close()
    RedisQueue(proxy.url).close()
    assert proxy.opened == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for this machine that only the tests trust."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a server of the tests")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    path.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def test_an_encrypted_connection_is_used_and_its_certificate_checked(
    proxy_to, queue_at, server, certificate, spelled, monkeypatch
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    start = asyncio.start_server
    monkeypatch.setattr(asyncio, "start_server", lambda *given: start(*given, ssl=context))
    proxy = proxy_to(server.port)
    url = f"rediss://127.0.0.1:{proxy.port}/0"
    with pytest.raises(ToolError, match="cannot be reached .*[Cc]ertificate.*; nothing was stored"):
        queue_at(url).file(read_request(spelled()))
    queue = queue_at(f"{url}?ssl_ca_certs={certificate}")
    assert queue.file(read_request(spelled())).id == ID
    queue.reconcile()
    queue_at(server.url).cancel(ID, "no")
    assert queue.wait(20)
