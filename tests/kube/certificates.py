"""A certificate authority for a test session, made by openssl, which is on every machine that has Python's ssl."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca, self._key = folder / "ca.crt", folder / "ca.key"
        subject = ["-subj", "/CN=test authority", "-days", "2", "-addext", "basicConstraints=critical,CA:true"]
        _openssl("req", "-x509", *_new_key(self._key), *subject, "-out", self.ca)

    def issue(self, name: str, *, address: str = "", group: str = "") -> tuple[Path, Path]:
        """A certificate for a server at an address (or of a DNS name), or for a client; and its key."""
        file, key, request = (self._folder / f"{name}.{end}" for end in ("crt", "key", "csr"))
        subject = f"/O={group}/CN={name}" if group else f"/CN={name}"
        _openssl("req", *_new_key(key), "-subj", subject, "-out", request)
        extensions = self._folder / f"{name}.ext"
        kind = "IP" if address.replace(".", "").isdigit() else "DNS"
        extensions.write_text(f"subjectAltName={kind}:{address or name}\n")
        authority: list[str | Path] = ["-CA", self.ca, "-CAkey", self._key, "-CAcreateserial"]
        _openssl("x509", "-req", "-in", request, *authority, "-days", "2", "-extfile", extensions, "-out", file)
        return file, key

    def server(self, address: str, *, asks_for_certificates: bool = False) -> ssl.SSLContext:
        """TLS for a server; it may require a client certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(f"server-{address}", address=address))
        if asks_for_certificates:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _new_key(file: Path) -> list[str | Path]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file]


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
