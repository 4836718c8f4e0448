"""Every block of YAML in the documents is what it says: a server takes it, a scheduler is configured by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.apps import profile_loader
from stowplan.apps.place.configuration import load_policy
from stowplan.framework.config.document import snake
from stowplan.framework.registry import check_arguments
from stowplan.plugins import BUILT_IN
from stowplan.simulation import InputProblems, Templates, cluster_from, expectation_reader, stream_from_scenario
from tests.controlplane import hubs
from tests.controlplane.plane import ControlPlane

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def blocks() -> Iterator[Any]:
    for file in sorted(ROOT.glob("**/*.md")):
        if {"build", "node_modules", ".venv", "tests"} & set(file.relative_to(ROOT).parts):
            continue
        for number, block in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")), 1):
            yield pytest.param(file, block, id=f"{file.relative_to(ROOT)} {number}")


def test_there_are_blocks() -> None:
    assert len(list(blocks())) >= 6


@pytest.mark.controlplane
@pytest.mark.parametrize(("page", "block"), list(blocks()))
def test_a_block_of_yaml(plane: ControlPlane, namespace: str, page: Path, block: str, tmp_path: Path) -> None:
    write_policies(page, tmp_path)
    for document in filter(None, yaml.safe_load_all(block)):
        kind = document.get("kind")
        if kind == "KubeSchedulerConfiguration":
            profile_loader.configured(document, folder=tmp_path)
        elif kind == "PlacementConfiguration":
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
            load_policy(tmp_path / "config.yaml")
        elif kind is None and document.keys() <= {"plugins", "pluginConfig"}:  # a part of a profile
            profile_loader.configured(CONFIGURATION | {"profiles": [document]}, folder=tmp_path)
        elif kind is None and "jobs" in document:  # a workflow of GitHub
            assert all("uses" in step or "run" in step for job in document["jobs"].values() for step in job["steps"])
        elif kind in ("ClusterTemplate", "Scenario", "Expectations"):
            _is_read_for_a_simulation(document)
        elif kind is None:  # the separate file of SPPriority
            check_arguments(BUILT_IN["SPPriority"], document, "")
        else:
            _is_taken(plane, namespace, document, tmp_path)


def write_policies(page: Path, folder: Path) -> None:
    """Write the policies of a page into files, as the page names them: DiskType into disk_type.py."""
    for code in CODE.findall(page.read_text(encoding="utf-8")):
        for name in re.findall(r"^class (\w+)", code, re.MULTILINE):
            (folder / f"{snake(name)}.py").write_text(code, encoding="utf-8")


def _is_read_for_a_simulation(document: Any) -> None:
    problems, text = InputProblems(), yaml.safe_dump(document).encode()
    if document["kind"] == "Expectations":
        assert expectation_reader.from_yaml(text, "expect.yaml")
    elif document["kind"] == "Scenario":
        assert stream_from_scenario(text, Templates(), problems, seed=1)
    else:
        assert list(cluster_from(text, "cluster.yaml", problems))
    problems.check()


def _is_taken(plane: ControlPlane, namespace: str, document: Any, folder: Path) -> None:
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
        profile_loader.configured(document["data"]["config.yaml"], folder=folder)
