"""The definitions of cluster.open-cluster-management.io on both clusters: the seed is taken, bad input is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster, KubectlError
from tests.controlplane.conftest import EVERYWHERE
from tests.controlplane.hubs import GROUP, PLACEHOLDER, SEED, apply_status, define, managed, score_status, scores_of
from tests.controlplane.plane import ControlPlane
from tests.embedded.placement_objects import REFUSED, REFUSED_SCORES

BLOCKS = sorted(file.name for file in SEED.glob("*.yaml") if file.name != PLACEHOLDER)
NAMESPACES = ("cluster1", "primary", "backup", "ns1")


@pytest.fixture(scope="module", params=EVERYWHERE)
def hub(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """With the namespaces of the seed."""
    found: Cluster = request.getfixturevalue(request.param)
    define(found)
    with managed(found, *NAMESPACES):
        yield found
    found.check()


@pytest.mark.parametrize("file", BLOCKS)
def test_the_seeds_blocks_are_taken_unedited(hub: Cluster, file: str) -> None:
    text = (SEED / file).read_text()
    document = yaml.safe_load(text)
    hub.kubectl("apply", "--filename", str(SEED / file))
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    kind = f"{document['kind'].lower()}s.v1alpha1.{GROUP}"
    if "status" in document:
        hub.kubectl("replace", "--subresource=status", "--filename", str(SEED / file))
    stored = json.loads(hub.kubectl("get", kind, name, "--namespace", namespace, "--output=json"))
    for part in ("spec", "status"):
        assert contains(stored.get(part, {}), document.get(part, {}))


def contains(found: Any, wanted: Any) -> bool:
    """All that is wanted is there, perhaps among defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and contains(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(contains, found, wanted))
    return bool(found == wanted)


def test_the_block_that_is_no_manifest(hub: Cluster) -> None:
    """Its namespace is a placeholder, and one score has no name; mended, it is taken."""
    text = (SEED / PLACEHOLDER).read_text()
    with pytest.raises(KubectlError):
        hub.kubectl("apply", "--filename", str(SEED / PLACEHOLDER))
    placed = text.replace("{managed cluster namespace}", "cluster1").replace("name: default", "name: mended")
    with pytest.raises(KubectlError, match=r"prioritizer|status\.scores\[1\]\.name: Required value"):
        apply_status(hub, placed)
    apply_status(hub, placed.replace("prioritizer:", "name:"))
    assert scores_of(hub, "cluster1", "mended") == {"cpuratio": 88, "memratio": 77}
    assert score_status(hub, "cluster1", "mended")["validUntil"] == "2021-10-29T18:31:39Z"


def test_a_placement_is_the_same_at_both_versions(hub: Cluster) -> None:
    hub.kubectl("apply", "--filename", str(SEED / "placement.yaml"))
    then, now = (
        json.loads(hub.kubectl("get", f"placements.{version}.{GROUP}", "placement", "-n", "ns1", "-o", "json"))
        for version in ("v1alpha1", "v1beta1")
    )
    assert then["spec"] == now["spec"]
    steady = now["spec"]["prioritizerPolicy"]["configurations"][0]["scoreCoordinate"]
    assert (steady["type"], steady["buildIn"]) == ("BuildIn", "Steady")
    assert hub.kubectl("get", "placements", "-n", "ns1").split()[:4] == [
        "NAME",
        "SUCCEEDED",
        "REASON",
        "SELECTEDCLUSTERS",
    ]


@pytest.mark.parametrize(("document", "said"), REFUSED)
def test_bad_objects_are_refused(hub: Cluster, document: dict[str, Any], said: str) -> None:
    plural = f"{document['kind'].lower()}s"
    where = "" if document["kind"] == "ManagedCluster" else "/namespaces/ns1"
    answer = hub.api().ask("POST", f"/apis/{document['apiVersion']}{where}/{plural}", document)
    assert answer.status == 422, answer.body
    assert said in answer.json()["message"]


@pytest.mark.parametrize(("status", "said"), REFUSED_SCORES)
def test_bad_scores_are_refused(hub: Cluster, status: dict[str, Any], said: str) -> None:
    path = f"/apis/{GROUP}/v1alpha1/namespaces/cluster1/addonplacementscores"
    document = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AddOnPlacementScore", "metadata": {"generateName": "s-"}}
    made = hub.api().must("POST", path, document)
    answer = hub.api().ask("PUT", f"{path}/{made['metadata']['name']}/status", {**made, "status": status})
    assert answer.status == 422, answer.body
    assert said in answer.json()["message"]


@pytest.mark.controlplane
def test_each_version_of_kubernetes_takes_them(each_plane: ControlPlane) -> None:
    """And refuse a binding by another name than its set's, by a rule that the embedded cluster does not evaluate."""
    define(each_plane)
    listed = each_plane.kubectl("api-resources", f"--api-group={GROUP}", "--no-headers", "--output=name").split()
    assert len(listed) == 6
    names = each_plane.kubectl("api-resources", f"--api-group={GROUP}", "--no-headers")
    for short in ("mcl", "mclset", "mclsetbinding"):
        assert short in names
    binding = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "a"}}
    path = f"/apis/{GROUP}/v1beta2/namespaces/default/managedclustersetbindings?dryRun=All"
    assert each_plane.api().ask("POST", path, {**binding, "spec": {"clusterSet": "a"}}).status == 201
    answer = each_plane.api().ask("POST", path, {**binding, "spec": {"clusterSet": "b"}})
    assert answer.status == 422
    assert "metadata.name must be the same as spec.clusterSet" in answer.json()["message"]
