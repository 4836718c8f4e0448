"""The chart on a real control plane: helm installs it, the controllers make pods of it, and each pod's container is
started from the image's root file system, as `pod_process.py` describes. kube-scheduler binds the pods of the release,
as where Stowplan is a second scheduler.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import build, flags, hubs
from tests.controlplane.chart_release import NAMESPACE, helm, history, previous_chart
from tests.controlplane.deployed import check_no_limit_met, holder
from tests.controlplane.fixtures import running
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod_process import Kubelet, PodProcess
from tests.controlplane.process import until
from tests.deploy import rootfs, tools
from tests.deploy.charts import CHART, DEPLOY, RELEASE, ROOT, with_monitoring

pytestmark = [pytest.mark.controlplane, pytest.mark.full]

LINUX = {"kubernetes.io/os": "linux"}
ROOMY = {"cpu": "64", "pods": "5000"}
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
ON_LOOPBACK = f"--bind-address={flags.LOOPBACK}"
PODS = f"app.kubernetes.io/instance={RELEASE}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The image's root file system."""
    with rootfs.provided(tmp_path_factory.mktemp("image")) as folder:
        yield folder


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A plane of its own: elsewhere tests apply deploy/ with kubectl, and helm would not take those objects over."""
    for plane in running(build.MAIN, request.config):
        with plane.nodes(2, prefix="own", labels=LINUX, capacity=ROOMY), plane.start_kube_scheduler():
            yield plane


def values(port: int, **scheduler: Any) -> dict[str, Any]:
    """One replica, because both would listen on one port of this machine."""
    return {"scheduler": {"replicas": 1, "securePort": port, "extraArgs": [ON_LOOPBACK], **scheduler}}


@pytest.fixture
def kubelet(server: ControlPlane, root: Path, tmp_path: Path) -> Iterator[Kubelet]:
    with Kubelet(server, root, tmp_path / "pods", NAMESPACE, PODS) as found:
        yield found
    helm(server, "uninstall", RELEASE, "--ignore-not-found")
    until("its pods are gone", lambda: not server.api().must("GET", found.path)["items"], 120)


def leads(process: PodProcess) -> bool:
    return process.page("/leader") == "leading\n"


def leader(kubelet: Kubelet, port: int, meanwhile: Callable[[], None] = lambda: None) -> PodProcess:
    """The one that listens on this port, alone and leading. `meanwhile` is called each time that it is looked for."""

    def alone() -> PodProcess | None:
        meanwhile()
        found = kubelet.sync()
        return found[0] if len(found) == 1 and found[0].port == port and leads(found[0]) else None

    found = until(f"the one on port {port} leads", alone, 300, kubelet.explain)
    assert found is not None
    return found


def create(server: ControlPlane, namespace: str, name: str, **spec: Any) -> None:
    containers = [{"name": "c", "image": "pause"}]
    document = {"metadata": {"name": name}, "spec": {"schedulerName": "stowplan", "containers": containers, **spec}}
    server.api().must("POST", f"/api/v1/namespaces/{namespace}/pods", document)


def nodes_of(server: ControlPlane, namespace: str) -> dict[str, str]:
    """The node of each pod; empty while it waits."""
    found = server.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found}


def assigned(server: ControlPlane, namespace: str) -> list[str]:
    """The pods that were bound, as often as somebody said so."""
    found = server.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [
        each["regarding"]["name"]
        for each in found
        if each["reason"] == "Scheduled"
        for _ in range(each.get("series", {}).get("count", 1))
    ]


# --- install


def three_commands() -> tuple[list[str], list[str], list[str]]:
    """As deploy/README.md has them, and the README of the chart."""
    found = re.search(
        r"^    (make helm)\b.*\n    (\.venv/bin/helm install .+)\n    (kubectl run .+)$", README, re.MULTILINE
    )
    assert found is not None
    assert all(command in (CHART / "README.md").read_text(encoding="utf-8") for command in found.groups())
    first, second, third = (shlex.split(command, comments=True) for command in found.groups())
    return first, second, third


def test_three_commands_install_the_chart_and_a_pod_is_bound(server: ControlPlane, kubelet: Kubelet) -> None:
    make, install, run = three_commands()
    built = subprocess.run([sys.executable, "-m", "tests.deploy.tools", make[1]], cwd=ROOT, check=False)
    assert built.returncode == 0 and (ROOT / install[0]).exists()
    port = flags.free_port()
    words = [each.replace("REGISTRY", "registry.example") for each in install[1:]]
    (at,) = (number for number, each in enumerate(words) if each == "--namespace")
    assert words.pop(at + 1) == NAMESPACE and words.pop(at)
    words[words.index(str(CHART.relative_to(ROOT)))] = str(CHART)
    said = helm(server, *words, values=values(port))
    assert "It schedules pods with one of these names in `schedulerName`: stowplan." in said
    process = leader(kubelet, port)
    assert process.container["image"] == f"registry.example/stowplan:{metadata.version('stowplan')}"
    status = Path(f"/proc/{process.program.pid}/status").read_text()
    assert f"Uid:\t{rootfs.NONROOT}\t{rootfs.NONROOT}" in status
    assert process.page("/readyz") == "ok"
    with server.namespace("chart") as namespace:
        server.kubectl(*run[1:], "--namespace", namespace)
        until("it is bound", lambda: nodes_of(server, namespace)[run[2]], 60, kubelet.explain)
    check_no_limit_met(process.log)
    server.kubectl("scale", f"deployment/{RELEASE}", "--replicas=0", "--namespace", NAMESPACE)
    until("it has ended", lambda: not kubelet.sync(), 120, kubelet.explain)
    assert not holder(server), "the lease is given back"


def test_the_ports_of_network_policies_are_those_that_the_programs_use(server: ControlPlane, kubelet: Kubelet) -> None:
    """The server took the policies; their named port is, in the pods, the one that the process listens on."""
    ports = [flags.free_port() for _ in range(3)]
    given = values(ports[0])
    given["placement"] = {"enabled": True, "replicas": 1, "securePort": ports[1], "extraArgs": [ON_LOOPBACK]}
    agent = {"producer": "static", "args": ["--value=primary=100", "--score-name=x", "--interval=1s", ON_LOOPBACK]}
    given["scores"] = {"securePort": ports[2], "agents": {"fixed": agent}}
    given["crds"] = {"placement": True}
    helm(server, "install", RELEASE, CHART, values=given)
    until("three run", lambda: len(kubelet.sync()) == 3, 120, kubelet.explain)
    ready = lambda: all(each.page("/readyz") == "ok" for each in kubelet.sync())  # noqa: E731
    with hubs.managed(server, "primary"):
        until("they are ready", ready, 300, kubelet.explain)
    path = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"
    policies = {each["metadata"]["name"]: each["spec"] for each in server.api().must("GET", path)["items"]}
    assert len(policies) == 3
    for process in kubelet.sync():
        labels = process.pod["metadata"]["labels"]
        own = [each for each in policies.values() if each["podSelector"]["matchLabels"].items() <= labels.items()]
        (policy,) = own
        named = {each["name"]: each["containerPort"] for each in process.container["ports"]}
        allowed = {named[each["port"]] for rule in policy["ingress"] for each in rule["ports"]}
        assert process.listens_on() == allowed == {process.port}
        check_no_limit_met(process.log)
    assert sorted(each.port for each in kubelet.sync()) == sorted(ports)


def test_a_server_takes_everything(server: ControlPlane, tmp_path: Path) -> None:
    """What no other test installs: two replicas, accounts for clusters, a priority class of its own."""
    more = {
        "priorityClass": {"create": True},
        "placement": {"enabled": True, "taintUnavailable": True},
        "scores": {
            "agents": {"usage": {"producer": "usage", "clusterName": "c", "renewToken": True}},
            "hubAccounts": {"clusters": ["default"], "renewToken": True},
        },
        "crds": {"gangs": True, "workloadPolicy": True},
        "monitoring": {
            "prometheusServiceAccount": {"name": "prometheus"},
            "serviceMonitor": {"enabled": True},
            "prometheusRule": {"enabled": True},
            "dashboards": {"enabled": True},
        },
    }
    chart = with_monitoring(tmp_path / "stowplan")
    for file in tools.operator_definitions():
        server.kubectl("apply", "--server-side", "--filename", str(file))
        name = yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"]
        server.kubectl("wait", f"crd/{name}", "--for=condition=Established", "--timeout=120s")
    helm(server, "install", RELEASE, chart, "--dry-run=server", values=more)
    rendered = helm(server, "template", RELEASE, chart, values=more)
    said = server.kubectl("apply", "--server-side", "--dry-run=server", "--filename=-", input=rendered)
    kinds = ("deployment.apps", "networkpolicy.networking.k8s.io", "servicemonitor.monitoring.coreos.com")
    for each in (*kinds, "prometheusrule.monitoring.coreos.com"):
        assert f"{each}/stowplan serverside-applied (server dry run)" in said


# --- upgrade and rollback


def test_pods_outlive_an_upgrade_and_a_rollback(server: ControlPlane, kubelet: Kubelet, tmp_path: Path) -> None:
    """From the chart before, to this one, and back. Pods are created all the time; some wait from the first to the last
    for a node that comes at the end. Each is bound in the end, and was bound once.
    """
    ports = [flags.free_port(), flags.free_port()]
    helm(server, "install", RELEASE, previous_chart(tmp_path / "before"), values=values(ports[0]))
    first = leader(kubelet, ports[0])
    created: list[str] = []
    with server.namespace("upgrade") as namespace:

        def more(**spec: Any) -> None:
            created.append(f"pod-{len(created)}")
            create(server, namespace, created[-1], **spec)

        for _ in range(20):
            more(nodeSelector={"late": "yes"})
        waiting = set(created)
        helm(server, "upgrade", RELEASE, CHART, values=values(ports[1]))
        second = leader(kubelet, ports[1], more)
        assert second.pod["metadata"]["labels"]["helm.sh/chart"] != first.pod["metadata"]["labels"]["helm.sh/chart"]
        helm(server, "rollback", RELEASE, "1")
        third = leader(kubelet, ports[0], more)
        assert third.pod["metadata"]["uid"] != first.pod["metadata"]["uid"]
        assert third.container["args"] == first.container["args"]
        assert [number for number, _ in history(server)] == [1, 2, 3]
        assert {name for name, node in nodes_of(server, namespace).items() if not node} >= waiting, "none had a node"
        with server.nodes(1, prefix="late", labels={"late": "yes"}):
            until("all are bound", lambda: all(nodes_of(server, namespace).values()), 120, kubelet.explain)
            assert nodes_of(server, namespace).keys() == set(created), "none is lost"
            told = lambda: set(assigned(server, namespace)) == set(created)  # noqa: E731
            until("each was told of", told, 60, kubelet.explain)
            assert sorted(assigned(server, namespace)) == sorted(created), "none is bound twice"
    for process in (first, second, third):
        check_no_limit_met(process.log)
