"""TLS versions, cipher suites and open pages, in kube-scheduler's words."""

from __future__ import annotations

import ssl

import pytest

from stowplan.apps import serving_security

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("version", "suites", "expected", "offered"),
    [
        pytest.param("", [], V12, set(), id="neither is given"),
        pytest.param("VersionTLS12", [], V12, set(), id="a version"),
        pytest.param("VersionTLS13", [], V13, set(), id="the newest"),
        pytest.param(
            "VersionTLS12",
            ["TLS_AES_128_GCM_SHA256", " TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_CBC_SHA"],
            V12,
            {"ECDHE-ECDSA-AES128-GCM-SHA256", "AES256-SHA"},
            id="suites of both versions, as OpenShift's operator gives them",
        ),
        pytest.param("", ["TLS_AES_256_GCM_SHA384"], V13, set(), id="no suite is left for TLS 1.2"),
    ],
)
def test_tls(version: str, suites: list[str], expected: ssl.TLSVersion, offered: set[str]) -> None:
    context = serving_security.read(version, suites).context()
    assert context.minimum_version == expected
    found = {each["name"] for each in context.get_ciphers() if not each["name"].startswith("TLS_")}
    assert found == offered if offered else True


def test_openssl_has_every_suite_that_is_known() -> None:
    for name in serving_security.SUITES:
        assert serving_security.read("", [name]).context().get_ciphers(), name


@pytest.mark.parametrize(
    ("paths", "is_open", "is_not"),
    [
        pytest.param(None, ["/healthz", "/readyz/ping", "/livez"], ["/metrics", "/configz"], id="by default"),
        pytest.param(["/healthz", "/metrics"], ["/healthz", "/metrics"], ["/livez", "/metrics/x"], id="named ones"),
        pytest.param(["/debug/*", "metrics"], ["/debug/pprof/profile", "/metrics"], ["/debug"], id="a star"),
        pytest.param([""], [], ["/healthz"], id="none"),
    ],
)
def test_open_pages(paths: list[str] | None, is_open: list[str], is_not: list[str]) -> None:
    security = serving_security.read(open_paths=paths)
    assert [path for path in (*is_open, *is_not) if security.is_open(path)] == is_open
