"""Issue certificates for recorded servers, by an authority that only the job under trial trusts."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = timedelta(days=1)


class Authority:
    """Issues a certificate for each host; its key and theirs are never kept."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._server_key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Internet Root")
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._certificate = (
            _draft(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def pem(self) -> bytes:
        """The certificate to trust."""
        return self._certificate.public_bytes(Encoding.PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """What a server speaks TLS with that is this host, a name or an address."""
        if host not in self._contexts:
            self._contexts[host] = self._make_context(host)
        return self._contexts[host]

    def _make_context(self, host: str) -> ssl.SSLContext:
        key = self._server_key
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _draft(_name("Internet Server"), self._name, key)
            .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(own, critical=False)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # It is loaded from a file or not at all.
        with tempfile.NamedTemporaryFile() as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            file.write(certificate.public_bytes(Encoding.PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _draft(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_FOR)
        .not_valid_after(now + VALID_FOR)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
