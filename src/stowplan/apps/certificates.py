"""The certificate of the secure port: from files, or self-signed if none are given, as with kube-scheduler."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

from stowplan.kube import tls
from stowplan.objects.errors import ConfigError

VALID_FOR = timedelta(days=365)


def server_context(cert_file: str, key_file: str) -> ssl.SSLContext:
    """Return a TLS context for a server with this certificate, or with a self-signed one."""
    if bool(cert_file) != bool(key_file):
        remedy = "give both --tls-cert-file and --tls-private-key-file, or neither"
        given = "--tls-cert-file" if cert_file else "--tls-private-key-file"
        raise ConfigError(f"found {given} alone", remedy=remedy)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert_file:
        _load(context, cert_file, key_file)
        return context
    certificate, key = self_signed()
    tls.load_certificate(context, certificate=certificate, key=key)  # from memory: the file system may be read-only
    return context


def _load(context: ssl.SSLContext, cert_file: str, key_file: str) -> None:
    try:
        context.load_cert_chain(cert_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot be used as a certificate: {error}", file=cert_file) from None


def self_signed() -> tuple[bytes, bytes]:
    """Make a certificate for localhost. Return the certificate and its key as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "stowplan")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private
