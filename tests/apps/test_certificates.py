"""The certificate of the secure port: read again when its files change, and the last good one if they do not fit."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stowplan.apps import certificates
from stowplan.objects.errors import ConfigError


class Files:
    """A pair of files that is renewed, and what is logged about it."""

    def __init__(self, folder: Path) -> None:
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self.told: list[dict[str, Any]] = []
        self._changes = 0

    def put(self, cert: bytes | None = None, key: bytes | None = None) -> None:
        self._changes += 1
        for file, text in ((self.cert, cert), (self.key, key)):
            if text is not None:
                file.write_bytes(text)
                os.utime(file, ns=(self._changes, self._changes))  # even if the clock has not moved on

    def contexts(self) -> certificates.ServingCertificate:
        return certificates.ServingCertificate(str(self.cert), str(self.key), self.tell)

    def tell(self, message: str, **fields: object) -> None:
        self.told.append({"message": message, **fields})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def served(context: ssl.SSLContext) -> bytes:
    """The certificate that a client of this context gets."""
    in_client, in_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    client = asking.wrap_bio(in_client, in_server)
    server = context.wrap_bio(in_server, in_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return ssl.DER_cert_to_PEM_cert(found).encode()


def test_a_renewed_pair_is_used_for_new_connections(files: Files) -> None:
    first, second = certificates.self_signed(), certificates.self_signed()
    files.put(*first)
    certificate = files.contexts()
    old = certificate.context()
    assert certificate.context() is old and served(old) == first[0]
    files.put(*second)
    assert served(certificate.context()) == second[0]
    assert served(old) == first[0], "connections that exist go on"
    assert files.told == []


def test_a_half_written_pair_keeps_the_last_good_one(files: Files) -> None:
    first, second = certificates.self_signed(), certificates.self_signed()
    files.put(*first)
    certificate = files.contexts()
    steps: list[Callable[[], None]] = [
        lambda: files.put(cert=b""),
        lambda: files.put(cert=second[0][:200]),
        lambda: files.put(cert=second[0]),
        lambda: files.key.unlink(),
        lambda: files.put(key=second[1][:50]),
    ]
    for step in steps:
        step()
        assert served(certificate.context()) == first[0]
    assert len(files.told) == 1, "told once"
    assert files.told[0]["message"].endswith("the last good one stays") and "tls.crt" in files.told[0]["problem"]
    files.put(key=second[1])
    assert served(certificate.context()) == second[0]
    files.put(cert=first[0])
    certificate.context()
    assert len(files.told) == 2, "the next failure is told again"


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(files: Files) -> None:
    from cryptography.hazmat.primitives import serialization

    cert, key = certificates.self_signed()
    locked = serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    files.put(cert, locked)
    refused: list[ConfigError] = []

    def start() -> None:
        try:
            files.contexts()
        except ConfigError as error:
            refused.append(error)

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    thread.join(10)
    assert [str(each) for each in refused] == [f"{files.cert}: cannot be used as a certificate: the key is encrypted"]


def test_at_the_start_the_pair_must_be_good(files: Files) -> None:
    files.put(certificates.self_signed()[0], certificates.self_signed()[1])
    with pytest.raises(ConfigError, match="cannot be used as a certificate"):
        files.contexts()


@pytest.mark.parametrize(("cert", "key"), [("a", ""), ("", "b")])
def test_one_file_alone(files: Files, cert: str, key: str) -> None:
    with pytest.raises(ConfigError, match="alone; give both"):
        certificates.server_context(cert, key, files.tell)


def test_without_files_it_is_self_signed(files: Files) -> None:
    context = certificates.server_context("", "", files.tell)
    assert served(context()) == served(context())
