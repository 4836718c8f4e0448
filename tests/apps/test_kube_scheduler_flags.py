"""Each flag of kube-scheduler is an option, or is how it is here, or is refused with a reason."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.kube_scheduler_flags import AS_IT_IS, DROPPED_AS_IT_IS, DROPPED_REFUSED, REFUSED
from stowplan.apps.run import service
from stowplan.apps.run.options import RunOptions

PRINTED = """
    --allow-metric-labels --allow-metric-labels-manifest --authentication-kubeconfig
    --authentication-skip-lookup --authentication-token-webhook-cache-ttl
    --authentication-tolerate-lookup-failure --authorization-always-allow-paths --authorization-kubeconfig
    --authorization-webhook-cache-authorized-ttl --authorization-webhook-cache-unauthorized-ttl --bind-address
    --cert-dir --client-ca-file --config --contention-profiling --disable-http2-serving --disabled-metrics
    --emulated-version --feature-gates --help --http2-max-streams-per-connection --kube-api-burst
    --kube-api-content-type --kube-api-qps --kubeconfig --leader-elect --leader-elect-lease-duration
    --leader-elect-renew-deadline --leader-elect-resource-lock --leader-elect-resource-name
    --leader-elect-resource-namespace --leader-elect-retry-period --log-flush-frequency
    --log-json-info-buffer-size --log-json-split-stream --log-text-info-buffer-size --log-text-split-stream
    --logging-format --master --min-compatibility-version --permit-address-sharing --permit-port-sharing
    --pod-max-in-unschedulable-pods-duration --profiling --requestheader-allowed-names
    --requestheader-client-ca-file --requestheader-extra-headers-prefix --requestheader-group-headers
    --requestheader-uid-headers --requestheader-username-headers --secure-port --show-hidden-metrics-for-version
    --tls-cert-file --tls-cipher-suites --tls-curve-preferences --tls-min-version --tls-private-key-file
    --tls-sni-cert-key --v --version --vmodule --write-config-to
"""
KUBE_SCHEDULER = PRINTED.split()  # by `kube-scheduler --help`, version 1.36
OF_THE_GROUP = ("--help", "--version")  # of every command, and of `kube-scheduler` (tests/deploy)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """The options with which the service was run."""
    found: list[RunOptions] = []

    def run(options: RunOptions) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(service, "run", run)
    return found


def invoked(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def options() -> set[str]:
    return {name for each in main.commands["run"].params if isinstance(each, click.Option) for name in each.opts}


def test_every_flag_of_kube_scheduler_has_its_place() -> None:
    places = [options(), AS_IT_IS.keys(), REFUSED.keys(), {*OF_THE_GROUP}]
    assert {flag: sum(flag in place for place in places) for flag in KUBE_SCHEDULER} == dict.fromkeys(KUBE_SCHEDULER, 1)
    assert not (AS_IT_IS.keys() | REFUSED.keys()) - {*KUBE_SCHEDULER}


def test_flags_that_kube_scheduler_dropped_have_their_place_too(ran: list[RunOptions]) -> None:
    assert not (DROPPED_AS_IT_IS.keys() | DROPPED_REFUSED.keys()) & ({*KUBE_SCHEDULER} | options())
    assert not DROPPED_AS_IT_IS.keys() & DROPPED_REFUSED.keys()
    assert invoked("--port=0", "--logtostderr=true", "--alsologtostderr").exit_code == 0 and len(ran) == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--leader-elect"], {"leader_elect": True}, id="a flag without a value"),
        pytest.param(["--leader-elect=true"], {"leader_elect": True}, id="true"),
        pytest.param(["--leader-elect=F"], {"leader_elect": False}, id="one of Go's spellings"),
        pytest.param(["--leader_elect=0"], {"leader_elect": False}, id="an underscore"),
        pytest.param(["--profiling=false"], {"profiling": False}, id="profiling off"),
        pytest.param(
            ["--leader-elect-lease-duration=1m0s", "--leader-elect-renew-deadline", "40s"],
            {"lease_duration": 60.0, "renew_deadline": 40.0, "retry_period": None},
            id="Go's durations",
        ),
        pytest.param(["--leader-elect-retry-period=500ms"], {"retry_period": 0.5}, id="a short one"),
        pytest.param(
            ["--kube-api-qps=50", "--kube-api-burst=100"], {"kube_api_qps": 50.0, "kube_api_burst": 100}, id="rates"
        ),
        pytest.param(["-v=2"], {"v": 2}, id="verbosity"),
        pytest.param(
            [
                "--contention-profiling=False", "--leader-elect-resource-lock=leases", "--emulated-version=kube=1.36",
                "--disable-http2-serving", "--kube-api-content-type", "application/json", "--v=3",
            ],
            {"v": 3},
            id="what is so anyway",
        ),
    ],
)  # fmt: skip
def test_accepted(ran: list[RunOptions], arguments: list[str], expected: dict[str, Any]) -> None:
    result = invoked(*arguments)
    assert (result.exit_code, result.output) == (0, "")
    assert {name: getattr(ran[0], name) for name in expected} == expected


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        pytest.param("--cert-dir=/tmp", "--cert-dir is a flag of kube-scheduler that Stowplan does not have: ", id="-"),
        pytest.param(
            "--log-dir=/var/log", "--log-dir is an old flag of kube-scheduler that Stowplan does not have: ", id="old"
        ),
        pytest.param("--address=0.0.0.0", "is --bind-address", id="old, with a new name"),
        pytest.param("--port=10251", "found '10251', expected '0': there is no port without TLS", id="an open port"),
        pytest.param("--vmodule=x=4", "the verbosity is one for all parts (-v)", id="with an equals sign"),
        pytest.param("--client_ca_file=x", "clients of the pages show tokens", id="with underscores"),
        pytest.param("--contention-profiling", "found 'true', expected 'false'", id="a value that is not so"),
        pytest.param(
            "--kube-api-content-type=application/vnd.kubernetes.protobuf",
            "expected 'application/json': requests to the API server are JSON",
            id="another text",
        ),
        pytest.param("--permit-port-sharing=1", "expected 'false'", id="another spelling of what is not so"),
        pytest.param("--leader-elect=yes", "'yes' is neither true nor false", id="a word that Go does not know"),
        pytest.param("--leader-elect-lease-duration=15", "is not a duration such as 90s", id="a number alone"),
        pytest.param("--no-such-flag", "No such option", id="of nobody"),
        pytest.param("--tls-min-version=VersionTLS11", "expected VersionTLS12 or VersionTLS13", id="an old TLS"),
        pytest.param("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "it is broken", id="a broken suite"),
        pytest.param("--tls-cipher-suites=AES128", "which is no cipher suite", id="no suite"),
        pytest.param("--authorization-always-allow-paths=/a*/b", "a * at its end only", id="a star in a path"),
        pytest.param("--feature-gates=Foo=true", "which this scheduler does not have", id="a gate of others"),
    ],
)
def test_refused(ran: list[RunOptions], argument: str, problem: str) -> None:
    result = invoked(argument)
    assert result.exit_code == 2 and problem in " ".join(result.output.split()) and not ran
    assert "Traceback" not in result.output


def test_the_component_of_a_gate(ran: list[RunOptions]) -> None:
    assert invoked("--feature-gates=kube:TaintTolerationComparisonOperators=true").exit_code == 0
    assert ran[0].feature_gates.taint_toleration_comparison_operators
