"""Every block of YAML in the documents is what it says: a server takes it, a scheduler is configured by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.framework.registry import check_arguments
from stowplan.plugins import BUILT_IN
from tests.controlplane import hubs
from tests.controlplane.plane import ControlPlane

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLUGINS = ROOT / "examples" / "01-first-plugin"  # where paths in the README's configuration begin


def blocks() -> Iterator[Any]:
    for file in sorted(ROOT.glob("**/*.md")):
        if {"build", "node_modules", ".venv", "tests"} & set(file.relative_to(ROOT).parts):
            continue
        for number, block in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")), 1):
            yield pytest.param(block, id=f"{file.relative_to(ROOT)} {number}")


def test_there_are_blocks() -> None:
    assert len(list(blocks())) >= 6


@pytest.mark.controlplane
@pytest.mark.parametrize("block", list(blocks()))
def test_a_block_of_yaml(plane: ControlPlane, namespace: str, block: str) -> None:
    for document in filter(None, yaml.safe_load_all(block)):
        kind = document.get("kind")
        if kind == "KubeSchedulerConfiguration":
            profile_loader.configured(document, folder=PLUGINS)
        elif kind is None:  # the separate file of SPPriority
            check_arguments(BUILT_IN["SPPriority"], document, "")
        else:
            _is_taken(plane, namespace, document)


def _is_taken(plane: ControlPlane, namespace: str, document: Any) -> None:
    plane.kubectl("apply", "--filename", str(ROOT / "deploy" / "crds" / "workloadpolicies.kosmos.io.yaml"))
    plane.kubectl("wait", "crd/workloadpolicies.kosmos.io", "--for=condition=Established", "--timeout=120s")
    if document["apiVersion"].startswith(hubs.GROUP):
        hubs.define(plane)
    if document["kind"] in ("ResourceReservation", "PodGroup"):
        plane.kubectl("apply", "--kustomize", str(ROOT / "deploy" / "crds" / "kubenexus"))
        names = ("crd/resourcereservations.scheduling.kubenexus.io", "crd/podgroups.scheduling.x-k8s.io")
        plane.kubectl("wait", *names, "--for=condition=Established", "--timeout=120s")
    own = document["metadata"].get("namespace")
    if own and own != "kube-system":
        document = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    where = [] if own == "kube-system" else ["--namespace", namespace]
    plane.kubectl("apply", "--dry-run=server", "--filename=-", *where, input=yaml.safe_dump(document))
    if document["kind"] == "AddOnPlacementScore":
        hubs.apply_status(plane, yaml.safe_dump(document))
    if document["kind"] == "ConfigMap" and "config.yaml" in document.get("data", {}):
        profile_loader.configured(document["data"]["config.yaml"], folder=PLUGINS)
