"""The definitions that are installed from the start: the same as in deploy/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.errors import ApiError
from stowplan.embedded.schema.structural import StructuralSchema
from stowplan.embedded.tables import custom

ROOT = Path(__file__).parents[2]
PACKAGED, DEPLOYED = ROOT / "src" / "stowplan" / "embedded" / "definitions", ROOT / "deploy" / "crds"
SEED = ROOT / "tests" / "seeds" / "workload_policy"
POLICIES, RESERVATIONS = "workloadpolicies.kosmos.io.yaml", "resourcereservations.scheduling.kubenexus.io.yaml"
GROUPS = "podgroups.scheduling.x-k8s.io.yaml"


def test_deploy_has_the_same_definitions() -> None:
    """In three folders: installing policies must not replace the definitions of OCM on a hub."""
    found: dict[str, bytes] = {}
    for folder in (DEPLOYED, DEPLOYED / "placement", DEPLOYED / "kubenexus"):
        listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        assert sorted(listed) == sorted(each.name for each in folder.glob("*.io.yaml"))
        found |= {name: (folder / name).read_bytes() for name in listed}
    assert found == {file.name: file.read_bytes() for file in PACKAGED.glob("*.yaml")}
    others = [name for name in found if not name.endswith("cluster.open-cluster-management.io.yaml")]
    assert others == [POLICIES, GROUPS, RESERVATIONS]


def definition() -> Any:
    return yaml.safe_load((PACKAGED / POLICIES).read_text())


def create(cluster: Embedded, document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    resource = cluster.api.catalogue.of_kind("kosmos.io/v1alpha1", "WorkloadPolicy")
    assert resource is not None
    options = RequestOptions(0.0)
    return cluster.api.create(resource, "default", document, options), options.warnings


def a_document(**spec: Any) -> dict[str, Any]:
    given = {"topologyKey": "zone", "labelSelector": {}, "allocationPolicy": [{"name": "a", "replicas": 1}], **spec}
    return {"apiVersion": "kosmos.io/v1alpha1", "kind": "WorkloadPolicy", "metadata": {"name": "p"}, "spec": given}


@pytest.fixture(scope="module")
def cluster() -> Embedded:
    return Embedded(with_controllers=False)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({field: spelled}, id=f"{field} {spelled}")
        for field, values in {
            "allocationType": ("require", "Require", "required", "Required", "REQUIRED", "preferred", "Preferred"),
            "allocationMethod": ("Fill", "fill", "FILL", "Balance", "balance"),
            "scheduleStrategy": ("Fill", "fill", "Balance", "balance"),
            "rebalance": ("Never", "never", "Evict", "evict"),
        }.items()
        for spelled in values
    ],
)  # fmt: skip
def test_every_spelling_is_kept_as_it_is_written(cluster: Embedded, spec: dict[str, str]) -> None:
    document = {**a_document(**spec), "metadata": {"generateName": "p-"}}
    made, warnings = create(cluster, document)
    assert made["spec"] == {**document["spec"], "allocationType": spec.get("allocationType", "Preferred")}
    assert warnings == []


@pytest.mark.parametrize("replicas", ["37.5%", "100%", "0%", "5.25%", 0, 7])
def test_replicas_are_numbers_or_percentages(cluster: Embedded, replicas: object) -> None:
    spec = {"allocationPolicy": [{"name": "a", "replicas": replicas}]}
    made, _ = create(cluster, {**a_document(**spec), "metadata": {"generateName": "p-"}})
    assert made["spec"]["allocationPolicy"] == spec["allocationPolicy"]


@pytest.mark.parametrize("file", ["design-details.yaml", "workloadpolicy.yaml"])
def test_the_seeds_policies_lose_nothing(file: str) -> None:
    document = yaml.safe_load((SEED / file).read_text())
    version = definition()["spec"]["versions"][0]
    schema = StructuralSchema(version["schema"]["openAPIV3Schema"])
    assert schema.pruned(document) == document
    assert schema.causes(document) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"allocationType": "soft"}, "spec.allocationType", id="a type that is none"),
        pytest.param({"allocationMethod": "Full"}, "spec.allocationMethod", id="a method that is none"),
        pytest.param({"topologyKey": ""}, "spec.topologyKey", id="no topology key"),
        pytest.param({"allocationPolicy": [{"name": "a", "replicas": -1}]}, "replicas", id="less than nothing"),
        pytest.param({"allocationPolicy": [{"name": "a", "replicas": "30"}]}, "replicas", id="a text that is none"),
        pytest.param({"allocationPolicy": [{"name": "a", "replicas": "101%"}]}, "replicas", id="more than all"),
        pytest.param({"rebalance": "often"}, "spec.rebalance", id="another word for when to evict"),
        pytest.param({"allocationPolicy": []}, "spec.allocationPolicy", id="no domain"),
        pytest.param(
            {"allocationPolicy": [{"name": f"d{number}", "replicas": 1} for number in range(257)]},
            "spec.allocationPolicy.*at most 256",
            id="too many domains",
        ),
    ],
)
def test_refusals(cluster: Embedded, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError, match=message):
        create(cluster, a_document(**spec))


def test_the_columns_show_the_status() -> None:
    version = definition()["spec"]["versions"][0]
    status = {
        "desired": 4, "current": 3, "pending": 2,
        "conditions": [
            {"type": "Valid", "status": "True"}, {"type": "Satisfied", "status": "False", "message": "a 3/4"},
        ],
    }  # fmt: skip
    document = {**a_document(allocationType="Required"), "status": status}
    document["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    printer = custom.printer(version["additionalPrinterColumns"])
    cells = printer.cells(document, 1_767_225_600.0 + 60)
    shown = {column.name: cell for column, cell in zip(printer.columns, cells, strict=True)}
    assert shown == {
        "Name": "p", "Topology": "zone", "Type": "Required", "Desired": 4, "Current": 3, "Pending": 2,
        "Satisfied": "False", "Valid": "True", "Domains": "a 3/4", "Age": "60s",
    }  # fmt: skip
