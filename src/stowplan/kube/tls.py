"""TLS as a kubeconfig sets it up: a CA and a client certificate, as files or data, or no verification.

A client certificate and its key are taken in together, or not at all: files that are just being written leave a context
as it was.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stowplan.objects.errors import ConfigError


def context(*, ca_file: str = "", ca_data: bytes = b"", insecure: bool = False) -> ssl.SSLContext:
    """The TLS context that verifies a server by this CA, by the system's, or not at all."""
    try:
        text = ca_data.decode("ascii") or None
        made = ssl.create_default_context(cafile=ca_file or None if text is None else None, cadata=text)
    except (OSError, UnicodeDecodeError) as error:
        where = ca_file or "certificate-authority-data"
        raise ConfigError(f"not usable: {error}", file=where, remedy="expected PEM certificates of a CA") from None
    if insecure:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    # An API server also supports HTTP/2, and selects it by default.
    made.set_alpn_protocols(["http/1.1"])
    return made


def load_certificate(
    into: ssl.SSLContext, *, certificate_file: str = "", certificate: bytes = b"", key_file: str = "", key: bytes = b""
) -> None:
    """Use this client certificate for new connections. Data takes precedence over files, as in kubectl.

    Raises ConfigError, and `into` keeps the one that it has.
    """
    try:
        pair = certificate or Path(certificate_file).read_bytes(), key or Path(key_file).read_bytes()
        with _as_file(pair[0]) as chain, _as_file(pair[1]) as secret:
            for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), into):  # tried first where it does no harm
                each.load_cert_chain(chain, secret, password=b"")  # nobody is asked for a password
    except (OSError, ValueError) as error:
        where = certificate_file or "client-certificate-data"
        remedy = "expected a PEM certificate and the key that belongs to it"
        raise ConfigError(f"not usable: {error}", file=where, remedy=remedy) from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A file with the data: OpenSSL reads certificates from files only. The file is in memory if possible."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("certificate")
        try:
            Path(f"/proc/self/fd/{number}").write_bytes(data)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile() as kept:
            kept.write(data)
            kept.flush()
            yield kept.name
