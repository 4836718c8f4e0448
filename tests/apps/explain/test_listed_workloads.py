"""The workloads that a live cluster lists: those of every kind that no plugin reads."""

from __future__ import annotations

from pathlib import Path

from stowplan.apps.explain.sources import ClusterSource
from stowplan.testing import EmbeddedCluster
from tests.apps.explain.test_what_if import CONTAINERS, manifest


def test_a_cluster_lists_workloads_with_their_kinds(tmp_path: Path) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": template}}
    with EmbeddedCluster(nodes=1, folder=tmp_path) as cluster:
        cluster.apply(manifest("Deployment"), manifest("DaemonSet", "agent"), job)
        source = ClusterSource(str(cluster.kubeconfig))
        found = {(kind, document["metadata"]["name"]) for kind, document in source.workloads("default")}
        assert found == {("Deployment", "web"), ("DaemonSet", "agent"), ("Job", "job")}
        assert source.workloads("kube-system") == [] and len(source.workloads("")) == 3
        assert source.unseen == []
        source.close()
