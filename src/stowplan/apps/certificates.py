"""The certificate of the secure port: from files, or self-signed if none are given, as with kube-scheduler.

Files are looked at before each handshake, and read again if they changed: whoever renews certificates need not restart
the program. Each pair gets a context of its own, so connections that exist go on with the old one. A pair that does not
fit together (one file is written before the other) is passed over, and the last good one stays.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from stowplan.apps.serving_security import DEFAULT_SECURITY, ServingSecurity
from stowplan.kube import tls
from stowplan.kube.file_versions import versions
from stowplan.objects.errors import ConfigError
from stowplan.serving import self_signed as serving


class OnProblem(Protocol):
    """Logs a message with fields."""

    def __call__(self, message: str, **fields: object) -> None: ...


def server_context(
    cert_file: str, key_file: str, on_problem: OnProblem, security: ServingSecurity = DEFAULT_SECURITY
) -> Callable[[], ssl.SSLContext]:
    """Return what gives the TLS context for a new connection: with this certificate, or with a self-signed one."""
    if bool(cert_file) != bool(key_file):
        remedy = "give both --tls-cert-file and --tls-private-key-file, or neither"
        given = "--tls-cert-file" if cert_file else "--tls-private-key-file"
        raise ConfigError(f"found {given} alone", remedy=remedy)
    if cert_file:
        return ServingCertificate(cert_file, key_file, on_problem, security).context
    context = security.context()
    certificate, key = self_signed()
    tls.load_certificate(context, certificate=certificate, key=key)  # from memory: the file system may be read-only
    return lambda: context


class ServingCertificate:
    """A certificate and its key in files that may change. Raises ConfigError if they cannot be used at the start."""

    def __init__(
        self, cert_file: str, key_file: str, on_problem: OnProblem, security: ServingSecurity = DEFAULT_SECURITY
    ) -> None:
        self._files, self._on_problem, self._security = (cert_file, key_file), on_problem, security
        self._seen = versions(self._files)
        self._context, self._told = _loaded(cert_file, key_file, security), ""

    def context(self) -> ssl.SSLContext:
        """Return the context of the newest good pair."""
        seen = versions(self._files)
        if seen != self._seen:
            self._seen = seen
            self._read_again()
        return self._context

    def _read_again(self) -> None:
        try:
            self._context, self._told = _loaded(*self._files, self._security), ""
        except ConfigError as error:
            if not self._told:  # once, however many steps a renewal takes
                kept = "The changed serving certificate cannot be used; the last good one stays"
                self._on_problem(kept, problem=str(error))
            self._told = str(error)


def _loaded(cert_file: str, key_file: str, security: ServingSecurity) -> ssl.SSLContext:
    context = security.context()
    try:
        context.load_cert_chain(cert_file, key_file, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConfigError(f"cannot be used as a certificate: {error}", file=cert_file) from None
    return context


def _no_password() -> str:
    """Answer OpenSSL, which would ask the terminal, and wait for it."""
    raise ValueError("the key is encrypted")


def self_signed() -> tuple[bytes, bytes]:
    """Make a certificate for localhost. Return the certificate and its key as PEM."""
    return serving.self_signed("stowplan", ("localhost",))
