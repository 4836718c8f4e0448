"""The definitions of cluster.open-cluster-management.io take what OCM's API takes, and the seed's spelling, too."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.errors import ApiError
from stowplan.embedded.manifests import documents
from stowplan.embedded.schema.structural import StructuralSchema
from stowplan.embedded.tables import custom
from tests.embedded.placement_objects import GROUP, REFUSED, REFUSED_SCORES, prioritizer

ROOT = Path(__file__).parents[2]
PACKAGED = ROOT / "src" / "stowplan" / "embedded" / "definitions"
SEED = ROOT / "tests" / "seeds" / "placement"
RECORDS = sorted((ROOT / "tests" / "golden" / "placement").glob("*.jsonl.gz"))
PLACEHOLDER = "example-score-of-each-cluster.yaml"
# The name of a binding is checked by a rule in CEL, which the embedded cluster does not evaluate.
BY_RULE = {"p-candidates-006", "p-candidates-046"}


def definitions() -> dict[str, Any]:
    found = (yaml.safe_load(file.read_text()) for file in PACKAGED.glob(f"*.{GROUP}.yaml"))
    return {each["spec"]["names"]["kind"]: each for each in found}


SCHEMAS = {
    (f"{GROUP}/{version['name']}", kind): StructuralSchema(version["schema"]["openAPIV3Schema"])
    for kind, definition in definitions().items()
    for version in definition["spec"]["versions"]
}


def test_the_versions_are_ocms_and_the_seeds() -> None:
    served = {(kind, version.rpartition("/")[2]) for version, kind in SCHEMAS}
    assert served == {
        ("ManagedCluster", "v1"), ("ManagedClusterSet", "v1beta2"), ("ManagedClusterSetBinding", "v1beta2"),
        ("Placement", "v1beta1"), ("Placement", "v1alpha1"), ("PlacementDecision", "v1beta1"),
        ("AddOnPlacementScore", "v1alpha1"),
    }  # fmt: skip
    for definition in definitions().values():
        assert all("status" in version["subresources"] for version in definition["spec"]["versions"])
    now, then = definitions()["Placement"]["spec"]["versions"]
    assert now["schema"] == then["schema"], "nothing is lost between them"


# --- recorded objects


def records() -> Iterator[Any]:
    for file in RECORDS:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def is_taken(document: Any) -> bool:
    """Without a complaint, and as it is: nothing dropped, no default that was not filled in already."""
    schema = SCHEMAS[document["apiVersion"], document["kind"]]
    as_it_is = schema.pruned(document) == document == schema.defaulted(document)
    return as_it_is and schema.causes(document) == []


@pytest.mark.skipif(not RECORDS, reason="no records of OCM's placement controller under tests/golden/placement")
def test_recorded_objects_are_taken_as_ocms_api_takes_them() -> None:
    for record in records():
        every = [record["placement"], *(each for found in record["objects"].values() for each in found)]
        taken = all(is_taken(document) for document in every)
        assert taken is (record["apiValid"] or record["id"] in BY_RULE), record["id"]


# --- the seed


@pytest.mark.parametrize("file", sorted(each.name for each in SEED.glob("*.yaml") if each.name != PLACEHOLDER))
def test_the_seeds_objects_lose_nothing(file: str) -> None:
    (_, document) = next(documents([SEED / file]))
    schema = SCHEMAS[document["apiVersion"], document["kind"]]
    assert schema.pruned(document) == document
    assert schema.causes(document) == []


# --- what is refused


@pytest.fixture(scope="module")
def cluster() -> Embedded:
    return Embedded(with_controllers=False)


def create(cluster: Embedded, document: dict[str, Any]) -> dict[str, Any]:
    resource = cluster.api.catalogue.of_kind(document["apiVersion"], document["kind"])
    assert resource is not None
    return cluster.api.create(resource, "default" if resource.namespaced else "", document, RequestOptions(0.0))


@pytest.mark.parametrize(("document", "message"), REFUSED)
def test_refusals(cluster: Embedded, document: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        create(cluster, document)
    assert refused.value.code == 422
    assert message in refused.value.message


@pytest.mark.parametrize(("status", "message"), REFUSED_SCORES)
def test_refused_scores(cluster: Embedded, status: dict[str, Any], message: str) -> None:
    document: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"generateName": "s-"},
    }
    made = create(cluster, document)
    resource = cluster.api.catalogue.of_kind(document["apiVersion"], document["kind"])
    assert resource is not None
    with pytest.raises(ApiError) as refused:
        cluster.api.update(
            resource, "default", made["metadata"]["name"], {**made, "status": status}, RequestOptions(0.0), "status"
        )
    assert refused.value.code == 422
    assert message in refused.value.message


# --- what is filled in and shown


def test_what_is_filled_in(cluster: Embedded) -> None:
    made = create(cluster, {**prioritizer(scoreCoordinate={"buildIn": "Steady"}), "metadata": {"name": "defaults"}})
    assert made["spec"] == {
        "sortBy": "ClusterName",
        "scoreRateLimit": "1m",
        "prioritizerPolicy": {
            "mode": "Additive",
            "configurations": [{"scoreCoordinate": {"type": "BuiltIn", "buildIn": "Steady"}, "weight": 1}],
        },
    }
    named = {**prioritizer(name="Balance"), "apiVersion": f"{GROUP}/v1alpha1", "metadata": {"name": "named"}}
    assert create(cluster, named)["spec"]["prioritizerPolicy"]["configurations"] == [{"name": "Balance", "weight": 1}]
    whole = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": "default"}}
    assert create(cluster, whole)["spec"] == {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}


def test_a_placement_is_read_at_both_versions(cluster: Embedded) -> None:
    seed = yaml.safe_load((SEED / "placement.yaml").read_text())
    create(cluster, {**seed, "metadata": {"name": "seed"}})
    now = cluster.api.catalogue.of_kind(f"{GROUP}/v1beta1", "Placement")
    assert now is not None
    (first, second) = cluster.api.get(now, "default", "seed")["spec"]["prioritizerPolicy"]["configurations"]
    assert first == {"scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}, "weight": 3}
    assert second["scoreCoordinate"]["addOn"] == {"resourceName": "default", "scoreName": "cpuratio"}


@pytest.mark.parametrize(
    ("kind", "document", "shown"),
    [
        pytest.param(
            "Placement",
            {"status": {"numberOfSelectedClusters": 2, "conditions": [
                {"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled"}]}},
            {"Succeeded": "True", "Reason": "AllDecisionsScheduled", "SelectedClusters": 2},
            id="a placement",
        ),
        pytest.param(
            "PlacementDecision",
            {"metadata": {"labels": {f"{GROUP}/placement": "web", f"{GROUP}/decision-group-index": "0"}}},
            {"Placement": "web", "Group": "0"},
            id="a decision",
        ),
        pytest.param(
            "ManagedCluster",
            {"spec": {"hubAcceptsClient": True, "managedClusterClientConfigs": [{"url": "https://a"}, {"url": "https://b"}]},
             "status": {"conditions": [
                {"type": "ManagedClusterConditionAvailable", "status": "Unknown"}]}},
            {"Hub Accepted": True, "Available": "Unknown", "Managed Cluster URLs": "https://a"},
            id="a cluster, of whose addresses a server shows the first",
        ),
        pytest.param(
            "AddOnPlacementScore",
            {"status": {"validUntil": "2026-01-01T00:00:00Z", "conditions": [
                {"type": "AddOnPlacementScoreUpdated", "status": "True"}]}},
            {"Updated": "True", "Valid Until": "2026-01-01T00:00:00Z"},
            id="a score",
        ),
    ],
)  # fmt: skip
def test_the_columns_show_the_status(kind: str, document: dict[str, Any], shown: dict[str, Any]) -> None:
    metadata = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z", **document.get("metadata", {})}
    printer = custom.printer(definitions()[kind]["spec"]["versions"][0]["additionalPrinterColumns"])
    cells = printer.cells({**document, "metadata": metadata}, 1_767_225_600.0 + 60)
    found = {column.name: cell for column, cell in zip(printer.columns, cells, strict=True)}
    assert {name: found[name] for name in shown} == shown
