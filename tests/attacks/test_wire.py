"""What lies between the scheduler and its API server misbehaves: afterwards every pod is bound, once, and nothing is
over-committed. The short form has the faults that were survived worst; `full` has all of the proxy's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.proxy import FINE, MODES, Proxy
from tests.attacks.survivor import bind_plain_pod, memory, wait_until_small
from tests.controlplane import credentials
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import (
    Stowplan,
    a_live_pod,
    bound,
    check_nothing_over_committed,
    stowplan,
    wait_until_bound,
)
from tests.kube.certificates import Authority

pytestmark = pytest.mark.controlplane

SHORT = ("html", "retry-after-a-day", "lose-answers", "garble")
PODS = 30
HITS = 5  # of a fault, before it ends


@pytest.fixture(scope="module")
def proxy(plane: ControlPlane) -> Iterator[Proxy]:
    with Proxy(plane.server) as found:
        yield found


@pytest.fixture(scope="module")
def program(plane: ControlPlane, proxy: Proxy) -> Iterator[Stowplan]:
    """A scheduler behind the proxy, and three nodes."""
    kubeconfig = proxy.kubeconfig(plane.kubeconfig(), plane.folder / "via-proxy.kubeconfig")
    with plane.nodes(3, prefix="wire"), stowplan(plane, "wire", "--leader-elect=false", kubeconfig=kubeconfig) as found:
        yield found


def make_pods(plane: ControlPlane, namespace: str, number: int = PODS) -> None:
    for each in range(number):
        plane.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", a_live_pod(f"p-{each}", cpu="10m"))


@contextlib.contextmanager
def fault(proxy: Proxy, mode: str) -> Iterator[None]:
    """In the block the proxy misbehaves; it has struck a few times before that ends."""
    before = proxy.hits[mode]
    proxy.mode = mode
    try:
        if mode in ("410", "retry-after-a-day"):
            proxy.break_connections()  # else the watches that are open do not notice
        yield
        until(f"{mode} strikes", lambda: proxy.hits[mode] >= before + HITS, 60)
    finally:
        proxy.mode = FINE


@pytest.mark.parametrize(
    "mode", [*SHORT, *(pytest.param(each, marks=pytest.mark.full) for each in MODES if each not in SHORT)]
)
def test_every_pod_is_bound_once(
    plane: ControlPlane, namespace: str, program: Stowplan, proxy: Proxy, mode: str
) -> None:
    bind_plain_pod(plane, namespace, program, within=60)
    before = memory(program)
    with fault(proxy, mode):
        make_pods(plane, namespace)
    proxy.break_connections() if mode == "blackhole" else None  # it would notice by itself, after minutes of silence
    wait_until_bound(plane, namespace, PODS + 1, 60, program.explain)
    program.check()
    check_nothing_over_committed(plane)
    bind_plain_pod(plane, namespace, program, within=15)
    wait_until_small(program, before)


def test_pods_are_not_taken_for_bound(plane: ControlPlane, namespace: str, program: Stowplan, proxy: Proxy) -> None:
    """A page is the answer to bindings: no pod counts as bound that is not."""

    def scheduled() -> float:
        return program.metric("scheduler_schedule_attempts_total", result="scheduled")

    before = scheduled()
    bind_plain_pod(plane, namespace, program, within=60)
    until("the plain pod is counted", lambda: scheduled() > before, 30)
    counted = scheduled()
    proxy.mode = "html"
    try:
        make_pods(plane, namespace, 5)
        until("they are attempted", lambda: proxy.hits["html"] >= 5, 60)
        assert scheduled() == counted
        assert len(bound(plane, namespace)) == 1
    finally:
        proxy.mode = FINE
    wait_until_bound(plane, namespace, 6, 60, program.explain)


# -- credentials that change


@pytest.mark.full  # tests/kube/test_credentials.py and test_tls.py have each way in which a file can be broken
def test_an_empty_token_file(plane: ControlPlane, namespace: str) -> None:
    """It is empty for longer than the token in use is: the last good one stays."""
    token = plane.folder / "wire-token"
    token.write_text(plane.tokens["admin"])
    kubeconfig = credentials.write_kubeconfig(plane.folder / "wire-token.kubeconfig", plane.server, plane.ca, "x")
    kubeconfig.write_text(kubeconfig.read_text().replace('"token": "x"', f'"tokenFile": "{token}"'))
    with (
        plane.nodes(1, prefix="token"),
        stowplan(plane, "token", "--leader-elect=false", kubeconfig=kubeconfig) as program,
    ):
        bind_plain_pod(plane, namespace, program, within=60)
        token.write_text("")
        plane.restart_apiserver()  # whatever the client kept open is gone
        bind_plain_pod(plane, namespace, program, within=60)
        token.write_text("a token that nobody knows")
        token.write_text(plane.tokens["admin"])
        bind_plain_pod(plane, namespace, program, within=15)


@pytest.mark.full
def test_a_client_certificate_that_is_half_written(tmp_path: Path) -> None:
    """The last good one stays, and the next one is used as soon as it is whole."""
    authority = Authority(tmp_path)
    file, key = authority.issue("first", group="system:masters")
    user = {"client-certificate": str(file), "client-key": str(key)}
    with ControlPlane(apiserver_flags=[f"--client-ca-file={authority.ca}"]) as plane, plane.namespace("half") as name:
        kubeconfig = credentials.write_kubeconfig(tmp_path / "half.kubeconfig", plane.server, plane.ca, "x")
        kubeconfig.write_text(kubeconfig.read_text().replace('{\n        "token": "x"\n      }', json.dumps(user)))
        with plane.nodes(1), stowplan(plane, "half", "--leader-elect=false", kubeconfig=kubeconfig) as program:
            bind_plain_pod(plane, name, program, within=60)
            file.write_bytes(file.read_bytes()[:200])
            plane.restart_apiserver()  # every connection shows a certificate again
            bind_plain_pod(plane, name, program, within=60)
            for old, new in zip((file, key), authority.issue("second", group="system:masters"), strict=True):
                old.write_bytes(new.read_bytes())
            plane.restart_apiserver()
            bind_plain_pod(plane, name, program, within=60)


# -- two schedulers


@pytest.mark.full  # the last leader's bindings are not counted for half a minute
def test_a_second_scheduler_with_the_same_name_is_noticed(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """Pods that wait for the one are bound by somebody else."""
    lines = "Somebody else binds the pods of this scheduler"
    with plane.nodes(1, prefix="second"), stowplan(plane, "second", "--leader-elect=false") as program:
        bind_plain_pod(plane, namespace, program, within=60)
        pods = f"/api/v1/namespaces/{namespace}/pods"

        def steal() -> bool:
            """A pod that fits nowhere, so that it waits; then somebody binds it."""
            name = f"stolen-{program.metric('scheduler_queue_incoming_pods_total'):.0f}"
            plane.api().ask("POST", pods, a_live_pod(name, cpu="4000"))
            until("it waits", lambda: program.metric("scheduler_pending_pods", queue="unschedulable"), 30)
            target = {"kind": "Node", "name": "second-0"}
            plane.api().must(
                "POST", f"{pods}/{name}/binding",
                {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target},
            )  # fmt: skip
            until("it is bound", lambda: name in bound(plane, namespace))
            plane.api().must("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")
            return lines in program.log.read_text(encoding="utf-8")

        until("the scheduler warns", steal, 90, program.explain)
        assert program.metric("stowplan_foreign_bindings_total", profile="stowplan") >= 1
        assert program.log.read_text(encoding="utf-8").count(lines) == 1
