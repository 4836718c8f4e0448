"""TLS as Kubernetes configures it: a CA, a client certificate, each in a file or as data, or no check at all."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stowplan.objects.errors import ConfigError


def context(*, ca_file: str = "", ca_data: bytes = b"", insecure: bool = False) -> ssl.SSLContext:
    """How a server's certificate is checked: against this CA, against the system's, or not."""
    try:
        text = ca_data.decode("ascii") or None
        made = ssl.create_default_context(cafile=ca_file or None if text is None else None, cadata=text)
    except (OSError, UnicodeDecodeError) as error:
        where = ca_file or "certificate-authority-data"
        raise ConfigError(f"not usable: {error}", file=where, remedy="expected PEM certificates of a CA") from None
    if insecure:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    # An API server speaks HTTP/2, too, and takes it if nothing is said.
    made.set_alpn_protocols(["http/1.1"])
    return made


def load_certificate(
    into: ssl.SSLContext, *, certificate_file: str = "", certificate: bytes = b"", key_file: str = "", key: bytes = b""
) -> None:
    """Show this client certificate on connections made from now on; data goes before files, as in kubectl."""
    with _as_file(certificate, certificate_file) as chain, _as_file(key, key_file) as secret:
        try:
            into.load_cert_chain(chain, secret)
        except OSError as error:
            where = certificate_file or "client-certificate-data"
            remedy = "expected a PEM certificate and the key that belongs to it"
            raise ConfigError(f"not usable: {error}", file=where, remedy=remedy) from None


@contextmanager
def _as_file(data: bytes, file: str) -> Iterator[str]:
    """OpenSSL reads certificates from files only; data is put into memory if possible, else briefly on disk."""
    if not data:
        yield file
    elif hasattr(os, "memfd_create"):
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
