"""`stowplan place` at a hub with Open Cluster Management's own definitions, as its project publishes them.

They lack what ours have besides (`score` in a decision, `sortBy`, the seed's spellings): the server takes it out of
what is written, or refuses it, and neither may keep the program from its work, or busy for ever.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane import build
from tests.controlplane.hubs import CRDS, GROUP, SEED
from tests.controlplane.place_process import Hub, add_on, built_in, exact, placing
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.full  # the definitions are fetched as a Go module
MODULE = "open-cluster-management.io/api@v1.0.0"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = [file.stem for file in CRDS.glob("*.io.yaml")]


@pytest.fixture(scope="module")
def theirs() -> list[Path]:
    # Under the lock: `go_environment` takes other folders for left over, and another worker may be building just now.
    with build.locked(build.to_stderr), build.go_environment() as environment:
        found = json.loads(build.go(["mod", "download", "-json", MODULE], tempfile.gettempdir(), environment))
    files = Path(found["Dir"]).glob("cluster/*/*.crd.yaml")
    return [file for file in files if yaml.safe_load(file.read_text())["metadata"]["name"] in NAMES]


@pytest.fixture(scope="module")
def hub(plane: ControlPlane, theirs: list[Path]) -> Iterator[Hub]:
    """With their definitions in place of ours; without either in the end."""
    without_definitions(plane)
    assert len(theirs) == len(NAMES) == 6
    for file in theirs:
        plane.kubectl("create", "--filename", str(file))
    plane.kubectl("wait", "--for=condition=Established", "--timeout=120s", *(f"crd/{name}" for name in NAMES))
    with plane.namespace("ocm") as namespace, placing(plane, "beside-ocm") as program:
        yield Hub(plane, namespace, program.explain)
    without_definitions(plane)


def without_definitions(plane: ControlPlane) -> None:
    api = plane.api()
    for name in NAMES:
        api.ask("DELETE", f"{DEFINITIONS}/{name}")
    until("they are gone", lambda: all(api.get(f"{DEFINITIONS}/{name}").status == 404 for name in NAMES), 60)


def test_placements_are_decided_and_then_left_alone(hub: Hub) -> None:
    """The server drops unknown fields of our writes; that must not look like a change of another client."""
    hub.a_cluster("c1", cpu=(10, 10))
    hub.a_cluster("c2", cpu=(7, 10))
    hub.a_cluster("c3", cpu=(9, 10), labels={"zone": "far"})
    hub.bind()
    hub.score(hub.namespace, 50)
    hub.place("by-cpu", numberOfClusters=2, prioritizerPolicy=exact(*built_in(ResourceAllocatableCPU=1)))
    hub.place("by-score", numberOfClusters=1, prioritizerPolicy=exact(add_on(weight=-1)), sortBy="Score")
    hub.place("far", predicates=[{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"zone": "far"}}}}])
    hub.gets("c1", "c3", name="by-cpu")
    hub.gets("c1", name="by-score")
    hub.gets("c3", name="far")
    (decision,) = hub.decisions("by-cpu")
    found = decision["status"]["decisions"]
    assert {each["reason"] for each in found} == {"BestScore"} and not any("score" in each for each in found)
    assert hub.says("PlacementSatisfied", "True", "AllDecisionsScheduled", "by-cpu")
    assert versions_later(hub) == versions(hub), "written again and again"


def versions(hub: Hub) -> dict[str, str]:
    kinds = ("placements", "placementdecisions")
    items = [each["metadata"] for kind in kinds for each in hub.api.must("GET", hub.path(kind))["items"]]
    return {each["uid"]: each["resourceVersion"] for each in items}


def versions_later(hub: Hub) -> dict[str, str]:
    """After something else was decided, which comes after whatever would be written again at once."""
    before = versions(hub)
    for name in ("first", "second", "third"):
        hub.place(name, numberOfClusters=1, prioritizerPolicy=exact(*built_in(Steady=1)))
        hub.gets_number(1, name)
        hub.gone(hub.path("placements", name))
        until("its decisions are gone", lambda name=name: not hub.decisions(name), 60)  # type: ignore[misc]
    return before


def test_the_seeds_spelling_is_refused_by_the_server(hub: Hub) -> None:
    document = yaml.safe_load((SEED / "placement.yaml").read_text())
    assert document["apiVersion"].endswith("v1alpha1")
    document["metadata"]["namespace"] = hub.namespace
    answer = hub.api.ask("POST", f"/apis/{GROUP}/v1alpha1/namespaces/{hub.namespace}/placements", document)
    assert answer.status == 404, answer.body
    document["apiVersion"] = f"{GROUP}/v1beta1"
    answer = hub.api.ask("POST", hub.path("placements"), document)
    assert answer.status == 422 and "scoreCoordinate.type" in str(answer.body), answer.body
