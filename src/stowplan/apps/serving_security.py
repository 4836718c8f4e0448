"""How the secure port is protected, in the words of kube-scheduler's flags.

--tls-min-version                   VersionTLS12 (the lowest there is) or VersionTLS13
--tls-cipher-suites                 names of suites, as Go and IANA have them, for TLS 1.2. Those of TLS 1.3 are
                                    always on: neither Go nor Python lets a program choose them
--authorization-always-allow-paths  pages that anybody may read. A `*` at the end stands for anything
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass

from stowplan.framework.config.document import shown, suggestion
from stowplan.objects.errors import ConfigError

HEALTH_PATHS = ("/healthz*", "/readyz*", "/livez*")  # kube-scheduler's without the stars: the checks one by one, too

MIN_VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
TOO_OLD = ("VersionTLS10", "VersionTLS11")

TLS_13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
# The suites that kube-scheduler knows for TLS 1.2, by OpenSSL's names.
SUITES = {
    f"TLS_ECDHE_{key}_WITH_{suite}": f"ECDHE-{key}-{name}"
    for key in ("ECDSA", "RSA")
    for suite, name in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_CBC_SHA256", "AES128-SHA256"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
} | {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}  # fmt: skip
BROKEN = ("RC4", "3DES")


@dataclass(frozen=True)
class ServingSecurity:
    """`ciphers`: OpenSSL's names; empty: its default ones. `open_paths`: what anybody may read."""

    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()
    open_paths: tuple[str, ...] = HEALTH_PATHS

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a server, without a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self.min_version
        if self.ciphers:
            context.set_ciphers(":".join(self.ciphers))
        return context

    def is_open(self, path: str) -> bool:
        return any(
            path.startswith(each.removesuffix("*")) if each.endswith("*") else path == each for each in self.open_paths
        )


DEFAULT_SECURITY = ServingSecurity()


def read(min_version: str = "", suites: Iterable[str] = (), open_paths: Iterable[str] | None = None) -> ServingSecurity:
    """Return what the values of the three flags say. Raises ConfigError for a value that cannot be used."""
    version, names = _version(min_version), [each for each in map(str.strip, suites) if each]
    ciphers = tuple(dict.fromkeys(found for found in map(_cipher, names) if found))
    if names and not ciphers:
        version = ssl.TLSVersion.TLSv1_3  # no suite is left for TLS 1.2
    paths = HEALTH_PATHS if open_paths is None else tuple(_path(each) for each in open_paths if each.strip())
    made = ServingSecurity(version, ciphers, paths)
    try:
        made.context()
    except ssl.SSLError as error:
        problem = f"OpenSSL has none of {', '.join(names)}: {error}"
        raise ConfigError(problem, path="--tls-cipher-suites") from None
    return made


def _version(text: str) -> ssl.TLSVersion:
    if not text:
        return ssl.TLSVersion.TLSv1_2
    if text in MIN_VERSIONS:
        return MIN_VERSIONS[text]
    why = "it is not safe, and OpenSSL refuses it by default" if text in TOO_OLD else ""
    problem = f"found {shown(text)}, expected {' or '.join(MIN_VERSIONS)}"
    raise ConfigError(problem, path="--tls-min-version", remedy=why)


def _cipher(name: str) -> str:
    """Return OpenSSL's name of a suite; empty if it is one of TLS 1.3."""
    if name in TLS_13_SUITES:
        return ""
    if name in SUITES:
        return SUITES[name]
    where = "--tls-cipher-suites"
    if any(part in name for part in BROKEN):
        raise ConfigError(f"found {shown(name)}, which OpenSSL does not have any more: it is broken", path=where)
    known = (*TLS_13_SUITES, *SUITES)
    remedy = suggestion(name, known) or f"known are {', '.join(known)}"
    raise ConfigError(f"found {shown(name)}, which is no cipher suite", path=where, remedy=remedy)


def _path(text: str) -> str:
    path = f"/{text.strip().lstrip('/')}"
    if "*" in path[:-1]:
        problem = f"found {shown(text)}, expected a path with a * at its end only"
        raise ConfigError(problem, path="--authorization-always-allow-paths")
    return path
