"""The certificate of a cluster that serves HTTPS: made at its start, and trusted by its kubeconfig alone.

kubectl sends tokens over HTTPS only, so RBAC needs it.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from stowplan.serving import self_signed as serving

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def self_signed(host: str) -> tuple[ssl.SSLContext, bytes]:
    """The TLS context of a server on this host, and its certificate as PEM."""
    hosts = [each for each in dict.fromkeys((*_LOOPBACK, host)) if each]
    certificate, key = serving.self_signed("stowplan-embedded", hosts, authority=True)
    return _context(certificate, key), certificate


def _context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="stowplan-") as folder:  # OpenSSL reads files only
        chain, secret = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        secret.touch(mode=0o600)
        chain.write_bytes(certificate)
        secret.write_bytes(key)
        context.load_cert_chain(chain, secret)
    return context
