"""Remedies typed as they are printed, where the real kube-scheduler schedules and no Stowplan runs.

For each cause there is a pod that waits for a node. `stowplan explain` is asked as a user with read-only rights would;
the commands of a remedy go to a shell; kube-scheduler then schedules the pod, or the one that replaces it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps.explain import output
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until

pytestmark = pytest.mark.controlplane

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
TAINT = "dedicated=gpu:NoSchedule"
SUBJECT = {"subject": "yes"}  # the labels of the pods that wait
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/fast",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def spec(cpu: str = "100m", **more: Any) -> dict[str, Any]:
    ports = more.pop("ports", [])
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}
    return {"terminationGracePeriodSeconds": 0, "containers": [container | {"ports": ports}], **more}


def a_pod(name: str = "web", labels: dict[str, str] = SUBJECT, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec(**more)}


def owned(kind: str, **more: Any) -> dict[str, Any]:
    """A workload with one pod."""
    template = {"metadata": {"labels": SUBJECT}, "spec": spec(**more)}
    document: dict[str, Any] = {"kind": kind, "metadata": {"name": "web"}, "spec": {"template": template}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", **document}
    document["spec"] |= {"selector": {"matchLabels": SUBJECT}, "replicas": 1}
    if kind == "StatefulSet":
        document["spec"]["serviceName"] = "web"
    return {"apiVersion": "apps/v1", **document}


def terms(kind: str, app: str, key: str = HOST) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]}}


def spreading(key: str) -> list[dict[str, Any]]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return [constraint | {"labelSelector": {"matchLabels": {"app": "x"}}}]


@dataclass(frozen=True)
class Case:
    """`first`: pods that are scheduled before; `prepare`: kubectl's words for the nodes, $0 and $1."""

    code: str
    waits: dict[str, Any]
    prepare: tuple[str, ...] = ()
    first: tuple[dict[str, Any], ...] = ()
    objects: tuple[dict[str, Any], ...] = field(default=())


TAINTED = (f"taint nodes $0 $1 {TAINT}",)
X = {"app": "x"}
CASES = [
    pytest.param(Case("tolerate", a_pod(), TAINTED), id="a taint, a bare pod"),
    pytest.param(Case("tolerate", owned("Deployment"), TAINTED), id="a taint, a Deployment"),
    pytest.param(Case("tolerate", owned("StatefulSet"), TAINTED), id="a taint, a StatefulSet"),
    pytest.param(Case("tolerate", owned("ReplicaSet"), TAINTED), id="a taint, a ReplicaSet"),
    pytest.param(Case("tolerate", owned("Job"), TAINTED), id="a taint, a Job"),
    pytest.param(Case("remove-taint", a_pod(), TAINTED), id="a taint, taken off"),
    pytest.param(Case("lower-request", a_pod(cpu="9")), id="no node is big enough, a bare pod"),
    pytest.param(Case("lower-request", owned("Deployment", cpu="9")), id="no node is big enough, a Deployment"),
    pytest.param(Case("lower-request", owned("Job", cpu="9")), id="no node is big enough, a Job"),
    pytest.param(
        Case("selector-value", owned("Deployment", nodeSelector={"disk": "sdd"}), ("label nodes $0 $1 disk=ssd",)),
        id="a selector with a typo",
    ),
    pytest.param(Case("label-node", a_pod(nodeSelector={"disk": "ssd"})), id="a label that no node has"),
    pytest.param(Case("drop-requirement", a_pod(nodeSelector={"disk": "ssd"})), id="a selector that is not needed"),
    pytest.param(Case("uncordon", a_pod(), ("cordon $0 $1",)), id="cordoned nodes"),
    pytest.param(
        Case(
            "drop-anti-affinity-term",
            owned("Deployment", affinity=terms("podAntiAffinity", "x", ZONE)),
            first=(a_pod("a", X, cpu="3"), a_pod("b", X, cpu="3")),
        ),
        id="anti-affinity with pods that run",
    ),
    pytest.param(Case("drop-affinity-term", a_pod(affinity=terms("podAffinity", "nobody"))), id="affinity with no pod"),
    pytest.param(
        Case(
            "raise-max-skew",
            a_pod(labels=SUBJECT | X, topologySpreadConstraints=spreading(ZONE)),
            (f"taint nodes $1 {TAINT}",),
            (a_pod("a", X),),
        ),
        id="too uneven",
    ),
    pytest.param(
        Case("schedule-anyway", owned("Deployment", topologySpreadConstraints=spreading("rack"))),
        id="spreading by a label that no node has",
    ),
    pytest.param(
        Case(
            "host-port",
            a_pod(ports=[{"containerPort": 80, "hostPort": 8080}]),
            first=tuple(a_pod(name, X, cpu="3", ports=[{"containerPort": 80, "hostPort": 8080}]) for name in "ab"),
        ),
        id="a host port",
    ),
    pytest.param(Case("remove-gates", a_pod(schedulingGates=[{"name": "example.com/quota"}])), id="a gate"),
    pytest.param(
        Case(
            "use-claim",
            a_pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "dat"}}]),
            objects=(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": "remedies-volume"},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "hostPath": {"path": "/tmp"},
                        "storageClassName": "",
                    },
                },
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "storageClassName": "",
                    },
                },
            ),
        ),
        id="a claim with a typo",
    ),
    pytest.param(
        Case("free-room", a_pod(cpu="3"), first=(a_pod("a", X, cpu="3"), a_pod("b", X, cpu="3"))), id="room taken"
    ),
    pytest.param(
        Case("raise-priority", a_pod(cpu="3"), first=(a_pod("a", X, cpu="3"), a_pod("b", X, cpu="3"))),
        id="room taken by pods of the same priority",
    ),
    pytest.param(Case("scheduler-name", a_pod(schedulerName="foo-scheduler")), id="nobody serves it"),
    pytest.param(
        Case("scheduler-name", owned("Deployment", schedulerName="foo-scheduler")), id="nobody serves a Deployment"
    ),
]


@pytest.fixture(scope="module")
def kube_scheduler(plane: ControlPlane) -> Iterator[Program]:
    with plane.start_kube_scheduler() as program:
        yield program


@pytest.fixture(scope="module")
def reader(plane: ControlPlane) -> Path:
    """The kubeconfig of an account with the rights of deploy/read-only.yaml, and no others."""
    file = Path(__file__).parents[2] / "deploy" / "read-only.yaml"
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    documents = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}}]
    for each in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        documents.append(each | {"subjects": [subject]} if "subjects" in each else each)
    plane.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in documents))
    return plane.service_account_kubeconfig("default", "reader")


def run_explain(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stowplan.apps.cli", "explain", *arguments]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def explain(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run_explain(kubeconfig, *arguments)
    assert done.returncode == 1, f"{done.stdout}\n{done.stderr}"
    assert "Not seen" not in done.stderr, done.stderr
    return done


def typed(plane: ControlPlane, command: str) -> str:
    """Type a command into a shell, as a user with kubectl and all rights."""
    path = f"{plane.folder / 'bin'}:{os.environ['PATH']}"
    (plane.folder / "bin").mkdir(exist_ok=True)
    link = plane.folder / "bin" / "kubectl"
    if not link.exists():
        link.symlink_to(plane.kubectl_program)
    environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig()), "PATH": path, "KUBERC": "off"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pods(plane: ControlPlane, namespace: str) -> list[Any]:
    found: list[Any] = plane.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def subjects(plane: ControlPlane, namespace: str) -> list[Any]:
    return [each for each in pods(plane, namespace) if each["metadata"].get("labels", {}).get("subject")]


def was_looked_at(pod: Any, case: Case) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return case.code == "scheduler-name" or any(each["type"] == "PodScheduled" for each in conditions)


@pytest.mark.usefixtures("kube_scheduler")
@pytest.mark.parametrize("case", CASES)
def test_the_printed_command_helps(plane: ControlPlane, reader: Path, case: Case) -> None:
    with plane.nodes(2, prefix="remedied", capacity={"cpu": "4"}) as names, plane.namespace("remedied") as namespace:
        for words in case.prepare:
            plane.kubectl(*words.replace("$0", names[0]).replace("$1", names[1]).split())
        for each in (*case.objects, *case.first):
            plane.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(each))
        until(
            "the first pods have nodes",
            lambda: sum(bool(pod["spec"].get("nodeName")) for pod in pods(plane, namespace)) == len(case.first),
            60,
        )
        plane.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(case.waits))
        until(
            "the pod waits",
            lambda: any(was_looked_at(pod, case) for pod in subjects(plane, namespace)),
            60,
        )
        name = subjects(plane, namespace)[0]["metadata"]["name"]
        found = json.loads(explain(reader, name, "-n", namespace, "-o", "json").stdout)
        remedy = next((each for each in found["remedies"] if each["code"] == case.code), None)
        assert remedy is not None, json.dumps(found["remedies"], indent=1)
        assert remedy["commands"], remedy
        shown = explain(reader, name, "-n", namespace).stdout
        for command in remedy["commands"]:
            if found["remedies"].index(remedy) < output.MAX_REMEDIES:
                assert command in shown
            typed(plane, command)
        until(
            "kube-scheduler schedules it",
            lambda: any(pod["spec"].get("nodeName") for pod in subjects(plane, namespace)),
            90,
            lambda: json.dumps([pod.get("status") for pod in subjects(plane, namespace)]),
        )
        for each in case.objects:
            if each["kind"] == "PersistentVolume":
                plane.kubectl("delete", "pv", each["metadata"]["name"], "--wait=false")


@pytest.mark.usefixtures("kube_scheduler")
def test_what_may_not_be_read_is_named_in_one_line(plane: ControlPlane) -> None:
    account = {"kind": "ServiceAccount", "metadata": {"name": "few", "namespace": "default"}, "apiVersion": "v1"}
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "few"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "few"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "few"},
        "subjects": [{"kind": "ServiceAccount", "name": "few", "namespace": "default"}],
    }
    plane.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, (account, role, binding))))
    few = plane.service_account_kubeconfig("default", "few")
    with plane.nodes(1, prefix="unseen", capacity={"cpu": "4"}), plane.namespace("unseen") as namespace:
        plane.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(owned("Deployment", cpu="9")))
        until("the pod exists", lambda: subjects(plane, namespace), 60)
        done = run_explain(few, "deploy/web", "-n", namespace)
        assert done.returncode == 1 and "has no node" in done.stdout, done.stderr
        assert "kubectl -n" in done.stdout and "patch deployment web" in done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("Not seen, for lack of rights: ")
        for kind in ("services", "replicasets.apps", "leases.coordination.k8s.io", "events.events.k8s.io"):
            assert kind in line
        role["rules"] = []
        plane.kubectl("apply", "-f", "-", input=json.dumps(role))
        until("the right is gone", lambda: run_explain(few, "-n", namespace).returncode == 2, 30)
        done = run_explain(few, "-n", namespace)
        assert "cannot be listed" in done.stderr and "deploy/read-only.yaml has the rights" in done.stderr
        assert "Traceback" not in done.stderr
