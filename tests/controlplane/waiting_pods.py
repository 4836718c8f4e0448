"""A case of `remedy_cases.py` made on a control plane: the pod waits, explain is asked, a remedy is typed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from stowplan.apps import cli
from stowplan.diagnosis import patches
from stowplan.diagnosis.remedy import AddNodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.remedy_cases import SUBJECT, Case

# Kinds without a namespace of which cases and remedies make objects.
CLUSTER_WIDE = "nodes,persistentvolumes,storageclasses,csinodes,csidrivers,priorityclasses,deviceclasses"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PATIENCE = 60  # seconds
REGISTRATION = 2.0  # seconds from a node to its CSINode


@dataclass
class WaitingPod:
    """The pod of a case, in a namespace of its own."""

    plane: ControlPlane
    case: Case
    namespace: str
    nodes: list[str]

    def named(self, text: str) -> str:
        for sign, name in (("$0", self.nodes[0]), ("$1", self.nodes[1]), ("$N", self.namespace)):
            text = text.replace(sign, name)
        return text

    def make(self) -> None:
        """Make what the case says, one thing after the other, until the pod waits."""
        for words in self.case.prepare:
            self.plane.kubectl(*self.named(words).split())
        self.create(*self.case.objects)
        self.create(*self.case.first)
        until("the first pods have nodes", self._first_have_nodes, PATIENCE, self.told)
        for words in self.case.then:
            self.plane.kubectl(*self.named(words).split())
        self.create(*self.case.nominated)
        until("pods are nominated", lambda: self._nominated() == len(self.case.nominated), PATIENCE, self.told)
        self.create(self.case.waits)
        until("the pod waits", lambda: any(map(self._was_looked_at, self.subjects())), PATIENCE, self.told)

    def create(self, *objects: dict[str, Any]) -> None:
        if objects:
            text = self.named("\n---\n".join(json.dumps(each) for each in objects))
            self.plane.kubectl("-n", self.namespace, "create", "-f", "-", input=text)

    def pods(self) -> list[Any]:
        found: list[Any] = self.plane.api().must("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def subjects(self) -> list[Any]:
        return [each for each in self.pods() if SUBJECT.items() <= each["metadata"].get("labels", {}).items()]

    def name(self) -> str:
        """The name of a pod that waits."""
        return next(str(each["metadata"]["name"]) for each in self.subjects() if self._was_looked_at(each))

    def told(self) -> str:
        """What to know of the pods if waiting was in vain."""
        shown = [[each["metadata"]["name"], each["spec"].get("nodeName"), each["status"]] for each in self.pods()]
        return json.dumps(shown)

    def _first_have_nodes(self) -> bool:
        """Those of the case, and all that the workloads of the case want."""
        wanted = len(self.case.first) + sum(each.get("spec", {}).get("replicas", 0) for each in self.case.objects)
        return bool(sum(bool(pod["spec"].get("nodeName")) for pod in self.pods()) == wanted)

    def _nominated(self) -> int:
        return sum(bool(pod["status"].get("nominatedNodeName")) for pod in self.pods())

    def _was_looked_at(self, pod: Any) -> bool:
        conditions = pod.get("status", {}).get("conditions", [])
        waits = any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
        return waits or self.case.cause == "scheduler"  # at that one nobody looks

    # -- after a remedy

    def is_scheduled(self, before: set[str]) -> bool:
        """True once the pod that waited, or one that replaces it, has a node. `before`: pods that had one."""
        self._provide_volumes()
        return any(each["spec"].get("nodeName") and each["metadata"]["uid"] not in before for each in self.subjects())

    def with_nodes(self) -> set[str]:
        return {each["metadata"]["uid"] for each in self.subjects() if each["spec"].get("nodeName")}

    def add_nodes(self, change: Any) -> None:
        """Do what a provider and a kubelet do: make nodes like those that the remedy shows, and their CSINodes."""
        there = {each["metadata"]["name"] for each in self.plane.api().must("GET", "/api/v1/nodes")["items"]}
        for node in patches.added_nodes(AddNodes(change["number"], change["like"], change["object"]), there):
            self.plane.api().must("POST", "/api/v1/nodes", node)
            # A kubelet takes a moment, too. A scheduler that hears of the CSINode first tries the pod without the node.
            time.sleep(REGISTRATION)
            volumes = {"metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": []}}
            self.plane.api().must("POST", "/apis/storage.k8s.io/v1/csinodes", volumes)

    def _provide_volumes(self) -> None:
        """Do what a driver does: make the volume of a claim for which the scheduler has chosen a node."""
        api = self.plane.api()
        for claim in api.must("GET", f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims")["items"]:
            metadata, wanted = claim["metadata"], claim["spec"]
            if SELECTED_NODE not in metadata.get("annotations", {}) or wanted.get("volumeName"):
                continue
            volume = {
                "metadata": {"name": f"pvc-{metadata['uid']}"},
                "spec": {
                    "capacity": wanted["resources"]["requests"],
                    "accessModes": wanted["accessModes"],
                    "storageClassName": wanted["storageClassName"],
                    "hostPath": {"path": "/tmp"},
                    "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
                },
            }
            api.ask("POST", "/api/v1/persistentvolumes", volume)


@contextlib.contextmanager
def waiting(plane: ControlPlane, case: Case) -> Iterator[WaitingPod]:
    """The pod of a case while it waits; afterwards nothing of the case is left."""
    before = set(plane.kubectl("get", CLUSTER_WIDE, "-o", "name").split())
    try:
        with plane.nodes(2, prefix="remedied", capacity={"cpu": "4"}) as nodes, plane.namespace("remedied") as name:
            found = WaitingPod(plane, case, name, nodes)
            try:
                found.make()
                yield found
            finally:
                _let_go(plane, name)
    finally:
        made = sorted({*plane.kubectl("get", CLUSTER_WIDE, "-o", "name").split()} - before)
        if made:
            plane.kubectl("delete", "--wait=false", "--ignore-not-found", *made)


def _let_go(plane: ControlPlane, namespace: str) -> None:
    for each in plane.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]:
        if each["metadata"].get("finalizers"):
            patch = '{"metadata":{"finalizers":null}}'
            plane.kubectl("-n", namespace, "patch", "pod", each["metadata"]["name"], "-p", patch)


def explained(kubeconfig: Path, *arguments: str) -> tuple[Any, str]:
    """What explain says of a pod that waits, for programs and for people. In this process: the imports take longest."""
    told = []
    for more in (("-o", "json"), ("--all-remedies",)):
        environment = {"KUBECONFIG": str(kubeconfig), "COLUMNS": "80"}
        done = CliRunner().invoke(cli.main, ["explain", *arguments, *more], env=environment)
        assert done.exit_code == 1, f"{done.output}\n{done.exception!r}"
        assert "Not seen" not in done.stderr, done.stderr
        told.append(done.stdout)
    return json.loads(told[0]), told[1]


def typed(plane: ControlPlane, command: str) -> str:
    """Type a command into a shell, as a user with kubectl and all rights."""
    folder = plane.folder / "bin"
    folder.mkdir(exist_ok=True)
    if not (folder / "kubectl").exists():
        (folder / "kubectl").symlink_to(plane.kubectl_program)
    path = f"{folder}:{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig()), "PATH": path, "KUBERC": "off"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
